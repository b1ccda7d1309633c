# SPDX-License-Identifier: Apache-2.0
"""The formats by name, and events in order of time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
import heapq
import itertools
import operator
import pickle
import tempfile
from typing import BinaryIO

from nova_preempt.simulator.traces import alibaba
from nova_preempt.simulator.traces import azure
from nova_preempt.simulator.traces import google
from nova_preempt.simulator.traces import line_reader
from nova_preempt.simulator.traces import native_format
from nova_preempt.simulator.traces import swf
from nova_preempt.simulator.traces import trace_model

Event = trace_model.Event

#: So many events are put in order in memory.
_CHUNK = 100_000


@dataclasses.dataclass(frozen=True, slots=True)
class Format:
    """A format.

    :param reader: makes one, given a Scale; it has ``read(path)`` and
        ``skipped``
    :param in_order: whether its events come in order of time
    """

    title: str
    reader: Callable[[trace_model.MachineSize],
                     line_reader.LineReader | azure.PackingReader]
    in_order: bool = True


FORMATS = {
    'json': Format('JSON lines', native_format.Reader),
    'swf': Format('Standard Workload Format', swf.Reader),
    'google2011': Format('Google 2011, task_events', google.Reader2011),
    'google2019': Format('Google 2019, instance events as JSON lines',
                         google.Reader2019),
    'azure': Format('Azure 2017 or 2019, vmtable', azure.TableReader, False),
    'azure-packing': Format('Azure 2020 for packing, SQLite',
                            azure.PackingReader),
    'alibaba2018': Format('Alibaba 2018, container_meta or batch_task',
                          alibaba.Reader, False),
}

_ENDINGS = {'.swf': 'swf', '.sqlite': 'azure-packing',
            '.jsonl': 'json', '.json': 'json'}


def guess(path: str) -> str:
    """Return the name of the format by the end of a file's name, '' if that
    says nothing."""
    plain = path.removesuffix('.gz')
    return next((name for ending, name in _ENDINGS.items()
                 if plain.endswith(ending)), '')


class Trace:
    """A trace of one or several files of a format.

    :param name: of FORMATS
    :param paths: in order
    :param sort: put all of them in order, even if the format says they are
    :ivar skipped: {why: how many} records say nothing of a server
    """

    def __init__(self, name: str, paths: Iterable[str],
                 scale: trace_model.MachineSize | None = None,
                 sort: bool = False) -> None:
        self._paths = list(paths)
        self._nth = 0
        self._format = FORMATS[name]
        self._sort = sort or not self._format.in_order
        self._reader = self._format.reader(scale or trace_model.MachineSize())
        self._reader.in_order = not self._sort
        self.skipped = self._reader.skipped

    def share(self) -> float | None:
        """Return the share that has been read, None if unknown."""
        tell = getattr(self._reader, 'share', None)
        of_file = None if self._sort or tell is None else tell()
        return None if of_file is None else (
            (self._nth + of_file) / len(self._paths))

    def _read(self, item: tuple[int, str]) -> Iterator[Event]:
        self._nth, path = item
        return self._reader.read(path)

    def __iter__(self) -> Iterator[Event]:
        """Yield the events in order of time.

        :raises TraceError: something is wrong with a file, or no event is in
            any
        """
        events = itertools.chain.from_iterable(
            map(self._read, enumerate(self._paths)))
        is_empty = True
        for event in in_order(events) if self._sort else events:
            is_empty = False
            yield event
        if is_empty:
            left_out = '; '.join(f'{count} records are omitted: {why}' for
                                 why, count in sorted(self.skipped.items()))
            raise trace_model.TraceError(
                f'{", ".join(map(str, self._paths))}: the trace is empty'
                + (left_out and f' ({left_out})'))


def in_order(events: Iterable[Event], chunk: int = _CHUNK) -> Iterator[Event]:
    """Yield events in order of time; equal ones as they come.

    In memory are ``chunk`` of them; the others are in temporary files.
    """
    key = operator.attrgetter('at_us')
    events = iter(events)
    runs: list[Iterator[Event]] = []
    while part := sorted(itertools.islice(events, chunk), key=key):
        if not runs and len(part) < chunk:
            return iter(part)
        runs.append(_put_away(part))
    return heapq.merge(*runs, key=key)


def _put_away(part: Sequence[Event]) -> Iterator[Event]:
    """Write events to a temporary file; return their iterator."""
    stream = tempfile.TemporaryFile()  # noqa: SIM115, _read() closes it
    for event in part:
        pickle.dump(event, stream, pickle.HIGHEST_PROTOCOL)
    stream.seek(0)
    return _read(stream, len(part))


def _read(stream: BinaryIO, count: int) -> Iterator[Event]:
    with stream:
        for _ in range(count):
            yield pickle.load(stream)
