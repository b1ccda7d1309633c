# SPDX-License-Identifier: Apache-2.0

import pathlib
import unittest

import yaml

from nova_preempt.api import policy
import nova_preempt_dashboard

FILE = pathlib.Path(nova_preempt_dashboard.__file__).with_name(
    'conf') / 'default_policies' / 'preemption.yaml'


class TestDefaults(unittest.TestCase):

    def test_the_file_has_the_rules_of_the_api(self):
        """Run this module to write the file."""
        self.assertEqual(expected(), yaml.safe_load(FILE.read_text()))


def expected():
    return [{'name': rule.name, 'check_str': rule.check_str,
             'description': rule.description,
             'scope_types': rule.scope_types,
             'operations': getattr(rule, 'operations', [])}
            for rule in policy.list_rules()]


if __name__ == '__main__':
    FILE.write_text(
        '# Written by "python -m tests.unit.dashboard.test_policy" from '
        'nova_preempt.api.policy.\n' + yaml.safe_dump(
            expected(), sort_keys=False))
