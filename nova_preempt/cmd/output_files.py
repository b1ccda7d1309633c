# SPDX-License-Identifier: Apache-2.0
"""Writes output files of commands atomically; also records of simulations."""

import contextlib
import json
import os
import shutil

_SUFFIX = '.parquet'
_AT_ONCE = 20_000


@contextlib.contextmanager
def replacement(path):
    """Yield the name of a temporary file that replaces the file on success.

    It is deleted on failure. For a path that is no regular file, such as a
    pipe, the path itself is yielded.

    :raises OSError: the file cannot be replaced
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


class NoParquet(Exception):
    """pyarrow is missing; the message names the extra."""


@contextlib.contextmanager
def record_writer(path):
    """Yield a function that writes a record, given as a mapping.

    The file appears once all records are written.

    :param path: Parquet if it ends in .parquet, else JSON lines
    :raises NoParquet: pyarrow is not installed
    :raises OSError: the file cannot be written
    """
    with replacement(path) as name:
        if path.lower().endswith(_SUFFIX):
            with _parquet(name) as write:
                yield write
            return
        with open(name, 'w', encoding='utf-8') as stream:
            yield lambda record: stream.write(json.dumps(record) + '\n')


@contextlib.contextmanager
def _parquet(path):
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as exc:
        raise NoParquet(f'{_SUFFIX} files require pyarrow: pip install '
                        f'nova-preempt[parquet] ({exc})') from None
    text = pyarrow.string()
    schema = pyarrow.schema([
        ('t', pyarrow.float64()), ('event', text), ('id', text),
        ('class', text), ('host', text), ('decision', text),
        ('victims', pyarrow.list_(text)), ('why', text),
        ('policy', text),
        # Of records of reservations.
        ('hosts', pyarrow.int64()), ('start', pyarrow.int64()),
        ('end', pyarrow.int64()), ('on', pyarrow.list_(text))])
    rows = []
    with pyarrow.parquet.ParquetWriter(path, schema) as file:
        def flush():
            # Missing members become null.
            file.write_table(pyarrow.Table.from_pylist(rows, schema))
            rows.clear()

        def write(record):
            rows.append(record)
            if len(rows) >= _AT_ONCE:
                flush()

        yield write
        flush()
