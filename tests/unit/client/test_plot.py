# SPDX-License-Identifier: Apache-2.0
"""Pictures of reports and plans, from stored answers of the API."""

import argparse
import pathlib
import re
import tempfile
import unittest

from nova_preempt.client import plot

PERIOD = {'since': '2026-03-05T22:40:00Z', 'until': '2026-03-06T00:10:00Z'}


def time(minutes):
    return f'2026-03-05T{22 + (40 + minutes) // 60:02}:{minutes % 60:02}:00Z'


class TestPlot(unittest.TestCase):

    def draw(self, draw, found):
        """Return the texts of a picture."""
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / 'a.svg'
            draw(found, str(file))
            return re.findall('<!-- (.*?) -->', file.read_text())

    def check(self, found, *texts):
        for text in texts:
            self.assertIn(text, found)

    def test_energy(self):
        self.check(self.draw(plot.draw_energy, {
            **PERIOD, 'used_kwh': 4.25, 'saved_kwh': 0.5, 'series': [{
                'time': time(minutes), 'watts': None, 'watts_saved': 3.0,
                'hosts_on': 4, 'hosts_busy': 2, 'hosts_asleep': minutes // 10,
            } for minutes in range(20)]}), 'Power', 'W', 'Hosts', 'hosts',
            'saved by hosts asleep', 'with servers', 'asleep', 'time (UTC)',
            '4.2 kWh drawn, 0.5 kWh saved by hosts asleep')

    def test_availability(self):
        self.check(self.draw(plot.draw_availability, {**PERIOD, 'classes': [{
            'class': name, 'requests': 3, 'availability': share, 'series': [{
                'time': time(minutes), 'availability': share}
                for minutes in range(1, 20)]}
            for name, share in (('gold', 1.0), ('', 0.25), ('idle', None))]}),
            'Share of their time that requests ran: gold 100.0 %, (no class) '
            '25.0 %'.replace(' %', '\N{NO-BREAK SPACE}%'),
            'gold, 3 requests', '(no class), 3 requests', '%', '22:40')

    def test_plan(self):
        found = self.draw(plot.draw_plan, {
            'starts': [{'count': 3}], 'requests_waiting': 2, 'hosts': [{
                'name': f'host{nth}', 'resources': {
                    name: {'capacity': 8, 'used': 4, 'used_after': 6}
                    for name in ('CUSTOM_Z', 'DISK_GB', 'VCPU', 'MEMORY_MB',
                                 'CUSTOM_A')[:4 + nth]}}
                for nth in range(2)]})
        self.check(found, '3 servers of 1 requests start now, of 2 that wait',
                   'host0', 'host1', 'started now', 'used')
        # Usual ones first, and four at most.
        self.assertEqual(
            ['VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_A'],
            [text[7:] for text in found if text.startswith('Use of ')])

    def test_nothing(self):
        for draw, found in (
                (plot.draw_energy, {**PERIOD, 'series': [], 'used_kwh': 0.0,
                                    'saved_kwh': 0.0}),
                (plot.draw_availability, {**PERIOD, 'classes': []}),
                (plot.draw_plan, {'hosts': [], 'starts': [],
                                  'requests_waiting': 0})):
            with self.assertRaisesRegex(plot.CannotPlot, 'nothing to plot'):
                self.draw(draw, found)

    def test_suffixes(self):
        self.assertEqual('a.PNG', plot.path('a.PNG'))
        with self.assertRaisesRegex(argparse.ArgumentTypeError,
                                    'must end with .png or .svg'):
            plot.path('a.pdf')
