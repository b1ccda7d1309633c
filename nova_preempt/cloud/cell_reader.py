# SPDX-License-Identifier: Apache-2.0
"""Reads all cells; a slow cell does not delay the others."""

import functools
import threading
import time

from oslo_log import log as logging

from nova_preempt.cloud import cell_calls

LOG = logging.getLogger(__name__)


class CellReader:
    """Reads cells periodically; an answer after the time limit still counts.

    :param get_cells: returns {uuid: CellMapping}
    :param read: called with a context and a CellMapping; its errors are
        logged, each once while it stays the same
    :param limit_s, monotonic, start, wait: see cell_calls.CellCalls
    :param consequence: the effect of an unreadable cell, for the log
    """

    def __init__(self, get_cells, read, limit_s=cell_calls.LIMIT_S,
                 monotonic=time.monotonic, start=cell_calls.start_thread,
                 wait=threading.Condition.wait,
                 consequence='none of its preemptible servers is chosen to '
                             'end until it can be read'):
        self._get_cells = get_cells
        self._read = read
        self._consequence = consequence
        self._calls = cell_calls.CellCalls(limit_s, monotonic, start, wait,
                                           consequence)
        self._reading = threading.Lock()
        self._begun = 0           # number of reading rounds begun
        self._lock = threading.Lock()
        # uuid: (round of its last reading, its failure or '')
        self._cells = {}

    def read(self):
        """Read all cells, or share a round that begins after this call."""
        asked = self._begun
        with self._reading:
            if self._begun > asked:
                return
            self._begun += 1
            cells = dict(self._get_cells())
            with self._lock:
                self._cells = {uuid: self._cells.get(uuid, (0, ''))
                               for uuid in cells}
            self._calls.ask(
                cells.values(),
                lambda cell, context: self._read(context, cell),
                ended=functools.partial(self._note, self._begun))

    def unreadable(self):
        """Return uuids of cells whose last reading failed, or hangs."""
        with self._lock:
            failed = {uuid for uuid, (_round, failure) in self._cells.items()
                      if failure}
        return failed | self.hanging()

    def hanging(self):
        """Return the uuids of cells that do not answer."""
        return self._calls.hanging() & self._cells.keys()

    def _note(self, number, cell, answer):
        """Record the result of a reading, and log it if it is new.

        A record that Nova cannot read fails in each round, every second.
        """
        failure = f'{type(answer).__name__}: {answer}' if isinstance(
            answer, Exception) else ''
        with self._lock:
            last, before = self._cells.get(cell.uuid, (number + 1, ''))
            if number < last:
                return            # the cell is gone, or was read again
            self._cells[cell.uuid] = number, failure
        if failure == before:
            return
        if failure:
            LOG.error('Cannot read the servers of cell %(cell)s; '
                      '%(consequence)s.',
                      {'cell': cell.identity,
                       'consequence': self._consequence}, exc_info=answer)
        else:
            LOG.info('The servers of cell %s can be read again.',
                     cell.identity)
