# SPDX-License-Identifier: Apache-2.0
"""Nova's rules hold for hosts with victims as for free hosts."""

import datetime
import functools
import json
import threading

import fixtures
from nova import exception
from nova import objects
from nova.conf import CONF

from nova_preempt import db
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import cell_reader
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.embedded import embedded_cloud
from nova_preempt.embedded import fake_hypervisor
from tests.functional import base

GOLD = 'CUSTOM_GOLD'


class RulesTestCase(base.PreemptionTestCase):
    """Preemptible servers on all of host1, and cheaper ones on host2."""

    #: Filters beside Nova's default ones.
    more_filters = ()

    def setUp(self):
        super().setUp()
        if self.more_filters:
            self.flags(group='filter_scheduler', enabled_filters=[
                *CONF.filter_scheduler.enabled_filters, *self.more_filters])
            self.restart_scheduler()

    def fill(self, *zones):
        """Start the hosts, each in a zone of its own if any are given."""
        self.add_hosts('host1', 'host2')
        for zone, host in zip(zones, ('host1', 'host2'), strict=False):
            self.add_aggregate(zone, [host], zone=zone)
        self.dear = [self.boot_spot('a', 'host1', 1000),
                     self.boot_spot('b', 'host1', 2000)]
        self.cheap = [self.boot_spot('c', 'host2', 10),
                      self.boot_spot('d', 'host2', 20)]

    def assert_boots(self, expected_host, *victims, **kwargs):
        """A normal server boots on the host and these end for it."""
        alive = self.alive()
        server = self.boot_normal(**kwargs)
        self.assertEqual(expected_host, server['OS-EXT-SRV-ATTR:host'])
        self.assertEqual(alive - set(victims) | {server['id']}, self.alive())
        if victims:
            self.assertEqual(server['id'], self.last_decision().server_uuid)
            self.assertEqual(set(victims), self.last_victims())
        self.assert_consistent()
        return server['id']


class TestServerGroups(RulesTestCase):

    def make_group(self, policy):
        return {'group': self.api.post_server_groups(
            {'name': policy, 'policy': policy})['id']}

    def test_anti_affinity_before_the_first_member_is_there(self):
        """Its victim has ended, and the compute service is still busy."""
        self.fill()
        group = self.make_group('anti-affinity')
        idle = threading.Event()
        self.addCleanup(idle.set)
        tracker = self.computes['host2'].manager.rt
        claim = tracker.instance_claim

        def claim_later(*args, **kwargs):
            idle.wait(60)
            return claim(*args, **kwargs)

        self.useFixture(fixtures.MockPatchObject(
            tracker, 'instance_claim', claim_later))
        first = self.boot('first', self.small, hints=group)
        self.wait_for(lambda: self.decisions.get_decisions(
            server_uuid=first, statuses=[decisions.DONE]), 'its claim')
        second = self.boot('second', self.small, hints=group)
        self.assertEqual('host1',
                         self.wait(second)['OS-EXT-SRV-ATTR:host'])
        self.assertEqual('BUILD', self.api.get_server(first)['status'])
        idle.set()
        self.assertEqual('host2', self.wait(first)['OS-EXT-SRV-ATTR:host'])
        self.assertEqual({self.dear[1], self.cheap[1], first, second},
                         self.alive())
        self.wait_consistent()

    def test_anti_affinity(self):
        group = self.make_group('anti-affinity')
        self.add_hosts('host1', 'host2')
        member = self.boot_spot('member', 'host1', 10, hints=group)
        self.boot_spot('b', 'host1', 20)
        cheap = self.boot_spot('c', 'host2', 1000)
        dear = self.boot_spot('d', 'host2', 2000)
        # The member would be the cheapest victim, and make host1 fit.
        self.assert_boots('host2', cheap, hints=group)
        self.boot_in_vain(hints=group)
        self.boot_in_vain(hints=group, flavor=self.big, host='host1')
        # Several at once, and one on each host.
        group = self.make_group('anti-affinity')
        alive = self.alive()
        body = self._build_server(
            name='m', image_uuid=embedded_cloud.IMAGE,
            flavor_id=self.small, networks='none')
        body.update(min_count=2, max_count=2)
        self.api.post_server({'server': body,
                              'OS-SCH-HNT:scheduler_hints': group})
        made = [self.wait(server['id']) for server in self.servers()
                if server['name'].startswith('m-')]
        self.assertEqual(['host1', 'host2'], sorted(
            server['OS-EXT-SRV-ATTR:host'] for server in made))
        self.assertEqual(
            alive - {member, dear} | {server['id'] for server in made},
            self.alive())
        self.assert_consistent()

    def test_affinity(self):
        group = self.make_group('affinity')
        self.add_hosts('host1', 'host2')
        self.boot_spot('member', 'host1', 10, hints=group)
        other = self.boot_spot('b', 'host1', 1000)
        self.boot_spot('c', 'host2', 20)
        self.boot_spot('d', 'host2', 30)
        # Both slots of host1 are only free without the member.
        self.boot_in_vain(hints=group, flavor=self.big)
        self.assert_boots('host1', other, hints=group)


class TestHints(RulesTestCase):

    more_filters = ('SameHostFilter', 'DifferentHostFilter')

    def test_servers_in_hints_are_no_victims(self):
        self.fill()
        self.assert_boots('host1', self.dear[1],
                          hints={'same_host': self.dear[0]})
        self.assert_boots('host2', self.cheap[0],
                          hints={'different_host': [self.dear[0]]})
        self.boot_in_vain(hints={'different_host':
                                 [self.dear[0], self.cheap[1]]})


class TestAggregates(RulesTestCase):

    more_filters = ('AggregateInstanceExtraSpecsFilter',)

    def test_zones_extra_specs_and_traits(self):
        self.add_host('host1', 3, 3072, 30)
        self.add_hosts('host2', 'host3')
        for zone, host in (('z1', 'host1'), ('z2', 'host2')):
            self.add_aggregate(zone, [host], zone=zone)
        dear = [self.boot_spot(name, 'host1', uptime_s) for name, uptime_s in
                (('a', 1000), ('b', 2000), ('c', 3000))]
        cheap = [self.boot_spot(name, 'host2', uptime_s) for name, uptime_s in
                 (('d', 10), ('e', 20))]
        self.assert_boots('host1', dear[0], availability_zone='z1')
        self._create_trait(GOLD)
        self._create_trait('CUSTOM_RARE')
        self.add_trait('host1')
        gold, base_metal, rare = (
            self.create_flavor(name, 1, 1024, 10, **{f'trait:{trait}': value})
            for name, trait, value in (
                ('gold', GOLD, 'required'), ('base', GOLD, 'forbidden'),
                ('rare', 'CUSTOM_RARE', 'required')))
        # host3 has room, but no gold, and is not fast.
        self.assert_boots('host1', dear[1], flavor=gold)
        self.add_aggregate('fast', ['host1'], ssd='true')
        fast = self.create_flavor(
            'fast', 1, 1024, 10,
            **{'aggregate_instance_extra_specs:ssd': 'true'})
        self.assert_boots('host1', dear[2], flavor=fast)
        self.boot_in_vain(flavor=fast)
        self.boot_in_vain(flavor=rare)
        self.add_trait('host3')
        self.assert_boots('host2', cheap[0], flavor=base_metal)
        self.assert_boots('host2', cheap[1], availability_zone='z2')
        self.boot_in_vain(flavor=base_metal)
        self.boot_in_vain(availability_zone='z2')

    def test_isolated_aggregates(self):
        """Placement's member_of=!in: holds where we ask Placement."""
        self.flags(group='scheduler',
                   enable_isolated_aggregate_filtering=True)
        self.fill()
        self._create_trait(GOLD)
        self.add_trait('host2')
        self.add_aggregate('gold', ['host2'],
                           **{f'trait:{GOLD}': 'required'})
        self.assert_boots('host1', self.dear[0])
        flavor = self.create_flavor('gold', 1, 1024, 10,
                                    **{f'trait:{GOLD}': 'required'})
        self.assert_boots('host2', self.cheap[0], flavor=flavor)

    def add_trait(self, host):
        uuid = self.providers()[host]
        self._set_provider_traits(
            uuid, [*self._get_provider_traits(uuid), GOLD])


class TestGivenHost(RulesTestCase):

    def test_a_given_host_that_is_disabled_or_down(self):
        self.fill()
        self.add_hosts('host3')
        self.boot_normal('free', flavor=self.big, host='host3')
        service, = self.api.get_services(host='host2', binary='nova-compute')
        self.api.put_service(service['id'], {'status': 'disabled'})
        self.boot_in_vain(host='host2')
        self.boot_in_vain(availability_zone='nova:host2')
        self.api.put_service(service['id'], {'status': 'enabled'})
        self.api.put_service_force_down(service['id'], True)
        self.boot_in_vain(host='host2')
        self.assert_boots('host1', self.dear[0])
        self.api.put_service_force_down(service['id'], False)
        self.assert_boots('host1', self.dear[1],
                          availability_zone='nova:host1')
        self.boot_in_vain(availability_zone='nova:host1')
        self.boot_in_vain(host='host1')
        self.assert_boots('host2', self.cheap[0], host='host2')


class TestNumInstances(RulesTestCase):
    """A host with space left for more servers than it may have."""

    more_filters = ('NumInstancesFilter',)

    def test_victims_make_it_pass(self):
        self.flags(group='filter_scheduler', max_instances_per_host=2)
        self.add_host('host1', 4, 4096, 40)
        kept = self.boot_spot('a', 'host1', 100)
        self.assert_boots('host1')
        self.assert_boots('host1', kept)
        record = self.last_decision().record
        self.assertEqual({}, record['missing'])
        self.assertIn('does not pass the filters', record['why'])
        self.boot_in_vain()


class TestPreemptibleFilter(RulesTestCase):

    more_filters = ('PreemptibleFilter',)

    def test_neither_servers_nor_preemption(self):
        # So that host2 is a batch of its own, and does not pass.
        self.patch(preemption_policy, 'FIRST_BATCH', 1)
        self.fill()
        self.add_hosts('host3')
        self.add_aggregate('normal', ['host3'],
                           **{'preemptible:allow_servers': 'false'})
        aggregate = self.add_aggregate(
            'quiet', ['host2', 'host3'],
            **{'preemptible:allow_preemption': 'false'})
        self.boot_in_vain(flavor=self.spot)
        self.boot_in_vain(flavor=self.spot, host='host3')
        self.assert_boots('host3', flavor=self.big)
        self.assert_boots('host1', self.dear[0])
        self.boot_in_vain(host='host2')
        # For a host that is forced Nova runs no filters.
        self.boot_in_vain(availability_zone='nova:host2')
        self.set_metadata(aggregate,
                          **{'preemptible:allow_preemption': 'true'})
        self.assert_boots('host2', self.cheap[0],
                          availability_zone='nova:host2')


class TestConsider(RulesTestCase):

    def consider(self, value):
        self.flags(group='preemption', consider=value)
        self.restart_scheduler()
        # What its periodic task does at once; Nova's tests have none.
        self.scheduler.preemption.known.refresh()

    def fill(self):
        """Much memory left on host1, little more than a slot on host2."""
        self.add_host('host1', 2, 8192, 20)
        self.add_host('host2', 3, 3072, 30)
        self.dear = [self.boot_spot('a', 'host1', 10),
                     self.boot_spot('b', 'host1', 20)]
        self.cheap = [self.boot_spot('c', 'host2', 1)]
        self.boot_normal('stays', host='host2')

    def test_cheap_victims_beat_a_poor_host_with_room(self):
        self.flags(group='filter_scheduler', ram_weight_multiplier=150000.0)
        self.fill()
        self.consider('always')
        self.delete(self.assert_boots('host2'))
        # A host that needs victims weighs -1 times its own multiplier.
        self.add_aggregate('any', ['host1'], preemption_weight_multiplier='0')
        self.consider('when_full')
        self.delete(self.assert_boots('host2'))
        self.consider('always')
        self.assert_boots('host1', self.dear[0])
        record = self.last_decision().record
        self.assertEqual(('host2', []), (record['runner_up']['host'],
                                         record['runner_up']['victims']))


class TestWeighers(RulesTestCase):

    def test_ties_costs_and_failed_builds(self):
        self.flags(group='filter_scheduler',
                   build_failure_weight_multiplier=1000000.0)
        self.add_host('host1', 2, 2048, 20)
        self.add_host('host2', 2, 8192, 20)
        first = [self.boot_spot('a', 'host1', 60),
                 self.boot_spot('b', 'host1', 1000)]
        second = [self.boot_spot('c', 'host2', 60),
                  self.boot_spot('d', 'host2', 1000)]
        # Equal cost: the host with more memory left.
        self.assert_boots('host2', second[0])
        # One second outweighs memory.
        self.set_uptime(second[1], 61, self.now)
        self.assert_boots('host1', first[0])
        # A host on which builds fail comes last.
        self.fail_builds('host2')
        self.assert_boots('host1', first[1])
        self.assert_boots('host2', second[1])

    def fail_builds(self, host):
        self.computes[host].manager.rt.build_failed(host)
        self._run_periodics()


class TwoCellsTestCase(RulesTestCase):

    NUMBER_OF_CELLS = 2

    def add_host_in(self, cell, name):
        self._sizes[name] = fake_hypervisor.HostSize(2, 2048, 20)
        self._start_compute(name, cell_name=cell)

    def boot_spot_in(self, cell, name, host, uptime_s):
        server = self.boot(name, self.spot, host=host)
        self.wait(server)
        self.change_record(server, cell, launched_at=self.launched(uptime_s))
        return server


class TestTwoCells(TwoCellsTestCase):

    def test_victims_in_both_cells(self):
        self.add_host_in('cell1', 'host1')
        self.add_host_in('cell2', 'host2')
        self.dear = [self.boot_spot_in('cell1', name, 'host1', uptime_s)
                     for name, uptime_s in (('a', 1000), ('b', 2000))]
        self.cheap = [self.boot_spot_in('cell2', name, 'host2', uptime_s)
                      for name, uptime_s in (('c', 10), ('d', 3000))]
        self.assert_boots('host2', self.cheap[0])
        self.assert_boots('host1', self.dear[0])

    def test_a_move_stays_in_its_cell(self):
        self.add_host_in('cell1', 'host1')
        self.add_host_in('cell2', 'host2')
        self.add_host_in('cell2', 'host3')
        server = self.boot_normal(host='host2')['id']
        for name in 'ab':
            self.boot_spot_in('cell1', name, 'host1', 10)
        victim = self.boot_spot_in('cell2', 'c', 'host3', 1000)
        self.boot_spot_in('cell2', 'd', 'host3', 2000)
        # So that those of the other cell are a batch of their own.
        self.patch(preemption_policy, 'FIRST_BATCH', 1)
        self.act(server, 'migrate')
        self.assertEqual({victim}, self.last_victims())
        self.act(server, 'confirmResize')
        self.wait_consistent()
        self.assertEqual('host3', self.api.get_server(server)[
            'OS-EXT-SRV-ATTR:host'])


class TestHungCell(TwoCellsTestCase):
    """A database that accepts a query of servers and never answers.

    Whatever waits for it without a limit waits for ever here.
    """

    def hang(self, cell):
        answered = threading.Event()
        self.addCleanup(answered.set)
        uuid = self.cell_mappings[cell].uuid
        self.asked = []           # by Nova's API, which would wait a minute
        real_get = objects.Instance.get_by_uuid.__func__
        real = objects.InstanceList.get_by_filters.__func__

        def get_by_uuid(cls, context, *args, **kwargs):
            if context.cell_uuid == uuid:
                self.asked.append(args)
                raise exception.CellTimeout
            return real_get(cls, context, *args, **kwargs)

        def get_by_filters(cls, context, *args, **kwargs):
            if context.cell_uuid == uuid:
                self.hung.append(args)
                answered.wait()
            return real(cls, context, *args, **kwargs)

        self.useFixture(fixtures.MockPatchObject(
            objects.InstanceList, 'get_by_filters',
            classmethod(get_by_filters)))
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'get_by_uuid', classmethod(get_by_uuid)))
        self.useFixture(fixtures.MockPatchObject(
            cell_reader, 'CellReader', functools.partial(
                cell_reader.CellReader, limit_s=0.5)))

    def short_limits(self):
        self.useFixture(fixtures.MockPatchObject(cell_calls, 'LONG_S', 0.5))
        known = self.scheduler.preemption.known
        for calls in (cell_calls._OF_PROCESS, known.servers._readings._calls):
            self.useFixture(fixtures.MockPatchObject(
                calls, '_limit_s', 0.5))

    def test_other_work_goes_on(self):
        self.hung = []
        self.flags(group='preemption_quota', driver='options', servers=3)
        self.restart_scheduler()
        self.add_host_in('cell1', 'host1')
        self.add_host_in('cell2', 'host2')
        self.boot_spot_in('cell2', 'a', 'host2', 10)
        self.boot_spot_in('cell2', 'b', 'host2', 20)
        # How it went with this server is still to be read, in its cell.
        self.boot_normal(host='host2')
        self.scheduler.preemption.known.refresh()
        self.hang('cell2')
        self.short_limits()
        engine = self.start_engine()
        engine.run_once()
        self.scheduler.preemption.handover.repair()
        # Those that were seen last count: one is left of two.
        first, second = (self.wait(self.boot(
            name, self.spot, host='host1'))['id'] for name in 'cd')
        self.assertIn('Quota of preemptible servers exceeded', str(
            self.wait_failed(self.boot('e', self.spot, host='host1'))))
        self.boot_normal(host='host1')
        self.assertEqual(1, len({first, second} & self.alive()))
        # A scheduler that starts now does so.
        self.restart_scheduler()
        self.boot_normal(host='host1')

    def test_open_decisions_and_old_servers(self):
        """Nova, which would wait for the cell, is not called."""
        self.hung = []
        self.flags(maximum_runtime_s=3600, group='preemption')
        self.restart_scheduler()
        self.add_host_in('cell1', 'host1')
        self.add_host_in('cell2', 'host2')
        old = self.boot_spot_in('cell1', 'old', 'host1', 4000)
        for_engine, for_scheduler = (
            self.boot_spot_in('cell2', name, 'host2', 10) for name in 'ab')
        self.hang('cell2')
        self.short_limits()
        self.leave('d1', for_engine)
        self.start_engine().run_once()
        self.wait_gone(old)
        self.leave('d2', for_scheduler)
        self.restart_scheduler()
        self.assertEqual([], self.asked)
        for uuid in 'd1', 'd2':
            self.assertIn('its cell does not answer',
                          self.decisions.get_decision(uuid).reason)

    def leave(self, uuid, victim):
        """A decision that was given up long ago."""
        self.decisions.create_decision(db.Decision(
            uuid, 's', status=decisions.CLAIMED, host='host2',
            victims=(db.Victim(victim),)))
        with self.db.writer() as session:
            session.get(models.Decision, uuid).updated_at -= (
                datetime.timedelta(hours=1))


class TestNotServed(RulesTestCase):

    def assert_refused(self, flavor, word):
        server = self.boot_in_vain(flavor=flavor)
        decision = self.last_decision()
        self.assertEqual((server, decisions.REFUSED, 'create'), (
            decision.server_uuid, decision.status, decision.operation))
        self.assertIn(word, decision.reason)

    def test_the_record_says_why(self):
        self.flags(group='pci', alias=[json.dumps({
            'name': 'card', 'vendor_id': '8086', 'product_id': '1528'})])
        self._create_resource_class('CUSTOM_X')
        self.fill()
        self.assert_refused(self.create_flavor(
            'granular', 1, 1024, 10, **{'resources1:CUSTOM_X': '1'}),
            'has capacity')
        self.assert_refused(self.create_flavor(
            'card', 1, 1024, 10, **{'pci_passthrough:alias': 'card:1'}),
            'PCI')
        self.assert_refused(self.create_flavor('huge', 3, 1024, 10),
                            'has capacity')
        refusals = self.last_decision().record['refusals']
        self.assertEqual({'host1', 'host2'}, set(refusals))
        self.assertIn('VCPU', refusals['host1'])


class NUMADriver(fake_hypervisor.SizedFakeDriver):
    """Two NUMA cells, all of their CPUs for pinning."""

    capabilities = dict(fake_hypervisor.SizedFakeDriver.capabilities,
                        supports_pcpus=True)

    def get_available_resource(self, nodename):
        status = super().get_available_resource(nodename)
        each = self.vcpus // 2
        status['numa_topology'] = objects.NUMATopology(cells=[
            self._cell(number, set(range(number * each,
                                         (number + 1) * each)))
            for number in range(2)])._to_json()
        return status

    def _cell(self, number, cpus):
        return objects.NUMACell(
            id=number, cpuset=set(), pcpuset=cpus, pinned_cpus=set(),
            siblings=[{cpu} for cpu in sorted(cpus)],
            mempages=[objects.NUMAPagesTopology(
                size_kb=4, total=self.memory_mb * 128, used=0, reserved=0)],
            memory=self.memory_mb // 2, memory_usage=0, cpu_usage=0,
            socket=number,
            network_metadata=objects.NetworkMetadata(
                physnets=set(), tunneled=False))

    def update_provider_tree(self, provider_tree, nodename,
                             allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        inventory = dict(provider_tree.data(nodename).inventory)
        inventory['PCPU'] = {**inventory.pop('VCPU'), 'allocation_ratio': 1.0}
        provider_tree.update_inventory(nodename, inventory)


class TestNUMA(RulesTestCase):

    more_filters = ('NUMATopologyFilter',)
    driver_class = NUMADriver

    def test_victims_share_a_numa_cell(self):
        self.add_host('host1', 4, 4096, 40)
        pinned = {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '1'}
        spot = self.create_flavor('pinned-spot', 1, 1024, 10,
                                  preemptible=True, **pinned)
        flavor = self.create_flavor('pinned', 2, 2048, 20, **pinned)
        cells = {0: [], 1: []}
        for name in 'abcd':
            server = self.boot_spot(name, 'host1', flavor=spot)
            cells[self.numa_cell(server)].append(server)
        self.assertEqual([2, 2], [len(cell) for cell in cells.values()])
        # The cheapest two are in different cells, and of no use.
        for server, uptime_s in zip(cells[0] + cells[1],
                                    (10, 3000, 20, 1000), strict=True):
            self.set_uptime(server, uptime_s, self.now)
        server = self.assert_boots('host1', *cells[1], flavor=flavor)
        self.assertEqual(1, self.numa_cell(server))

    def test_stop_frees_nothing_of_a_pinned_server(self):
        """Nova's resource tracker keeps its processors until it is gone."""
        self.add_host('host1', 4, 4096, 40)
        pinned = {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '1'}
        spot = self.create_flavor('pinned-spot', 1, 1024, 10,
                                  preemptible=True,
                                  **{'preemptible:action': 'stop'}, **pinned)
        flavor = self.create_flavor('pinned', 1, 1024, 10, **pinned)
        servers = [self.boot_spot(name, 'host1', 100 * number, spot)
                   for number, name in enumerate('abcd', 1)]
        self.flags(actions=['stop'], group='preemption')
        self.boot_in_vain(flavor=flavor)
        self.flags(actions=['stop', 'shelve', 'delete'], group='preemption')
        normal = self.boot_normal(flavor=flavor, host='host1')
        self.assertEqual('ACTIVE', normal['status'])
        self.assertEqual(
            ['SHELVED_OFFLOADED', 'ACTIVE', 'ACTIVE', 'ACTIVE'],
            [self.api.get_server(server)['status'] for server in servers])
        self.assert_consistent()

    def numa_cell(self, server):
        with self.cell_context() as context:
            topology = objects.Instance.get_by_uuid(
                context, server, expected_attrs=['numa_topology']
            ).numa_topology
        cell, = topology.cells
        return cell.id
