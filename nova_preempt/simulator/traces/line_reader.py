# SPDX-License-Identifier: Apache-2.0
"""Reads lines of plain and compressed files."""

import codecs
import collections
from collections.abc import Callable, Iterable, Iterator
import contextlib
import csv
import gzip
import os
import sqlite3
from typing import BinaryIO
import weakref
import zlib

from nova_preempt.simulator.traces import trace_model

#: In bytes. No trace that we know of has lines of a tenth of it.
LONGEST_LINE = 2**20


def lines(path: str, opened: Callable[[BinaryIO], None] = lambda raw: None,
          comment: bytes = b'') -> Iterator[tuple[int, str]]:
    """Yield (number from 1, text without its end) of each line.

    :param path: of a file, a compressed one if its name ends in .gz
    :param opened: called with the file as it is on the disk
    :param comment: lines that begin with it are passed over, whatever their
        encoding; empty if the format has no comments
    :raises TraceError: it cannot be read
    """
    number = 0
    try:
        with open(path, 'rb') as raw, (
                gzip.GzipFile(fileobj=raw) if str(path).endswith('.gz')
                else contextlib.nullcontext(raw)) as stream:
            opened(raw)
            while line := stream.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise ValueError(f'longer than {LONGEST_LINE} bytes')
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                if comment and line.lstrip().startswith(comment):
                    continue
                yield number, line.decode('utf-8').rstrip('\r\n')
    except UnicodeDecodeError as exc:
        raise error(path, number, f'invalid UTF-8: {exc.reason}') from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as exc:
        raise error(path, number + 1, f'cannot be decompressed: {exc}'
                    ) from None
    except OSError as exc:
        raise trace_model.TraceError(
            f'{path}: {exc.strerror or exc}') from None
    except ValueError as exc:
        raise error(path, number, exc) from None


def error(path: str, number: int, why: object) -> trace_model.TraceError:
    """Return the TraceError of a line."""
    return trace_model.TraceError(f'{path}, line {number}: {why}')


def cells(line: str, count: int) -> list[str]:
    """Return the cells of a line of comma-separated values.

    :raises ValueError: there are not so many
    """
    try:
        found = next(csv.reader([line], strict=True), [])
    except csv.Error as exc:
        raise ValueError(str(exc)) from None
    if len(found) != count:
        raise ValueError(f'{len(found)} columns instead of {count}')
    return found


class UsedIds:
    """The used ids of a trace, with their places.

    They are in a temporary file, of which little is in memory: a trace may
    have tens of millions.
    """

    def __init__(self) -> None:
        self._base = sqlite3.connect('', isolation_level=None)
        weakref.finalize(self, self._base.close)
        self._base.execute('PRAGMA journal_mode = OFF')
        self._base.execute('CREATE TABLE ids (id TEXT PRIMARY KEY, '
                           'place TEXT) WITHOUT ROWID')
        self._base.execute('BEGIN')

    def add(self, id: str, place: str) -> None:
        """Record that an id is used.

        :raises ValueError: it was used before
        :raises TraceError: the temporary file cannot be written
        """
        try:
            is_new = self._base.execute(
                'INSERT OR IGNORE INTO ids VALUES (?, ?)', (id, place)
            ).rowcount
        except sqlite3.Error as exc:
            raise trace_model.TraceError(
                'cannot write the ids of the trace into a temporary '
                f'file: {exc}') from None
        if not is_new:
            [(first,)] = self._base.execute(
                'SELECT place FROM ids WHERE id = ?', (id,))
            raise ValueError(f'the id {id!r:.50} is already used: {first}')


class LineReader:
    """Base of readers of formats with an event per line.

    :cvar comment: what lines begin with that say nothing
    :cvar may_return: whether an id may be asked for again after its end
    :ivar in_order: whether what is not in order of time is refused
    :ivar skipped: {why: how many} records say nothing of a server
    """

    comment = b''
    may_return = False

    def __init__(self, scale: trace_model.MachineSize) -> None:
        self._ids = UsedIds()
        self.scale = scale
        self.in_order = False
        self._last_us = 0
        self.skipped: collections.Counter[str] = collections.Counter()
        self._raw: BinaryIO | None = None

    def share(self) -> float | None:
        """Return which part of the file has been read, None if unknown."""
        if self._raw is None or self._raw.closed:
            return None
        size = os.fstat(self._raw.fileno()).st_size
        return self._raw.tell() / size if size else None

    def _opened(self, raw: BinaryIO) -> None:
        self._raw = raw

    def parse(self, line: str) -> Iterable[trace_model.Event]:
        """Return the events of a line.

        :raises ValueError: something is wrong with it
        """
        raise NotImplementedError

    def read(self, path: str) -> Iterator[trace_model.Event]:
        """Yield the events of a file.

        :raises TraceError: something is wrong with it
        """
        for number, line in lines(path, self._opened, self.comment):
            if not line.strip():
                continue
            try:
                for event in self.parse(line):
                    self._check_order(event)
                    if not (self.may_return
                            or isinstance(event, trace_model.End)):
                        self._ids.add(event.id, f'{path}, line {number}')
                    yield event
            except ValueError as exc:
                raise error(path, number, exc) from None

    def _check_order(self, event: trace_model.Event) -> None:
        if self.in_order and event.at_us < self._last_us:
            raise ValueError(
                f'the time of {event.id} is {event.at_us / 1e6:g} s, before '
                f'the {self._last_us / 1e6:g} s of the previous event; sort '
                'the trace with --sort')
        self._last_us = event.at_us

    def skip(self, why: str) -> tuple[()]:
        """Count a line without a server."""
        self.skipped[why] += 1
        return ()


def split_job(
    boot: Callable[[str, int], trace_model.Boot], id: str, vcpus: int,
    most: int) -> Iterator[trace_model.Boot]:
    """Yield a job that is larger than a machine as several servers.

    :param boot: makes one, given its id and how many processors it has
    :param most: processors of a machine
    :raises ValueError: it would be too many
    """
    count = -(-vcpus // most)
    if count > trace_model.MOST_SERVERS:
        raise ValueError(f'job {id} needs {count} servers; the maximum is '
                         f'{trace_model.MOST_SERVERS}')
    if count == 1:
        yield boot(id, vcpus)
        return
    for nth in range(count):
        yield boot(f'{id}.{nth}', min(most, vcpus - nth * most))
