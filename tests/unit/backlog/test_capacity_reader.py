# SPDX-License-Identifier: Apache-2.0
"""Tests of the reading of hosts for a pass."""

import dataclasses
import datetime
from types import SimpleNamespace
import unittest

from nova_preempt.backlog import capacity_reader
from nova_preempt.conf.preemption import OPERATIONS
from nova_preempt.core import eligibility
from nova_preempt.core import model
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.energy import host_classification
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.db import pauses

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def server(uuid, maximum_runtime_s=None, **values):
    return dataclasses.replace(model.PreemptibleServer(
        uuid, 'h', 'h', 'cell', 'p', 'u', 'spot',
        NOW - datetime.timedelta(seconds=40), 'active', None, 0, 2, 64, 0,
        maximum_runtime_s), **values)


class TestRooms(unittest.TestCase):

    def find(self, *servers, of_all_s=0, actions=('shelve', 'delete'),
             disk_gb=0, paused='', asleep=None, wakes=False, **options):
        inventories, each = {'VCPU': model.Inventory(8)}, {'VCPU': 2}
        if disk_gb:
            inventories['DISK_GB'] = model.Inventory(100)
            each['DISK_GB'] = disk_gb
        providers = [
            model.Provider('root', 1, inventories, {
                item.uuid: each for item in servers}),
            model.Provider('part', 1, {'VGPU': model.Inventory(4)}, {
                servers[0].uuid: {'VGPU': 1}}, parent_uuid='root')]
        host = SimpleNamespace(name='h', properties={'traits': ['T']},
                               asleep=asleep)
        known = SimpleNamespace(
            policy=lambda: preemption_policy.Policy(
                eligibility.Rules(), actions, None),
            servers=SimpleNamespace(by_node=lambda: {
                'h': {item.uuid: item for item in servers}}))
        found = capacity_reader.CapacityReader(
            SimpleNamespace(**{
                'maximum_runtime_s': of_all_s, 'notice_s': 0,
                'minimum_notice_s': 0, 'maximum_notice_s': 300,
                'enabled': True, 'preempting_operations': OPERATIONS,
                **options}),
            SimpleNamespace(rooms=lambda: [(host, providers)]),
            known, lambda: NOW, SimpleNamespace(why={
                pauses.PREEMPTION: paused}.get), lambda: wakes).all()
        return found[0] if found else None

    def test_the_whole_tree_counts(self):
        found = self.find(server('a'), server('b', locked_by='admin'))
        self.assertEqual(
            host_capacity.HostCapacity('h', {'VCPU': 4, 'VGPU': 3},
                               {'VCPU': 6, 'VGPU': 4},
                               {'VCPU': 8, 'VGPU': 4}, traits=frozenset('T'),
                               consumers=frozenset('ab'),
                               parts=frozenset(['VGPU'])),
            found)

    def test_a_host_that_is_off(self):
        """It counts only if it can be woken."""
        off, late = host_classification.OffHost(), host_classification.OffHost(
            'it has failed to boot')
        self.assertIs(True, self.find(
            server('a'), asleep=off, wakes=True).off)
        self.assertIsNone(self.find(server('a'), asleep=off))
        self.assertIsNone(self.find(server('a'), asleep=late, wakes=True))

    def test_departures_of_servers_with_a_known_end(self):
        found = self.find(server('a', 100), server('b', 0), server('c'),
                          server('d', 30, minimum_runtime_s=3600),
                          server('e', 100, locked_by='admin'))
        self.assertEqual(
            (host_capacity.Departure(60, {'VCPU': 2, 'VGPU': 1},
                reclaimable=True),
             host_capacity.Departure(0, {'VCPU': 2}, reclaimable=False)),
                 found.ends)
        found = self.find(server('a'), server('b', 0), of_all_s=50)
        self.assertEqual([10], [end.in_s for end in found.ends])

    def test_the_notice_is_waited_for(self):
        found = self.find(server('a', 100), server('b', 100, notice_s=10),
                          server('c', 100, notice_s=900), notice_s=30)
        self.assertEqual([90, 70, 360], [end.in_s for end in found.ends])

    def test_no_space_is_reclaimable_while_evictions_are_off(self):
        for values in ({'paused': 'a ticket'}, {'enabled': False},
                       {'preempting_operations': ['unshelve']}):
            found = self.find(server('a'), server('b', 100), **values)
            self.assertEqual(found.free, found.reclaimable)
            # At its maximum run time it does, unless all is paused.
            self.assertEqual([] if 'paused' in values else [
                host_capacity.Departure(60, {'VCPU': 2})], list(found.ends))

    def test_a_stopped_victim_keeps_its_disk(self):
        for action, left in (('stop', {}), ('delete', {
                'DISK_GB': 10, 'VGPU': 1})):
            item = server('a', 100, action=action)
            found = self.find(item, actions=('delete', 'stop'), disk_gb=10)
            self.assertEqual({'VCPU': 6, 'DISK_GB': 90, 'VGPU': 3},
                             found.free)
            self.assertEqual(
                {'VCPU': 8, 'DISK_GB': 90 + left.get('DISK_GB', 0),
                 'VGPU': 3 + left.get('VGPU', 0)}, found.reclaimable)
            self.assertEqual([host_capacity.Departure(60, {'VCPU': 2, **left},
                                                True)],
                             list(found.ends))

    def test_a_class_server_that_would_be_deleted_stays(self):
        item = server('a', 100, class_name='gold', action='delete')
        self.assertEqual((), self.find(item).ends)
