# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""A host is powered off and on whatever happens meanwhile."""

import datetime

import hypothesis
from hypothesis import strategies as st

from nova_preempt.db import energy as db_energy
from tests.unit.power import world


class TestSwitcher(world.WorldTestCase):

    def setUp(self):
        super().setUp()
        self.start(world.World('a'))

    def go(self, *seconds):
        for number in seconds:
            self.world.pass_time(number)
            states = db_energy.get_power(self.db)
            self.switcher.advance(states.values(), self.world.read())
            self.switcher.wait()

    def power(self):
        return db_energy.get_power(self.db)['a']

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

    def test_server_comes_before_the_power_off(self):
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 0)
        self.world.coming = {'a'}
        self.go(10)
        self.assertEqual('on', self.power().state)
        self.assertIn('a server has come', self.power().reason)
        self.assertEqual('enable', self.world.calls[-1][0])

    def test_server_comes_after_the_power_off(self):
        self.sleep()
        self.world.coming = {'a'}
        self.go(10, 10, 60)
        self.assertEqual('on', self.power().state)

    def test_cannot_be_powered_off(self):
        self.world.power_off = lambda name: None
        self.switcher.put_to_sleep('a', 'why')
        self.go(0, 0, 10)
        self.assertEqual('sleeping', self.power().state)
        options = self.conf.energy
        self.go(options.power_off_timeout_s + options.boot_timeout_s)
        self.assertEqual('on', self.power().state)
        self.assertIn('could not be powered off', self.power().reason)
        self.assertFalse(self.world.hosts['a'].disabled)

    def test_operator_takes_it(self):
        for state in db_energy.STATES[1:]:
            db_energy.set_power(
                self.db, 'a', state, self.world.naive(),
                from_states=db_energy.STATES)
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

    def test_somebody_powers_it_on(self):
        self.sleep()
        self.go(10)
        self.world.on['a'] = True
        self.go(60, 10, 10)
        self.assertEqual('on', self.power().state)
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
        self.assertEqual('on', self.power().state)

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
            db_energy.forget_power(self.db, ['a'])
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
            db_energy.forget_power(self.db, ['a'])
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

    @hypothesis.settings(max_examples=60, deadline=None, database=None,
                         derandomize=True)
    @hypothesis.given(EVENTS)
    def test_never_in_the_way(self, events):
        """What must not happen is asserted by the World itself.

        In the end, with nobody in the way, it is on and open again.
        """
        self.start(world.World('a'))
        db_energy.forget_power(self.db, ['a'])
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
        self.switcher.advance(db_energy.get_power(self.db).values(),
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
