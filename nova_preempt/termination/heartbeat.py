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
"""Signs of life for the decisions that this process works on.

Hundreds of requests may wait for their victims at once: they share one write
in each interval.
"""

import threading
import time


class Heartbeat:
    """Tells the database, and thereby others, that decisions are ours.

    :param db: a nova_preempt.db.Database
    :param owner: the name under which this process owns decisions
    :param interval_s: how often a sign is given
    """

    def __init__(self, db, owner, interval_s, monotonic=time.monotonic):
        self._db = db
        self._owner = owner
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._uuids = set()
        self._lost = set()
        self._given_at = None

    def add(self, uuids):
        """Begin with these decisions, which have just given a sign."""
        with self._lock:
            if not self._uuids:
                self._given_at = self._monotonic()
            self._uuids |= set(uuids)

    def remove(self, uuids):
        with self._lock:
            self._uuids -= set(uuids)
            self._lost -= set(uuids)

    def keeps(self, uuids):
        """Give a sign for all if it is time.

        :returns: whether these were ours at the last one
        """
        with self._lock:
            if self._monotonic() - self._given_at >= self._interval_s:
                if not self._db.touch(self._uuids, self._owner):
                    self._lost = self._uuids - self._db.get_owned(
                        self._uuids, self._owner)
                self._given_at = self._monotonic()
            return self._lost.isdisjoint(uuids)
