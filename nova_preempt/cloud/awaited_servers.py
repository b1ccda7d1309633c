# SPDX-License-Identifier: Apache-2.0

"""Polls the state of servers that a caller waits for.

Hundreds of requests may wait for their victims at once. They share one query
per cell, which runs less often the longer it takes. Each cell is read by
itself: an unreadable or slow cell does not delay requests whose victims are in
other cells.
"""

import collections
import dataclasses
import threading
import time

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import instances
from nova_preempt.cloud import nova_api
from nova_preempt.core import poll_timing

#: The longest pause between two readings of a victim, in seconds. Pauses after
#: a call to Nova begin shorter.
POLL_INTERVAL_S = 0.5

# How long to wait for a reading by another thread, in seconds.
_PATIENCE_S = 5.0


class WaiterCounts:
    """Counts the waiters of each server. Not thread-safe."""

    def __init__(self):
        self.uuids = collections.Counter()

    def add(self, uuids):
        self.uuids.update(uuids)

    def remove(self, uuids):
        """Remove waiters; return the servers without any waiter."""
        self.uuids -= collections.Counter(uuids)
        return set(uuids) - self.uuids.keys()


class SharedReading:
    """Caches a reading of the added servers for all threads.

    New servers are read at once, all servers when a reading is due.

    :param what: a name of the reading, for messages
    :param read: given uuids and the time, returns {uuid: result}
    :param monotonic, processor_time: the clocks to measure by
    """

    def __init__(self, what, read, monotonic, processor_time):
        self._what = what
        self._read = read
        self._clocks = monotonic, processor_time
        self._reading = threading.Lock()
        self._lock = threading.Lock()
        self._uuids = set()
        self._unread = set()
        self._found = {}
        self._last = None         # a poll_timing.SharedRead

    def add(self, uuids):
        with self._lock:
            self._unread.update(set(uuids) - self._uuids)
            self._uuids.update(uuids)

    def remove(self, uuids):
        with self._lock:
            self._uuids.difference_update(uuids)
            self._unread.difference_update(uuids)
            for uuid in uuids:
                self._found.pop(uuid, None)

    def get(self, uuid, max_age_s):
        """Return a server's result, None if it was not found.

        :param max_age_s: its maximum age
        :raises NovaError: it could not be read
        """
        if not self._reading.acquire(timeout=_PATIENCE_S):
            raise nova_api.NovaError(
                f'{self._what}: another thread has been reading for '
                f'{_PATIENCE_S:g} s')
        try:
            monotonic, processor_time = self._clocks
            now = monotonic()
            if self._last is None or self._last.is_due(now, max_age_s):
                start = processor_time()
                self._refresh(self._uuids, now)
                self._last = poll_timing.SharedRead(now,
                                                    processor_time() - start)
            elif uuid in self._unread:
                self._refresh(self._unread, now)
            return self._found.get(uuid)
        finally:
            self._reading.release()

    def _refresh(self, uuids, now):
        with self._lock:
            uuids = sorted(uuids)
        try:
            found = self._read(uuids, now)
        except Exception as exc:
            raise nova_api.NovaError(
                f'{self._what}: cannot be read: {exc}') from exc
        with self._lock:
            for uuid in uuids:
                self._unread.discard(uuid)
                if uuid not in found:
                    self._found.pop(uuid, None)
                elif uuid in self._uuids:
                    self._found[uuid] = found[uuid]


class AwaitedServers:
    """Reads the records of servers that requests wait for. Thread-safe.

    :param find: given uuids, returns {uuid: CellMapping, None if it has no
        cell} of existing servers
    :param read: given a CellMapping and uuids, returns {uuid: ObservedServer}
    :param monotonic, processor_time: the clocks to measure by
    """

    def __init__(self, find=None, read=None, monotonic=time.monotonic,
                 processor_time=cell_calls.processor_time):
        self._find = find or instances.find_cells
        self._read = read or instances.read_cell
        self._clocks = monotonic, processor_time
        self._lock = threading.Lock()
        self._watched = WaiterCounts()
        self._homes = {}          # uuid: uuid of its cell, None if it has none
        self._cells = {}          # uuid: its SharedReading

    def add(self, uuids):
        with self._lock:
            self._watched.add(uuids)

    def remove(self, uuids):
        with self._lock:
            for uuid in self._watched.remove(uuids):
                cell = self._cells.get(self._homes.pop(uuid, None))
                if cell is not None:
                    cell.remove([uuid])

    def get(self, uuid, max_age_s=None):
        """Return the ObservedServer of an added server, None if it is gone.

        :param max_age_s: its maximum age
        :raises NovaError: it could not be read
        """
        if max_age_s is None:
            max_age_s = POLL_INTERVAL_S
        cell = self._cell_of(uuid)
        state = cell and cell.get(uuid, max_age_s)
        if cell is not None and state is None:
            # It may have moved to another cell.
            with self._lock:
                self._look_up([uuid])
                other = self._cells.get(self._homes[uuid])
            if other is not cell:
                cell.remove([uuid])
                state = other and other.get(uuid, max_age_s)
        return state

    def _cell_of(self, uuid):
        with self._lock:
            if uuid not in self._homes:
                self._look_up(sorted(self._watched.uuids.keys()
                                     - self._homes.keys()))
            return self._cells.get(self._homes[uuid])

    def _look_up(self, uuids):
        try:
            found = self._find(uuids)
        except Exception as exc:
            raise nova_api.NovaError(
                f'cannot look up in which cells servers are: {exc}') from exc
        for uuid in uuids:
            mapping = found.get(uuid)
            self._homes[uuid] = mapping and mapping.uuid
            if mapping is not None:
                if mapping.uuid not in self._cells:
                    self._cells[mapping.uuid] = _make_reading(
                        mapping, self._read, self._clocks)
                self._cells[mapping.uuid].add([uuid])


def _make_reading(cell, read, clocks):
    """Make the SharedReading of a cell."""
    def read_states(uuids, now):
        return {uuid: dataclasses.replace(server, read_us=round(now * 1e6))
                for uuid, server in read(cell, uuids).items()}

    return SharedReading(f'cell {cell.identity}', read_states, *clocks)

