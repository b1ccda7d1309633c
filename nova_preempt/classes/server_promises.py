# SPDX-License-Identifier: Apache-2.0
"""Availability promised to servers, as one process knows it.

The leading engine stores how long each server has run and waited, see
uptime_recorder. This is read in the background, and extrapolated by the clock
until it is read again.
"""

import dataclasses
import math
import time

from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt.cloud import extra_specs as specs
from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes import class_of_server
from nova_preempt.core.classes.class_dispatch import Claimant
from nova_preempt.core.classes.promised_availability import ClassPromiseRules
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.times import microseconds
from nova_preempt.db import server_uptimes

LOG = logging.getLogger(__name__)

# Clocks of servers that no engine has read for so many seconds do not count:
# a server may have been evicted and have returned meanwhile.
MAX_AGE_S = 300

#: Operations for which a request of a class may preempt.
OPERATIONS = ('create', 'unshelve')


@dataclasses.dataclass(frozen=True)
class _Known:
    """The clocks that were read last.

    :ivar claimants: {uuid: Claimant}
    :ivar unsure: the same with unknown clocks
    :ivar cells: {uuid: uuid of its cell}
    :ivar until: {uuid of a cell: until when its clocks count, monotonic}
    """

    claimants: dict
    unsure: dict
    cells: dict
    until: dict


class ServerPromises:
    """Promises to all servers that have a class.

    :param database: a nova_preempt.db.Database
    :param table: a core.classes.class_table.ClassTable
    :param clock: returns now, timezone-aware
    """

    def __init__(self, database, table, clock, monotonic=time.monotonic):
        self._db = database
        self._table = table
        self._names = frozenset(table.names)
        self._clock = clock
        self._monotonic = monotonic
        self._known = _Known({}, {}, {}, {})
        self._mixed = None        # (claimants, late cells, current())
        self._told = frozenset()  # late cells
        self._by_request = {}     # uuid: class name

    def refresh(self):
        """Read the clocks; keep those that cannot be read for a while.

        :returns: the uuids of servers whose class_of() has changed
        """
        try:
            # NOTE: first: it must not be newer than the rows.
            now, ago_s = self._monotonic(), server_uptimes.scan_ages_s(
                self._db)
            rows = server_uptimes.find(self._db)
            means = server_uptimes.overheads(self._db)
            by_request = server_uptimes.request_classes(self._db)
        except db_exc.DBError as exc:
            LOG.warning('Cannot read the run times of servers of classes: '
                        '%(exc)s. After %(age)s s no server of a class is '
                        'evicted for another.', {'exc': exc, 'age': MAX_AGE_S})
            return set()
        before, self._by_request = self._by_request, by_request
        known, found = self._known.claimants, {}
        costs = availability_margin.Overheads(self._table.overhead_us,
                                              means_us=means)
        for uuid, row in rows.items():
            claimant = self._claimant(row, costs)
            if claimant is not None:
                # The same object if equal, so that comparing it is cheap.
                old = known.get(uuid)
                found[uuid] = old if old == claimant else claimant
        cells = {uuid: rows[uuid].cell_uuid for uuid in found}
        until = {cell: now + MAX_AGE_S - ago_s.get(cell, math.inf)
                 for cell in set(cells.values())}
        if found == known and cells == self._known.cells:
            self._known = dataclasses.replace(self._known, until=until)
        else:
            self._known = _Known(found, {
                uuid: dataclasses.replace(claimant, clocks=ServerClocks())
                for uuid, claimant in found.items()}, cells, until)
        self._tell(self._late(self._known))
        return {uuid for uuid, _ in before.items() ^ by_request.items()}

    def _late(self, known):
        """Return the uuids of cells that no engine has read lately."""
        now = self._monotonic()
        return frozenset(cell for cell, until in known.until.items()
                         if now > until)

    def _tell(self, late):
        if late - self._told:
            LOG.warning('No engine has read servers of classes in cells '
                        '%(cells)s for %(age)s s. Until then no server of a '
                        'class is evicted for another.',
                        {'cells': ', '.join(sorted(late)), 'age': MAX_AGE_S})
        self._told = late

    def _claimant(self, row, costs):
        """Return a Claimant, None if its class does not exist."""
        qos = self._table.classes.find(row.class_name)
        return qos and Claimant(row.uuid, qos, row.clocks, {},
                                costs.of(row.kind))

    @property
    def claimants(self):
        """{uuid: core Claimant} of all servers, without their resources."""
        return self._known.claimants

    def current(self):
        """Return claimants, with unknown clocks where they are too old."""
        known = self._known
        late = self._late(known)
        if not late:
            return known.claimants
        mixed = self._mixed
        # The same object while nothing changes, as callers compare it.
        if mixed is None or mixed[0] is not known.claimants or (
                mixed[1] != late):
            mixed = self._mixed = known.claimants, late, {
                uuid: known.unsure[uuid] if known.cells[uuid] in late
                else claimant for uuid, claimant in known.claimants.items()}
        return mixed[2]

    def kept(self):
        """Return {class name: availability_margin.PromiseStatus} of now."""
        return availability_margin.promise_status(self._table.classes, ((
            item.qos, item.clocks) for item in self.claimants.values()),
            microseconds(self._clock()))

    @property
    def is_recent(self):
        """Return whether the clocks of any cell are recent."""
        known = self._known
        return len(self._late(known)) < len(known.until)

    def promises(self):
        """Return the core's ClassPromiseRules of now."""
        return ClassPromiseRules(self._table.classes, self.current(),
                                 microseconds(self._clock()))

    def class_of(self, uuid, by_flavor):
        """Return the class of a preemptible server, '' without one.

        :param by_flavor: the class that its flavor names
        """
        return class_of_server.class_of(
            by_flavor, self._by_request.get(uuid, ''), self._names)

    def rank(self, uuid, extra_specs, operation):
        """Return the PreemptionRight of a request for a preemptible server.

        Without a class, or with unknown clocks, it has no claim and preempts
        no server.

        :param extra_specs: of the requested flavor
        """
        if operation not in OPERATIONS:
            return preemption_policy.PREEMPTIBLE
        try:
            claimant = (self._new(uuid, extra_specs) if operation == 'create'
                        else self._back(uuid))
        except db_exc.DBError as exc:
            LOG.warning('Server %(uuid)s preempts no server, as its clock '
                        'cannot be read: %(exc)s', {'uuid': uuid, 'exc': exc})
            return preemption_policy.PREEMPTIBLE
        if claimant is None or not claimant.is_certain:
            return preemption_policy.PREEMPTIBLE
        return preemption_policy.PreemptionRight(
            True, self.promises().claim(claimant))

    def _new(self, uuid, extra_specs):
        """Return a Claimant that waits from now on."""
        by_flavor = specs.class_name(extra_specs)
        name = class_of_server.class_of(by_flavor, '', self._names) or (
            # NOTE: the request is read only where it may matter.
            class_of_server.class_of(by_flavor, server_uptimes.request_classes(
                self._db, [uuid]).get(uuid, ''), self._names))
        qos = self._table.classes.find(name)
        now_us = microseconds(self._clock())
        return qos and Claimant(
            uuid, qos, ServerClocks((Event(now_us, Kind.QUEUED),)), {},
            self._table.overhead_us)

    def _back(self, uuid):
        """Return the Claimant of a server that ran before, by its row."""
        ago_s = server_uptimes.scan_ages_s(self._db)
        row = server_uptimes.find(self._db, [uuid]).get(uuid)
        if row is None or ago_s.get(row.cell_uuid, math.inf) > MAX_AGE_S:
            return None
        return self._claimant(row, availability_margin.Overheads(
            self._table.overhead_us,
            means_us=server_uptimes.overheads(self._db)))
