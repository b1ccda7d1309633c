# SPDX-License-Identifier: Apache-2.0
"""Tests of nodes whose freed space Placement does not report."""

import types
import unittest

from nova_preempt.cloud import departure_tracker


def server(node, vm_state='active', deleted=False, uuid='s'):
    return types.SimpleNamespace(uuid=uuid, node=node, vm_state=vm_state,
                                 deleted=deleted)


class TestDepartures(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.told = set()
        self.departures = departure_tracker.DepartureTracker(
            self.told.update, lambda: self.now)

    def note(self, *servers, after=1000):
        """The nodes that are told of."""
        self.now += after
        self.told.clear()
        self.departures.note(servers)
        return set(self.told)

    def test_a_server_that_stays(self):
        self.assertEqual(set(), self.note(server('a')))
        self.assertEqual(set(), self.note(server('a', 'stopped')))

    def test_deleted(self):
        """It is counted during the deletion and once after it."""
        self.note(server('a'))
        self.assertEqual({'a'}, self.note(server('a', 'deleted')))
        self.assertEqual({'a'}, self.note(server('a', 'deleted', True)))
        self.assertEqual(set(), self.note(server('a', 'deleted', True),
                                          after=20))

    def test_shelved(self):
        """A normal server as well; then it has no node."""
        self.note(server('a'))
        self.assertEqual({'a'}, self.note(server(None, 'shelved_offloaded')))

    def test_moved(self):
        self.note(server('a'))
        self.assertEqual({'a'}, self.note(server('b')))

    def test_nova_frees_the_space_a_moment_later(self):
        self.note(server('a'))
        self.assertEqual({'a'}, self.note(server('b')))
        self.assertEqual({'a'}, self.note(after=10))
        self.assertEqual({'a'}, self.note(after=20))
        self.assertEqual(set(), self.note(after=10))

    def test_resized_and_confirmed(self):
        """It has space on both until somebody confirms."""
        self.note(server('a'))
        self.note(server('b', 'resized'))
        self.assertEqual(set(), self.note(after=1000) - {'a'})
        self.assertEqual(set(), self.note(after=1000))
        self.assertEqual({'a'}, self.note(server('b')))

    def test_resized_and_reverted(self):
        self.note(server('a'))
        self.note(server('b', 'resized'))
        self.note(after=1000)
        self.assertEqual({'b'}, self.note(server('a')))

    def test_resized_and_deleted(self):
        self.note(server('a'))
        self.note(server('b', 'resized'))
        self.note(after=1000)
        self.assertEqual({'a', 'b'}, self.note(server('b', 'deleted', True)))

    def test_deleted_servers_are_forgotten(self):
        self.note(server('a'), server('a', uuid='t'))
        self.note(server('a', 'deleted', True),
                  server(None, 'shelved_offloaded', uuid='t'))
        self.note()
        self.note()
        for kept in (self.departures._nodes, self.departures._resized,
                     self.departures._gone, self.departures._until):
            self.assertEqual({}, kept)
