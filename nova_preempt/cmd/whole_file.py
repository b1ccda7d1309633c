# SPDX-License-Identifier: Apache-2.0
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
