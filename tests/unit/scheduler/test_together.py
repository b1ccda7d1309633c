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
"""Several servers of one request: what is needed, and what is known."""

import sys
import types
import unittest
from unittest import mock

from nova import exception

from nova_preempt.scheduler import together


def state(name, **marks):
    return types.SimpleNamespace(uuid=f'u-{name}', nodename=name)


class TestTogether(unittest.TestCase):

    def hosts(self, count=3, free=None, policy='', **options):
        options = {'multi_create_score': 'ml', **options}
        loaded = together.load(types.SimpleNamespace(**options))
        group = policy and types.SimpleNamespace(policy=policy, rules={})
        spec = mock.MagicMock(instance_group=group or None)
        spec.__contains__.return_value = True
        found = loaded.hosts(spec, ['s'] * count)
        if found is not None:
            found.offer(
                ([], {f'u-{name}': {'resources': {'VCPU': {
                    'capacity': 8, 'used': 8 - amount}}}
                    for name, amount in (free or {}).items()}, '1.36'),
                None, mock.Mock(**{
                    'merged_resources.return_value': {'VCPU': 1}}), None)
        return found

    def test_off_by_default(self):
        self.assertIsNone(together.load(types.SimpleNamespace(
            multi_create_score='off')))

    def test_not_installed(self):
        with mock.patch.dict(sys.modules, {'numpy': None}), (
                self.assertRaisesRegex(
                    exception.InvalidConfiguration,
                    r'\[preemption\]multi_create_score is ml: .*'
                    r'nova-preempt\[batch\]')):
            self.hosts()

    def test_one_alone(self):
        self.assertIsNone(self.hosts(count=1))

    def test_first(self):
        every = [state(name) for name in 'cab']
        found = self.hosts(free={'a': 2, 'b': 8})
        for name in 'aab':
            first = found.first(every)[0]
            self.assertEqual(name, first.nodename)
            found.consumed(first)
        # All are placed: as Nova has it.
        self.assertEqual(every, found.first(every))
        # Nova's scheduling begins anew.
        found.restart()
        self.assertEqual('a', found.first(every)[0].nodename)

    def test_not_possible(self):
        every = [state(name) for name in 'ba']
        for free, policy in (({'a': 2}, ''), ({'a': 8}, 'anti-affinity'),
                             ({}, 'affinity'), (None, 'soft-affinity')):
            self.assertEqual(every, self.hosts(
                free=free, policy=policy).first(every))


if __name__ == '__main__':
    unittest.main()
