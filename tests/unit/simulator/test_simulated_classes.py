# SPDX-License-Identifier: Apache-2.0
"""Classes of service: victims and promises."""

import dataclasses
import unittest

from nova_preempt.core.classes import class_table
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.simulator import simulation
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator import time_series
from tests.unit.simulator import small

TABLE = dataclasses.replace(class_table.parse(
    ({'name': 'gold', 'importance': '1', 'availability': '0.99',
      'least_run_s': '100'},
     {'name': 'bronze', 'importance': '2', 'availability': '0.1',
      'least_run_s': '0'}), pass_period_s=60),
      overhead_us=20 * simulation.SECOND)


def terms(name):
    return simulation_settings.PreemptibleTerms(action='shelve', restore=True,
                                                class_name=name)


def make(hosts=1, found=TABLE, **values):
    setup = small.cloud(hosts, classes={
        'gold': terms('gold'), 'bronze': terms('bronze'),
        'none': simulation_settings.PreemptibleTerms(action='shelve',
                                                     restore=True)})
    return setup, dataclasses.replace(
        small.options(notice=NoticeRule(0), **values),
        classes=None if found is None
        else simulation_settings.ClassOptions(found))


def boot(at_s, id, name, vcpus=4, for_s=None):
    made = small.boot(at_s, id, vcpus, for_s=for_s)
    return simulation.trace_model.Boot(made.at_us, id, made.resources, '',
                                       name,
                                       made.duration_us)


class TestClasses(unittest.TestCase):

    def test_the_more_important_one_ends_the_other(self):
        found, summary, _ = small.simulated(
            *make(), boot(0, 'b', 'bronze'), boot(100, 'g', 'gold'),
            until_s=1000)
        self.assertEqual(
            ['0 placed b', '10 active b', '100 notice b', '100 preempted g',
             '105 shelved b', '115 active g'], found)
        gold, bronze = (summary['promises'][name]
                        for name in ('gold', 'bronze'))
        self.assertEqual((0.99, 1), (gold['promised'], gold['servers']))
        self.assertAlmostEqual(885 / 900, gold['mean'], 5)
        self.assertAlmostEqual(90 / 1000, bronze['mean'], 5)
        self.assertEqual((0, 0), (gold['kept'], bronze['kept']))

    def test_not_without_classes(self):
        found, summary, _ = small.simulated(
            *make(found=None), boot(0, 'b', 'bronze'),
            boot(100, 'g', 'gold'), until_s=1000)
        self.assertIn('100 refused g', found)
        self.assertNotIn('promises', summary)

    def test_a_server_without_class_evicts_no_server(self):
        found, _, _ = small.simulated(
            *make(), boot(0, 'b', 'bronze'), boot(100, 'n', 'none'),
            until_s=1000)
        self.assertIn('100 refused n', found)

    def test_a_server_returns_before_its_promise_is_broken(self):
        """Bronze b gave way to gold; later it ends bronze c, which has run
        for far more than its share."""
        found, summary, _ = small.simulated(
            *make(2), boot(0, 'b', 'bronze'), boot(0, 'c', 'bronze'),
            boot(100, 'g', 'gold'), until_s=4000)
        shelved = [line.split()[2] for line in found if 'shelved' in line]
        self.assertEqual({'b', 'c'}, set(shelved))
        self.assertNotIn('g', shelved)
        self.assertEqual(1, summary['promises']['bronze']['kept'])

    def test_a_server_that_would_use_headroom_delays_no_other(self):
        # At 530 s others may end, at 520 s none may.
        for for_s, expected in (
                (400, ['515 finished n', '540 back b']),
                (410, ['525 finished n', '550 back b'])):
            found, _, _ = small.simulated(
                *make(2, headroom={'VCPU': (2, False)}),
                boot(0, 'g', 'gold', 3), boot(0, 'b', 'bronze', 2),
                small.boot(100, 'n', 4, for_s=for_s),
                small.boot(100, 'm', 4), until_s=700)
            self.assertEqual(expected, found[-2:])

    def test_normal_servers_evict_servers_with_the_least_harm(self):
        found, _, _ = small.simulated(
            *make(2), boot(0, 'g', 'gold'), boot(0, 'b', 'bronze'),
            small.boot(500, 'n', 4), until_s=1000)
        self.assertIn('500 notice b', found)

    def test_how_much_of_each_class_runs_over_time(self):
        setup, options = make()
        found = time_series.Series()
        simulation.Simulation(setup, options, series=found).run(
            (boot(0, 'b', 'bronze'), boot(600, 'g', 'gold'),
             simulation.trace_model.End(1200 * simulation.SECOND, 'g')),
             1800 * simulation.SECOND)
        steps = list(time_series.steps(found, {'VCPU': 4}))
        at = {round(step.from_h * 60): step.levels for step in steps}
        self.assertEqual((1, 1), (at[5]['running bronze'],
                                  at[5]['wanted bronze']))
        self.assertEqual((0, 1), (at[15]['running bronze'],
                                  at[15]['wanted bronze']))
