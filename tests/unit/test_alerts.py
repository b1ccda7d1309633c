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
"""The alerting rules, against the metrics that there are."""

import pathlib
import re
import shutil
import subprocess
import unittest

import prometheus_client
import yaml

from nova_preempt import metrics

ROOT = pathlib.Path(__file__).parents[2]
RULES = ROOT / 'etc' / 'prometheus' / 'nova-preempt.rules.yml'


def rules():
    groups = yaml.safe_load(RULES.read_text())['groups']
    return [rule for group in groups for rule in group['rules']]


class TestAlerts(unittest.TestCase):

    def test_they_ask_for_metrics_that_are_there(self):
        self.assertIsNotNone(metrics.DECISIONS)
        known = set()
        for metric in prometheus_client.REGISTRY.collect():
            known |= {metric.name, f'{metric.name}_total'}
        for rule in rules():
            asked = re.findall(r'nova_preempt_\w+', rule['expr'])
            self.assertTrue(asked, rule)
            self.assertLessEqual(set(asked), known)

    def test_the_runbook_says_what_to_do(self):
        text = (ROOT / 'doc' / 'source' / 'runbook.rst').read_text()
        self.assertEqual([rule['alert'] for rule in rules()],
                         re.findall(r'\* - ``(NovaPreempt\w+)``', text))

    def test_prometheus_understands_them(self):
        program = shutil.which('promtool')
        if program is None:
            self.skipTest('there is no promtool')
        found = subprocess.run([program, 'check', 'rules', str(RULES)],
                               capture_output=True, text=True, check=False)
        self.assertEqual(0, found.returncode, found.stderr)
