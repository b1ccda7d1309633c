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
"""A sign of life for all that this process works on, whoever works on it.

Hundreds of requests may wait for their victims at once, others for a thread:
one write in each interval keeps all of them, from the moment they are written
until they are closed.
"""

import threading

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# Several signs a lease, so that no single one matters.
_SIGNS = 6
# A database that is away is tried this often, for as long as the lease lasts
# and beyond: then a new one is begun.
RETRY_S = 1.0


class Heartbeat:
    """A thread that renews the lease of an owner.

    :param owner: a nova_preempt.handover.owner.Owner
    """

    def __init__(self, owner):
        self._owner = owner
        self._interval_s = owner.lease_s / _SIGNS
        self._stop = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._run, name='heartbeat',
                                        daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def beat(self):
        """Give one sign. Returns after how many seconds the next is due."""
        try:
            self._owner.renew()
        except Exception as exc:  # noqa: BLE001 (whatever it is, go on)
            if not self._failing:
                LOG.warning('Cannot renew the lease of %(owner)s; it is tried '
                            'every %(retry)s s: %(exc)s',
                            {'owner': self._owner.name, 'retry': RETRY_S,
                             'exc': exc})
            self._failing = True
            return RETRY_S
        self._failing = False
        return self._interval_s

    def _run(self):
        wait_s = self._interval_s
        while not self._stop.wait(wait_s):
            wait_s = self.beat()
