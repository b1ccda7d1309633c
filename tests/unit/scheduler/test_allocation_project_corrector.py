# SPDX-License-Identifier: Apache-2.0
"""Under which project the allocations of preemptible servers stand."""

import types
import unittest
from unittest import mock

from nova_preempt.cloud import placement_api
from nova_preempt.scheduler import allocation_project_corrector


class FakePlacement:

    def __init__(self, **projects):
        self.projects = projects
        self.asked = []
        self.error = None

    def get_consumer(self, uuid):
        self.asked.append(uuid)
        return placement_api.Consumer(
            uuid, {'rp': {'resources': {'VCPU': 1}}}, 7,
            self.projects[uuid], 'user')

    def post_allocations(self, consumers):
        if self.error:
            raise self.error
        for consumer in consumers:
            assert consumer.generation == 7
            assert consumer.user_id == 'user'
            self.projects[consumer.uuid] = consumer.project_id


class TestCorrector(unittest.TestCase):

    def setUp(self):
        self.placement = FakePlacement(a='own', b='other', busy='own')
        self.servers = {
            uuid: types.SimpleNamespace(uuid=uuid, node='n', task_state=None,
                                        vm_state='active')
            for uuid in ('a', 'b', 'busy')}
        self.servers['busy'].task_state = 'migrating'
        self.now = 1000
        view = mock.Mock()
        view.by_node.side_effect = lambda: {'n': self.servers}
        self.view = view
        self.corrector = self.make('other')

    def make(self, project_id):
        return allocation_project_corrector.ProjectCorrector(
            project_id, self.placement, self.view, lambda: self.now)

    def run_it(self):
        self.placement.asked = []
        self.corrector.run()
        return sorted(self.placement.asked)

    def test_once(self):
        self.assertEqual(['a', 'b'], self.run_it())
        self.assertEqual({'a': 'other', 'b': 'other', 'busy': 'own'},
                         self.placement.projects)
        self.assertEqual([], self.run_it())
        self.servers['busy'].task_state = None
        self.assertEqual(['busy'], self.run_it())
        self.servers['a'].node = 'm'
        self.assertEqual(['a'], self.run_it())

    def test_again_after_long(self):
        self.run_it()
        self.now += allocation_project_corrector.RECHECK_S
        self.assertEqual(['a', 'b'], self.run_it())

    def test_not_wanted(self):
        self.corrector = self.make('')
        self.assertEqual([], self.run_it())

    def test_lost_race(self):
        self.placement.error = placement_api.Conflict()
        self.run_it()
        self.placement.error = None
        self.assertEqual(['a'], self.run_it())

    def test_placement_is_down(self):
        self.placement.error = placement_api.PlacementError('down')
        with self.assertLogs(
                'nova_preempt.scheduler.allocation_project_corrector'):
            self.run_it()
        self.placement.error = None
        self.run_it()
        self.assertEqual('other', self.placement.projects['a'])

    def test_a_batch(self):
        with mock.patch.object(allocation_project_corrector, 'BATCH', 1):
            self.assertEqual(1, len(self.run_it()))
            self.assertEqual(1, len(self.run_it()))
            self.assertEqual([], self.run_it())
