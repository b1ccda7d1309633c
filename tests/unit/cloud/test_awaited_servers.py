# SPDX-License-Identifier: Apache-2.0
"""Tests of polls of servers in Nova's records."""

import threading
import types
import unittest
from unittest import mock

from nova_preempt.cloud import awaited_servers
from nova_preempt.cloud import nova_api
from nova_preempt.core import observed_server


def cell(uuid):
    return types.SimpleNamespace(uuid=uuid, identity=uuid)


def instance(vm_state='active'):
    return observed_server.ObservedServer('', vm_state, host='h')


class TestWatch(unittest.TestCase):
    """Tests of shared readings."""

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.processor_s = 0.0
        self.cells = {'1': cell('1'), '2': cell('2')}
        self.homes = dict.fromkeys('abc', '1')
        self.find = mock.Mock(side_effect=lambda uuids: {
            uuid: self.cells[self.homes[uuid]] for uuid in uuids
            if uuid in self.homes})
        self.read = mock.Mock(side_effect=lambda cell, uuids: {
            uuid: instance() for uuid in uuids
            if self.homes.get(uuid) == cell.uuid})
        patch = mock.patch.object(awaited_servers, 'POLL_INTERVAL_S', 1.0)
        patch.start()
        self.addCleanup(patch.stop)
        self.watch = awaited_servers.AwaitedServers(
            self.find, self.read, lambda: self.now,
            lambda: self.processor_s)

    def reads(self):
        return [(call.args[0].uuid, call.args[1])
                for call in self.read.mock_calls]

    def test_shared(self):
        self.watch.add(['a', 'b'])
        self.watch.add(['b'])
        for uuid in 'abab':
            self.assertEqual('active', self.watch.get(uuid).vm_state)
        self.assertEqual([('1', ['a', 'b'])], self.reads())
        self.now = 1.0
        self.watch.get('a')
        self.assertEqual(2, self.read.call_count)
        self.assertEqual(1, self.find.call_count)

    def test_a_caller_with_a_short_maximum_age(self):
        self.watch.add(['a', 'b'])
        self.watch.get('a')
        self.now = 0.2
        self.assertEqual(0, self.watch.get('b').read_us)
        self.assertEqual(200_000, self.watch.get('b', 0.1).read_us)
        # All others profit.
        self.assertEqual(200_000, self.watch.get('a').read_us)
        self.assertEqual(2, self.read.call_count)

    def test_new_ones_are_read_at_once(self):
        self.watch.add(['a'])
        self.watch.get('a')
        self.watch.add(['b', 'c'])
        for uuid in 'abc':
            self.assertIsNotNone(self.watch.get(uuid))
        self.assertEqual([('1', ['a']), ('1', ['b', 'c'])], self.reads())
        # It came back: what was known of it is old.
        self.watch.remove(['b'])
        self.watch.add(['b'])
        self.watch.get('b')
        self.assertEqual(('1', ['b']), self.reads()[-1])

    def test_slow_readings_are_repeated_less_often(self):
        def read(cell, uuids):
            self.processor_s += 0.4
            return {'a': instance()}

        self.read.side_effect = read
        self.watch.add(['a'])
        self.watch.get('a')
        for seconds, calls in ((3.9, 1), (0.2, 2), (3.9, 2)):
            self.now += seconds
            self.watch.get('a', 0.0)
            self.assertEqual(calls, self.read.call_count)

    def test_looked_at_now_and_then_in_any_case(self):
        def read(cell, uuids):
            self.processor_s += 60
            return {'a': instance()}

        self.read.side_effect = read
        self.watch.add(['a'])
        self.watch.get('a')
        self.now += 5.0
        self.watch.get('a')
        self.assertEqual(2, self.read.call_count)

    def test_a_cell_that_is_away_is_tried_again(self):
        self.read.side_effect = OSError('away')
        self.watch.add(['a'])
        for _ in range(2):
            self.assertRaises(nova_api.NovaError, self.watch.get, 'a')
        self.assertEqual(2, self.read.call_count)

    def test_a_cell_that_is_away_concerns_its_own_only(self):
        self.homes['b'] = '2'
        real = self.read.side_effect

        def read(cell, uuids):
            if cell.uuid == '1':
                raise OSError('away')
            return real(cell, uuids)

        self.read.side_effect = read
        self.watch.add(['a', 'b'])
        self.assertRaises(nova_api.NovaError, self.watch.get, 'a')
        self.assertEqual('active', self.watch.get('b').vm_state)

    def test_a_cell_that_hangs_concerns_its_own_only(self):
        self.homes['b'] = '2'
        real = self.read.side_effect
        hangs, goes_on = threading.Event(), threading.Event()
        self.addCleanup(goes_on.set)

        def read(cell, uuids):
            if cell.uuid == '1':
                hangs.set()
                goes_on.wait(60)
            return real(cell, uuids)

        self.read.side_effect = read
        self.watch.add(['a', 'b'])
        thread = threading.Thread(target=self.watch.get, args=('a',))
        thread.start()
        hangs.wait(60)
        self.assertEqual('active', self.watch.get('b').vm_state)
        # And who waits there as well can give up in time.
        with mock.patch.object(awaited_servers, '_PATIENCE_S', 0.001):
            self.assertRaises(nova_api.NovaError, self.watch.get, 'a')
        goes_on.set()
        thread.join()
        self.assertEqual('active', self.watch.get('a').vm_state)

    def test_gone(self):
        self.watch.add(['a', 'x'])
        self.assertIsNone(self.watch.get('x'))
        self.assertIsNotNone(self.watch.get('a'))
        del self.homes['a']
        self.now = 2.0
        self.assertIsNone(self.watch.get('a'))

    def test_moved_to_another_cell(self):
        self.watch.add(['a'])
        self.watch.get('a')
        self.homes['a'] = '2'
        self.now = 2.0
        self.assertEqual('active', self.watch.get('a').vm_state)
        self.assertEqual(('2', ['a']), self.reads()[-1])

    def test_a_failed_lookup_of_cells_raises(self):
        self.find.side_effect = OSError('away')
        self.watch.add(['a'])
        self.assertRaises(nova_api.NovaError, self.watch.get, 'a')

    def test_forgotten_by_the_last_one(self):
        self.watch.add(['a'])
        self.watch.add(['a', 'b'])
        self.watch.remove(['a', 'b'])
        self.watch.get('a')
        self.assertEqual([('1', ['a'])], self.reads())
        self.now = 1.0
        self.watch.remove(['a'])
        self.watch.add(['b'])
        self.watch.get('b')
        self.assertEqual(('1', ['b']), self.reads()[-1])
