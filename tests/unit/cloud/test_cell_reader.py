# SPDX-License-Identifier: Apache-2.0
"""Unreadable cells do not delay other work."""

import threading
import time
import types
import unittest
from unittest import mock

from nova import context as nova_context

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import cell_reader


class TestReadings(unittest.TestCase):
    """Readings of cells without threads, with a clock of the test."""

    def setUp(self):
        self.now = 0.0
        self.mappings = {uuid: types.SimpleNamespace(uuid=uuid, identity=uuid)
                         for uuid in ('one', 'two')}
        self.hanging = set()      # cells that do not answer
        self.hung = []            # what runs once they do
        self.failing = set()
        self.error = OSError('one')
        self.reads = []
        self.meanwhile = []
        patch = mock.patch.object(nova_context, 'target_cell',
                                  mock.MagicMock())
        patch.start()
        self.addCleanup(patch.stop)
        self.readings = cell_reader.CellReader(
            lambda: self.mappings, self.read, 10, lambda: self.now,
            self.start, self.wait)

    def read(self, _context, mapping):
        self.reads.append(mapping.uuid)
        if mapping.uuid in self.failing:
            raise self.error

    def start(self, run):
        if run.args[1].cell.uuid in self.hanging:
            self.hung.append(run)
        else:
            run()

    def wait(self, condition, seconds):
        if self.meanwhile:
            # Another thread has the lock meanwhile.
            condition.release()
            try:
                self.meanwhile.pop(0)()
            finally:
                condition.acquire()
        else:
            self.now += seconds

    def answer(self):
        self.hanging.clear()
        while self.hung:
            self.hung.pop()()

    def test_all_cells_are_read(self):
        self.readings.read()
        self.readings.read()
        self.assertEqual(['one', 'two'] * 2, self.reads)
        self.assertEqual(set(), self.readings.unreadable())
        self.assertEqual(0, self.now)

    def test_a_cell_that_fails_is_unreadable(self):
        self.failing = {'one'}
        with self.assertLogs(cell_reader.__name__, 'ERROR'):
            self.readings.read()
        self.assertEqual(['one', 'two'], self.reads)
        self.assertEqual({'one'}, self.readings.unreadable())
        self.failing = set()
        self.readings.read()
        self.assertEqual(set(), self.readings.unreadable())

    def test_a_repeated_failure_is_logged_once(self):
        """It is logged again only if the error changes."""
        self.failing = {'one'}
        with self.assertLogs(cell_reader.__name__, 'INFO') as logs:
            for _ in range(3):
                self.readings.read()
            self.error = ValueError('one')
            for _ in range(3):
                self.readings.read()
            self.assertEqual({'one'}, self.readings.unreadable())
            self.failing = set()
            for _ in range(3):
                self.readings.read()
        self.assertEqual(
            [('ERROR', OSError), ('ERROR', ValueError), ('INFO', None)],
            [(record.levelname, record.exc_info and record.exc_info[0])
             for record in logs.records])
        self.assertIn('cell one can be read again', logs.output[-1])

    def test_a_cell_that_hangs_is_waited_for_once(self):
        """It is not called again before it answers."""
        self.hanging = {'one'}
        self.readings.read()
        self.assertEqual(10, self.now)
        self.assertEqual({'one'}, self.readings.unreadable())
        self.readings.read()
        self.assertEqual(10, self.now)
        self.assertEqual(['two', 'two'], self.reads)
        self.assertEqual(1, len(self.hung))

    def hang(self, seconds):
        """Read the hanging cell every second for this time."""
        self.hanging = {'one'}
        for _ in range(seconds):
            self.readings.read()
            self.now += 1

    def test_another_thread_tries_after_a_pause(self):
        with self.assertLogs(cell_calls.__name__, 'WARNING') as logs:
            self.hang(10)
            self.assertEqual(1, len(self.hung))
            self.hanging = set()
            self.now = 30
            self.readings.read()
        self.assertEqual(30, self.now, 'it was waited for')
        self.assertEqual(set(), self.readings.unreadable())
        self.assertIn('Cell one does not answer within 10 s; none of its '
                      'preemptible servers', logs.output[0])
        self.assertEqual(1, len(logs.output))
        # The one that hangs is in nobody's way.
        self.readings.read()
        self.assertEqual(2, self.reads.count('one'))
        self.answer()
        self.assertEqual(set(), self.readings.unreadable())

    def test_the_number_of_threads_is_limited(self):
        self.hang(100)
        self.assertEqual(3, len(self.hung))
        self.hang(5000)
        self.assertEqual(cell_calls.MOST_TRIALS + 1, len(self.hung))
        self.assertEqual({'one'}, self.readings.unreadable())
        self.hung.pop()()
        self.assertEqual(set(), self.readings.unreadable())
        self.hanging = set()
        self.readings.read()
        self.assertEqual(set(), self.readings.unreadable())

    def test_a_cell_that_is_deleted_meanwhile(self):
        self.hang(50)
        del self.mappings['one']
        self.readings.read()
        self.answer()
        self.assertEqual(set(), self.readings.unreadable())

    def test_a_late_answer_makes_a_cell_readable(self):
        self.hanging = {'one'}
        self.readings.read()
        self.answer()
        self.assertEqual(set(), self.readings.unreadable())
        self.readings.read()
        self.assertEqual(2, self.reads.count('one'))

    def test_an_answer_in_time(self):
        self.hanging = {'one'}
        self.meanwhile = [self.answer]
        self.readings.read()
        self.assertEqual(0, self.now)
        self.assertEqual({'one', 'two'}, set(self.reads))

    def test_a_reading_that_began_before_is_too_old(self):
        """A call during a reading waits for the next reading."""
        others = [threading.Thread(target=self.readings.read)
                  for _ in range(3)]
        self.hanging = {'one'}
        self.meanwhile = [lambda: [each.start() for each in others],
                          self.wait_for_others, self.answer]
        self.readings.read()
        for each in others:
            each.join()
        self.assertEqual(0, self.now)
        # Those who came meanwhile share one.
        self.assertEqual(2, self.reads.count('one'))

    def wait_for_others(self):
        """Wait until the other threads have called."""
        time.sleep(0.1)

    def test_a_cell_that_is_gone(self):
        self.failing = {'one'}
        with self.assertLogs(cell_reader.__name__, 'ERROR'):
            self.readings.read()
        del self.mappings['one']
        self.readings.read()
        self.assertEqual(set(), self.readings.unreadable())
