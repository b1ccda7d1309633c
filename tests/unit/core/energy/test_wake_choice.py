# SPDX-License-Identifier: Apache-2.0
"""Hosts that wake for waiting requests."""

import fractions
import random
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core import poll_timing
from nova_preempt.core.energy import power_steps
from nova_preempt.core.energy import wake_choice
from tests.unit.core.support import LAW


def sleepers(**rooms):
    return [wake_choice.SleepingHost(name, room) for name,
        room in rooms.items()]


def given(found):
    return {item.host: item.servers for item in found}


class TestSortOut(unittest.TestCase):

    def test_promised_hosts_are_classified(self):
        states = {'c': power_steps.ASLEEP, 'b': power_steps.ON,
                  'a': power_steps.WAKING,
                  'd': power_steps.FAILED, 'e': power_steps.SLEEPING,
                  'f': power_steps.EMPTYING}
        asked = []

        def switchable(names):
            asked.extend(names)
            return [name for name in names if name != 'f']

        self.assertEqual(
            wake_choice.PromisedHosts(('c', 'a', 'e'), frozenset('abce'),
                                      frozenset('df')),
            wake_choice.classify_promises(states, states.get, switchable,
                                 lambda: states))
        self.assertEqual(['c', 'a', 'e', 'f'], asked)

    def test_no_promised_hosts(self):
        self.assertEqual(
            wake_choice.PromisedHosts((), frozenset('b'), frozenset()),
            wake_choice.classify_promises('b', lambda name: power_steps.ON,
                None, None))

    def test_a_host_in_a_cell_that_cannot_be_read_is_not_lost(self):
        states = {'a': power_steps.ASLEEP, 'b': power_steps.WAKING,
                  'd': power_steps.FAILED}
        self.assertEqual(
            wake_choice.PromisedHosts(('b',), frozenset('ab'), frozenset('d')),
            wake_choice.classify_promises(states, states.get,
                lambda names: ['b'],
                                 lambda: ['b']))


class TestPromise(unittest.TestCase):

    def test_waking_hosts_then_awaited_then_efficient_hosts(self):
        hosts = [wake_choice.SleepingHost('a', 1, efficiency=9.0),
                 wake_choice.SleepingHost('b', 1, waking=True),
                 wake_choice.SleepingHost('c', 3),
                     wake_choice.SleepingHost('d', 1)]
        others = [wake_choice.Promise('r', 'c', 1, 3)]
        found = wake_choice.promise('q', 5, hosts, others)
        self.assertEqual({'b': 1, 'c': 2, 'a': 1, 'd': 1}, given(found))
        self.assertEqual(['b', 'c', 'a', 'd'], [item.host for item in found])

    def test_late_hosts_come_last_or_never(self):
        """A boot that hangs comes last, a shutdown that hangs never."""
        hosts = [wake_choice.SleepingHost('a', 1, waking=True, late=True),
                 wake_choice.SleepingHost('b', 1, late=True),
                 wake_choice.SleepingHost('c', 1)]
        self.assertEqual(['c', 'a'], [
            item.host for item in wake_choice.promise('q', 3, hosts, ())])

    def test_no_more_than_needed(self):
        self.assertEqual({'a': 2, 'b': 1}, given(wake_choice.promise(
            'q', 3, sleepers(a=2, b=2, c=2), ())))

    def test_fewer_hosts_than_requested(self):
        self.assertEqual({'a': 2}, given(wake_choice.promise(
            'q', 3, sleepers(a=2, b=0), ())))

    def test_own_promises_do_not_count_as_used(self):
        self.assertEqual({'a': 2}, given(wake_choice.promise(
            'q', 2, sleepers(a=2), [wake_choice.Promise('q', 'a', 2, 2)])))

    def test_a_third_three_times_is_all(self):
        others = [wake_choice.Promise(f'r{number}', 'a', 1, 3)
                  for number in range(3)]
        self.assertEqual([],
                         wake_choice.promise('q', 1, sleepers(a=99), others))
        self.assertEqual({'a': 33}, given(wake_choice.promise(
            'q', 99, sleepers(a=99), others[1:])))

    @LAW
    @hypothesis.given(
        st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)),
                 max_size=12),
        st.lists(st.integers(1, 8), max_size=5),
        st.randoms(use_true_random=False))
    def test_no_space_is_promised_twice(self, requests, rooms, rng:
                                        random.Random):
        """Requests are (servers, size), hosts have a number of units."""
        promised = []
        for number, (servers, size) in enumerate(requests):
            hosts = [wake_choice.SleepingHost(f'host{index}', room // size)
                     for index, room in enumerate(rooms)]
            found = wake_choice.promise(f'{number}', servers, hosts, promised)
            rng.shuffle(hosts)
            self.assertEqual(found, wake_choice.promise(
                f'{number}', servers, hosts, promised))
            self.assertLessEqual(sum(given(found).values()), servers)
            promised += found
        for index in range(len(rooms)):
            self.assertLessEqual(sum(
                fractions.Fraction(item.servers, item.room)
                for item in promised if item.host == f'host{index}'), 1)


class TestWaiting(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.states = {'a': power_steps.WAKING, 'b': power_steps.ASLEEP}
        self.waiting = wake_choice.Waiting(
            poll_timing.BoundedWait(0, 60, 1)).promised('ab')

    def step(self, now_s=10, **states):
        self.states.update(states)
        outcome, self.waiting = wake_choice.step(
            self.waiting, self.states.__getitem__, now_s)
        return outcome

    def test_waits_for_all_of_them(self):
        self.assertIs(wake_choice.NextAction.WAIT, self.step())
        self.assertIs(wake_choice.NextAction.WAIT, self.step(a=power_steps.ON))
        self.assertIs(wake_choice.NextAction.RETRY,
            self.step(b=power_steps.ON))
        self.assertEqual({'a', 'b'}, self.waiting.tried)

    def test_a_host_that_was_on_is_not_waited_for_again(self):
        self.step(a=power_steps.ON)
        self.assertIs(wake_choice.NextAction.RETRY,
            self.step(a=power_steps.ASLEEP,
                                                        b=power_steps.ON))
        self.assertEqual({'b'}, self.waiting.tried)

    def test_a_failed_host_leads_to_a_retry(self):
        self.assertIs(wake_choice.NextAction.RETRY,
            self.step(a=power_steps.FAILED,
                                                        b=power_steps.FAILED))
        self.assertEqual(set(), self.waiting.tried)

    def test_time_is_up(self):
        self.assertIs(wake_choice.NextAction.GIVE_UP, self.step(60))
        self.assertIs(wake_choice.NextAction.RETRY,
            self.step(60, a=power_steps.ON))
