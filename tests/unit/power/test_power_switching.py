# SPDX-License-Identifier: Apache-2.0
"""A host is powered off and on whatever happens meanwhile."""

import datetime

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.energy import power_steps
from nova_preempt.db import energy_store
from tests.unit.power import world


class TestSwitcher(world.WorldTestCase):

    def setUp(self):
        super().setUp()
        self.start(world.World('a'))

    def go(self, *seconds):
        for number in seconds:
            self.world.pass_time(number)
            states = energy_store.get_power(self.db)
            self.switcher.advance(states.values(), self.world.read())
            self.switcher.wait()

    def power(self):
        return energy_store.get_power(self.db)['a']

    def sleep(self):
        self.assertTrue(self.switcher.put_to_sleep('a', 'why'))
        self.go(0, 0, 10)
        self.assertEqual('asleep', self.power().state)

    def test_order(self):
        self.sleep()
        self.assertEqual([('disable', 'a'), ('off', 'a')], self.world.calls)
        self.assertRegex(self.world.hosts['a'].disabled_reason,
                         '^nova-preempt-engine: .* 2026-11-20T12:00:00Z$')
        self.assertTrue(self.switcher.wake('a', 'needed'))
        # What is known from before it slept is no report.
        self.go(0)
        self.assertEqual('waking', self.power().state)
        self.go(100)
        self.assertEqual([('on', 'a'), ('enable', 'a')],
                         self.world.calls[2:])
        self.assertEqual(('on', 100.0, 'needed'), (
            self.power().state, self.power().boot_s, self.power().reason))

    def test_only_from_the_state_before(self):
        self.assertFalse(self.switcher.wake('a', 'on already'))
        self.sleep()
        self.assertFalse(self.switcher.put_to_sleep('a', 'asleep already'))

    def test_woken_while_it_is_emptied(self):
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 0)
        self.switcher.wake('a', 'needed')
        self.go(10, 10)
        self.assertEqual('on', self.power().state)
        self.assertEqual([('disable', 'a'), ('enable', 'a')],
                         self.world.calls)
        self.assertIsNone(self.power().boot_s)

    def test_server_comes_before_the_power_off(self):
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 0)
        self.world.coming = {'a'}
        self.go(10)
        self.assertEqual('on', self.power().state)
        self.assertIn('a server has come', self.power().reason)
        self.assertEqual('enable', self.world.calls[-1][0])

    def test_server_comes_after_the_look_as_the_database_is_slow(self):
        reread = self.world.reread

        def slow(host):
            if len(self.world.looks) == 2:   # the last before the shutdown
                self.world.reread = reread
                self.world.pass_time(50)
                self.world.change('a', servers=1)
            return reread(host)

        self.world.reread = slow
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 0, 10)
        self.assertEqual(3, len(self.world.looks))
        self.assertNotIn(('off', 'a'), self.world.calls)
        self.assertTrue(self.world.on['a'])

    def test_server_comes_after_the_power_off(self):
        self.sleep()
        self.world.coming = {'a'}
        self.go(10, 10, 60)
        self.assertEqual('on', self.power().state)

    def test_cannot_be_powered_off(self):
        self.world.welded = {'a'}
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 0, 10)
        self.assertEqual('sleeping', self.power().state)
        self.go(300 + 900)
        self.assertEqual('on', self.power().state)
        self.assertIn('could not be powered off', self.power().reason)
        self.assertFalse(self.world.hosts['a'].disabled)

    def test_a_host_is_disabled_for_a_time_before_it_sleeps(self):
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 100)
        self.assertEqual('emptying', self.power().state)
        self.go(9)
        self.assertEqual('emptying', self.power().state)
        self.go(1)
        self.assertEqual('asleep', self.power().state)

    def test_the_clock_is_turned_back_while_it_is_emptied(self):
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 0)
        self.world.set_clock(-3600)
        self.go(10)
        self.assertEqual('asleep', self.power().state)

    def test_the_clock_is_turned_on_while_it_is_emptied(self):
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 0)
        self.world.set_clock(600)
        self.go(9)
        self.assertEqual('emptying', self.power().state)
        self.go(1)
        self.assertEqual('asleep', self.power().state)

    def test_the_clock_is_turned_back_while_it_boots(self):
        self.sleep()
        self.world.broken = {'a'}
        self.switcher.wake('a', 'needed')
        self.go(0)
        self.world.set_clock(-7200)
        self.go(890)
        self.assertEqual('waking', self.power().state)
        self.go(10)
        self.assertEqual('failed', self.power().state)

    def test_the_clock_was_turned_back_before_it_is_first_seen(self):
        self.sleep()
        self.world.broken = {'a'}
        self.switcher.wake('a', 'needed')
        self.world.set_clock(-7200)
        self.go(0, 900)
        self.assertEqual('failed', self.power().state)

    def test_the_clock_is_turned_on_while_it_boots(self):
        self.sleep()
        self.world.hanging = {'a'}
        self.switcher.wake('a', 'needed')
        self.go(0)
        self.world.set_clock(3600)
        self.go(10)
        self.assertEqual(('waking', 0), (self.power().state,
                                         self.power().boots))
        self.world.hanging = set()
        self.go(90)
        self.assertEqual(('on', 100.0), (self.power().state,
                                         self.power().boot_s))

    def test_age_goes_on_where_another_engine_takes_over(self):
        self.sleep()
        self.world.hanging = {'a'}
        self.switcher.wake('a', 'needed')
        self.go(0, 800)
        self.start(self.world)
        self.go(90)
        self.assertEqual(0, self.power().boots)
        self.go(10)
        self.assertEqual(('waking', 1), (self.power().state,
                                         self.power().boots))

    def after_another_engine(self, state, last):
        """Take a step with data from before another engine acted.

        :param state: in which the host is then, not enabled
        :param last: the states that it was in when it was read
        """
        read, states = self.world.read(), energy_store.get_power(self.db)
        energy_store.set_power(self.db, 'a', state,
                               self.world.naive() + datetime.timedelta(0, 1),
                               from_states=(last,))
        before, self.world.calls = self.power(), []
        self.switcher.advance(states.values(), read)
        self.switcher.wait()
        self.assertEqual(before, self.power())
        self.assertEqual([], self.world.calls)

    def test_a_late_engine_enables_no_host_that_shuts_down(self):
        self.sleep()
        self.switcher.wake('a', 'needed')
        self.go(0)
        self.world.pass_time(100)
        self.after_another_engine('sleeping', 'waking')

    def test_a_late_engine_powers_no_host_on_that_sleeps_again(self):
        self.sleep()
        self.switcher.wake('a', 'needed')
        self.after_another_engine('asleep', 'waking')

    def test_a_late_engine_cuts_no_boot_that_another_has_begun(self):
        self.sleep()
        self.world.hanging = {'a'}
        self.switcher.wake('a', 'needed')
        self.go(0)
        self.world.pass_time(900)
        self.after_another_engine('waking', 'waking')

    def test_a_dead_controller_closes_no_host(self):
        self.world.away = {'a'}
        self.switcher.put_to_sleep('a', 'why')
        self.go(0)
        self.assertEqual('on', self.power().state)
        self.assertIn('does not answer: host a: Unable to connect',
                      self.power().reason)
        self.assertEqual([], self.world.calls)

    def test_a_controller_that_dies_on_the_way_closes_no_host_for_long(self):
        self.switcher.put_to_sleep('a', 'why')
        self.go(0)
        self.world.away = {'a'}
        self.go(10, 10)
        self.assertEqual('sleeping', self.power().state)
        self.go(359)
        self.assertEqual('sleeping', self.power().state)
        self.go(1)
        self.assertEqual('on', self.power().state)
        self.assertFalse(self.world.hosts['a'].disabled)
        self.assertNotIn('cut', dict(self.world.calls))
        # Nobody is told the same again and again.
        self.assertEqual(1, self.logger.output.count('remains sleeping'))

    def test_a_host_that_does_not_shut_down_is_switched_off(self):
        self.world.stubborn = {'a'}
        self.sleep()
        self.assertEqual([('disable', 'a'), ('off', 'a'), ('cut', 'a')],
                         self.world.calls)
        self.assertIn('powered off without a shutdown', self.logger.output)

    def test_a_shutdown_that_cannot_be_asked_for_is_asked_for_again(self):
        self.world.unasked = {'a'}
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 0, 10, 10)
        self.assertEqual([('disable', 'a'), ('off', 'a'), ('off', 'a')],
                         self.world.calls)
        self.world.unasked = set()
        self.go(10)
        self.assertEqual('asleep', self.power().state)
        self.assertNotIn(('cut', 'a'), self.world.calls)

    def test_a_host_has_the_whole_time_to_shut_down_if_no_call_succeeds(self):
        self.world.unasked = {'a'}
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 0, 10, 290, 9)
        self.assertNotIn(('cut', 'a'), self.world.calls)
        self.go(1)
        self.assertEqual(('cut', 'a'), self.world.calls[-1])
        self.assertEqual('asleep', self.power().state)

    def while_it_shuts_down(self, happen):
        """Let that happen before it is seen not to shut down."""
        self.world.stubborn = {'a'}
        shut_down = self.world.shut_down

        def fail(name):
            happen()
            shut_down(name)

        self.world.shut_down = fail
        # What the World wants of a host is right at the beginning.
        self.world._take_power = lambda name: None
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 0, 10)
        self.assertNotIn(('cut', 'a'), self.world.calls)
        self.assertTrue(self.world.on['a'])

    def test_a_server_comes_while_it_shuts_down(self):
        self.while_it_shuts_down(
            lambda: self.world.change('a', servers=1))
        self.go(350)
        # It is on after all, and open.
        self.go(10)
        self.assertEqual('on', self.power().state)
        self.assertFalse(self.world.hosts['a'].disabled)

    def test_a_claim_comes_while_it_shuts_down(self):
        self.while_it_shuts_down(lambda: self.world.coming.add('a'))

    def test_an_operator_takes_it_while_it_shuts_down(self):
        self.while_it_shuts_down(lambda: self.world.change(
            'a', disabled_reason='mine'))
        self.go(1000)
        self.assertEqual('mine', self.world.hosts['a'].disabled_reason)
        self.assertNotIn(('cut', 'a'), self.world.calls)

    def test_the_lock_is_lost_while_it_shuts_down(self):
        def lose():
            self.world.leads = False

        self.while_it_shuts_down(lose)
        self.assertEqual('sleeping', self.power().state)

    def test_another_engine_moves_it_on_while_it_shuts_down(self):
        self.while_it_shuts_down(lambda: energy_store.set_power(
            self.db, 'a', 'waking', self.world.naive(),
            from_states=('sleeping',)))

    def test_without_the_lock_nothing_is_done(self):
        for state in power_steps.STATES[1:]:
            energy_store.set_power(
                self.db, 'a', state, self.world.naive(),
                from_states=power_steps.STATES)
            before = self.power()
            self.world.leads = False
            self.go(0, 10, 100, 10000)
            self.assertEqual(before, self.power())
        self.assertEqual([], self.world.calls)

    def test_an_operator_disables_it_as_we_do(self):
        """The reading of the host is outdated."""
        self.switcher.put_to_sleep('a', 'why')
        read = self.world.read()
        self.world.change('a', disabled=True, disabled_reason='mine')
        states = energy_store.get_power(self.db)
        self.switcher.advance(states.values(), read)
        self.switcher.wait()
        self.assertEqual('mine', self.world.hosts['a'].disabled_reason)

    def test_a_claim_long_after_the_power_off(self):
        self.sleep()
        for _ in range(20):
            self.go(60)
        self.world.coming = {'a'}
        self.go(60, 60, 60)
        self.assertEqual('on', self.power().state)

    def test_an_unchanged_host_is_not_read(self):
        self.sleep()
        for _ in range(3):
            self.world.looks = []
            self.go_with_tokens(60)
        self.assertEqual([], self.world.looks)
        self.world.coming = {'a'}
        self.go_with_tokens(60)
        self.assertEqual('waking', self.power().state)

    def go_with_tokens(self, seconds):
        self.world.pass_time(seconds)
        self.switcher.advance(energy_store.get_power(self.db).values(),
                              self.world.read(), self.world.tokens())
        self.switcher.wait()

    def test_powered_on_by_hand_and_no_report(self):
        self.sleep()
        self.world.hanging = {'a'}
        self.world.on['a'] = True
        self.go(60)
        self.assertEqual('waking', self.power().state)
        self.go(900)
        self.assertEqual('failed', self.power().state)
        self.assertNotIn(('cut', 'a'), self.world.calls)

    def test_an_operators_that_is_powered_on_by_hand(self):
        self.sleep()
        self.world.change('a', disabled_reason='mine')
        self.world.on['a'] = True
        self.go(60)
        self.assertEqual('on', self.power().state)
        self.assertEqual('mine', self.world.hosts['a'].disabled_reason)

    def test_a_boot_that_hangs(self):
        self.sleep()
        self.world.hanging = {'a'}
        self.switcher.wake('a', 'needed')
        self.go(0, 890)
        self.assertNotIn(('cut', 'a'), self.world.calls)
        self.go(10)
        self.assertEqual(('waking', 1), (self.power().state,
                                         self.power().boots))
        self.go(10, 100)
        self.assertEqual(('on', 0), (self.power().state, self.power().boots))
        self.assertEqual(
            [('on', 'a'), ('cut', 'a'), ('on', 'a'), ('enable', 'a')],
            self.world.calls[2:])

    def test_a_boot_that_hangs_every_time(self):
        self.sleep()
        self.switcher.wake('a', 'needed')
        for _ in range(30):
            self.world.hanging = {'a'}
            self.go(100)
        self.assertEqual('failed', self.power().state)
        self.assertEqual(1, self.world.calls.count(('cut', 'a')))

    def test_no_more_wake_at_once_than_may(self):
        names = [f'host{number}' for number in range(9)]
        self.set(max_wakes_per_minute=2)
        self.start(world.World(*names))
        for name in names:
            energy_store.set_power(self.db, name, 'asleep', self.world.naive(),
                                   from_states=('on',))
            self.world.change(name, disabled=False)
            self.world.on[name] = False
        self.world.broken = set(names)
        woken = []
        for _ in range(4):
            self.go(61)
            woken.append(sum(state.state == 'waking' for state in
                             energy_store.get_power(self.db).values()))
        self.assertEqual([2, 4, 6, 8], woken)

    def test_operator_takes_it(self):
        for state in power_steps.STATES[1:]:
            energy_store.set_power(
                self.db, 'a', state, self.world.naive(),
                from_states=power_steps.STATES)
            self.world.change('a', disabled=True, disabled_reason='mine')
            self.go(0, 10, 10, 10000)
            self.assertEqual('mine', self.world.hosts['a'].disabled_reason)
            self.assertNotIn('enable', dict(self.world.calls))

    def test_operator_enables_it(self):
        self.sleep()
        self.world.change('a', disabled=False, disabled_reason='')
        self.go(10, 10, 60)
        self.assertEqual('on', self.power().state)
        self.assertTrue(self.world.on['a'])

    def test_a_host_powered_on_by_others(self):
        self.sleep()
        self.go(10)
        self.world.on['a'] = True
        self.go(60, 10, 10)
        self.assertEqual(('on', None), (self.power().state,
                                        self.power().boot_s))
        self.assertFalse(self.world.hosts['a'].disabled)

    def test_fails_to_boot(self):
        self.sleep()
        self.world.broken = {'a'}
        self.switcher.wake('a', 'needed')
        self.go(0, 890)
        self.assertEqual('waking', self.power().state)
        self.go(10)
        self.assertEqual('failed', self.power().state)
        self.assertIn('it is broken', self.power().reason)
        calls = len(self.world.calls)
        self.go(1000, 1000, 1000)
        self.assertEqual(calls, len(self.world.calls))
        self.go(600)
        # It may be woken again, if anybody wants that.
        self.assertEqual('asleep', self.power().state)

    def test_a_host_is_powered_on_late_before_it_fails(self):
        for broken in (False, True):
            self.start(world.World('a'))
            energy_store.forget_power(self.db, ['a'])
            self.sleep()
            self.switcher.wake('a', 'needed')
            self.world.leads = False
            self.go(0, 2000)
            self.world.leads = True
            self.world.broken = {'a'} if broken else set()
            self.go(0)
            self.assertEqual(('on', 'a'), self.world.calls[-1])
            self.go(890)
            self.assertEqual('waking' if broken else 'on', self.power().state)
            self.go(10)
            self.assertEqual('failed' if broken else 'on', self.power().state)

    def test_boots_late(self):
        self.sleep()
        self.world.broken = {'a'}
        self.switcher.wake('a', 'needed')
        self.go(0, 900)
        self.assertEqual('failed', self.power().state)
        self.go(10)
        self.world.broken = set()
        self.world.on['a'] = True
        self.go(10, 10, 10)
        self.assertEqual(('on', None), (self.power().state,
                                        self.power().boot_s))

    def test_the_boot_time_begins_as_the_host_is_powered_on(self):
        self.sleep()
        self.switcher.wake('a', 'needed')
        self.world.leads = False
        self.go(0, 500)
        self.world.leads = True
        self.go(0)
        self.world.away = {'a'}
        self.world.hanging = {'a'}
        self.go(60)
        self.world.hanging = set()
        self.go(40)
        self.assertEqual(('on', 100.0), (self.power().state,
                                         self.power().boot_s))

    def crash(self, number):
        """Die at the number-th point and start anew; whether it has died."""
        self.world.crash_in = number
        try:
            self.go(0, 10, 10, 10)
        finally:
            died = self.world.crash_in <= 0
            self.world.crash_in = None
        if died:
            self.start(self.world)
        return died

    def test_dies_anywhere_on_the_way_down(self):
        for number in range(100):
            self.start(world.World('a'))
            energy_store.forget_power(self.db, ['a'])
            self.switcher.put_to_sleep('a', 'why')
            died = self.crash(number)
            self.go(0, 10, 10)
            self.assertEqual('asleep', self.power().state, number)
            self.assertFalse(self.world.on['a'])
            if not died:
                break
        self.assertGreater(number, 5)

    def test_dies_anywhere_on_the_way_up(self):
        for number in range(100):
            self.start(world.World('a'))
            energy_store.forget_power(self.db, ['a'])
            self.sleep()
            self.switcher.wake('a', 'needed')
            died = self.crash(number)
            self.go(0, 10, 10, 10)
            self.assertEqual('on', self.power().state, number)
            self.assertTrue(self.world.on['a'])
            self.assertFalse(self.world.hosts['a'].disabled)
            if not died:
                break
        self.assertGreater(number, 3)


EVENTS = st.lists(st.tuples(
    st.sampled_from(('sleep', 'wake', 'come', 'leave', 'mine', 'yours',
                     'break', 'repair', 'restart')),
    st.sampled_from((0, 5, 10, 60, 1000)), st.none() | st.integers(0, 8)),
    max_size=12)


class TestLaws(world.WorldTestCase):

    @hypothesis.settings(max_examples=60)
    @hypothesis.given(EVENTS)
    def test_never_in_the_way(self, events):
        """The World itself asserts the invariants.

        In the end, with nobody in the way, it is on and open again.
        """
        self.start(world.World('a'))
        energy_store.forget_power(self.db, ['a'])
        for event, seconds, crash_in in events:
            getattr(self, f'_{event}')()
            self.world.pass_time(seconds)
            self.world.crash_in = crash_in
            self.advance()
            if crash_in is not None and self.world.crash_in == 0:
                self.world.crash_in = None
                self.start(self.world)
            self.world.crash_in = None
        self._repair()
        self._yours()
        for _ in range(6):
            # Longer than anything is waited for.
            self.world.now += datetime.timedelta(seconds=4000)
            self._wake()
            for seconds in (10, 10, 10, 10):
                self.world.pass_time(seconds)
                self.advance()
        self.assertEqual({}, self.states())
        self.assertTrue(self.world.on['a'])
        self.assertFalse(self.world.hosts['a'].disabled)

    def advance(self):
        self.switcher.advance(energy_store.get_power(self.db).values(),
                              self.world.read())
        self.switcher.wait()
        for step in self.switcher._steps.values():
            exc = step.exception()
            if exc is not None and not isinstance(exc, world.Crash):
                raise exc
        self.assertNotIn('Traceback', self.logger.output)

    def _sleep(self):
        self.switcher.put_to_sleep('a', 'why')

    def _wake(self):
        self.switcher.wake('a', 'why')

    def _come(self):
        if self.world.on['a']:
            self.world.change('a', servers=1)

    def _leave(self):
        self.world.change('a', servers=0)

    def _mine(self):
        self.world.change('a', disabled=True, disabled_reason='mine')

    def _yours(self):
        if self.world.hosts['a'].is_operators:
            self.world.change('a', disabled=False, disabled_reason='')

    def _break(self):
        self.world.broken = {'a'}

    def _repair(self):
        self.world.broken = set()

    def _restart(self):
        self.start(self.world)
