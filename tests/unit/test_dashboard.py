# SPDX-License-Identifier: Apache-2.0
"""The dashboard, against the metrics that there are."""

import json
import pathlib
import tempfile
import unittest

import yaml

from tests import prometheus_tools

ROOT = pathlib.Path(__file__).parents[2]
DASHBOARD = ROOT / 'etc' / 'grafana' / 'nova-preempt.json'


def panels():
    """Return the panels that show data, without rows."""
    return [panel for panel in json.loads(DASHBOARD.read_text())['panels']
            if panel['type'] != 'row']


def expressions():
    """Return the expressions as Prometheus gets them from Grafana."""
    return [target['expr'].replace('$__rate_interval', '5m')
            for panel in panels() for target in panel['targets']]


class TestDashboard(unittest.TestCase):

    def test_each_metric_is_shown_and_each_that_is_shown_is_there(self):
        known = prometheus_tools.series()
        shown = set()
        for expression in expressions():
            names = prometheus_tools.asked(expression)
            self.assertTrue(names, expression)
            self.assertLessEqual(names, set().union(*known.values()))
            shown |= names
        self.assertEqual([], [attribute for attribute, names in known.items()
                              if not names & shown])

    def test_prometheus_understands_each(self):
        rules = [{'record': f'panel:{number}', 'expr': expression}
                 for number, expression in enumerate(expressions())]
        with tempfile.NamedTemporaryFile('w', suffix='.yml') as file:
            yaml.safe_dump({'groups': [{'name': 'all', 'rules': rules}]},
                           file)
            file.flush()
            prometheus_tools.check_rules(self, file.name)

    def test_panels_are_told_apart(self):
        whole = json.loads(DASHBOARD.read_text())['panels']
        ids = [panel['id'] for panel in whole]
        self.assertEqual(len(set(ids)), len(ids))
        taken = [(x, y) for panel in whole for grid in (panel['gridPos'],)
                 for x in range(grid['x'], grid['x'] + grid['w'])
                 for y in range(grid['y'], grid['y'] + grid['h'])]
        self.assertEqual(len(set(taken)), len(taken), 'one covers another')
        self.assertLess(max(x for x, _y in taken), 24)
        for panel in panels():
            self.assertTrue(panel['title'] and panel['description'])
            self.assertEqual(
                {'${datasource}'},
                {item['datasource']['uid']
                 for item in (panel, *panel['targets'])})
