# SPDX-License-Identifier: Apache-2.0
"""Powering hosts on and off, step by step."""

import collections
import dataclasses
import unittest

from nova_preempt.core.energy import demand_forecast
from nova_preempt.core.energy import energy_controller
from nova_preempt.core.energy import energy_observation
from nova_preempt.core.energy import power_plan
from nova_preempt.core.energy import power_steps
from nova_preempt.core.energy import wake_choice
from nova_preempt.core.model import SECOND

MINUTE = 60 * SECOND
OPTIONS = energy_observation.Options(
    power_plan.PowerPolicy(idle_intervals=2),
    forecast=demand_forecast.max_window, switch_interval_s=60)


@dataclasses.dataclass
class Host:
    """A host and its record."""

    state: str = power_steps.ON
    since_us: int = 0
    boots: int = 0
    boot_s: float | None = None
    idle_intervals: int = 0
    up: bool = True
    disabled: bool = False
    is_ours: bool = False
    is_operators: bool = False
    servers: int = 0
    aggregates: frozenset = frozenset()


class Cloud:
    """Hosts that a test changes; an Observed."""

    def __init__(self, **hosts):
        self.states = self.hosts = self.recent_hosts = hosts
        self.options = OPTIONS
        self.is_whole = True
        self.efficiencies = self.minimums = {}
        self.needed_s = {}
        self.promised = []
        self.busy = 0
        self.coming = ''      # hosts to which servers are on their way
        self.asked = {}       # what was asked for

    @property
    def in_state(self):
        return {state: {name: host for name, host in self.states.items()
                        if host.state == state}
                for state in power_steps.STATES}

    def changed_since(self, since_us):
        return [host for host in self.states.values()
                if host.since_us > since_us]

    def is_empty(self, name):
        return name not in self.coming

    def needed(self, within_s):
        self.asked['needed'] = within_s
        return {name: in_s for name, in_s in self.needed_s.items()
                if in_s <= within_s}

    def loads(self, since_s, until_s):
        self.asked['loads'] = until_s
        return [demand_forecast.Load(until_s - 1, self.busy)]


class TestController(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.memory = energy_controller.Memory()
        self.now_us = 1000 * MINUTE

    def step(self, cloud):
        """{type of an intent: [it]} of all rounds, each carried out."""
        found = collections.defaultdict(list)
        while True:
            step = energy_controller.step(cloud, self.memory, self.now_us)
            self.assertEqual(
                step, energy_controller.step(cloud, self.memory, self.now_us))
            self.memory = step.memory
            for intent in step.intents:
                found[type(intent)].append(intent)
                self.carry_out(cloud, intent)
            if step.wake_at_us > self.now_us:
                self.assertEqual(self.now_us + 10 * SECOND, step.wake_at_us)
                return found

    def carry_out(self, cloud, intent):
        if isinstance(intent, energy_controller.CountIdleInterval):
            for name in intent.hosts:
                cloud.states[name].idle_intervals += 1
        elif isinstance(intent, (energy_controller.Wake,
                                 energy_controller.PutToSleep)):
            host = cloud.states[intent.host]
            host.state = (power_steps.WAKING
                          if isinstance(intent, energy_controller.Wake)
                          else power_steps.EMPTYING)
            host.since_us, host.idle_intervals = self.now_us, 0

    def woken(self, cloud):
        """Names of hosts that are woken in a step."""
        return [intent.host
                for intent in self.step(cloud)[energy_controller.Wake]]

    def slept(self, cloud, number=3):
        """Names of hosts that are put to sleep in steps a minute apart."""
        found = []
        for _ in range(number):
            found += [intent.host for intent
                      in self.step(cloud)[energy_controller.PutToSleep]]
            self.now_us += MINUTE
        return found

    def test_idle_hosts(self):
        self.assertEqual(['a', 'b'], self.slept(Cloud(a=Host(), b=Host())))

    def test_after_a_crash_at_any_round(self):
        for rounds in range(1, 5):
            cloud = Cloud(a=Host())
            self.memory = energy_controller.Memory()
            for _ in range(rounds):
                step = energy_controller.step(cloud, self.memory, self.now_us)
                self.memory = step.memory
            self.memory = energy_controller.Memory()
            self.now_us += MINUTE
            self.assertEqual(['a'], self.slept(cloud), rounds)

    def test_after_a_step_that_was_broken_off(self):
        """The next one begins anew."""
        cloud = Cloud(a=Host())
        self.memory = energy_controller.step(cloud, self.memory,
                                             self.now_us).memory
        self.assertTrue(self.memory.rounds)
        self.now_us += MINUTE
        self.assertEqual(['a'], self.slept(cloud))

    def test_after_ten_missed_steps(self):
        cloud = Cloud(a=Host())
        self.slept(cloud, 1)
        self.now_us += 10 * MINUTE
        self.assertEqual(['a'], self.slept(cloud))

    def test_clock_that_is_turned_back(self):
        cloud = Cloud(a=Host(), b=Host(power_steps.ASLEEP))
        self.slept(cloud, 1)
        self.now_us -= 60 * MINUTE
        self.assertEqual(['a'], self.slept(cloud))
        # What happens in the time to come counts for no limit.
        cloud.options = dataclasses.replace(OPTIONS, max_wakes_per_minute=1)
        cloud.states['a'] = Host(power_steps.WAKING, self.now_us + MINUTE)
        cloud.needed_s = {'b': 0}
        self.assertEqual(
            [energy_controller.Wake('b', 'a reservation of the host begins')],
            self.step(cloud)[energy_controller.Wake])

    def test_nothing_to_do(self):
        cloud = Cloud(a=Host(servers=1))
        self.step(cloud)
        self.now_us += 10 * SECOND
        cloud.hosts = None          # it is not asked for them
        self.assertEqual({}, self.step(cloud))

    def test_stepped_again_at_the_same_time(self):
        cloud = Cloud(a=Host())
        self.step(cloud)
        self.assertEqual({}, self.step(cloud))

    def test_a_woken_host_takes_its_next_step_at_once(self):
        cloud = Cloud(a=Host(power_steps.ASLEEP))
        self.step(cloud)
        self.now_us += 10 * SECOND
        cloud.needed_s = {'a': 0}
        self.assertEqual([energy_controller.Advance(('a',))],
                         self.step(cloud)[energy_controller.Advance])

    def test_as_many_as_a_minute_allows_and_the_others_in_the_next(self):
        cloud = Cloud(**{name: Host(power_steps.ASLEEP) for name in 'abc'})
        cloud.options = dataclasses.replace(
            OPTIONS, max_wakes_per_minute=2, switch_interval_s=300)
        cloud.busy = 3
        found = []
        for _ in range(4):
            found.append(self.woken(cloud))
            self.now_us += 30 * SECOND
        self.assertEqual([['a', 'b'], [], ['c'], []], found)
        self.assertEqual(3, self.memory.required)
        # Nothing was left to do, so the next decision is not sooner.
        cloud.states['d'], cloud.busy = Host(power_steps.ASLEEP), 4
        self.now_us += 240 * SECOND - 60 * SECOND
        self.assertEqual([], self.woken(cloud))
        self.now_us += 60 * SECOND
        self.assertEqual(['d'], self.woken(cloud))

    def test_as_many_sleep_as_a_minute_allows(self):
        cloud = Cloud(**{name: Host(idle_intervals=9) for name in 'abcd'})
        cloud.options = dataclasses.replace(
            OPTIONS, max_sleeps_per_minute=1, switch_interval_s=300)
        cloud.busy = 2
        self.assertEqual([['a'], ['b'], []],
                         [self.slept(cloud, 1) for _ in range(3)])

    def test_nothing_is_decided_before_the_minute_is_over(self):
        cloud = Cloud(**{name: Host(power_steps.ASLEEP) for name in 'abc'})
        cloud.options = dataclasses.replace(
            OPTIONS, max_wakes_per_minute=2, switch_interval_s=300)
        for busy, required in ((3, 3), (2, 3), (2, 2), (1, 2)):
            cloud.busy = busy
            self.step(cloud)
            self.assertEqual(required, self.memory.required)
            self.now_us += 30 * SECOND

    def test_aggregates_keep_their_minimum(self):
        cloud = Cloud(**{name: Host(idle_intervals=9, aggregates=frozenset({
            'rack'})) for name in 'abc'})
        cloud.minimums = {'rack': 2}
        self.assertEqual(['a'], self.slept(cloud))

    def test_inputs_of_calendar_and_history(self):
        cloud = Cloud(a=Host(power_steps.ASLEEP), b=Host(power_steps.EMPTYING),
                      c=Host(power_steps.ASLEEP), d=Host())
        cloud.options = dataclasses.replace(OPTIONS, max_wakes_per_minute=1)
        cloud.needed_s = {'a': 1000, 'c': 1000, 'd': 1000}
        self.step(cloud)
        # Three may have to wake, one after the other.
        self.assertEqual({'needed': 900 + 3 * 70,
                          'loads': self.now_us // SECOND + 1}, cloud.asked)
        self.assertEqual(2 * 70, self.memory.queue_s)

    def test_reserved_hosts_stay_on_while_others_have_to_wake(self):
        cloud = Cloud(a=Host(idle_intervals=9), b=Host(power_steps.ASLEEP),
                      c=Host(idle_intervals=9))
        cloud.options = dataclasses.replace(OPTIONS, max_wakes_per_minute=1)
        cloud.needed_s = {'a': 950, 'b': 960}
        self.assertEqual(['c'], self.slept(cloud, 1))

    def test_hosts_in_use_are_not_spare(self):
        for values, up_s, states, woken in (
                ({'servers': 1}, -100, 'ab', ['b']),
                # Of one that is not known, it is not known either.
                ({'servers': 1}, -100, 'b', ['b']),
                ({}, -100, 'ab', []),
                # Nova has no server there, and one is on its way to it.
                ({'coming': 'a'}, -100, 'ab', ['b']),
                # It was not looked at since it is up.
                ({'coming': 'a'}, 0, 'ab', []),
                ({'coming': 'a'}, 10, 'ab', [])):
            with self.subTest(values, up_s=up_s):
                self.memory = energy_controller.Memory()
                cloud = Cloud(a=Host(servers=values.get('servers', 0)),
                              b=Host(power_steps.ASLEEP),
                              c=Host(power_steps.WAKING))
                cloud.coming = values.get('coming', '')
                cloud.options = dataclasses.replace(
                    OPTIONS, policy=power_plan.PowerPolicy(spare=1))
                self.step(cloud)
                cloud.states['a'].since_us = self.now_us + up_s * SECOND
                cloud.states['b'].state = power_steps.ASLEEP
                cloud.states['c'].state = power_steps.FAILED
                cloud.hosts = dict(cloud.states)
                cloud.states = {name: host for name, host
                                in cloud.states.items() if name in states}
                cloud.states['c'] = cloud.hosts['c']
                self.now_us += 20 * SECOND
                self.assertEqual(woken, self.woken(cloud))

    def test_reservations_come_before_requests(self):
        cloud = Cloud(**{name: Host(power_steps.ASLEEP) for name in 'abc'})
        cloud.options = dataclasses.replace(OPTIONS, max_wakes_per_minute=2)
        cloud.needed_s, cloud.promised = {'c': 10}, ['a', 'b', 'c']
        self.assertEqual(['c', 'a'], [
            intent.host
            for intent in self.step(cloud)[energy_controller.Wake]])
        self.now_us += MINUTE
        self.assertEqual(['b'], [
            intent.host
            for intent in self.step(cloud)[energy_controller.Wake]])
        self.assertEqual({'a', 'b', 'c'}, self.memory.promised)

    def test_promises_of_hosts_that_will_not_be_on(self):
        cloud = Cloud(a=Host(power_steps.FAILED),
                      b=Host(power_steps.ASLEEP, is_operators=True),
                      c=Host(power_steps.ASLEEP), d=Host())
        cloud.options = dataclasses.replace(OPTIONS, excluded=('c',))
        cloud.promised = ['a', 'b', 'c', 'd']
        found = self.step(cloud)
        self.assertEqual([energy_controller.ForgetPromises(frozenset('abc'))],
                         found[energy_controller.ForgetPromises])
        self.assertEqual({'d'}, self.memory.promised)
        self.assertFalse(found[energy_controller.Wake])

    def test_another_host_replaces_a_failed_one(self):
        cloud = Cloud(a=Host(power_steps.WAKING), b=Host(power_steps.ASLEEP))
        cloud.busy = 1
        self.step(cloud)
        self.now_us += 10 * SECOND
        self.assertFalse(self.step(cloud)[energy_controller.Wake])
        cloud.states['a'].state = power_steps.FAILED
        self.assertEqual([energy_controller.Wake('b', '1 hosts are needed')],
                         self.step(cloud)[energy_controller.Wake])
        # It has been decided of that now.
        cloud.states['c'], cloud.busy = Host(power_steps.ASLEEP), 2
        self.now_us += 10 * SECOND
        self.assertEqual([], self.woken(cloud))

    def test_hosts_are_missing(self):
        """No decision is based on a part of the hosts."""
        cloud = Cloud(a=Host(idle_intervals=9), b=Host(power_steps.ASLEEP))
        cloud.is_whole, cloud.busy = False, 2
        self.assertEqual([energy_controller.Advance], list(self.step(cloud)))

    def test_hosts_with_lost_states(self):
        cloud = Cloud(a=Host(disabled=True, is_ours=True, up=False),
                      b=Host(disabled=True, is_ours=True), c=Host(),
                      d=Host(power_steps.ASLEEP, disabled=True, is_ours=True))
        known = dict(cloud.states)
        del cloud.states['b']
        cloud.states['gone'] = Host()
        cloud.hosts = known
        found = self.step(cloud)
        self.assertEqual([energy_controller.ForgetHosts(frozenset({'gone'}))],
                         found[energy_controller.ForgetHosts])
        self.assertEqual([('a', power_steps.ASLEEP),
                          ('b', power_steps.WAKING)], [
                              (intent.host, intent.state)
                              for intent in found[energy_controller.Adopt]])

    def test_hosts_that_do_not_move_are_seen_to_as_idle_ones_are_noted(self):
        cloud = Cloud(a=Host(power_steps.ASLEEP), b=Host(power_steps.WAKING))
        advanced = []
        for _ in range(3):
            advanced += self.step(cloud)[energy_controller.Advance]
            self.now_us += 30 * SECOND
        self.assertEqual([('a', 'b'), ('b',), ('a', 'b')],
                         [intent.hosts for intent in advanced])


class TestTimes(unittest.TestCase):

    def test_boot(self):
        for measured, expected in (
                ((), 0), ((None,), 300), ((100.0,), 120), ((10.1,), 13),
                ((None, 1000.0, 10.0), 1200)):
            self.assertEqual(expected, OPTIONS.boot_s(
                Host(boot_s=each) for each in measured))
        self.assertEqual(300, OPTIONS.boot_s([None]))
        self.assertEqual(140, OPTIONS.lead_s(Host(boot_s=100.0)))

    def test_ready(self):
        cloud = Cloud(**{name: Host(power_steps.ASLEEP, boot_s=80.0)
                         for name in 'abcx'})
        cloud.options = dataclasses.replace(OPTIONS, max_wakes_per_minute=2)
        cloud.promised = ['a', 'b', 'c']
        for names, expected in (
                ('x', 96), ('a', 166), ('b', 166), ('c', 236), ('ac', 236)):
            with self.subTest(names):
                self.assertEqual(expected,
                                 energy_controller.ready_s(cloud, names))
        cloud.options = dataclasses.replace(OPTIONS, max_wakes_per_minute=1)
        self.assertEqual(96, energy_controller.ready_s(cloud, 'x'))

    def test_hosts_that_are_off_and_whether_they_are_in_time(self):
        cloud = Cloud(a=Host(power_steps.ASLEEP, since_us=-10 ** 12),
                      b=Host(power_steps.WAKING, since_us=-321 * SECOND))
        memory = energy_controller.Memory(queue_s=70)

        def off(name, **values):
            found = energy_controller.off(cloud, memory, 0, name, **values)
            return found.why_late, found.patience_s

        self.assertEqual(('', 390), off('a'))
        self.assertEqual(('it has been waking for 321 s', 320), off('b'))
        self.assertEqual(('paused', 390), off('a', stopped='paused'))
        cloud.options = dataclasses.replace(OPTIONS, excluded=('a',))
        self.assertIn('excluded_hosts', off('a')[0])

    def test_hosts_that_will_be_on_for_a_request(self):
        cloud = Cloud(a=Host(power_steps.ASLEEP), b=Host(power_steps.WAKING),
                      c=Host(), d=Host(power_steps.WAKING, -MINUTE * 10),
                      e=Host(power_steps.ASLEEP, is_operators=True))
        cloud.efficiencies = {'a': 2.0}
        self.assertEqual([
            wake_choice.SleepingHost('a', 3, False, False, 2.0),
            wake_choice.SleepingHost('b', 1, True, False, None),
            wake_choice.SleepingHost('d', 2, True, True, None),
        ], energy_controller.sleepers(cloud, energy_controller.Memory(), 0, {
            'a': 3, 'b': 1, 'c': 1, 'd': 2, 'e': 1}))

    def test_no_more_wake_for_a_request_than_may(self):
        cloud = Cloud(a=Host(power_steps.ASLEEP), b=Host(power_steps.ASLEEP),
                      c=Host(power_steps.WAKING, -10 * SECOND))
        for most, expected in ((1, []), (2, ['a']), (3, ['a', 'b'])):
            cloud.options = dataclasses.replace(
                OPTIONS, max_wakes_per_minute=most)
            self.assertEqual(expected, [
                wake.host
                for wake in energy_controller.wakes(cloud, 0, 'abc')])

    def test_left_in_this_minute(self):
        options = dataclasses.replace(
            OPTIONS, max_wakes_per_minute=2, max_sleeps_per_minute=3)
        for states, expected in (
                ((), (2, 3)),
                ((power_steps.WAKING, power_steps.ASLEEP, power_steps.EMPTYING,
                  power_steps.SLEEPING,
                  power_steps.ON, power_steps.FAILED), (1, 0)),
                (3 * (power_steps.WAKING,), (0, 3))):
            hosts = [Host(state, MINUTE) for state in states]
            self.assertEqual(expected, options.left(hosts, 2 * MINUTE - 1))
            self.assertEqual((2, 3), options.left(hosts, 2 * MINUTE))
