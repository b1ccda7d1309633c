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
"""Who owns a decision, and until when that process is known to be alive.

An owner has a lease: a row in the database, dated by the database's clock,
which is one for all. As long as it can be renewed, everything that the owner
works on is its own. One that has run out is gone for good: the owner begins
another under another name, and gives up what it did under the old one. So
whoever finds a lease run out may take over without asking.

The owner's own idea of how long its lease lasts is never longer than the
database's: it counts from before it has asked for it.
"""

import os
import threading
import time
import uuid

from oslo_log import log as logging

from nova_preempt.db import owners
from nova_preempt.handover import lock_files

LOG = logging.getLogger(__name__)

# The database may know its time by the second only.
_MARGIN_S = 2


class Owner:
    """This process, as an owner of decisions.

    :param db: a nova_preempt.db.Database
    :param host: the name of the process's host ([DEFAULT]host)
    :param directory: where the lock files are, under [DEFAULT]state_path
    :param lease_s: how long others wait before they take this one for dead
    :param monotonic: the clock by which the lease is kept
    """

    def __init__(self, db, host, directory, lease_s,
                 monotonic=time.monotonic):
        self._db = db
        self._host = host
        self._lease_s = lease_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._files = lock_files.LockFiles(directory)
        self._name = ''
        self._until = 0.0
        self.acquire()

    @property
    def name(self):
        """The name of the lease that was begun last."""
        return self._name

    @property
    def lease_s(self):
        return self._lease_s

    def acquire(self):
        """The name under which to write a decision: its lease lasts.

        :raises DBError: there is none, and none can be had
        """
        with self._lock:
            if self._monotonic() >= self._until:
                self._begin()
            return self._name

    def _begin(self):
        """A lease that nobody had before: what ran out stays so."""
        since = self._monotonic()
        name = f'{self._host}/{os.getpid()}-{uuid.uuid4().hex}'
        owners.add(self._db, name, self._lease_s)
        self._files.hold(name)
        if self._name:
            LOG.error('The lease of %(old)s has run out before it could be '
                      'renewed. Others take over what it was working on; '
                      'this process goes on as %(new)s.',
                      {'old': self._name, 'new': name})
        self._name = name
        self._until = since + self._lease_s - _MARGIN_S

    def renew(self):
        """Go on living.

        :raises DBError: that is not known; the lease lasts as long as it does
        """
        with self._lock:
            since = self._monotonic()
            if since < self._until and owners.renew(
                    self._db, self._name, self._lease_s):
                self._until = since + self._lease_s - _MARGIN_S
            else:
                self._begin()

    def keeps(self, decisions):
        """Whether these are still ours to work on.

        :param decisions: db.Decisions, as this process has written them
        """
        name = self._name
        return self._monotonic() < self._until and all(
            decision.owner == name for decision in decisions)

    def get_leases(self):
        """{name of an owner: whether it may be alive}.

        Those of this host that are known to be dead are so at once.
        """
        leases = owners.get_leases(self._db)
        dead = self._files.find_dead(leases)
        if dead:
            owners.end(self._db, dead)
            leases.update(dict.fromkeys(dead, False))
        return leases

    def close(self):
        """Give up being an owner: others need not wait for the lease."""
        with self._lock:
            self._until = 0.0
            owners.end(self._db, [self._name])
            self._files.close()
