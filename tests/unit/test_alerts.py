# SPDX-License-Identifier: Apache-2.0
"""The alerting rules, against the metrics that there are."""

import pathlib
import re
import unittest

import yaml

from tests import prometheus_tools

ROOT = pathlib.Path(__file__).parents[2]
RULES = ROOT / 'etc' / 'prometheus' / 'nova-preempt.rules.yml'


def rules():
    groups = yaml.safe_load(RULES.read_text())['groups']
    return [rule for group in groups for rule in group['rules']]


class TestAlerts(unittest.TestCase):

    def test_they_ask_for_metrics_that_are_there(self):
        known = set().union(*prometheus_tools.series().values())
        for rule in rules():
            asked = prometheus_tools.asked(rule['expr'])
            self.assertTrue(asked, rule)
            self.assertLessEqual(asked, known)

    def test_metrics_of_the_leader_are_filtered(self):
        """A former leader keeps showing its last values."""
        stale = {'nova_preempt_cycles', 'nova_preempt_backlog_requests',
                 'nova_preempt_backlog_trusts_left',
                 'nova_preempt_class_servers_below_target'}
        found = set()
        for rule in rules():
            if names := prometheus_tools.asked(rule['expr']) & stale:
                found |= names
                self.assertRegex(
                    ' '.join(rule['expr'].split()),
                    r' and on \(job, instance\) '
                    r'nova_preempt_engine_acts == 1\)')
        self.assertEqual(stale, found)

    def test_the_runbook_has_each_alert(self):
        text = (ROOT / 'doc' / 'source' / 'runbook.rst').read_text()
        self.assertEqual([rule['alert'] for rule in rules()],
                         re.findall(r'\* - ``(NovaPreempt\w+)``', text))

    def test_prometheus_understands_them(self):
        prometheus_tools.check_rules(self, RULES)
