# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What Nova's records say of the servers that somebody waits for.

Hundreds of requests may wait for their victims at once: they share one query
of a cell at a time, and the more there is to read, the longer that serves.
Each cell is read by itself: one that cannot be read, or not in time, holds up
nobody whose victims are in others.
"""

import collections
import threading
import time

from nova import context as nova_context
from nova import objects

from nova_preempt.cloud import nova_api
from nova_preempt.core import ending

# No more than this share of a processor is spent on reading, so that those who
# wait do not hold up others; but a victim is looked at this often in any case.
_SHARE = 0.05
_LONGEST_S = 5.0

# How long the reading of a cell by another thread is waited for.
_PATIENCE_S = 5.0

State = ending.Seen


class InstancePoller:
    """Reads the records of the servers that somebody waits for.

    :param interval_s: how old what is told may be, unless less is asked for
    :param find: given uuids, returns {uuid: CellMapping, None if it has no
        cell} of those that Nova knows
    :param read: given a CellMapping and uuids, returns {uuid: Instance}
    :param monotonic, processor_time: the clocks to measure by
    """

    def __init__(self, interval_s, find=None, read=None,
                 monotonic=time.monotonic, processor_time=time.thread_time):
        self._interval_s = interval_s
        self._find = find or find_cells
        self._read = read or read_cell
        self._clocks = monotonic, processor_time
        self._lock = threading.Lock()
        self._watched = collections.Counter()
        self._homes = {}          # uuid: uuid of its cell, None if it has none
        self._cells = {}          # uuid: _Cell

    def add(self, uuids):
        with self._lock:
            self._watched.update(uuids)

    def remove(self, uuids):
        with self._lock:
            self._watched -= collections.Counter(uuids)
            for uuid in set(uuids) - self._watched.keys():
                cell = self._cells.get(self._homes.pop(uuid, None))
                if cell is not None:
                    cell.remove(uuid)

    def get(self, uuid, max_age_s=None):
        """The ending.Seen of a server that was added, None if it is gone.

        :param max_age_s: how old it may be
        :raises NovaError: it could not be read
        """
        if max_age_s is None:
            max_age_s = self._interval_s
        cell = self._cell_of(uuid)
        state = cell and cell.get(uuid, max_age_s)
        if cell is not None and state is None:
            # Perhaps it has moved to another cell.
            with self._lock:
                self._look_up([uuid])
                other = self._cells.get(self._homes[uuid])
            if other is not cell:
                cell.remove(uuid)
                state = other and other.get(uuid, max_age_s)
        return state

    def _cell_of(self, uuid):
        with self._lock:
            if uuid not in self._homes:
                self._look_up(sorted(self._watched.keys()
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
                cell = self._cells.setdefault(
                    mapping.uuid, _Cell(mapping, self._read, *self._clocks))
                cell.add(uuid)


class _Cell:
    """What was read of the watched servers of one cell."""

    def __init__(self, mapping, read, monotonic, processor_time):
        self._mapping = mapping
        self._read = read
        self._monotonic = monotonic
        self._processor_time = processor_time
        self._reading = threading.Lock()
        self._lock = threading.Lock()
        self._uuids = set()
        self._unread = set()
        self._states = {}
        self._read_at = self._next_at = None

    def add(self, uuid):
        with self._lock:
            if uuid not in self._uuids:
                self._uuids.add(uuid)
                self._unread.add(uuid)

    def remove(self, uuid):
        with self._lock:
            self._uuids.discard(uuid)
            self._unread.discard(uuid)
            self._states.pop(uuid, None)

    def get(self, uuid, max_age_s):
        if not self._reading.acquire(timeout=_PATIENCE_S):
            raise nova_api.NovaError(
                f'cell {self._mapping.identity} is being read for longer '
                f'than {_PATIENCE_S:g} s')
        try:
            now = self._monotonic()
            if self._next_at is None or now >= min(
                    max(self._next_at, self._read_at + max_age_s),
                    self._read_at + _LONGEST_S):
                start = self._processor_time()
                self._refresh(self._uuids, now)
                took_s = self._processor_time() - start
                self._read_at = now
                self._next_at = now + min(took_s / _SHARE, _LONGEST_S)
            elif uuid in self._unread:
                self._refresh(self._unread, now)
            return self._states.get(uuid)
        finally:
            self._reading.release()

    def _refresh(self, uuids, now):
        with self._lock:
            uuids = sorted(uuids)
        try:
            instances = self._read(self._mapping, uuids)
        except Exception as exc:
            raise nova_api.NovaError(
                f'cannot read cell {self._mapping.identity}: {exc}') from exc
        with self._lock:
            for uuid in uuids:
                self._unread.discard(uuid)
                instance = instances.get(uuid)
                if instance is None:
                    self._states.pop(uuid, None)
                elif uuid in self._uuids:
                    self._states[uuid] = ending.Seen(
                        instance.vm_state, instance.task_state,
                        instance.host, now)


def find_cells(uuids):
    """{uuid: CellMapping} of the servers that Nova knows."""
    mappings = objects.InstanceMappingList.get_by_instance_uuids(
        nova_context.get_admin_context(), uuids)
    return {mapping.instance_uuid: mapping.cell_mapping
            for mapping in mappings}


def read_cell(cell, uuids):
    """{uuid: Instance} of those of these servers that are in a cell."""
    context = nova_context.get_admin_context()
    with nova_context.target_cell(context, cell) as cell_context:
        instances = objects.InstanceList.get_by_filters(
            cell_context, {'uuid': uuids, 'deleted': False,
                           'soft_deleted': True}, expected_attrs=[])
    return {instance.uuid: instance for instance in instances}
