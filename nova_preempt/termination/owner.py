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
"""Who owns a decision, and whether that process is still alive.

An owner holds a lock on a file of its own for as long as it lives; the kernel
takes the lock away with the process, however that ends. So a scheduler that
starts can tell at once what an earlier one on the same host left behind.
"""

import fcntl
import os
import uuid


class Owner:
    """This process, as an owner of decisions.

    :param host: the name of the scheduler's host ([DEFAULT]host)
    :param directory: where the lock files are, under [DEFAULT]state_path
    """

    def __init__(self, host, directory):
        self._host = host
        self._directory = directory
        os.makedirs(directory, exist_ok=True)
        self._token = uuid.uuid4().hex
        self.name = f'{host}/{self._token}'
        self._file = self._lock(self._token)
        self._remove_dead_files()

    def _path(self, token):
        return os.path.join(self._directory, f'{token}.lock')

    def _lock(self, token):
        """The locked file, or None if another process holds the lock."""
        file = open(self._path(token), 'a')  # noqa: SIM115 (held open)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return None
        return file

    def is_dead(self, name):
        """Whether an owner of this host is known to be dead.

        False for owners of other hosts: of those only the time since their
        last sign of life is known.
        """
        host, _slash, token = name.rpartition('/')
        if host != self._host or name == self.name:
            return False
        if not os.path.exists(self._path(token)):
            return True
        file = self._lock(token)
        if file is None:
            return False
        file.close()
        return True

    def _remove_dead_files(self):
        for entry in os.listdir(self._directory):
            token, dot, suffix = entry.rpartition('.')
            if dot and suffix == 'lock' and self.is_dead(
                    f'{self._host}/{token}'):
                os.unlink(self._path(token))

    def close(self):
        """Give up being an owner."""
        self._file.close()
        if os.path.exists(self._path(self._token)):
            os.unlink(self._path(self._token))
