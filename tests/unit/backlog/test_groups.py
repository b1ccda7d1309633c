# SPDX-License-Identifier: Apache-2.0
"""Tests of the reading of server groups for a pass."""

import unittest

from nova_preempt.backlog import capacity_reader
from nova_preempt.cloud import server_groups
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.observed_server import ObservedServer
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.test_group_placement import in_group


class TestGroups(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.asked = []
        self.found = {}
        self.nodes = {}

    def resident(self, uuid):
        node = self.nodes.get(uuid)
        return node and ObservedServer(uuid, 'active', host=node, node=node)

    def find(self, uuids, policies):
        self.asked.append((set(uuids), tuple(policies)))
        return {uuid: group for uuid, group in self.found.items()
                if uuid in uuids}

    def has(self, uuid, policy, most=1, members=(), project_id='p1'):
        self.found[uuid] = server_groups.ServerGroup(
            uuid, project_id, policy, most, frozenset(members))

    def known(self, *requests, hosts=('a', 'b')):
        return capacity_reader.known_groups(
            requests, [host(name, 1) for name in hosts], self.resident,
            self.find)

    def test_requests_without_groups(self):
        self.assertEqual({}, self.known())
        self.assertEqual({}, self.known(base.request(),
                                        base.request(apart=True, count=2)))
        self.assertEqual([], self.asked)

    def test_all_groups_are_read_at_once(self):
        """Each group is read once."""
        self.has('n', 'affinity', members='xy')
        self.has('f', 'anti-affinity', 2, 'z')
        found = self.known(*(
            in_group(name, f'{name}{number}')
            for name in ('n', 'f', 'gone') for number in range(100)))
        self.assertEqual({
            'n': group_placement.Group('n', group_placement.AFFINITY, 1,
                                       frozenset('xy'), project_id='p1'),
            'f': group_placement.Group('f', group_placement.ANTI_AFFINITY, 2,
                                       frozenset('z'),
                                       project_id='p1')}, found)
        self.assertEqual([({'n', 'f', 'gone'}, group_placement.STRICT)],
                         self.asked)

    def test_members_elsewhere(self):
        for policy, nodes, elsewhere in (
                ('affinity', {}, False), ('affinity', {'x': 'a'}, False),
                ('affinity', {'x': 'a', 'y': 'down'}, True),
                ('anti-affinity', {'y': 'down'}, False)):
            self.has('g', policy, members='xy')
            self.nodes = nodes
            self.assertIs(elsewhere, self.known(
                in_group('g', 'r'))['g'].elsewhere, nodes)

    def test_a_group_of_another_project(self):
        self.has('g', 'affinity', project_id='p2')
        known = self.known(in_group('g', 'r'))
        self.assertIsNone(group_placement.group_of(in_group('g', 'r'), known))
        self.assertIsNotNone(group_placement.group_of(
            in_group('g', 'r', project_id='p2'), known))

    def test_a_rule_that_is_none(self):
        self.has('g', 'anti-affinity', 10**30)
        self.assertEqual(2**31 - 1, self.known(in_group('g', 'r'))['g'].most)

    def test_a_rule_that_changes(self):
        """It is read in each pass."""
        for most in (1, 3):
            self.has('g', 'anti-affinity', most)
            self.assertEqual(most, self.known(in_group('g', 'r'))['g'].most)

    def test_a_thousand_members(self):
        self.has('g', 'affinity', members=map(str, range(1000)))
        self.nodes = {str(number): 'a' for number in range(1000)}
        found = self.known(in_group('g', 'r'))['g']
        self.assertEqual((1000, False),
                         (len(found.members), found.elsewhere))

    def test_the_own_group_of_a_request(self):
        """It precedes a named group and needs no query."""
        request = in_group('g', 'r', apart=True, count=2,
                           servers=base.servers(backlog_model.RUNNING))
        self.assertEqual({'r': group_placement.Group(
            'r', group_placement.ANTI_AFFINITY, members=frozenset(['s0']))},
            self.known(request))
        self.assertEqual([], self.asked)
