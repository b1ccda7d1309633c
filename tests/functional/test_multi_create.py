# SPDX-License-Identifier: Apache-2.0
"""Several servers of one request, by one decision."""

from unittest import mock

import nova.conf
from nova.scheduler.client import report

from nova_preempt.cloud import placement_api

# Nova's fixtures do not let numpy be imported any more.
from nova_preempt.core.batch import batch_placement  # noqa: F401 (see above)
from nova_preempt.embedded import embedded_cloud
from nova_preempt.scheduler import multi_create_decision
from tests.functional import base

OTHER = 'f' * 8 + '-ffff-ffff-ffff-' + 'f' * 12


class MultiCreateTestCase(base.PreemptionTestCase):

    def decide(self, score):
        self.flags(group='preemption', multi_create_score=score)
        self.scheduler.multi_create = multi_create_decision.load(
            nova.conf.CONF.preemption,
            self.scheduler.host_manager.get_weighed_hosts)

    def boot_many(self, count, policy=None, flavor=None):
        """Boot several servers; return their hosts, [] if refused."""
        body = {'server': {**self._build_server(
            name='many', image_uuid=embedded_cloud.IMAGE, networks='none',
            flavor_id=flavor or self.small), 'min_count': count,
            'max_count': count}}
        if policy:
            group = self.api.post_server_groups(
                {'name': policy, 'policy': policy})
            body['os:scheduler_hints'] = {'group': group['id']}
        before = {server['id'] for server in self.servers()}
        self.api.post_server(body)
        new = [server['id'] for server in self.servers()
               if server['id'] not in before]
        found = [self.settle(uuid) for uuid in new]
        hosts = sorted(server['OS-EXT-SRV-ATTR:host'] for server in found
                       if server['status'] == 'ACTIVE')
        for uuid in new:
            self.delete(uuid)
        return hosts


    # Whether somebody takes all of host3 before several are claimed.
    is_filled = False

    def watch_claims(self):
        """Note how many servers each claim is for."""
        counts = []
        post, put = (placement_api.Placement.post_allocations,
                     report.SchedulerReportClient.claim_resources)

        def post_allocations(client, consumers):
            if self.is_filled:
                host, = client.list_providers([('name', 'host3')])
                post(client, [placement_api.Consumer(
                    OTHER, {host.uuid: {'resources': {'VCPU': 3}}}, None,
                    OTHER, OTHER)])
            counts.append(len(consumers))
            post(client, consumers)

        def claim_resources(*args, **kwargs):
            counts.append(1)
            return put(*args, **kwargs)

        for target, name, replacement in (
                (placement_api.Placement, 'post_allocations',
                 post_allocations),
                (report.SchedulerReportClient, 'claim_resources',
                 claim_resources)):
            patch = mock.patch.object(target, name, replacement)
            patch.start()
            self.addCleanup(patch.stop)
        return counts


class TestMultiCreate(MultiCreateTestCase):
    """host1 has most memory, and fewer cores than host2."""

    def setUp(self):
        super().setUp()
        self.add_host('host1', 2, 32768, 80)
        self.add_host('host2', 6, 8192, 80)
        self.add_host('host3', 3, 4096, 80)

    def test_scores_and_groups(self):
        self.assertEqual([], self.boot_many(4, 'affinity'))
        self.decide('ml')
        self.assertEqual(4 * ['host2'], self.boot_many(4, 'affinity'))
        # The fullest that does: two classes of three are scarce there.
        self.assertEqual(3 * ['host3'], self.boot_many(3))
        self.assertEqual(['host1', 'host2', 'host3'],
                         self.boot_many(3, 'anti-affinity'))
        self.assertEqual([], self.boot_many(12))
        self.assertEqual([], self.boot_many(7, 'affinity'))
        self.check_claims()
        # The best takes all it has room for, then the next.
        self.decide('weights')
        self.assertEqual(['host1', 'host1', 'host2', 'host2', 'host2'],
                         self.boot_many(5))
        self.assertEqual(4 * ['host2'], self.boot_many(4, 'affinity'))
        self.wait_consistent()

    def check_claims(self):
        """Check that all servers are claimed in one transaction if possible.
        """
        counts = self.watch_claims()
        self.assertEqual(11, len(self.boot_many(11)))
        self.assertEqual([11], counts)
        self.is_filled = True
        for count, found in ((11, 0), (3, 3)):
            counts.clear()
            hosts = self.boot_many(count)
            self.assertEqual(found, len(hosts))
            self.assertNotIn('host3', hosts)
            self.assertEqual(count, counts[0])
            self.assertEqual({1}, set(counts[1:]))
            self.wait_for(lambda: {OTHER} == {
                uuid for claims in self.allocations().values()
                for uuid in claims}, 'nothing to be left')
            placement_api.Placement(
                report.report_client_singleton).delete_allocations(OTHER)
        self.is_filled = False


class TestPreempting(MultiCreateTestCase):

    def test_multi_create_evicts_servers(self):
        """Nova's weighers choose as usual; all evictions are needed.
        """
        self.add_hosts('host1', 'host2')
        self.decide('ml')
        victims = [self.boot_spot(name, host) for name, host in (
            ('a', 'host1'), ('b', 'host1'), ('c', 'host2'))]
        self.assertEqual(['host1', 'host1', 'host2', 'host2'],
                         self.boot_many(4))
        self.assertFalse(set(victims) & self.alive())
