# SPDX-License-Identifier: Apache-2.0
"""Figures that are computed once."""

import dataclasses
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core import eligibility
from nova_preempt.core.model import Host
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.core.scheduling import cost_bound_cache
from tests.unit.core.scheduling import test_scheduling_cycle
from tests.unit.core.scheduling import world
from tests.unit.core.support import LAW


class TestMemo(unittest.TestCase):

    def setUp(self):
        self.memo = cost_bound_cache.CostBoundCache()
        self.world = world.World()
        self.world.add('h', {'VCPU': 4, 'DISK_GB': 9}, {}, {
            'a': (1, {'VCPU': 2, 'DISK_GB': 5}), 'b': (1, {'VCPU': 1})})
        self.host = self.world.hosts['uuid of h']

    def hosted(self):
        return self.memo.hosted(
            Host('h', self.host.providers), dict(self.host.servers),
            self.world.policy)

    def uuids(self):
        return [each.server.uuid for each in self.hosted()]

    def test_once(self):
        found = self.hosted()
        self.assertEqual(['a', 'b'], self.uuids())
        self.assertIs(found, self.hosted())

    def test_a_record_has_changed(self):
        self.hosted()
        self.host.servers['a'] = world.server('a', 'h', task_state='deleting')
        self.assertEqual(['b'], self.uuids())

    def test_a_server_came_or_left(self):
        self.hosted()
        self.host.remove('a')
        self.assertEqual(['b'], self.uuids())
        self.host.add('c', {'VCPU': 1}, world.server('c', 'h'))
        self.assertEqual(['b', 'c'], self.uuids())

    def test_a_server_without_allocation_is_no_victim(self):
        self.host.allocations['b'] = {}
        self.host.generation += 1
        self.assertEqual(['a'], self.uuids())

    def test_an_allocation_has_changed(self):
        self.hosted()
        self.host.allocations['a'] = {'VCPU': 1}
        self.host.generation += 1
        self.assertEqual({'VCPU': 1}, self.hosted()[0].resources)

    def test_the_options_have_changed(self):
        self.assertEqual(2, len(self.hosted()[0].freed))
        self.world.set(actions=('stop',))
        self.assertEqual(1, len(self.hosted()[0].freed))
        self.host.servers['a'] = dataclasses.replace(
            self.host.servers['a'], locked_by='owner')
        self.assertEqual(['a', 'b'], self.uuids())
        self.world.set(rules=eligibility.Rules(eligibility.ALL))
        self.assertEqual(['b'], self.uuids())

    def test_hosts_that_are_gone_are_forgotten(self):
        for number in range(200):
            self.memo.hosted(
                Host('h', (dataclasses.replace(self.host.providers[0],
                                               uuid=str(number)),)),
                {}, self.world.policy)
        self.memo.forget_others([cloud_view.ListedHost('7', 'h', (), True)])
        self.assertEqual({('7', False)}, set(self.memo._entries))

    @LAW
    @hypothesis.given(test_scheduling_cycle.clouds(),
                      st.lists(st.integers(1, 4), max_size=6))
    def test_the_memo_changes_no_decision(self, hosts, sizes):
        """This holds after any placements."""
        remembering = test_scheduling_cycle.build(hosts)
        forgetful = test_scheduling_cycle.build(hosts)
        for number, size in enumerate(sizes):
            forgetful.memo = cost_bound_cache.CostBoundCache()
            self.assertEqual(
                forgetful.placed({'VCPU': size}, f'new {number}'),
                remembering.placed({'VCPU': size}, f'new {number}'))
