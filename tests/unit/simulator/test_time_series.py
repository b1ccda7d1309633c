# SPDX-License-Identifier: Apache-2.0
"""Figures over time."""

import math
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

    def test_ninety_minutes_late_in_a_trace(self):
        """Time counts from the first event, in steps of a minute."""
        late_s = 30 * 86400
        found, summary = simulated(*(
            small.boot(late_s + 60 * minute, f'{minute}', 1, for_s=1800)
            for minute in range(0, 90, 10)), until_s=late_s + 5400)
        use, _ = plots.plots({'a': (found, summary['capacity'])})
        line = use.panels[0].series[0]
        self.assertEqual((0, 90), (line.x[0], line.x[-1]))
        self.assertEqual('time since the first event (min)',
                         use.panels[0].x_label)
        self.assertGreaterEqual(len(line.y), 40)
        self.assertGreaterEqual(len(set(line.y)), 3)

    def test_the_end_is_drawn(self):
        found, _ = simulated(small.boot(0, 'n', 4), small.boot(3590, 'm', 4),
                             until_s=3595)
        *_, last = time_series.steps(found, {'VCPU': 4}, 7)
        self.assertEqual(1, last.counts['refused'])
        self.assertAlmostEqual(3595 / 3600, last.from_h + last.hours)
        self.assertLessEqual(len(list(found.steps(7))), 7)

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
        use, servers = plots.plots({'a': one})
        self.assertEqual(
            ['Mean use of vCPUs', 'Mean use of memory',
             'Requested servers that run, by class'],
            [panel.title for panel in use.panels])
        self.assertEqual(
            ['Time from a request until the server is active', 'Evictions',
             'Work lost', 'Requests refused'],
            [panel.title for panel in servers.panels])
        self.assertEqual('Evictions: 1; requests refused: 1', servers.title)
        self.assertEqual(['normal servers', 'preemptible servers'],
                         [each.label for each in use.panels[0].series])
        waits, evictions, *_ = (each.series[0] for each in servers.panels)
        self.assertEqual([60], [each for each in evictions.y if each])
        # Ten seconds to boot; the other waits for a notice and an end first.
        self.assertEqual([10, 42], [each for each in waits.y
                                    if not math.isnan(each)])
        there = {each.label: each.y for each in use.panels[2].series}
        # Three minutes in, p has given way, and n is there since 172 s.
        self.assertEqual({'normal', 'preemptible'}, there.keys())
        self.assertAlmostEqual(100 * 50 / 60, there['preemptible'][0])
        self.assertAlmostEqual(100 * 8 / 50, there['normal'][2])
        both = plots.plots({'a': one, 'b': one})
        self.assertEqual(
            ['a: normal servers', 'a: preemptible servers',
             'b: normal servers', 'b: preemptible servers'],
            [each.label for each in both[0].panels[0].series])
        self.assertEqual([(0, 0), (0, 1), (1, 0), (1, 1)], [
            (each.colour, each.dash) for each in both[0].panels[0].series])
        self.assertEqual(['a', 'b'],
                         [each.label for each in both[1].panels[1].series])
        self.assertEqual(
            'Evictions: 1 (a), 1 (b); requests refused: 1 (a), 1 (b)',
            both[1].title)

    def test_hosts_and_energy_where_they_are_known(self):
        made = time_series.Series()
        for number in range(4):
            made.add(time_series.Point(made.next_us, {}, {}, {
                'hosts on': number * 120 * SECOND,
                'milliwatts': number * 60 * SECOND * 500_000}))
        (hosts,) = plots.plots({'a': (made, {'VCPU': 4})})
        panels = {panel.title: panel.series[0] for panel in hosts.panels}
        self.assertEqual([2, 2, 2], panels['Hosts awake'].y)
        self.assertEqual([0.5, 0.5, 0.5], panels['Power drawn'].y)
        energy = panels['Energy since the first event']
        self.assertAlmostEqual(0.025, energy.y[-1])
        self.assertEqual(energy.x, [0, 1, 2, 3])
        self.assertEqual('Energy: 0.0 kWh', hosts.title)
