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

"""One reading for all who ask for the same kind of thing at once."""

import collections
import threading

from nova_preempt.cloud import nova_api
from nova_preempt.core import retrying

# How long a reading by another thread is waited for.
_PATIENCE_S = 5.0


class Watched:
    """Who is waited for, and by how many; whoever uses it locks it."""

    def __init__(self):
        self.uuids = collections.Counter()

    def add(self, uuids):
        self.uuids.update(uuids)

    def remove(self, uuids):
        """Returns those of them that nobody waits for any more."""
        self.uuids -= collections.Counter(uuids)
        return set(uuids) - self.uuids.keys()


class SharedReading:
    """What was read last of those that were added.

    New ones are read at once, and all again when that is due.

    :param what: it is, for messages
    :param read: given uuids and the time, returns {uuid: what it is}
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
        self._last = None         # the core's Reading

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
        """What one of them is, None if it was not found.

        :param max_age_s: how old that may be
        :raises NovaError: it could not be read
        """
        if not self._reading.acquire(timeout=_PATIENCE_S):
            raise nova_api.NovaError(
                f'{self._what}: is being read for longer than '
                f'{_PATIENCE_S:g} s')
        try:
            monotonic, processor_time = self._clocks
            now = monotonic()
            if self._last is None or self._last.is_due(now, max_age_s):
                start = processor_time()
                self._refresh(self._uuids, now)
                self._last = retrying.Reading(now, processor_time() - start)
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
