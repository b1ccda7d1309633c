# SPDX-License-Identifier: Apache-2.0
"""Lease of the process that owns decisions.

An owner has a lease: a row in the database, dated by the database's clock,
which is one for all. As long as it can be renewed, everything that the owner
works on is its own. One that has run out is gone for good: the owner begins
another under another name, and gives up what it did under the old one. So
whoever finds a lease run out may take over without asking.

The owner's own idea of how long its lease lasts is never longer than the
database's: it counts from before it has asked for it.

Each owner also holds a lock on a file of its own for as long as it lives; the
kernel takes the lock away with the process, however that ends. Who finds the
file without the lock, on a machine that was not started anew meanwhile, need
not wait until the owner's lease runs out. No file, or a file of another
machine, proves nothing: the same name of a host may stand for several, each
with files of its own, and a directory may be shared.
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

# The database may know its time by the second only.
_MARGIN_S = 2

#: After how long without a sign of life from its scheduler or engine a
#: preemption is taken to be left behind, in seconds: so long may the database
#: be away without any preemption coming to nothing.
INTENT_TIMEOUT_S = 60

# Several signs a lease, so that no single one matters.
_SIGNS = 6
# A database that is away is tried this often, for as long as the lease lasts
# and beyond: then a new one is begun.
RETRY_S = 1.0

_BOOT_ID = '/proc/sys/kernel/random/boot_id'


class Owner:
    """This process, as an owner of decisions.

    :param db: a nova_preempt.db.Database
    :param host: the name of the process's host ([DEFAULT]host)
    :param directory: where the lock files are, under [DEFAULT]state_path
    :param lease_s: how long others wait before they take this one for dead
    :param monotonic: the clock by which the lease is kept
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
        """The name of the lease that was begun last."""
        return self._name

    def acquire(self) -> str:
        """The name under which to write a decision: its lease lasts.

        :raises DBError: there is none, and none can be had
        """
        with self._lock:
            if self._monotonic() >= self._until:
                self._begin()
            return self._name

    def _begin(self) -> None:
        """A lease that nobody had before: what ran out stays so."""
        since = self._monotonic()
        name = f'{self._host}/{os.getpid()}-{uuid.uuid4().hex}'
        decision_owners.add(self._db, name, self.lease_s)
        self._files.hold(name)
        if self._name:
            LOG.error('The lease of %(old)s has run out before it could be '
                      'renewed. Others take over what it was working on; '
                      'this process goes on as %(new)s.',
                      {'old': self._name, 'new': name})
        self._name = name
        self._until = since + self.lease_s - _MARGIN_S

    def renew(self) -> None:
        """Go on living.

        :raises DBError: that is not known; the lease lasts as long as it does
        """
        with self._lock:
            since = self._monotonic()
            if since < self._until and decision_owners.renew(
                    self._db, self._name, self.lease_s):
                self._until = since + self.lease_s - _MARGIN_S
            else:
                self._begin()

    def keeps(self, decisions: Iterable[decisions.Decision]) -> bool:
        """Whether these are still ours to work on.

        :param decisions: db.Decisions, as this process has written them
        """
        name = self._name
        return self._monotonic() < self._until and all(
            decision.owner == name for decision in decisions)

    def get_leases(self) -> dict[str, bool]:
        """{name of an owner: whether it may be alive}.

        Those of this host that are known to be dead are so at once.
        """
        leases: dict[str, bool] = decision_owners.get_leases(self._db)
        dead = self._files.find_dead(leases)
        if dead:
            decision_owners.end(self._db, dead)
            leases.update(dict.fromkeys(dead, False))
        return leases

    def close(self) -> None:
        """Give up being an owner: others need not wait for the lease."""
        with self._lock:
            self._until = 0.0
            decision_owners.end(self._db, [self._name])
            self._files.close()


class Heartbeat:
    """A thread that renews the lease of an owner.

    Hundreds of requests may wait for their victims at once, others for a
    thread: one write in each interval keeps all of them, from the moment they
    are written until they are closed.

    :param owner: an Owner
    """

    def __init__(self, owner: Owner) -> None:
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

    def _run(self) -> None:
        wait_s = self._interval_s
        while not self._stop.wait(wait_s):
            wait_s = self.beat()


class LockFiles:
    """The files of the owners in a directory.

    :param directory: where they are
    :param boot_id: of this machine, anew with each start of its kernel; empty
        if nobody knows, and then nothing is proved
    """

    def __init__(self, directory: str, boot_id: str | None = None) -> None:
        self._directory = directory
        self._boot_id = _read_boot_id() if boot_id is None else boot_id
        os.makedirs(directory, exist_ok=True)
        self._path = ''
        self._file: TextIO | None = None

    def hold(self, name: str) -> None:
        """From now on the owner of this name is alive as long as we are.

        The file is called as the last part of the name, by which earlier
        versions find it.
        """
        self.close()
        self._path = os.path.join(self._directory,
                                  f'{name.rpartition("/")[2]}.lock')
        self._file = open(self._path, 'a')  # noqa: SIM115 (held open)
        # Who looks for dead ones lets go of it in a moment.
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.write(json.dumps({'owner': name, 'boot_id': self._boot_id}))
        self._file.flush()

    def find_dead(self, leases: Mapping[str, bool]) -> list[str]:
        """The names of owners that are dead for certain.

        :param leases: {name of an owner: whether it may be alive}; what says
            of no such owner anything is removed
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
        """(its owner's name, whether that is dead); None if it is locked."""
        try:
            file = _lock(path)
        except FileNotFoundError:
            return None, False
        if file is None:
            return None, False
        with file:
            try:
                content = json.load(file)
                name, boot_id = content['owner'], content['boot_id']
            except (ValueError, LookupError, TypeError):
                # Of an earlier version, or just being made.
                return None, False
        return name, bool(boot_id) and boot_id == self._boot_id

    def close(self) -> None:
        """Let go, as the end of the process does."""
        if self._file is not None:
            self._file.close()
            _unlink(self._path)


def _lock(path: str) -> TextIO | None:
    """The locked file, or None if another process holds the lock."""
    file = open(path)  # noqa: SIM115 (held open)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _read_boot_id() -> str:
    try:
        with open(_BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ''
