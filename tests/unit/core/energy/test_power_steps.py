# SPDX-License-Identifier: Apache-2.0
"""The next step of a host, without any cloud."""

import unittest

from nova_preempt.core.energy import power_steps
from nova_preempt.core.energy.power_steps import Action
from nova_preempt.core.energy.power_steps import Power


def facts(state, **values):
    """Return facts of a host that we have disabled, on, up, and read."""
    return power_steps.HostFacts(**{
        'state': state, 'age_s': 20, 'closed_s': 20, 'up': True,
        'reported': False, 'disabled': True, 'ours': True,
        'power': Power.ON, 'empty': True, 'running': False, **values})


def step(state, **values):
    return power_steps.next_step(facts(state, **values), 900)


class StepsTestCase(unittest.TestCase):

    def moves(self, found, state, reason='', **values):
        self.assertEqual((Action.MOVE, state), (found.act, found.state))
        self.assertIn(reason, found.reason)
        for name, value in values.items():
            self.assertEqual(value, getattr(found, name), name)

    def acts(self, act, found):
        self.assertEqual(act, found.act)


class TestMeasuredBoot(unittest.TestCase):

    def test_only_a_boot_that_was_asked_for_is_measured(self):
        on = power_steps.Step(Action.MOVE, 'on')
        for state, asked_s, to, expected in (
                ('waking', 95.0, on, 95.0), ('waking', 0.0, on, None),
                ('sleeping', 95.0, on, None),
                ('waking', 95.0, power_steps.Step(Action.MOVE, 'failed'),
                 None)):
            with self.subTest(state=state, asked_s=asked_s, to=to.state):
                self.assertEqual(expected, power_steps.measured_boot_s(
                    to, facts(state, asked_s=asked_s)))


class TestEmptying(StepsTestCase):

    def test_a_dead_controller_closes_no_host(self):
        values = {'disabled': False, 'ours': False}
        self.acts(Action.ASK_POWER, step(
            'emptying', power=Power.NOT_ASKED, **values))
        self.acts(Action.DISABLE, step('emptying', **values))
        for power, why in ((Power.UNKNOWN, 'does not answer: no route'),
                           (Power.OFF, 'of another host')):
            self.moves(step('emptying', power=power, error='no route',
                            **values), 'on', why, enable=False)

    def test_only_a_host_that_stays_empty_is_powered_off(self):
        self.acts(Action.WAIT, step('emptying', closed_s=9))
        self.moves(step('emptying', closed_s=10), 'sleeping')
        self.acts(Action.LOOK, step('emptying', empty=None))
        self.moves(step('emptying', empty=False), 'on', 'has come',
                   enable=True)
        self.moves(step('emptying'), 'sleeping')

    def test_emptying_ends_after_the_boot_timeout(self):
        """Nova refuses to disable it, or its servers cannot be read."""
        for values in ({'disabled': False, 'ours': False}, {'empty': None}):
            self.moves(step('emptying', age_s=900, error='500', **values),
                       'on', 'whether it is empty: 500',
                       enable=values.get('ours', True))

    def test_an_operator_takes_it_or_it_is_down(self):
        self.moves(step('emptying', ours=False), 'on', enable=False)
        self.moves(step('emptying', up=False), 'on', enable=True)


class TestSleeping(StepsTestCase):

    def test_the_host_is_read_before_each_action(self):
        self.acts(Action.ASK_POWER, step('sleeping', power=Power.NOT_ASKED))
        self.acts(Action.LOOK, step('sleeping', empty=None))
        self.acts(Action.SHUT_DOWN, step('sleeping'))
        self.acts(Action.LOOK, step('sleeping', asked_s=300, empty=None))
        self.acts(Action.SHUT_DOWN, step('sleeping', asked_s=299))
        self.acts(Action.SWITCH_OFF, step('sleeping', asked_s=300))

    def test_hosts_in_use_or_of_operators_are_not_powered_off(self):
        for values in ({'empty': False}, {'ours': False},
                       {'ours': False, 'disabled': False},
                       {'power': Power.UNKNOWN}, {'tried': True}):
            for asked_s in (0, 299, 300):
                self.acts(Action.WAIT, step('sleeping', asked_s=asked_s,
                                         **values))

    def test_a_host_that_is_off_is_asleep(self):
        self.moves(step('sleeping', power=Power.OFF, empty=None), 'asleep')

    def test_a_host_that_cannot_be_powered_off_is_enabled_again(self):
        for power in (Power.ON, Power.UNKNOWN):
            self.moves(step('sleeping', age_s=360, power=power,
                            error='no route'),
                       'on', 'could not be powered off: no route',
                       enable=True)
            self.acts(Action.WAIT, step('sleeping', age_s=359, power=power,
                                     tried=True))
        # Not one whose service is down: it may be off.
        self.acts(Action.WAIT, step('sleeping', age_s=1199, up=False,
                                 power=Power.UNKNOWN))
        self.acts(Action.SHUT_DOWN, step('sleeping', age_s=360, up=False))
        # Somebody has powered it on, and it has not booted yet.
        found = step('sleeping', age_s=1200, up=False, error='no route')
        self.moves(found, 'waking', 'could not be powered off: no route',
                   enable=False)
        self.assertEqual(power_steps.BOOTS, found.boots)
        self.moves(step('sleeping', age_s=1200, up=False, ours=False), 'on',
                   enable=False)
        self.moves(step('sleeping', age_s=360, ours=False), 'on',
                   enable=False)

    def test_a_host_fails_if_its_controller_dies_during_the_shutdown(self):
        self.moves(step('sleeping', age_s=1200, up=False, error='no route',
                        power=Power.UNKNOWN, asked_s=1100),
                   'failed', 'does not answer: no route')


class TestAsleep(StepsTestCase):

    def asleep(self, **values):
        return step('asleep', **{'up': False, 'power': Power.OFF, **values})

    def test_an_unneeded_host_sleeps_on(self):
        self.acts(Action.ASK_POWER, self.asleep(power=Power.NOT_ASKED))
        self.acts(Action.LOOK, self.asleep(empty=None))
        for power in (Power.OFF, Power.UNKNOWN):
            self.acts(Action.WAIT, self.asleep(power=power))

    def test_a_server_on_a_sleeping_host_wakes_it(self):
        for age_s in (1, 601, 10 ** 6):
            self.moves(self.asleep(age_s=age_s, empty=False), 'waking',
                       'a server has come')
        self.moves(self.asleep(disabled=False, ours=False), 'waking')

    def test_powered_on_by_hand(self):
        """It is not asleep, whether or not its service reports."""
        found = self.asleep(power=Power.ON)
        self.moves(found, 'waking', 'powered on by others')
        # Who powered it on may work on it.
        self.moves(step('waking', age_s=900, boots=found.boots), 'failed')
        self.moves(self.asleep(power=Power.ON, ours=False), 'on',
                   'an operator has powered it on', enable=False)
        self.acts(Action.WAIT, self.asleep(ours=False, empty=False))


class TestWaking(StepsTestCase):

    def waking(self, **values):
        return step('waking', **{'up': False, **values})

    def test_a_host_that_reports_is_on(self):
        self.moves(self.waking(up=True, reported=True), 'on', enable=True)
        self.acts(Action.WAIT, self.waking(up=True))
        self.acts(Action.ASK_POWER, self.waking(power=Power.NOT_ASKED))
        self.acts(Action.POWER_ON, self.waking(power=Power.OFF))
        self.acts(Action.WAIT, self.waking(power=Power.UNKNOWN))

    def test_a_late_report_does_not_open_a_host_that_is_off(self):
        for power, act in ((Power.NOT_ASKED, Action.ASK_POWER),
                           (Power.OFF, Action.POWER_ON)):
            self.acts(act, self.waking(up=True, reported=True, power=power))
        self.moves(self.waking(up=True, reported=True, power=Power.UNKNOWN),
                   'on', enable=True)

    def test_a_boot_that_hangs_is_tried_again_and_then_no_more(self):
        self.acts(Action.WAIT, self.waking(age_s=899))
        self.acts(Action.LOOK, self.waking(age_s=900, running=None))
        found = self.waking(age_s=900)
        self.moves(found, 'waking', cycle=True, boots=1)
        self.acts(Action.WAIT, self.waking(age_s=899, boots=1))
        self.moves(self.waking(age_s=900, boots=1), 'failed',
                   'within 900 s: its compute service has not reported',
                   cycle=False)

    def test_a_host_is_powered_on_before_it_fails(self):
        for power, in_time in ((Power.OFF, Action.POWER_ON),
                               (Power.ON, Action.WAIT),
                               (Power.UNKNOWN, Action.WAIT)):
            for age_s in (900, 10_000):
                self.acts(in_time, self.waking(
                    age_s=age_s, power=power, asked_s=899))
        self.acts(Action.POWER_ON, self.waking(age_s=900, power=Power.OFF))
        self.moves(self.waking(age_s=1800, power=Power.OFF, asked_s=900),
                   'failed')
        self.moves(self.waking(age_s=1800, asked_s=900), 'waking', cycle=True)
        self.moves(self.waking(age_s=900, power=Power.UNKNOWN), 'failed')

    def test_a_host_with_servers_is_not_power_cycled(self):
        for values in ({'running': True}, {'ours': False, 'disabled': False},
                       {'power': Power.OFF, 'asked_s': 900},
                       {'power': Power.UNKNOWN}):
            self.moves(self.waking(age_s=900, error='why', **values),
                       'failed', ': why', cycle=False)
        # What is only on its way to it does not keep it from booting.
        self.moves(self.waking(age_s=900, empty=False), 'waking', cycle=True)

    def test_a_waking_host_disabled_by_an_operator_is_asleep(self):
        self.moves(self.waking(ours=False), 'asleep', enable=False)


class TestFailed(StepsTestCase):

    def test_a_failed_host_that_comes_up_late_is_used(self):
        self.acts(Action.ASK_POWER, step('failed', reported=True,
                                      power=Power.NOT_ASKED))
        for power in (Power.ON, Power.UNKNOWN):
            self.moves(step('failed', reported=True, power=power), 'waking',
                       'late', boots=power_steps.BOOTS)

    def test_a_failed_host_is_retried_after_an_hour(self):
        self.acts(Action.WAIT, step('failed', age_s=3599))
        self.moves(step('failed', age_s=3600, power=Power.OFF), 'asleep')
        # Nobody counts on one that cannot be powered on.
        self.acts(Action.WAIT, step('failed', age_s=3600, power=Power.UNKNOWN))
        # One that is on does not sleep.
        self.moves(step('failed', age_s=3600), 'waking', boots=0)

    def test_a_failed_host_of_an_operator(self):
        self.acts(Action.WAIT, step('failed', age_s=3600, ours=False))


class TestOthers(StepsTestCase):

    def test_a_host_that_is_on_waits(self):
        self.acts(Action.WAIT, step('on'))

    def test_wakes_of_a_minute(self):
        for state, cycle, power, expected in (
                ('waking', False, Power.OFF, True),
                ('waking', False, Power.UNKNOWN, True),
                ('waking', False, Power.ON, False),
                ('waking', True, Power.ON, True),
                ('on', True, Power.OFF, False),
                ('on', False, Power.OFF, False)):
            with self.subTest(state=state, cycle=cycle, power=power):
                self.assertIs(expected, power_steps.is_limited(
                    power_steps.Step(Action.MOVE, state, cycle=cycle),
                    facts('asleep', power=power)))

    def test_disabled_by_us_and_forgotten(self):
        self.assertEqual('waking', power_steps.adopted(up=True))
        # Not all of them at once.
        self.assertEqual('asleep', power_steps.adopted(up=False))

    def test_is_empty(self):
        self.assertTrue(power_steps.is_empty(power_steps.Occupants()))
        for name in ('consumers', 'servers', 'migrations'):
            found = power_steps.Occupants(**{name: frozenset('ab')})
            self.assertFalse(power_steps.is_empty(found))
            self.assertFalse(power_steps.is_empty(found, 'a'))
            self.assertTrue(power_steps.is_empty(found, 'abc'))
