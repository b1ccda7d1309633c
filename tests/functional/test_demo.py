# SPDX-License-Identifier: Apache-2.0
"""The embedded cloud, and the demo: published and other scenarios on it."""

import contextlib
import datetime
import io
import json
import os
import textwrap

import fixtures
import testtools

from nova_preempt.cmd import demo
from nova_preempt.embedded import embedded_cloud


class TestCloud(embedded_cloud.EmbeddedTestCase):

    def setUp(self):
        self.flags(group='filter_scheduler', enabled_filters=[
            'ComputeFilter', 'SameHostFilter'])
        super().setUp()
        # Nova's fake driver gives a host of this name another node.
        self.add_host('compute', 3, 5000, 70)
        self.small = self.create_flavor('small', 1, 1000, 0)

    def test_sizes_are_exact(self):
        sizes = {'VCPU': 3, 'MEMORY_MB': 5000, 'DISK_GB': 70}
        self.assertEqual({'compute': sizes}, self.capacities())
        flavor = self.create_flavor('all', 3, 5000, 70)
        server = self.boot('a', flavor)
        self.wait(server)
        self.assertEqual({'compute': {server: sizes}}, self.allocations())
        self.assertRaises(embedded_cloud.CloudError, self.wait,
                          self.boot('b', self.small))
        self.delete(server)
        self.assertEqual({'compute': {}}, self.allocations())

    def test_set_up_options(self):
        self.add_host('other', 3, 5000, 70)
        first = self.boot('a', self.small, host='other')
        self.assertEqual('other', self.wait(first)['OS-EXT-SRV-ATTR:host'])
        spot = self.create_flavor('spot', 1, 1000, 0, preemptible=True)
        for kwargs in ({'availability_zone': 'nova:other'},
                       {'hints': {'same_host': [first]}}):
            server = self.settle(self.boot('b', spot, **kwargs))
            self.assertEqual('other', server['OS-EXT-SRV-ATTR:host'])
        self.assertEqual({'preemptible:enabled': 'true'},
                         server['flavor']['extra_specs'])

    def test_uptime(self):
        server = self.boot('a', self.small)
        self.wait(server)
        now = datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)
        self.set_uptime(server, 90.25, now)
        self.assertEqual('2029-12-31T23:58:29.750000', self.api.get_server(
            server)['OS-SRV-USG:launched_at'])
        self.clock = lambda: now
        self.assertEqual(now, self.scheduler.clock())


class DemoTestCase(testtools.TestCase):

    def run_demo(self, *argv):
        """Return (exit status, standard output, standard error)."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = demo.main(list(argv))
        return status, out.getvalue(), err.getvalue()

    def play(self, name):
        """Play a scenario that must come out as expected, as JSON."""
        status, out, err = self.run_demo('--scenario', name, '--json')
        self.assertEqual((0, ''), (status, err))
        return json.loads(out)['requests']

    def write(self, text):
        folder = self.useFixture(fixtures.TempDir()).path
        path = os.path.join(folder, 'scenario.yaml')
        with open(path, 'w') as file:
            file.write(textwrap.dedent(text))
        return path


class TestPublished(DemoTestCase):
    """A table of Lopez Garcia et al.: every host's cheapest victims.

    All of them are cases of the core, and tests.slow plays them.
    """

    def assert_choice(self, name, *considered):
        """The first of (host, victims, minutes) is chosen."""
        result, = self.play(name)
        expected = [{'host': host, 'victims': victims, 'cost_s': 60 * minutes}
                    for host, victims, minutes in considered]
        self.assertEqual(
            {'name': 'new', 'outcome': 'placed', **expected[0],
             'considered': expected}, result)

    def test_different_sizes(self):
        self.assert_choice(
            'fgcs-3', ('host-A', ['AP2', 'AP3', 'AP4'], 55),
            ('host-C', ['CP1'], 57), ('host-B', ['BP1'], 58))


class TestOthers(DemoTestCase):

    def test_mixed_keeps_every_rule(self):
        results = self.play('mixed')
        self.assertIn('placed', [result['outcome'] for result in results])
        self.assertTrue(any(result['victims'] for result in results))

    def test_free_hosts_preemptible_requests_and_fractions(self):
        path = self.write("""
            hosts:
              - name: compute
                vcpus: 2
                memory_mb: 2000
                disk_gb: 10
                servers:
                  - {name: a, flavor: small, uptime_min: 60.025,
                     preemptible: true}
                  - {name: b, flavor: small, uptime_min: 0.5,
                     preemptible: true}
              - {name: free, vcpus: 2, memory_mb: 3000, disk_gb: 5}
            flavors:
              small: {vcpus: 1, memory_mb: 1000, disk_gb: 0}
              m1.tiny: {vcpus: 2, memory_mb: 2000, disk_gb: 10}
            requests:
              - {name: room, flavor: small}
              - {name: late, flavor: small, preemptible: true}
              - {name: none, flavor: small, preemptible: true}
              - {name: disk, flavor: m1.tiny}
            """)
        room, late, none, disk = self.play(path)
        free = {'host': 'free', 'victims': [], 'cost_s': 0}
        self.assertEqual(
            {'name': 'room', 'outcome': 'placed', **free, 'considered': [
                free, {'host': 'compute', 'victims': ['a'], 'cost_s': 1.5}]},
            room)
        self.assertEqual({'name': 'late', 'outcome': 'placed', **free,
                          'considered': [free]}, late)
        self.assertEqual('no_valid_host', none['outcome'])
        both = {'host': 'compute', 'victims': ['a', 'b'], 'cost_s': 31.5}
        self.assertEqual({'name': 'disk', 'outcome': 'placed', **both,
                          'considered': [both]}, disk)

    def test_unexpected_outcome_as_text(self):
        path = self.write("""
            hosts:
              - name: host
                vcpus: 1
                memory_mb: 1000
                disk_gb: 10
                servers:
                  - {name: a, flavor: small, uptime_min: 90,
                     preemptible: true}
            flavors: {small: {vcpus: 1, memory_mb: 1000, disk_gb: 10}}
            requests: [{name: new, flavor: small}]
            expect: [{victims: [], cost_s: 0}]
            """)
        status, out, err = self.run_demo('--scenario', path)
        self.assertEqual(1, status)
        self.assertEqual(
            'nova-preempt-demo: new: victims are a, not none as expected\n'
            'nova-preempt-demo: new: cost is 1800 s, not 0 s as expected\n',
            err)
        self.assertEqual(textwrap.dedent(f"""\
            Scenario {path}.

            Hosts before
              host  1/1 vCPUs  1000/1000 MB  10/10 GB
                a  small  90 min  preemptible, costs 30 min

            Request new: small, normal, 1 vCPUs, 1000 MB, 10 GB
              host  a  30 min  <- chosen
              a on host is evicted, at a cost of 30 min; no other host can serve it.

            Hosts after
              host  1/1 vCPUs  1000/1000 MB  10/10 GB
                new  small  0 min
            """), out)  # noqa: E501 - lines of the demo have 100 columns
