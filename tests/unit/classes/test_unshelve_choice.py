# SPDX-License-Identifier: Apache-2.0
"""Tests of the choice of class servers that return."""

import datetime
import types
import unittest
from unittest import mock

from nova_preempt.classes import unshelve_choice
from nova_preempt.core import eligibility
from nova_preempt.core.classes import class_dispatch
from nova_preempt.core.classes import class_table
from nova_preempt.core.classes.class_dispatch import Claimant
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.eviction.return_controller import ShelvedVictim
from nova_preempt.core.model import SECOND, Inventory, Provider
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.times import microseconds
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from nova_preempt.engine import victim_unshelving
from tests.unit.core.scheduling import world

TABLE = class_table.parse([
    {'name': name, 'importance': importance, 'availability': availability,
     'safety_margin_s': '30', 'least_run_s': '0'}
    for name, importance, availability in (
        ('gold', '1', '1'), ('bronze', '2', '0.5'))])
ONE = {'VCPU': 1}


class TestReturning(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.seconds = 0
        self.paused = ''
        self.room = {}
        self.open = []
        self.claimants = {}
        self.hosts = {}           # name: {uuid: Server}
        self.options = types.SimpleNamespace(
            enabled=True, preempting_operations=['create', 'unshelve'])
        self.headroom = mock.Mock()
        self.headroom.has_room.return_value = True
        process = mock.Mock(options=self.options)
        process.clock = lambda: world.NOW + datetime.timedelta(
            seconds=self.seconds)
        process.pauses.why.side_effect = lambda what: (
            self.paused if what == pauses.PREEMPTION else '')
        process.decisions.get_decisions.side_effect = (
            lambda statuses: self.open)
        self.promised = types.SimpleNamespace(
            is_recent=True, claimants={},
            current=lambda: self.promised.claimants)
        self.known = known = mock.Mock(promised=self.promised,
                                       headroom=self.headroom)
        known.servers.by_node.side_effect = lambda: self.hosts
        known.budgets.read.return_value = None
        known.policy.return_value = preemption_policy.Policy(
            eligibility.Rules(), ('shelve',), lambda server, options: 0)
        known.providers.look.side_effect = lambda params, age: [
            (types.SimpleNamespace(uuid=f'uuid of {name}', name=name),
             Provider(f'uuid of {name}', 1, {'VCPU': Inventory(2)},
                      dict.fromkeys(servers, ONE)), True)
            for name, servers in self.hosts.items()]
        self.placement = placement = mock.Mock()
        placement.get_room.side_effect = lambda wanted: dict(self.room)
        self.returning = unshelve_choice.UnshelveChooser(
            mock.Mock(process=process, known=known,
                      clients=mock.Mock(placement=placement),
                      handover=mock.Mock(stuck=lambda: {'stuck'})),
            TABLE)
        self.memory = None

    def add(self, uuid, name, host=None, ago_s=7200, ran_s=7200):
        """Add a server that has run, and runs or waits now."""
        now_us = microseconds(world.NOW)
        events = [Event(now_us - (ago_s + ran_s) * SECOND - number, kind)
                  for number, kind in ((3, Kind.QUEUED), (2, Kind.ALLOCATING),
                                       (1, Kind.RUNNING))]
        if host is None:
            events.append(Event(now_us - ago_s * SECOND, Kind.EVICTED))
        else:
            self.hosts.setdefault(host, {})[uuid] = world.server(uuid, host)
        self.promised.claimants[uuid] = Claimant(
            uuid, TABLE.classes.find(name), ServerClocks(events), {})

    def choose(self, *uuids, most=9):
        return self.choose_of(dict.fromkeys(uuids, ONE), most)

    def choose_of(self, needs, most):
        step = self.returning.step(
            [ShelvedVictim(*each) for each in needs.items()], most,
            lambda server: victim_unshelving.find_room(
                self.placement, self.headroom, server.resources),
            self.memory, microseconds(world.NOW) + self.seconds * SECOND)
        self.memory = step.memory
        return list(step.intents)

    def full(self):
        for uuid in 'xy':
            self.add(uuid, 'bronze', 'h')
        self.add('g', 'gold')

    def test_more_urgent_servers_use_the_free_space(self):
        self.add('b', 'bronze')
        self.add('g', 'gold')
        self.room = {'r': ONE}
        self.assertEqual(['g'], self.choose('b', 'g'))
        self.room = {'r': {'VCPU': 2}}
        self.assertEqual(['g', 'b'], self.choose('b', 'g'))
        self.assertEqual(['g'], self.choose('b', 'g', most=1))
        self.assertEqual([], self.choose('b', 'g', most=0))
        self.assertEqual([], self.choose())
        self.headroom.has_room.return_value = False
        self.assertEqual([], self.choose('b', 'g'))

    def test_the_smallest_reported_space_of_a_host_counts(self):
        """The space changes between two answers."""
        self.add('a', 'gold')
        self.add('b', 'gold')
        for answers in ((1, 2), (2, 1)):
            self.placement.get_room.side_effect = [
                {'r': {'VCPU': free}} for free in answers * 2]
            self.assertEqual(['a'], self.choose_of(
                {'a': ONE, 'b': {'VCPU': 1, 'DISK_GB': 0}}, 2))

    def test_a_server_of_unknown_size_does_not_return(self):
        """Placement does not answer a query without resources."""
        self.add('a', 'gold')
        self.add('b', 'gold')
        self.placement.get_room.side_effect = lambda wanted: (
            self.room if wanted else {})
        self.assertEqual(['a'], self.choose_of({'a': {}, 'b': ONE}, 2))
        self.assertEqual(['a'], self.choose_of({'a': {}}, 2))

    def test_headroom_is_not_used(self):
        self.add('a', 'gold', ago_s=9000)
        self.add('b', 'bronze')
        self.room = {'r': {'VCPU': 2}}
        self.headroom.has_room.side_effect = lambda wanted: wanted == ONE
        self.assertEqual(['b'], self.choose_of(
            {'a': {'VCPU': 2}, 'b': ONE}, 1))
        # Nor by a pass in which others may end: it is only asked for as well.
        self.assertEqual(['a', 'b'], self.choose_of(
            {'a': {'VCPU': 2}, 'b': ONE}, 2))

    def test_others_are_evicted_once_a_period(self):
        self.full()
        self.assertEqual(['g'], self.choose('g'))
        self.assertEqual([], self.choose('g'))
        self.seconds += self.returning.period_s - 1
        self.assertEqual([], self.choose('g'))
        self.seconds += 1
        self.assertEqual(['g'], self.choose('g'))
        # The clock is set back.
        self.seconds -= 86_400
        self.assertEqual(['g'], self.choose('g'))

    def test_no_server_is_evicted_if_not_allowed(self):
        self.full()
        for spoil in (
                lambda: setattr(self, 'paused', 'maintenance'),
                lambda: setattr(self.options, 'enabled', False),
                lambda: setattr(self.options, 'preempting_operations', []),
                lambda: setattr(self.promised, 'is_recent', False),
                lambda: setattr(self, 'open', [decisions.Decision(
                    uuid='d', server_uuid='s', victims=tuple(
                        decisions.Victim(uuid) for uuid in 'xy'))]),
                lambda: self.hosts['h'].update(
                    {uuid: world.server(uuid, 'h', task_state='resize_prep')
                     for uuid in 'xy'}),
                # It is not known how they stand.
                lambda: self.promised.claimants.update({
                    uuid: Claimant(uuid, TABLE.classes.find('bronze'),
                                   ServerClocks(), {}) for uuid in 'xy'}),
                # Of no class.
                lambda: (self.promised.claimants.pop('x'),
                         self.promised.claimants.pop('y'))):
            self.setUp()
            self.full()
            spoil()
            self.assertEqual([], self.choose('g'))
        self.setUp()
        self.full()
        # Not for one with more time left than they have.
        self.add('b', 'bronze', ago_s=60, ran_s=90000)
        self.assertEqual([], self.choose('b'))

    def test_a_server_that_is_deleted_meanwhile(self):
        self.full()
        del self.promised.claimants['g']
        self.assertEqual([], self.choose('g'))
        self.assertEqual(set(), self.returning.of_class(['g']))
        self.assertEqual({'x'}, self.returning.of_class(['x', 'normal']))

    def test_a_victim_that_is_deleted_meanwhile(self):
        self.full()

        def forget(server):
            self.promised.claimants = {'g': self.promised.claimants['g']}
            return True

        self.known.budgets.read.return_value = mock.Mock(allows=forget)
        self.assertEqual(['g'], self.choose('g'))

    def test_many_equal_servers(self):
        """The number of evaluated servers is bounded."""
        for number in range(3000):
            self.add(f'{number:04}', 'gold')
        for number in range(100):
            self.add(f'on {number}', 'bronze', f'h{number}')
        with mock.patch.object(class_dispatch, 'dispatch',
                               side_effect=class_dispatch.dispatch) as one:
            found = self.choose(*(f'{number:04}' for number in range(3000)),
                                most=10)
        self.assertEqual([f'{number:04}' for number in range(10)], found)
        self.assertEqual([0, 10], [len(call.args[0])
                                   for call in one.mock_calls])


if __name__ == '__main__':
    unittest.main()
