# SPDX-License-Identifier: Apache-2.0
"""A cell that hangs costs a caller the limit once, and others nothing."""

import pathlib
import time
import types
import unittest
from unittest import mock

from nova import context as nova_context

from nova_preempt.cloud import cell_calls

CODE = pathlib.Path(cell_calls.__file__).parents[1]


class TestCellCalls(unittest.TestCase):
    """Calls without threads, with a clock of the test."""

    def setUp(self):
        self.now = 0.0
        self.cells = {uuid: types.SimpleNamespace(uuid=uuid, identity=uuid)
                      for uuid in ('one', 'two')}
        self.hanging = False
        self.hung = []
        self.failing = False
        self.waited = []
        self.calls = cell_calls.CellCalls(
            10, lambda: self.now, self.start, self.wait)
        patch = mock.patch.object(nova_context, 'target_cell',
                                  mock.MagicMock())
        patch.start()
        self.addCleanup(patch.stop)

    def start(self, run):
        # Only the first cell hangs.
        if self.hanging and run.args[1].cell.uuid == 'one':
            self.hung.append(run)
        else:
            run()

    def wait(self, condition, seconds):
        self.waited.append(seconds)
        self.now += seconds

    def read(self, context, value='read'):
        if self.failing:
            raise OSError('broken')
        return value

    def test_processor_time_of_other_threads_counts(self):
        def work(context):
            until = time.thread_time() + 0.01
            while time.thread_time() < until:
                pass

        start = cell_calls.processor_time()
        cell_calls.CellCalls().call(self.cells['one'], work)
        self.assertGreaterEqual(cell_calls.processor_time() - start, 0.01)

    def call(self, uuid='one', **kwargs):
        return self.calls.call(self.cells[uuid], self.read, **kwargs)

    def away(self, **kwargs):
        """The call fails; returns after how long."""
        began = self.now
        with self.assertRaises(cell_calls.CellDown) as caught:
            self.call(**kwargs)
        self.assertIn('Cell one did not answer', str(caught.exception))
        return self.now - began

    def test_answers(self):
        self.assertEqual('read', self.call())
        self.assertEqual('other', self.call(value='other'))
        self.assertEqual(0, self.now)

    def test_exceptions_of_the_function_are_raised(self):
        self.failing = True
        for _ in range(2):
            self.assertRaises(OSError, self.call)
        self.failing = False
        self.call()

    def test_a_cell_that_hangs_is_waited_for_once(self):
        self.hanging = True
        with self.assertLogs(cell_calls.__name__, 'WARNING') as logs:
            self.assertEqual(10, self.away())
            for _ in range(100):
                self.assertEqual(0, self.away())
        self.assertEqual(1, len(logs.output))
        self.assertEqual(1, len(self.hung))
        self.assertEqual('read', self.call('two'))
        self.assertEqual(10, self.now)

    def test_another_call_tries_now_and_then(self):
        self.hanging = True
        self.away()
        for _ in range(100):
            self.now += 1
            self.away()
        # After 30 s, and 60 s later.
        self.assertEqual(3, len(self.hung))
        self.hanging = False
        self.now += cell_calls.LONGEST_PAUSE_S
        with self.assertLogs(cell_calls.__name__, 'INFO') as logs:
            self.assertEqual('read', self.call())
        self.assertIn('answers again', logs.output[0])
        # Those that still hang say nothing any more.
        self.assertEqual('read', self.call())

    def test_other_calls_do_not_wait_for_the_one_that_tries(self):
        self.hanging = True
        self.away(limit_s=cell_calls.LONG_S)
        for _ in range(10):
            self.now += cell_calls.LONGEST_PAUSE_S
            self.assertEqual(0, self.away(limit_s=cell_calls.LONG_S))
        self.assertEqual(1 + cell_calls.MOST_TRIALS, len(self.hung))
        self.hanging = False
        self.hung.pop()()
        self.assertEqual('read', self.call())

    def test_a_late_answer_is_a_sign_of_life(self):
        self.hanging = True
        self.away()
        self.hanging = False
        self.hung.pop()()
        self.assertEqual('read', self.call())

    def test_a_connection_that_breaks_is_none(self):
        self.hanging = True
        self.away()
        self.away()
        self.failing = True
        self.hung.pop()()
        # Nothing hangs there now, so the next call finds out.
        self.assertEqual(10, self.away())

    def test_a_short_timeout_does_not_mark_a_cell_as_down(self):
        self.hanging = True
        self.assertEqual(2, self.away(limit_s=2))
        self.hanging = False
        self.assertEqual('read', self.call())
        self.hanging = True
        self.assertEqual(2, self.away(limit_s=2))
        self.assertEqual(10, self.away())
        self.assertEqual(0, self.away(limit_s=2))

    def test_gather(self):
        self.hanging = True
        answers = self.calls.gather(self.cells.values(), self.read)
        self.assertEqual('read', answers['two'])
        self.assertIsInstance(answers['one'], cell_calls.CellDown)
        self.assertEqual(10, self.now)
        self.assertEqual({'one', 'two'}, set(
            self.calls.gather(self.cells.values(), self.read)))
        self.assertEqual(10, self.now)

    def test_gather_returns_failures(self):
        self.failing = True
        with self.assertLogs(cell_calls.__name__, 'WARNING') as logs:
            answers = self.calls.gather([self.cells['one']], self.read)
        self.assertIsInstance(answers['one'], OSError)
        self.assertIn('Cell one cannot be read: broken', logs.output[0])

    def test_clocks_that_stand_still(self):
        self.assertEqual(['read'] * 3, [self.call() for _ in range(3)])


class TestOneDoor(unittest.TestCase):

    def test_nothing_else_reads_cells(self):
        """Embedded clouds do not count, as they are Nova."""
        found = {str(path.relative_to(CODE)) for path in CODE.rglob('*.py')
                 if 'embedded' not in path.parts
                 and any(word in path.read_text(encoding='utf-8') for word in (
                     'target_cell', 'scatter_gather'))}
        self.assertEqual({'cloud/cell_calls.py'}, found)


if __name__ == '__main__':
    unittest.main()
