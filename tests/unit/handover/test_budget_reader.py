# SPDX-License-Identifier: Apache-2.0
"""Tests of eviction budgets."""

import pathlib
import tempfile
import types
import unittest
from unittest import mock

from oslo_config import cfg

from nova_preempt import db
import nova_preempt.conf
from nova_preempt.db import decisions
from nova_preempt.handover import budget_reader

# Two groups of two servers each; "alone" is in none.
GROUPS = {'a1': {1}, 'a2': {1}, 'b1': {2}, 'b2': {2}}


def server(uuid, project_id='p'):
    return types.SimpleNamespace(uuid=uuid, project_id=project_id)


class BudgetsTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.ending = {}
        self.servers = [server(uuid) for uuid in (*GROUPS, 'alone')]
        for name, function in (('get_groups', self.get_groups),
                               ('get_members', self.get_members)):
            patch = mock.patch.object(budget_reader.server_groups, name,
                                      function)
            patch.start()
            self.addCleanup(patch.stop)
        self.read = []

    def get_groups(self, uuids):
        self.read += sorted(uuids)
        return {uuid: GROUPS.get(uuid, set()) for uuid in uuids}

    def get_members(self, group_ids):
        return {group_id: {uuid for uuid in GROUPS
                           if group_id in GROUPS[uuid]}
                for group_id in group_ids}

    def make(self, project_budget=0, group_budget=0, budget_window_s=0):
        self.decisions = mock.Mock()
        self.decisions.get_ending.side_effect = lambda since: dict(self.ending)
        return budget_reader.BudgetReader(
            types.SimpleNamespace(
                project_budget=project_budget, group_budget=group_budget,
                budget_window_s=budget_window_s),
            self.decisions, types.SimpleNamespace(
                servers=lambda: self.servers))


class TestOptions(BudgetsTestCase):

    def test_changed_while_the_process_runs(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, 'nova.conf')
        path.touch()
        conf = cfg.ConfigOpts()
        nova_preempt.conf.register_opts(conf)
        conf(['--config-file', str(path)])
        self.make()
        found = budget_reader.BudgetReader(conf.preemption, self.decisions,
                                      types.SimpleNamespace(
                                          servers=lambda: self.servers))
        self.assertFalse(found)
        path.write_text('[preemption]\nproject_budget = 2\n'
                        'group_budget = 1\nbudget_window_s = 60\n')
        conf.mutate_config_files()
        self.assertEqual((2, 1), (found.read().project_budget,
                                  found.read().group_budget))
        self.assertIsNotNone(self.decisions.get_ending.call_args.args[0])


class TestRead(BudgetsTestCase):

    def test_without_budgets_nothing_is_read(self):
        found = self.make()
        self.assertFalse(found)
        self.assertIsNone(found.read())
        self.assertEqual({}, found.guard([db.Victim('a1')]))
        self.decisions.get_ending.assert_not_called()
        self.assertEqual([], self.read)

    def test_ending_servers_and_their_groups(self):
        self.ending = {'x': 'p'}
        found = self.make(project_budget=2, group_budget=1).read()
        self.assertEqual((2, 1, self.ending), (
            found.project_budget, found.group_budget, found.ending))
        self.assertEqual({**GROUPS, 'alone': set(), 'x': set()},
                         found.groups)

    def test_groups_are_not_read_for_projects(self):
        self.make(project_budget=2).read()
        self.assertEqual([], self.read)

    def test_groups_are_read_once(self):
        found = self.make(group_budget=1)
        for _ in range(3):
            found.read()
        self.assertEqual(sorted((*GROUPS, 'alone')), self.read)
        self.servers.append(server('new'))
        found.read()
        self.assertEqual(1, self.read.count('new'))
        found.refresh()
        self.assertEqual(2, self.read.count('a1'))

    def test_window(self):
        self.make(project_budget=1).read()
        self.decisions.get_ending.assert_called_once_with(None)
        self.make(project_budget=1, budget_window_s=60).read()
        since, = self.decisions.get_ending.call_args.args
        self.assertIsNotNone(since)


class TestGuard(BudgetsTestCase):

    def check(self, victims, ending, **options):
        guard = self.make(**options).guard(
            [db.Victim(uuid, 'p') for uuid in victims])
        guard['check'](ending)

    def test_project(self):
        ending = {'a1': 'p', 'x': 'p', 'y': 'q', 'z': 'q', 'v': 'q'}
        self.check(['a1'], ending, project_budget=2)
        with self.assertRaisesRegex(decisions.OverBudget,
                                    'p would have 2 .* budget is 1'):
            self.check(['a1'], ending, project_budget=1)

    def test_group(self):
        ending = {'a1': 'p', 'b1': 'p', 'b2': 'p', 'alone': 'p'}
        self.check(['a1', 'alone'], ending, group_budget=1)
        with self.assertRaisesRegex(decisions.OverBudget,
                                    'group 2 would have 2 '):
            self.check(['b1'], ending, group_budget=1)
