# SPDX-License-Identifier: Apache-2.0
"""Lease of the process that owns decisions.

A lease is a row in the database, dated by the database's clock, which all
processes share. While it is renewed, the owner's decisions belong to it. An
expired lease is never renewed: the owner begins another one under a new name,
and gives up the decisions of the old one. So any process may take over the
decisions of an expired lease.

The owner never expects its lease to last longer than the database does: it
counts from before the query that renews it.

Each owner also locks a file while it runs; the kernel releases the lock when
the process ends. If the file is unlocked, and the machine was not rebooted,
other processes need not wait for the lease to expire. A missing file, or a
file of another machine, proves nothing: several machines may have the same
host name with files of their own, and a directory may be shared.
"""

from collections.abc import Callable, Iterable, Mapping
import contextlib
import fcntl
import json
import os
import threading
import time
from typing import TextIO
import uuid

from oslo_log import log as logging

from nova_preempt import db
from nova_preempt.db import decision_owners
from nova_preempt.db import decisions

LOG = logging.getLogger(__name__)

# The clock of the database may have a resolution of a second.
_MARGIN_S = 2

#: The length of a lease in seconds: a preemption is orphaned if its scheduler
#: or engine does not renew it. The database may be away for this long without
#: a roll-back.
INTENT_TIMEOUT_S = 60

# Renewals in the time of a lease, so that a single one may fail.
_SIGNS = 6
# The pause between attempts while the database is away, in seconds. After the
# lease has expired the next attempt begins a new one.
RETRY_S = 1.0

_BOOT_ID = '/proc/sys/kernel/random/boot_id'


class Lease:
    """The lease of this process, which owns decisions.

    :param db: a nova_preempt.db.Database
    :param host: the name of the process's host ([DEFAULT]host)
    :param directory: where the lock files are, under [DEFAULT]state_path
    :param lease_s: the length of a lease
    :param monotonic: the clock of the lease
    """

    def __init__(self, db: db.Database, host: str, directory: str,
                 lease_s: float,
                 monotonic: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._host = host
        self.lease_s = lease_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._files = LockFiles(directory)
        self._name = ''
        self._until = 0.0
        self.acquire()

    @property
    def name(self) -> str:
        """The name of the current lease."""
        return self._name

    def acquire(self) -> str:
        """Return the owner's name for a new decision, with a valid lease.

        :raises DBError: no lease can be had
        """
        with self._lock:
            if self._monotonic() >= self._until:
                self._begin()
            return self._name

    def _begin(self) -> None:
        """Begin a lease under a new name; expired ones are never renewed."""
        since = self._monotonic()
        name = f'{self._host}/{os.getpid()}-{uuid.uuid4().hex}'
        decision_owners.add(self._db, name, self.lease_s)
        self._files.hold(name)
        if self._name:
            LOG.error('The lease of %s expired before it was renewed. Other '
                      'processes take over its preemptions; this process '
                      'continues as %s.', self._name, name)
        self._name = name
        self._until = since + self.lease_s - _MARGIN_S

    def renew(self) -> None:
        """Renew the lease, or begin a new one if it has expired.

        :raises DBError: the renewal has failed
        """
        with self._lock:
            since = self._monotonic()
            if since < self._until and decision_owners.renew(
                    self._db, self._name, self.lease_s):
                self._until = since + self.lease_s - _MARGIN_S
            else:
                self._begin()

    def keeps(self, decisions: Iterable[decisions.Decision]) -> bool:
        """Return whether these decisions still belong to our lease.

        :param decisions: db.Decisions as this process has written them
        """
        name = self._name
        return self._monotonic() < self._until and all(
            decision.owner == name for decision in decisions)

    def get_leases(self) -> dict[str, bool]:
        """Return {owner's name: whether its lease is valid}.

        Ends the leases of processes of this host that are known to be dead.
        """
        leases: dict[str, bool] = decision_owners.get_leases(self._db)
        dead = self._files.find_dead(leases)
        if dead:
            decision_owners.end(self._db, dead)
            leases.update(dict.fromkeys(dead, False))
        return leases

    def close(self) -> None:
        """End the lease, so that other processes need not wait for it."""
        with self._lock:
            self._until = 0.0
            decision_owners.end(self._db, [self._name])
            self._files.close()


class Heartbeat:
    """A thread that renews the lease of an owner.

    One write in each interval keeps all open decisions of the process, of
    which there may be hundreds.

    :param owner: an Owner
    """

    def __init__(self, owner: Lease) -> None:
        self._owner = owner
        self._interval_s = owner.lease_s / _SIGNS
        self._stop = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._run, name='heartbeat',
                                        daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def beat(self) -> float:
        """Renew the lease once; return the seconds until the next renewal."""
        try:
            self._owner.renew()
        except Exception as exc:  # noqa: BLE001 (whatever it is, go on)
            if not self._failing:
                LOG.warning('Cannot renew the lease of %s; it is tried every '
                            '%s s: %s', self._owner.name, RETRY_S, exc)
            self._failing = True
            return RETRY_S
        self._failing = False
        return self._interval_s

    def _run(self) -> None:
        wait_s = self._interval_s
        while not self._stop.wait(wait_s):
            wait_s = self.beat()


class LockFiles:
    """Lock files of the owners in a directory.

    :param directory: their directory
    :param boot_id: identifies the boot of this machine; if empty, no owner is
        known to be dead
    """

    def __init__(self, directory: str, boot_id: str | None = None) -> None:
        self._directory = directory
        self._boot_id = _read_boot_id() if boot_id is None else boot_id
        os.makedirs(directory, exist_ok=True)
        self._path = ''
        self._file: TextIO | None = None

    def hold(self, name: str) -> None:
        """Lock the file of an owner until the process ends.

        The file has the last part of the name, by which earlier versions find
        it.
        """
        self.close()
        self._path = os.path.join(self._directory,
                                  f'{name.rpartition("/")[2]}.lock')
        self._file = open(self._path, 'a')  # noqa: SIM115 (held open)
        # A process that checks for dead owners releases it in a moment.
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.write(json.dumps({'owner': name, 'boot_id': self._boot_id}))
        self._file.flush()

    def find_dead(self, leases: Mapping[str, bool]) -> list[str]:
        """Return names of owners that are known to be dead.

        :param leases: {owner's name: whether its lease is valid}; the files of
            all other owners are removed
        """
        dead = []
        for entry in sorted(os.listdir(self._directory)):
            path = os.path.join(self._directory, entry)
            if path != self._path and entry.endswith('.lock'):
                name, proved = self._look(path)
                if name is None:
                    continue
                if not leases.get(name):
                    _unlink(path)
                elif proved:
                    dead.append(name)
        return dead

    def _look(self, path: str) -> tuple[str | None, bool]:
        """Return (owner's name, whether it is dead), or (None, False)."""
        try:
            with open(path) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                content = json.load(file)
                name, boot_id = content['owner'], content['boot_id']
        except (OSError, ValueError, LookupError, TypeError):
            # It is gone, locked, being written, or of an earlier version.
            return None, False
        return name, bool(boot_id) and boot_id == self._boot_id

    def close(self) -> None:
        """Release the lock and delete the file."""
        if self._file is not None:
            self._file.close()
            _unlink(self._path)


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _read_boot_id() -> str:
    try:
        with open(_BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ''
