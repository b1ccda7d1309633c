# SPDX-License-Identifier: Apache-2.0
"""Figures over time."""

import unittest

from nova_preempt.core.model import SECOND
from nova_preempt.simulator import plots
from nova_preempt.simulator import simulation as run
from nova_preempt.simulator import time_series
from tests.unit.simulator import small


def simulated(*trace, until_s=3600):
    found = time_series.Series()
    simulation = run.Simulation(
        small.cloud(), small.options(), series=found)
    summary = simulation.run(trace, until_s * SECOND)
    return found, summary


class TestSeries(unittest.TestCase):

    def test_points_stay_few(self):
        found = time_series.Series()
        for _ in range(10 * time_series.MOST_POINTS):
            found.add(time_series.Point(found.next_us, {}, {}))
        self.assertLessEqual(len(found.points), time_series.MOST_POINTS)
        gaps = {after.at_us - before.at_us
                for before, after in found.steps()}
        self.assertEqual(1, len(gaps))
        self.assertEqual(0, found.points[0].at_us)

    def test_usage_over_time(self):
        found, summary = simulated(
            small.boot(0, 'n', 2, for_s=1790),
            small.boot(600, 'p', 1, spot=True, for_s=890),
            small.boot(3599, 'late', 1))
        steps = list(time_series.steps(found, summary['capacity']))
        at = {round(step.from_h * 60): step for step in steps}
        self.assertEqual(0.5, at[5].used['normal', 'VCPU'])
        self.assertEqual(0.5, at[20].used['normal', 'VCPU'])
        self.assertEqual(0, at[40].used['normal', 'VCPU'])
        self.assertEqual(0.25, at[20].used['preemptible', 'VCPU'])
        self.assertEqual(0, at[27].used['preemptible', 'VCPU'])
        # Of all that is summed up nothing is lost.
        self.assertAlmostEqual(
            summary['used']['normal']['VCPU'],
            sum(step.used.get(('normal', 'VCPU'), 0) * step.hours
                for step in steps), 2)

    def test_events_over_time(self):
        found, _ = simulated(
            small.boot(0, 'p', 4, spot=True), small.boot(130, 'n', 4),
            small.boot(3599, 'late', 4))
        steps = list(time_series.steps(found, {'VCPU': 4}))
        self.assertEqual(1, sum(step.counts.get('notice', 0)
                                for step in steps))
        (when,) = [step.from_h * 60 for step in steps
                   if step.counts.get('notice')]
        self.assertEqual(2, round(when))

    def test_recording_changes_no_event(self):
        trace = (small.boot(0, 'p', 4, spot=True), small.boot(130, 'n', 4))
        _, summary = simulated(*trace)
        self.assertEqual(summary, run.Simulation(
            small.cloud(), small.options()).run(trace, 3600 * SECOND))


class TestPicture(unittest.TestCase):

    def test_a_line_for_each_policy(self):
        found, summary = simulated(small.boot(0, 'p', 4, spot=True),
                                   small.boot(130, 'n', 4),
                                   small.boot(3599, 'late', 4))
        one = (found, summary['capacity'])
        alone = plots.plot({'a': one})
        self.assertEqual(
            ['VCPU in use', 'MEMORY_MB in use',
             'Time from a request until the server is active', 'Evictions',
             'Work lost', 'Requests refused', 'Availability by class'],
            [panel.title for panel in alone.panels])
        self.assertEqual(['normal', 'preemptible'],
                         [each.label for each in alone.panels[0].series])
        evictions = alone.panels[3].series[0]
        self.assertEqual([60], [each for each in evictions.y if each])
        waits = alone.panels[2].series[0]
        # Ten seconds to boot; the other waits for a notice and an end first.
        self.assertEqual([10, 42], [each for each in waits.y if each])
        there = {each.label: each.y for each in alone.panels[6].series}
        # Three minutes in, p has given way, and n is there since 172 s.
        self.assertEqual({'normal', 'preemptible'}, there.keys())
        self.assertAlmostEqual(50 / 60, there['preemptible'][0])
        self.assertAlmostEqual(8 / 50, there['normal'][2])
        both = plots.plot({'a': one, 'b': one})
        self.assertEqual(
            ['a: normal', 'a: preemptible', 'b: normal', 'b: preemptible'],
            [each.label for each in both.panels[0].series])
        self.assertEqual(['a', 'b'],
                         [each.label for each in both.panels[3].series])

    def test_hosts_and_energy_where_they_are_known(self):
        made = time_series.Series()
        for number in range(4):
            made.add(time_series.Point(made.next_us, {}, {}, {
                'hosts on': number * 120 * SECOND,
                'milliwatts': number * 60 * SECOND * 500_000}))
        panels = {panel.title: panel.series[0] for panel in
                  plots.plot({'a': (made, {'VCPU': 4})}).panels}
        self.assertEqual([2, 2, 2], panels['Hosts awake'].y)
        self.assertEqual([0.5, 0.5, 0.5], panels['Power drawn'].y)
        self.assertAlmostEqual(0.025, panels['Energy'].y[-1])
