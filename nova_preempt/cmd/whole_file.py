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
"""Writes a file as a whole, or leaves what was there."""

import contextlib
import os
import shutil


@contextlib.contextmanager
def written(path):
    """Give the name of a new file, which replaces the other in the end.

    It is deleted where anything fails. What is no regular file, such as a
    pipe, is itself written to.

    :raises OSError: it cannot be replaced
    """
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        yield path
        return
    part = f'{path}.{os.getpid()}.part'
    try:
        yield part
        if os.path.exists(path):
            shutil.copymode(path, part)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise
