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

import threading
import time

from nova import context as nova_context
from nova import objects

from nova_preempt.cloud import shared_reading


class RequestPoller:
    """Reads of which servers nobody wants to be placed any more.

    :param interval_s: how old what is told may be
    :param find: given uuids, returns those that are not wanted as a set
    :param monotonic, processor_time: the clocks to measure by
    """

    def __init__(self, interval_s, find=None, monotonic=time.monotonic,
                 processor_time=time.thread_time):
        find = find or find_unwanted
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._watched = shared_reading.Watched()
        self._reading = shared_reading.SharedReading(
            'which requests still exist',
            lambda uuids, now: dict.fromkeys(find(uuids), True),
            monotonic, processor_time)

    def add(self, uuids):
        with self._lock:
            self._watched.add(uuids)
            self._reading.add(uuids)

    def remove(self, uuids):
        with self._lock:
            self._reading.remove(self._watched.remove(uuids))

    def unwanted(self, uuids):
        """Those of these, which were added, that nobody wants any more.

        :raises NovaError: nobody knows
        """
        return {uuid for uuid in uuids
                if self._reading.get(uuid, self._interval_s)}


def find_unwanted(uuids):
    """The set of those of these servers that are to be nowhere."""
    mappings = objects.InstanceMappingList.get_by_instance_uuids(
        nova_context.get_admin_context(), uuids)
    return {mapping.instance_uuid for mapping in mappings
            if mapping.queued_for_delete
            or (mapping.cell_mapping is not None
                and mapping.cell_mapping.is_cell0())}
