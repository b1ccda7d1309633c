# SPDX-License-Identifier: Apache-2.0
"""Knows which servers, normal ones too, are on which node.

Reads all servers of a cell once and then those that have changed, like the
cache of preemptible servers.
"""

import threading
import time

from nova_preempt.cloud import cell_reader as readings
from nova_preempt.cloud import change_cursor
from nova_preempt.cloud import host_records
from nova_preempt.cloud import instances
from nova_preempt.cloud import request_specs


class HostOccupancy:
    """The servers on each node.

    :param cells: returns {uuid: CellMapping} of the cells to look into
    :param view: a nova_preempt.cloud.preemptible_server_cache.ServerCache
    :param left: called with the names of nodes that servers have left
    :param monotonic: the clock that ages the data
    """

    def __init__(self, cells, view, left=None, monotonic=time.monotonic):
        self._cells = cells
        self._readings = readings.CellReader(
            cells, self._refresh_cell, monotonic=monotonic,
            consequence='its hosts stay as they are for reservations')
        self._view = view
        self._left = left or (lambda nodes: None)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # One thread reads at a time; others wait for it.
        self._reading = threading.Lock()
        self._read_at = None
        self._since = change_cursor.ChangeCursor(monotonic)
        self._residents = {}      # uuid: ObservedServer
        self._by_node = {}        # node: set of uuids
        self._hints = {}          # uuid: ids of its reservations
        self._cell_of = {}        # uuid: uuid of its cell
        #: The service hosts of cells that the last reading could not read.
        self.dark = frozenset()

    def refresh(self, max_age_s=0):
        """Read what has changed in each cell.

        Servers of a cell that cannot be read are kept; see dark.

        :param max_age_s: how old servers may be, in seconds
        """
        with self._reading:
            now = self._monotonic()
            if (max_age_s and self._read_at is not None
                    and now - self._read_at <= max_age_s):
                return
            self._readings.read()
            unreadable = self._readings.unreadable()
            self.dark = frozenset().union(*(
                host_records.list_hosts(cell)
                for cell in list(self._cells().values())
                if cell.uuid in unreadable))
            # NOTE: afterwards, so that it has each preemptible server read.
            self._view.refresh()
            self._read_at = now

    def _refresh_cell(self, context, cell):
        reading = self._since.begin(cell.uuid)
        servers = instances.read(context, filters=(
            instances.PRESENT if reading.whole else reading.changes))
        reading.saw(servers)
        found = {server.uuid for server in servers}
        with self._lock:
            if self._since.is_outdated(reading):
                return
            left = {node for node in map(self._update, servers) if node}
            for uuid in found:
                self._cell_of[uuid] = cell.uuid
            if reading.whole:
                left |= {self._remove(uuid).node for uuid in [
                    uuid for uuid in self._residents if uuid not in found
                    and self._cell_of.get(uuid) == cell.uuid]}
            self._cell_of = {uuid: where for uuid, where
                             in self._cell_of.items()
                             if uuid in self._residents}
            if reading.whole:
                # A hint may have been read after its server was deleted.
                self._hints = {uuid: ids for uuid, ids
                               in list(self._hints.items())
                               if uuid in self._residents}
            self._since.done(reading)
        if left:
            self._left(left)

    def _remove(self, uuid):
        """Remove a server; return it, None if it is on no node."""
        old = self._residents.pop(uuid, None)
        if old is not None:
            self._by_node[old.node].discard(uuid)
            if not self._by_node[old.node]:
                del self._by_node[old.node]
        return old

    def _update(self, server):
        """Store an ObservedServer; return the node that it has left."""
        old = self._remove(server.uuid)
        if not server.deleted and server.node:
            self._residents[server.uuid] = server
            self._by_node.setdefault(server.node, set()).add(server.uuid)
            if old is not None and old.node != server.node:
                return old.node
            return None
        if server.deleted:
            self._hints.pop(server.uuid, None)
        return old and old.node

    def get(self, uuid):
        """Return an ObservedServer, None if it is on no node."""
        with self._lock:
            return self._residents.get(uuid)

    def on_node(self, node):
        """Return the ObservedServers on a node, in order of uuids."""
        with self._lock:
            return [self._residents[uuid]
                    for uuid in sorted(self._by_node.get(node, ()))]

    def is_preemptible(self, uuid):
        return self._view.get(uuid) is not None

    def counts(self):
        """Return {node: (number of servers, number of normal ones)}."""
        with self._lock:
            nodes = {node: tuple(uuids)
                     for node, uuids in self._by_node.items()}
        return {node: (len(uuids),
                       sum(not self.is_preemptible(uuid) for uuid in uuids))
                for node, uuids in nodes.items()}

    def reservations_of(self, uuid):
        """Return the ids of the reservation hints of a server, a set."""
        found = self._hints.get(uuid)
        if found is None:
            found = request_specs.reservations_of(uuid)
            # NOTE: no hints are kept for uuids that are no servers.
            if found is not None:
                self._hints[uuid] = found
        return found or frozenset()
