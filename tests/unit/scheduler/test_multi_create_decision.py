# SPDX-License-Identifier: Apache-2.0
"""Decisions on several servers of a request."""

import sys
import types
import unittest
from unittest import mock

from nova_preempt import exceptions
from nova_preempt.scheduler import multi_create_decision


def state(name, weight=0):
    return types.SimpleNamespace(uuid=f'u-{name}', nodename=name,
                                 weight=weight)


def weighed(states, _spec_obj):
    return [types.SimpleNamespace(obj=each, weight=each.weight)
            for each in states]


class TestMultiCreate(unittest.TestCase):

    def hosts(self, every, count=3, free=None, policy='', **options):
        """{host: how many}."""
        options = {'multi_create_score': 'ml', **options}
        loaded = multi_create_decision.load(types.SimpleNamespace(**options),
                                            weighed)
        group = policy and types.SimpleNamespace(policy=policy, rules={})
        spec = mock.MagicMock(instance_group=group or None)
        spec.__contains__.return_value = True
        return loaded(
            count, {'VCPU': 1},
            {f'u-{name}': {'resources': {'VCPU': {
                'capacity': 8, 'used': 8 - amount}}}
                for name, amount in (free or {}).items()}, every, spec)

    def test_off_by_default(self):
        self.assertIsNone(multi_create_decision.load(types.SimpleNamespace(
            multi_create_score='off'), weighed))

    def test_not_installed(self):
        with mock.patch.dict(sys.modules, {'numpy': None}), (
                self.assertRaisesRegex(
                    exceptions.InvalidConfiguration,
                    r'\[preemption\]multi_create_score is ml: .*'
                    r'nova-preempt\[batch\]')):
            self.hosts([])

    def test_fullest(self):
        every = [state(name) for name in 'cab']
        self.assertEqual({'a': 2, 'b': 1}, self.hosts(
            every, free={'a': 2, 'b': 8}))

    def test_weights(self):
        """The best takes as many as it has room for, then the next."""
        every = [state('c', -1e300), state('a', -.5), state('b', 1e9)]
        some = {'a': 2, 'b': 2, 'c': 8}
        for policy, hosts in (('', {'a': 1, 'b': 2}), ('affinity', {'c': 3}),
                              ('anti-affinity', {'a': 1, 'b': 1, 'c': 1})):
            self.assertEqual(hosts, self.hosts(
                every, free=some, policy=policy,
                multi_create_score='weights'))
        self.assertEqual({}, self.hosts([], multi_create_score='weights'))

    def test_not_possible(self):
        every = [state(name) for name in 'ba']
        for free, policy in (({'a': 2}, ''), ({'a': 8}, 'anti-affinity'),
                             ({}, 'affinity'), (None, 'soft-affinity')):
            self.assertEqual({}, self.hosts(
                every, free=free, policy=policy))


if __name__ == '__main__':
    unittest.main()
