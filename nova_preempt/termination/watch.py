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
"""How far the servers are that must end, for all who wait for one.

Hundreds of requests may wait for their victims at once: they share one query
in each interval, and the more there is to read, the longer that is.
"""

import collections
import dataclasses
import threading
import time

from nova import context as nova_context
from nova import objects

from nova_preempt.termination import nova_api

# No more than this share of a processor is spent on reading, so that those who
# wait do not hold up others; but a victim is looked at this often in any case.
_SHARE = 0.05
_LONGEST_S = 5.0


@dataclasses.dataclass(frozen=True)
class State:
    """A server as its record in a cell says.

    read_at is when it was read, by the clock of the Watch.
    """

    vm_state: str
    task_state: str | None
    host: str | None
    read_at: float = dataclasses.field(compare=False)


class Watch:
    """Reads the records of the servers that somebody waits for.

    :param cells: returns {uuid: CellMapping} of the cells to look into
    :param interval_s: how old what is told may be at least
    :param monotonic, processor_time: the clocks to measure by
    """

    def __init__(self, cells, interval_s, monotonic=time.monotonic,
                 processor_time=time.thread_time):
        self._cells = cells
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._processor_time = processor_time
        self._lock = threading.Lock()
        self._watched = collections.Counter()
        self._unread = set()
        self._states = {}
        self._next_at = monotonic()

    def add(self, uuids):
        with self._lock:
            self._unread.update(uuid for uuid in uuids
                                if uuid not in self._watched)
            self._watched.update(uuids)

    def remove(self, uuids):
        with self._lock:
            self._watched -= collections.Counter(uuids)
            self._unread &= self._watched.keys()

    def get(self, uuid):
        """The State of a server that was added, None if it is gone.

        :raises NovaError: a cell could not be read
        """
        with self._lock:
            now = self._monotonic()
            if now >= self._next_at:
                start = self._processor_time()
                self._states = self._read(sorted(self._watched))
                took_s = self._processor_time() - start
                self._next_at = now + max(
                    self._interval_s, min(took_s / _SHARE, _LONGEST_S))
                self._unread.clear()
            elif uuid in self._unread:
                self._states.update(self._read(sorted(self._unread)))
                self._unread.clear()
            return self._states.get(uuid)

    def _read(self, uuids):
        states = {}
        read_at = self._monotonic()
        context = nova_context.get_admin_context()
        for cell in list(self._cells().values()):
            try:
                with nova_context.target_cell(context, cell) as cell_context:
                    instances = objects.InstanceList.get_by_filters(
                        cell_context, {'uuid': uuids, 'deleted': False,
                                       'soft_deleted': True},
                        expected_attrs=[])
            except Exception as exc:
                raise nova_api.NovaError(
                    f'cannot read cell {cell.identity}: {exc}') from exc
            for instance in instances:
                states[instance.uuid] = State(
                    instance.vm_state, instance.task_state, instance.host,
                    read_at)
        return states
