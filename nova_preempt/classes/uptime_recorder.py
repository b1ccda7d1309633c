# SPDX-License-Identifier: Apache-2.0
"""Keeps the clocks of servers of a class, as Nova's records have them.

Nova's notifications are not used: an operator may have switched them off, or
have a bus for each cell, and a listener that is down misses some. The actions
of a server stay in the database of its cell until they are purged, so each
reading has them all, and one that a cell missed is made up for later.
"""

import dataclasses
import datetime
import threading

from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.cloud import cell_reader as readings
from nova_preempt.cloud import change_cursor
from nova_preempt.cloud import extra_specs as specs
from nova_preempt.cloud import instance_actions
from nova_preempt.cloud import instances
from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes import class_of_server
from nova_preempt.core.classes import clock_events
from nova_preempt.core.classes import server_clocks
from nova_preempt.core.model import SECOND
from nova_preempt.db import server_uptimes as db

_ATTRS = ['flavor']
# How many servers one transaction writes.
_MANY = 100

_SECOND = datetime.timedelta(seconds=1)


class UptimeRecorder:
    """Reads the actions of servers of a class, and stores their clocks.

    :param database: a nova_preempt.db.Database
    :param get_cells: returns {uuid: CellMapping} of the cells to look into
    :param table: a core.classes.class_table.ClassTable
    """

    def __init__(self, database, get_cells, table):
        self._db = database
        self._names = frozenset(table.names)
        self._overheads = availability_margin.Overheads(table.overhead_us)
        self._since = change_cursor.ChangeCursor()
        self._get_cells = get_cells
        self._cells = {}          # uuid: CellMapping
        self._readings = readings.CellReader(
            lambda: self._cells, self._refresh_cell,
            consequence='the clocks of its servers of a class stay as they '
                        'are until it can be read')
        self._writing = threading.Lock()
        self._by_request = {}     # uuid: class name
        self._unread = {}         # the same, of servers to read
        self._looked_at = {}      # cell uuid: _unread of the last reading

    def look(self):
        """Read what has changed in each cell."""
        # NOTE: in this order a change in between is read the next time.
        unread = db.unrecorded_classes(self._db, self._names)
        self._by_request = db.request_classes(self._db)
        self._unread = unread
        self._cells = self._get_cells()
        self._forget_cells()
        self._readings.read()

    def _forget_cells(self):
        """Forget cells that no longer exist."""
        gone = db.cells(self._db) - self._cells.keys()
        if gone:
            db.forget_cells(self._db, gone)
            self._since.forget(self._cells.keys())
            self._looked_at = {uuid: unread for uuid, unread
                               in self._looked_at.items() if uuid not in gone}

    def _refresh_cell(self, context, cell):
        reading = self._since.begin(cell.uuid)
        seen = set()
        for page in instances.pages(
                context, instances.PRESENT if reading.whole
                else reading.changes, _ATTRS):
            reading.saw(page)
            seen.update(server.uuid for server in page)
            self._note(context, cell.uuid, page)
        if not reading.whole:
            self._note_unchanged(context, cell.uuid, seen)
        if reading.whole:
            db.forget(self._db, db.uuids_of(self._db, cell.uuid) - seen)
        if not self._since.is_outdated(reading):
            db.record_scan(self._db, cell.uuid, self._since.age_s(reading))
            self._since.done(reading)

    def _note_unchanged(self, context, cell_uuid, seen):
        """Read servers whose requests have changed class, each once.

        Where the flavor names a class, that class stays. Servers that come to
        a host are read as well, as Nova may record late that they run.
        """
        unread = self._unread
        wanted = {uuid for uuid, _ in unread.items() - (
            self._looked_at.get(cell_uuid, {}).items())}
        wanted |= db.uuids_of(self._db, cell_uuid,
                              server_clocks.Kind.ALLOCATING)
        wanted = sorted(wanted - seen)
        for start in range(0, len(wanted), _MANY):
            self._note(context, cell_uuid, instances.read(
                context, wanted[start:start + _MANY], attrs=_ATTRS))
        self._looked_at[cell_uuid] = unread

    def _note(self, context, cell_uuid, servers):
        uuids = [server.uuid for server in servers]
        known = db.find(self._db, uuids)
        gone, changed = [], []
        for server in servers:
            name = self._class_name(server)
            before = known.get(server.uuid)
            if server.deleted or not name:
                if before:
                    gone.append(server.uuid)
            elif not _is_settled(server, before, name):
                changed.append((server, before, name))
        self._write(*self._read(context, cell_uuid, changed))
        if gone:
            db.forget(self._db, gone)

    def _read(self, context, cell_uuid, changed):
        """Return ([ServerUptime], durations of returns)."""
        preemptions = db.preemptions(
            self._db, [server.uuid for server, _, _ in changed])
        # NOTE: what happens from now on may be missing.
        read_at = timeutils.utcnow()
        actions = instance_actions.read(
            context, [server for server, _, _ in changed])
        found, took = [], []
        for server, before, name in changed:
            told = clock_events.events(server, actions[server.uuid],
                                       preemptions.get(server.uuid, ()))
            row = db.ServerUptime(
                server.uuid, cell_uuid, server.project_id, name,
                server.flavor, server.from_volume,
                server_clocks.ServerClocks(told), _changed_at(server), read_at)
            found.append(row)
            for at_us, took_us in clock_events.returns(
                    told, before.clocks.mark.last_us if before else 0):
                took.append((at_us, took_us, row.kind))
                metrics.CLASS_RETURNS.labels(name).observe(took_us / SECOND)
        return found, took

    def _class_name(self, server):
        return class_of_server.class_of(
            specs.class_name(server.extra_specs),
            self._by_request.get(server.uuid, ''), self._names)

    def _write(self, found, took):
        """Store servers, and the mean durations of returns."""
        with self._writing:
            known = db.overheads(self._db) if took else {}
            means = dataclasses.replace(self._overheads, means_us=known)
            for _at_us, took_us, kind in sorted(took):
                means = means.seen(kind, took_us)
            for start in range(0, len(found), _MANY):
                db.write(self._db, found[start:start + _MANY])
            if took:
                db.write(self._db, (), means.means_us)


def _changed_at(server):
    return server.updated_at or server.created_at


def _is_settled(server, before, name):
    """Return whether a server cannot have changed since it was read.

    Nova may write an action a little after the server.
    """
    return (before is not None and before.class_name == name
            and not clock_events.may_be_late(before.clocks.mark.kind,
                                             server.task_state)
            # Databases keep fractions of a second, round or truncate them.
            and abs(before.changed_at - _changed_at(server)) < _SECOND
            and (before.read_at - before.changed_at).total_seconds()
            > change_cursor.OVERLAP_S)
