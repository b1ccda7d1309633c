# SPDX-License-Identifier: Apache-2.0
"""The eviction controller, without anything that carries out its intents."""

import dataclasses
import unittest
from unittest import mock

from nova_preempt.core import observed_server
from nova_preempt.core.eviction import eviction_controller
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction import eviction_values
from nova_preempt.core.model import SECOND

HERE = observed_server.ObservedServer('a', 'active', None, 'h', read_us=0)
ON_ITS_WAY = observed_server.ObservedServer(
    'a', 'active', 'deleting', 'h', read_us=0)


def victim(uuid, notice_s=0, decision='d', host='h'):
    return eviction_values.Victim(uuid, decision, eviction_steps.VictimTerms(
        host, 'delete', ('delete',), timeout_s=60), notice_s)


class TestController(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.victims = {'a': victim('a', 30), 'b': victim('b')}
        self.memory = eviction_controller.begin(self.victims.values(), 0)
        self.facts = {'holds': {}, 'hosts': {'h': True},
                      'unwanted': {'d': ''}}
        self.seen = dict.fromkeys(self.victims, (HERE, True))

    def step(self, at_s, **facts):
        """Step, and step again with the same: that says the same."""
        observed = eviction_values.Observed(self.victims, {'d': 'h'}, **{
            'seen': self.seen, **self.facts, **facts})
        before = self.memory
        found = eviction_controller.step(observed, before, at_s * SECOND)
        self.assertEqual(found, eviction_controller.step(observed, before,
                                                         at_s * SECOND))
        self.memory = found.memory
        return found

    def give_notice(self):
        self.step(0)

    def ask(self, uuid, at_s):
        self.memory = self.memory.note(uuid, asked='force_delete',
                                       asked_us=at_s * SECOND)

    def test_notice_comes_first(self):
        found = self.step(0)
        self.assertEqual((eviction_values.GiveNotice(('a', 'b')),),
                         found.intents)
        self.assertEqual(0, found.wake_at_us)

    def test_no_notice_before_the_host_was_checked(self):
        self.assertEqual((eviction_values.CheckHostUp('h', 'a'),),
                         self.step(0, hosts={}).intents)
        self.assertFalse(self.memory.has_notice)

    def test_the_longest_notice_is_waited_for(self):
        self.give_notice()
        for at_s in (0, 29):
            found = self.step(at_s)
            self.assertEqual(((), 30 * SECOND),
                             (found.intents, found.wake_at_us))
        found = self.step(30)
        self.assertEqual(tuple(
            eviction_values.CallNova(uuid, 'force_delete',
                                     True) for uuid in 'ab'),
            found.intents)
        self.assertEqual(90 * SECOND, found.wake_at_us)

    def test_a_victim_that_left_needs_no_notice(self):
        """The other victims are not waited for as long."""
        self.victims['b'] = victim('b', 5)
        self.memory = eviction_controller.begin(self.victims.values(), 0)
        self.give_notice()
        self.seen['a'] = None, True
        found = self.step(3, holds={'a': False})
        self.assertEqual((eviction_values.CloseVictim('a',
                                                      'gone'),), found.intents)
        self.memory = self.memory.close('a')
        self.assertEqual(5 * SECOND, self.step(3).wake_at_us)

    def test_an_intent_that_was_not_carried_out(self):
        """It is repeated as after an outdated reading."""
        self.give_notice()
        first = self.step(30)
        self.assertEqual(first.intents, self.step(31).intents)
        self.ask('a', 31)
        self.seen['a'] = ON_ITS_WAY, True
        self.assertEqual(('b',), tuple(
            intent.victim for intent in self.step(32).intents))

    def test_an_unreadable_victim_is_not_evicted(self):
        self.give_notice()
        self.seen['a'] = None, False
        self.assertEqual([], [intent for intent in self.step(30).intents
                              if intent.victim == 'a'])

    def test_a_protected_victim_spares_all(self):
        self.give_notice()
        self.seen['b'] = dataclasses.replace(HERE, locked_by='admin'), True
        found = self.step(30)
        self.assertEqual((eviction_values.SpareVictim('b', 'it is locked'),),
                         found.intents)
        self.assertTrue(self.memory.is_over)

    def test_unneeded_space_spares_all_victims(self):
        self.give_notice()
        found = self.step(10, unwanted={'d': 'why'})
        self.assertEqual((eviction_values.SpareVictim('d',
                                                      'why'),), found.intents)
        self.assertEqual((True, {'d': 'why'}),
                         (self.memory.is_over, self.memory.unwanted))

    def test_evictions_wait_while_the_need_is_unknown(self):
        self.give_notice()
        self.assertEqual((), self.step(30, unwanted={'d': None}).intents)

    def test_no_eviction_before_the_claim_was_checked(self):
        self.give_notice()
        self.assertEqual((eviction_values.CheckClaimedCapacity(),),
                         self.step(30, is_held=None).intents)
        self.assertEqual((), self.step(30, is_held=False).intents)
        self.ask('a', 31)
        # What has begun is finished.
        self.assertEqual(('b',), tuple(
            intent.victim for intent
            in self.step(32, is_held=False).intents))

    def test_ten_missed_steps(self):
        """No victim is stuck that was never evicted."""
        self.give_notice()
        self.assertEqual(2, len(self.step(1000).intents))
        self.assertEqual(frozenset(), self.memory.stuck)

    def test_thousands_of_victims(self):
        """A step copies the memory as often for all as for one."""
        copies = []

        def replace(item, **changes):
            copies.append(isinstance(item, eviction_values.Memory))
            return dataclasses.replace(item, **changes)

        found = []
        for count in 1, 1000:
            self.victims = {uuid: victim(uuid)
                            for uuid in map(str, range(count))}
            self.memory = eviction_controller.begin(self.victims.values(), 0)
            self.seen = dict.fromkeys(self.victims, (HERE, True))
            self.give_notice()
            copies.clear()
            with mock.patch.object(
                    eviction_values, 'dataclasses',
                    mock.Mock(replace=replace)), (
                    mock.patch.object(eviction_controller, 'dataclasses',
                                      mock.Mock(replace=replace))):
                asked = self.step(1).intents
            self.assertEqual(count, len(asked))
            found.append(sum(copies))
            for intent in asked:
                self.ask(intent.victim, 1)
            self.seen = dict.fromkeys(self.victims, (None, True))
            closed = self.step(
                2, holds=dict.fromkeys(self.victims, False)).intents
            for intent in closed:
                self.memory = self.memory.close(intent.victim)
            self.assertFalse(self.memory.pending)
        self.assertEqual(found[0], found[1])
        self.assertGreater(found[0], 0)

    def test_a_clock_that_was_turned_back(self):
        self.give_notice()
        self.step(30)
        for uuid in 'ab':
            self.ask(uuid, 30)
            self.seen[uuid] = ON_ITS_WAY, True
        self.assertEqual((), self.step(10).intents)
        self.seen = dict.fromkeys('ab', (None, True))
        self.assertEqual(
            [eviction_values.CloseVictim(uuid, 'gone') for uuid in 'ab'],
            list(self.step(11, holds=dict.fromkeys('ab', False)).intents))

    def test_too_late(self):
        self.give_notice()
        self.step(30)
        self.ask('a', 30)
        self.seen = {'a': (ON_ITS_WAY, True), 'b': (None, True)}
        found = self.step(90, holds={'b': False})
        self.assertEqual((eviction_values.CloseVictim('b',
                                                      'gone'),), found.intents)
        self.assertFalse(self.memory.is_over)
        self.memory = self.memory.close('b')
        self.step(90)
        self.assertEqual((True, {'a'}),
                         (self.memory.is_over, self.memory.stuck))

    def test_the_host_is_looked_at_before_it_is_handed_over(self):
        self.memory = eviction_values.Memory({}, 0.0, has_notice=True)
        self.assertEqual(
            (eviction_values.CheckHostUp('h', 'b',
                                         eviction_values.HANDOVER_AGE_S),),
            self.step(30, hosts={}).intents)
        self.assertFalse(self.memory.is_over)
        self.step(30, hosts={'h': False})
        self.assertEqual({'d': 'host h is down'}, self.memory.refusals)
