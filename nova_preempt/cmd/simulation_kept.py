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
"""Finished runs of a sweep on the disk, so that an interrupted one goes on.

A file for each run, named by the digest of all that its result depends on: the
contents of the cloud, of the policy and of the trace, the seed, the other
arguments, and the code of nova_preempt, which may change in a checkout without
its version. A run of which any of these has changed is another one, and is not
found.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import tempfile

_PACKAGE = pathlib.Path(__file__).parents[1]


def digest(path):
    """Return the SHA-256 of a file, '' of None.

    :raises OSError: it cannot be read
    """
    if path is None:
        return ''
    with open(path, 'rb') as stream:
        return hashlib.file_digest(stream, 'sha256').hexdigest()


def code_digest(directory=_PACKAGE):
    """Return the SHA-256 of all code of nova_preempt."""
    found = hashlib.sha256()
    for path in sorted(directory.rglob('*.py')):
        name = path.relative_to(directory)
        found.update(f'{name} {digest(path)}\n'.encode())
    return found.hexdigest()


class Kept:
    """The finished runs in a directory.

    :param directory: made if it is not there
    :param common: {name: value} of what all runs depend on
    :raises OSError: it cannot be made
    """

    def __init__(self, directory, common):
        self._directory = pathlib.Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._common = {'code': code_digest(), **common}

    def get(self, run):
        """Return the summary of a run, None if it has not finished.

        :param run: {name: value} of what it depends on, beside what is common
        """
        wanted = self._described(run)
        try:
            found = json.loads(self._file(wanted).read_bytes())
        except (FileNotFoundError, ValueError):
            # One that is damaged is made again.
            return None
        if not isinstance(found, dict) or found.get('run') != wanted:
            return None
        return found.get('summary')

    def put(self, run, summary):
        """Keep a summary; whoever reads sees all of it or nothing.

        :raises OSError: it cannot be written
        """
        wanted = self._described(run)
        with tempfile.NamedTemporaryFile(
                'w', dir=self._directory, prefix='.', suffix='.part',
                encoding='utf-8', delete=False) as stream:
            try:
                json.dump({'run': wanted, 'summary': summary}, stream)
                stream.flush()
                os.fsync(stream.fileno())
                os.replace(stream.name, self._file(wanted))
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(stream.name)
                raise

    def _described(self, run):
        # As it is read again: JSON has no tuples.
        return json.loads(json.dumps({**self._common, **run}))

    def _file(self, described):
        text = json.dumps(described, sort_keys=True)
        return self._directory / (
            hashlib.sha256(text.encode()).hexdigest() + '.json')
