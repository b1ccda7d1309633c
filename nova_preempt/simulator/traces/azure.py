# SPDX-License-Identifier: Apache-2.0
"""The traces of Azure: vmtable of 2017 and 2019, and the one for packing."""

import collections
from collections.abc import Iterable, Iterator
import contextlib
import pathlib
import sqlite3
from typing import Any

from nova_preempt.core.model import SECOND
from nova_preempt.simulator.traces import line_reader
from nova_preempt.simulator.traces import trace_model

_MB_A_GB = 1024
_DAY = 86400 * SECOND

# The last buckets have no end; this is what those who published them take.
_CORES = {'>24': '30'}
_MEMORY_GB = {'>64': '70'}


class TableReader(line_reader.LineReader):
    """Reads vmtable.csv of either year: their columns are the same.

    The class is the category of the server, in small letters.
    """

    def parse(self, line: str) -> Iterable[trace_model.Event]:
        cells = line_reader.cells(line, 11)
        created_us = trace_model.microseconds(cells[3], 'vmcreated')
        deleted_us = trace_model.microseconds(cells[4], 'vmdeleted')
        if deleted_us < created_us:
            raise ValueError(f'vmdeleted is {cells[4]}, before vmcreated, '
                             f'{cells[3]}')
        cores = cells[9].strip()
        memory = cells[10].strip()
        return (trace_model.Boot(
            created_us, trace_model.text(cells[0], 'vmid'), {
                'VCPU': trace_model.whole(_CORES.get(cores, cores),
                                          'vmcorecount', 1),
                'MEMORY_MB': trace_model.round_up(
                    _MB_A_GB * trace_model.number(
                        _MEMORY_GB.get(memory, memory), 'vmmemory',
                        most=float(2**20)))},
            '', trace_model.text(cells[8], 'vmcategory').lower(),
            deleted_us - created_us,
            trace_model.text(cells[1], 'subscriptionid', True)),)


# The types are read once: in the published file nothing is indexed, and a
# search of all types for each server would be most of the time.
_TYPES = ("""
CREATE TEMPORARY TABLE first AS
SELECT * FROM (
    SELECT vmTypeId, core, memory, hdd, ssd, row_number() OVER (
           PARTITION BY vmTypeId ORDER BY machineId, rowid) AS nth
      FROM vmType)
 WHERE nth = 1
""", 'CREATE INDEX temp.first_type ON first (vmTypeId)')
_QUERY = """
SELECT vm.rowid, vm.vmId, vm.tenantId, vm.priority, vm.starttime, vm.endtime,
       first.core, first.memory, first.hdd, first.ssd
  FROM vm LEFT JOIN temp.first ON first.vmTypeId = vm.vmTypeId
 ORDER BY max(vm.starttime, 0), vm.vmId
"""

_CLASSES = {0: 'normal', 1: 'preemptible'}


class PackingReader:
    """Reads the SQLite database of the trace for packing, of 2020.

    A type of servers is a share of each of several machines; that of the
    first machine counts. What was there before the trace is asked for as it
    begins.

    :ivar skipped: {why: how many} servers are left out
    """

    in_order = True               # the database sees to it

    def __init__(self, scale: trace_model.MachineSize) -> None:
        self._scale = scale
        self._ids = line_reader.UsedIds()
        self.skipped: collections.Counter[str] = collections.Counter()

    def read(self, path: str) -> Iterator[trace_model.Event]:
        """Yield the events.

        :raises TraceError: something is wrong with it
        """
        if not pathlib.Path(path).is_file():
            raise trace_model.TraceError(f'{path}: no such file')
        uri = pathlib.Path(path).absolute().as_uri() + '?mode=ro'
        try:
            with contextlib.closing(sqlite3.connect(uri, uri=True)) as base:
                _read_types(base)
                for row in base.execute(_QUERY):
                    yield from self._server(path, *row)
        except (sqlite3.Error, UnicodeDecodeError) as exc:
            raise trace_model.TraceError(f'{path}: {exc}') from None

    def _server(self, path: str, rowid: int, id: str, *row: Any
                ) -> Iterator[trace_model.Event]:
        place = f'{path}, rowid {rowid}, vmId {id!r:.50}'
        try:
            for event in self._parse(id, *row):
                self._ids.add(event.id, place)
                yield event
        except ValueError as exc:
            raise trace_model.TraceError(f'{place}: {exc}') from None

    def _parse(self, id: str, tenant: object, priority: object, start: object,
               end: object, core: object, memory: object, hdd: object,
               ssd: object) -> Iterator[trace_model.Event]:
        if priority not in _CLASSES:
            raise ValueError(f'priority is {priority!r:.50}; it must be 0 or '
                             '1')
        if core is None:
            self.skipped['unknown VM type'] += 1
            return
        start_us = _days(start, 'starttime')
        end_us = None if end is None else _days(end, 'endtime')
        if end_us is not None and end_us < start_us:
            raise ValueError(f'endtime is {end}, before starttime, {start}')
        if end_us is not None and end_us < 0:
            self.skipped['ended before the trace'] += 1
            return
        start_us = max(0, start_us)
        shares = [trace_model.number(0 if share is None else share, name,
                                     most=1.0)
                  for share, name in ((core, 'core'), (memory, 'memory'),
                                      (hdd, 'hdd'), (ssd, 'ssd'))]
        yield trace_model.Boot(
            start_us, str(id), self._scale.resources(
                shares[0], shares[1], max(shares[2:])), '',
            _CLASSES[priority],
            None if end_us is None else end_us - start_us, str(tenant))


def _read_types(base: sqlite3.Connection) -> None:
    for statement in _TYPES:
        base.execute(statement)


def _days(value: object, name: str) -> int:
    most = trace_model.LATEST_US / _DAY
    return round(trace_model.number(value, name, -most, most) * _DAY)
