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
"""Proof that a process of this very machine is dead.

Each owner holds a lock on a file of its own for as long as it lives; the
kernel takes the lock away with the process, however that ends. Who finds the
file without the lock, on a machine that was not started anew meanwhile, need
not wait until the owner's lease runs out. No file, or a file of another
machine, proves nothing: the same name of a host may stand for several, each
with files of its own, and a directory may be shared.
"""

import contextlib
import fcntl
import json
import os

_BOOT_ID = '/proc/sys/kernel/random/boot_id'


class LockFiles:
    """The files of the owners in a directory.

    :param directory: where they are
    :param boot_id: of this machine, anew with each start of its kernel; empty
        if nobody knows, and then nothing is proved
    """

    def __init__(self, directory, boot_id=None):
        self._directory = directory
        self._boot_id = _read_boot_id() if boot_id is None else boot_id
        os.makedirs(directory, exist_ok=True)
        self._path = None
        self._file = None

    def hold(self, name):
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
        self._file.write(json.dumps({'owner': name,
                                     'boot_id': self._boot_id}))
        self._file.flush()

    def find_dead(self, leases):
        """The names of owners that are dead for certain.

        :param leases: {name of an owner: whether it may be alive}; what says
            of no such owner anything is removed
        """
        dead = []
        for entry in sorted(os.listdir(self._directory)):
            path = os.path.join(self._directory, entry)
            if path != self._path and entry.endswith('.lock'):
                name, proved = self._look(path)
                if proved and leases.get(name):
                    dead.append(name)
                elif name is not None and not leases.get(name):
                    _unlink(path)
        return dead

    def _look(self, path):
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

    def close(self):
        """Let go, as the end of the process does."""
        if self._file is not None:
            self._file.close()
            _unlink(self._path)


def _lock(path):
    """The locked file, or None if another process holds the lock."""
    file = open(path)  # noqa: SIM115 (held open)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def _unlink(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _read_boot_id():
    try:
        with open(_BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ''
