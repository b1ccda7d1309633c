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

"""Whether the requests that victims give way for still exist.

A user may delete the new server while its victims have their notice. Nova
tells it in its API database, in one query for all who wait and whatever the
cells are like: a server that is being deleted is marked so where its cell is
named, and one that Nova has given up is in cell 0.
"""

import collections
import threading
import time

from nova import context as nova_context
from nova import objects

from nova_preempt.termination import nova_api


class Requests:
    """Reads of which servers somebody still wants to be placed.

    :param interval_s: how old what is told may be
    :param find: given uuids, returns those that are wanted as a set
    :param monotonic: the clock
    """

    def __init__(self, interval_s, find=None, monotonic=time.monotonic):
        self._interval_s = interval_s
        self._find = find or find_wanted
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._watched = collections.Counter()
        self._wanted = {}         # uuid: whether it is, as read last
        self._read_at = None

    def add(self, uuids):
        with self._lock:
            self._watched.update(uuids)

    def remove(self, uuids):
        with self._lock:
            self._watched -= collections.Counter(uuids)
            for uuid in set(uuids) - self._watched.keys():
                self._wanted.pop(uuid, None)

    def unwanted(self, uuids):
        """Those of these, which were added, that nobody wants any more.

        :raises NovaError: nobody knows
        """
        if not uuids:
            return set()
        with self._lock:
            now = self._monotonic()
            if (self._read_at is None
                    or now - self._read_at >= self._interval_s
                    or not self._wanted.keys() >= set(uuids)):
                self._refresh(now)
            return {uuid for uuid in uuids if not self._wanted[uuid]}

    def _refresh(self, now):
        try:
            wanted = self._find(sorted(self._watched))
        except Exception as exc:
            raise nova_api.NovaError(
                f'cannot see which requests still exist: {exc}') from exc
        self._wanted = {uuid: uuid in wanted for uuid in self._watched}
        self._read_at = now


def find_wanted(uuids):
    """The set of those of these servers that are to be somewhere."""
    mappings = objects.InstanceMappingList.get_by_instance_uuids(
        nova_context.get_admin_context(), uuids)
    return {mapping.instance_uuid for mapping in mappings
            if not mapping.queued_for_delete
            and (mapping.cell_mapping is None
                 or not mapping.cell_mapping.is_cell0())}
