# SPDX-License-Identifier: Apache-2.0
"""No change of a server is skipped, even if clocks differ."""

import datetime
import types
import unittest
from unittest import mock

import hypothesis
from hypothesis import strategies as st
from oslo_utils import timeutils

from nova_preempt.cloud import change_cursor
from tests.unit.core.support import LAW

NOON = datetime.datetime(2026, 11, 24, 12)


class Cell:
    """Servers of a cell, and a cache of them that reads by a Since.

    :ivar true_s: the time
    :ivar ahead_s: by how much our own clock is ahead of it
    :ivar nova_ahead_s: by how much the clock of Nova's services is
    """

    def __init__(self, ahead_s=0):
        self.true_s = 1000.0
        self.ahead_s = ahead_s
        self.nova_ahead_s = 0
        self.since = change_cursor.ChangeCursor(lambda: self.true_s)
        self.changed_s = {}       # server: when it was changed last
        self.known_s = {}         # the same, as it was read
        self.counts = []          # how many were read each time

    def change(self, server):
        self.changed_s[server] = self.true_s + self.nova_ahead_s

    def begin(self):
        with mock.patch.object(timeutils, 'utcnow', lambda: self.at(
                self.true_s + self.ahead_s)):
            return self.since.begin('cell')

    def read(self):
        self.end(self.begin())

    def end(self, reading):
        """Read the changes that a Reading requests."""
        least = reading.changes.get('changes-since', datetime.datetime.min)
        found = {server: changed_s for server, changed_s
                 in self.changed_s.items() if self.at(changed_s) >= least}
        reading.saw([types.SimpleNamespace(updated_at=self.at(changed_s))
                     for changed_s in found.values()])
        if not self.since.is_outdated(reading):
            self.known_s |= found
            self.since.done(reading)
        self.counts.append(len(found))

    @staticmethod
    def at(seconds):
        return NOON + datetime.timedelta(seconds=seconds)


class TestClocks(unittest.TestCase):

    def assert_known(self, cell):
        self.assertEqual(cell.changed_s, cell.known_s)

    def test_a_scheduler_that_is_ahead_sees_a_new_server(self):
        for ahead_s in (-600, 0, 60, 600):
            cell = Cell(ahead_s)
            cell.change('old')
            cell.read()
            cell.true_s += 5
            cell.change('new')
            cell.true_s += 1
            cell.read()
            self.assert_known(cell)

    def test_in_a_cell_that_was_empty(self):
        cell = Cell(600)
        cell.read()
        cell.true_s += 5
        cell.change('new')
        cell.read()
        self.assert_known(cell)

    def test_a_clock_that_is_set_back(self):
        cell = Cell()
        cell.change('old')
        cell.read()
        cell.ahead_s = -600
        for number in range(5):
            cell.true_s += 5
            cell.change(number)
            cell.read()
            self.assert_known(cell)

    def test_a_late_answer_is_outdated(self):
        cell = Cell()
        cell.change('old')
        cell.read()
        late = cell.begin()
        cell.true_s += 5
        cell.change('new')
        cell.read()
        self.assertTrue(cell.since.is_outdated(late))

    def test_where_nothing_changes_nothing_is_read(self):
        cell = Cell()
        for number in range(100):
            cell.change(number)
        for _ in range(10):
            cell.true_s += change_cursor.OVERLAP_S / 2
            cell.read()
        self.assertEqual([100, 0], [cell.counts[0], cell.counts[-1]])

    def test_a_service_of_nova_that_is_ahead_of_others(self):
        """Our own clock is the bound."""
        cell = Cell()
        cell.change('old')
        cell.read()
        cell.changed_s['ahead'] = cell.true_s + 300
        cell.read()
        cell.true_s += 5
        cell.change('new')
        cell.true_s += 1
        cell.read()
        self.assert_known(cell)

    def test_a_controller_that_is_set_back_with_its_nova(self):
        for wait_s in (5, 40, change_cursor.GAP_S + 1):
            cell = Cell()
            cell.change('old')
            cell.read()
            cell.ahead_s = cell.nova_ahead_s = -600
            cell.true_s += 1
            cell.change('new')
            cell.true_s += wait_s
            cell.read()
            self.assert_known(cell)

    def test_services_of_nova_whose_clocks_differ(self):
        """The clock of a service is ahead; after an hour all is read.
        """
        for ahead_s in (60, 600, 3000):
            cell = Cell(ahead_s)
            cell.change('old')
            cell.read()
            cell.nova_ahead_s = ahead_s
            cell.change('ahead')
            cell.read()
            cell.nova_ahead_s = 0
            for number in range(1 + change_cursor.WHOLE_S // 60):
                if number < 3:
                    cell.change(number)
                cell.true_s += 60
                cell.read()
            self.assert_known(cell)

    def test_a_service_of_nova_that_is_set_back_alone(self):
        cell = Cell()
        cell.change('old')
        cell.read()
        cell.nova_ahead_s = -600
        for number in range(1 + change_cursor.WHOLE_S // 60):
            cell.change(number)
            cell.true_s += 60
            cell.read()
        cell.true_s += change_cursor.WHOLE_S
        cell.read()
        self.assert_known(cell)

    @LAW
    @hypothesis.given(st.lists(st.tuples(
        st.sampled_from(('change', 'read')), st.integers(0, 3),
        st.integers(0, 200), st.integers(-900, 900)), max_size=30))
    def test_a_controller_whose_clock_jumps_between_readings(self, steps):
        cell = Cell()
        for what, server, wait_s, ahead_s in steps:
            cell.true_s += wait_s
            if what == 'change':
                cell.change(server)
            else:
                cell.read()
                self.assert_known(cell)
                cell.ahead_s = cell.nova_ahead_s = ahead_s

    @LAW
    @hypothesis.given(st.lists(st.tuples(
        st.sampled_from(('change', 'read')), st.integers(0, 3),
        st.integers(0, 200), st.integers(-900, 900)), max_size=30))
    def test_a_clock_that_jumps_both_ways(self, steps):
        cell = Cell()
        for what, server, wait_s, ahead_s in steps:
            cell.true_s += wait_s
            cell.ahead_s = ahead_s
            if what == 'change':
                cell.change(server)
            else:
                cell.read()
                self.assert_known(cell)


class TestWhole(unittest.TestCase):

    def test_after_a_pause_by_either_clock(self):
        cell = Cell()
        cell.change('a')
        self.assertTrue(cell.begin().whole)
        cell.read()
        cell.true_s += change_cursor.GAP_S
        self.assertFalse(cell.begin().whole)
        cell.true_s += 1
        self.assertTrue(cell.begin().whole)
        cell.read()
        # The machine was suspended.
        cell.ahead_s += change_cursor.GAP_S + 1
        self.assertTrue(cell.begin().whole)


if __name__ == '__main__':
    unittest.main()
