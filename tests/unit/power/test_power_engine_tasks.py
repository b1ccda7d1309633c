# SPDX-License-Identifier: Apache-2.0
"""Tests of power control in the engine, by configuration."""

from unittest import mock

from nova_preempt.core.energy import power_steps
from nova_preempt.db import energy_store
from nova_preempt.power import power_engine_tasks
from tests.unit.power import base
from tests.unit.power import world


class TestPower(world.WorldTestCase):

    def make(self):
        process = mock.Mock(db=self.db, clock=base.clock)
        power = power_engine_tasks.PowerEngineTasks(
            self.conf, process, mock.Mock(), driver=mock.Mock())
        self.addCleanup(power.close)
        return power

    def names(self, power):
        return [name for name, _work in power.works]

    def test_parts_that_are_configured(self):
        self.set(enabled=False)
        power = self.make()
        self.assertEqual(([], []), (self.names(power), power.endpoints))
        self.set(sources=['static'], static_file=self.write('w.yaml', {}))
        power = self.make()
        self.assertEqual((['power: readings'], []),
                         (self.names(power), power.endpoints))
        self.set(enabled=True, sources=[])
        power = self.make()
        self.assertEqual(['power: control', 'power: readings'],
                         self.names(power))
        self.assertEqual('energy', power.endpoints[0].target.namespace)

    def test_when_to_come_again(self):
        power = self.make()
        power.control.step = mock.Mock(return_value=10)
        power.observer.observe = mock.Mock()
        self.assertEqual([10, 60], [work() for _name, work in power.works])

    def test_hosts_that_are_asleep(self):
        for state in power_steps.STATES:
            energy_store.set_power(self.db, state, state, base.NOW.replace(
                tzinfo=None), from_states=('on',))
        self.assertEqual({'emptying', 'sleeping', 'asleep', 'waking'},
                         self.make().asleep().keys())
        self.set(enabled=False)
        self.assertEqual({}, self.make().asleep())

    def test_hosts_that_are_not_woken(self):
        for name in ('a', 'b'):
            energy_store.set_power(
                self.db, name, power_steps.ASLEEP, base.NOW.replace(
                    tzinfo=None), from_states=('on',))
        power = self.make()
        power._pauses.why.return_value = ''
        self.set(excluded_hosts=['a'])
        self.assertEqual([False, True], [
            not power.asleep()[name].why_late for name in ('a', 'b')])
        power._pauses.why.return_value = 'Power control is paused: storm'
        self.assertEqual('Power control is paused: storm',
                         power.asleep()['b'].why_late)

    def test_steps_that_have_begun_stop_too(self):
        power = self.make()
        power._pauses.why.return_value = ''
        self.assertTrue(power.switcher._may_act())
        power._pauses.why.return_value = 'Power control is paused: storm'
        self.assertFalse(power.switcher._may_act())
        power._pauses.why.return_value = ''
        self.set(enabled=False)
        self.assertFalse(power.switcher._may_act())

    def test_figures(self):
        energy_store.put_figures(self.db, [energy_store.HostEfficiency(
                                               'a', 1e12, 400.0, 100.0,
                                               base.NOW.replace(tzinfo=None)),
                                           energy_store.HostEfficiency(
                                               'b', 1e12, None, None,
                                               base.NOW.replace(tzinfo=None))])
        power = self.make()
        power.figures.refresh()
        self.assertEqual({'a': 2.5e9}, power.efficiencies())
        self.assertEqual({'a': 100.0}, power._idle_watts())

    def test_turned_off_while_it_runs(self):
        self.configure('[energy]\nenabled = true')
        energy_store.set_power(self.db, 'a', power_steps.ASLEEP,
                               base.NOW.replace(
                                   tzinfo=None), from_states=('on',))
        power = self.make()
        power._pauses.why.return_value = ''
        power.control.step = mock.Mock()
        self.mutate('[energy]\nenabled = false')
        work = dict(power.works)['power: control']
        self.assertEqual(10, work())
        power.control.step.assert_not_called()
        self.assertEqual({}, power.asleep())
        self.assertEqual({'hosts': [], 'boot_s': 0.0},
                         power.endpoints[0].wake(None, 'r', 1, {'a': 1}))
        self.mutate('[energy]\nenabled = true')
        work()
        power.control.step.assert_called_once_with()
        self.assertEqual({'a'}, power.asleep().keys())

    def test_how_many_wake_is_changed_while_it_runs(self):
        self.configure('[energy]\nenabled = true\nmax_wakes_per_minute = 5')
        switcher = self.make().switcher
        self.assertEqual(5, switcher.left())
        self.mutate('[energy]\nenabled = true\nmax_wakes_per_minute = 1')
        self.assertEqual(1, switcher.left())
