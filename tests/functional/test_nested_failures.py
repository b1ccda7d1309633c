# SPDX-License-Identifier: Apache-2.0
"""Tests of failures during a preemption of devices."""

import dataclasses
from unittest import mock

from oslo_utils.fixture import uuidsentinel as uuids

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.db import decisions
from tests.functional import test_failures
from tests.functional import test_nested


class TestStandIns(test_failures.Killing, test_nested.PCITestCase):
    """The scheduler dies while a stand-in holds the rest of a victim."""

    patience_s = 10

    def setUp(self):
        super().setUp()
        self.flags(maximum_notice_s=1000, group='preemption')
        self.normal = self.pci_flavor(1)

    def fill(self, **extra_specs):
        """The cheaper one of two spot servers with 4 devices each."""
        spot = self.pci_flavor(4, preemptible=True, **extra_specs)
        cheap = self.boot_spot('cheap', 'host', 60, spot)
        self.boot_spot('dear', 'host', 1800, spot)
        self.had = self.devices(cheap), self.addresses(cheap)
        return cheap

    def boot_and_kill(self, *args, **kwargs):
        self.begin_killing()
        try:
            return super().boot_and_kill(*args, flavor=self.normal, **kwargs)
        finally:
            # A scheduler without time would give no notice afterwards.
            self.flags(rpc_response_timeout=60, long_rpc_timeout=1800)

    def stand_in(self):
        found, = self.last_decision().record['stand_ins'].values()
        return found

    def check(self, victim, target, name, after=True, **held):
        """Crash at this step; check the stand-in before and after.

        :param held: what is known then, see below
        """
        self.boot_and_kill(target, name, after)
        self.assertEqual(1, len(self.decisions.get_open_decisions()))
        rest = self.devices(self.stand_in())
        self.assertEqual(held['devices'], sum(
            'CUSTOM_PCI_10DE_20B0' in item for item in rest.values()))
        self.restart()
        self.assertEqual({}, self.devices(self.stand_in()))
        if held['lives']:
            self.assertEqual(self.had, (self.devices(victim),
                                        self.addresses(victim)))
            self.assertNotIn(nova_api.NOTICE_KEY,
                             self.api.get_server(victim)['metadata'])
            # nova-compute sees it as we do.
            self._run_periodics()
            self.assertEqual(self.had[0], self.devices(victim))
        else:
            self.wait_gone(victim)
        self.wait_consistent()
        self.assertEqual([], self.audit())

    def wait_consistent(self):
        """Wait for consistency, also of servers never built."""
        self.wait_for(lambda: not {
            consumer for servers in self.allocations().values()
            for consumer in servers} - self.alive(), 'space to be freed')
        self.assert_consistent()

    def test_before_its_victim_ends(self):
        victim = self.fill(**{'preemptible:notice_s': '1000'})
        for name, devices, outcome in (
                ('create_decision', 0, decisions.ABORTED),
                ('update_decision', 3, decisions.ROLLED_BACK),
                ('update_victim', 3, decisions.ROLLED_BACK)):
            self.check(victim, self.decisions, name, devices=devices,
                       lives=True)
            self.assertEqual(outcome, self.last_decision().status)
        self.check(victim, self.scheduler.preemption.clients.placement,
                   'post_allocations', devices=3, lives=True)
        # While its notice runs.
        self.check(victim, self.scheduler.preemption.handover.terminator,
                   '_sleep', after=False, devices=3, lives=True)

    def test_after_its_victim_was_asked_to_end(self):
        victim = self.fill()
        self.check(victim, self.scheduler.preemption.clients.nova,
                   'force_delete', devices=3, lives=False)

    def test_while_it_is_taken_back(self):
        victim = self.fill(**{'preemptible:notice_s': '1000'})
        placement = self.scheduler.preemption.clients.placement
        self.boot_and_kill(placement, 'post_allocations')
        post, handover = placement.post_allocations, (
            self.scheduler.preemption.handover)

        def die(consumers):
            post(consumers)
            raise test_failures.Killed

        with mock.patch.object(placement, 'post_allocations', die):
            self.assertRaises(test_failures.Killed, handover.repair)
        self.assertEqual(self.had[0], self.devices(victim))
        self.assertEqual(1, len(self.decisions.get_open_decisions()))
        self.restart()
        self.assertEqual(self.had[0], self.devices(victim))
        self.assertEqual({}, self.devices(self.stand_in()))
        self.wait_consistent()
        self.assertEqual([], self.audit())

    def test_before_the_stand_in_is_gone(self):
        victim = self.fill()
        self.check(victim, self.scheduler.preemption.clients.placement,
                   'delete_allocations', after=False, devices=3, lives=False)
        # All of it is free again.
        for number in range(4):
            self.boot_normal(f'{number}', self.normal)
        self.assertEqual(1, len(self.decisions.get_decisions()))

    def test_after_the_stand_in_is_gone(self):
        victim = self.fill()
        self.check(victim, self.scheduler.preemption.clients.placement,
                   'delete_allocations', devices=0, lives=False)

    def test_the_victim_is_deleted_by_its_owner(self):
        """It is deleted during its notice."""
        victim = self.fill(**{'preemptible:notice_s': '1000'})
        server = self.boot('normal', self.normal)
        self.wait_for(lambda: nova_api.NOTICE_KEY in self.api.get_server(
            victim)['metadata'], 'notice')
        self.assertNotEqual({}, self.devices(self.stand_in()))
        self.delete(victim)
        self.wait(server)
        self.assertEqual({victim}, self.last_victims())
        self.assertEqual({}, self.devices(self.stand_in()))
        self.assertLess(self.addresses(server), self.had[1])
        self.wait_gone(victim)
        self.wait_consistent()
        self.assertEqual([], self.audit())


class TestEnemies(test_nested.TreeTestCase):
    """Changes during a preemption of GPUs."""

    def setUp(self):
        super().setUp()
        self.add_tree('host', test_nested.gpus(2))
        spot = self.gpu_flavor(1, preemptible=True)
        self.cheap, self.dear = (
            self.boot_spot(f'spot-{uptime_s}', 'host', uptime_s, spot)
            for uptime_s in (60, 1800))
        self.placement_client = self.scheduler.preemption.clients.placement

    def boot_while(self, change):
        """Boot a server; change(number of the call) before each swap."""
        post = self.placement_client.post_allocations
        calls = []

        def changed(consumers):
            calls.append(consumers)
            change(len(calls))
            return post(consumers)

        with mock.patch.object(self.placement_client, 'post_allocations',
                               changed):
            return self.boot_normal(flavor=self.gpu_flavor(1))['id']

    def statuses(self):
        return [decision.status
                for decision in self.decisions.get_decisions()]

    def test_placement_refuses_three_times(self):
        def refuse(number):
            if number <= 3:
                raise placement_api.Conflict('busy')

        self.boot_while(refuse)
        self.assertEqual([*[decisions.ABORTED] * 3, decisions.DONE],
                         self.statuses())
        self.assertEqual({self.cheap}, self.last_victims())
        self.wait_consistent()

    def test_a_device_goes_away_before_the_claim(self):
        """Another device is used, whose victim is more expensive."""
        device, = self.gpus_of(self.cheap)
        other = self.gpus_of(self.dear)
        device = self.providers()[device]
        post = self.placement_client.post_allocations

        def take_away(number):
            if number > 1:
                return
            consumer = self.placement_client.get_consumer(self.cheap)
            post([
                consumer.with_allocations({
                    uuid: item for uuid, item in consumer.allocations.items()
                    if uuid != device}),
                dataclasses.replace(
                    consumer, uuid=uuids.stranger, generation=None,
                    allocations={device: consumer.allocations[device]})])

        server = self.boot_while(take_away)
        self.assertEqual([decisions.ABORTED, decisions.DONE], self.statuses())
        self.assertEqual({self.dear}, self.last_victims())
        self.assertEqual(other, self.gpus_of(server))
        self.assertEqual({self.cheap, server}, self.alive())
        self.placement_client.delete_allocations(uuids.stranger)
        self.wait_consistent()
