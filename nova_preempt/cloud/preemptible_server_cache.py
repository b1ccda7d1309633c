# SPDX-License-Identifier: Apache-2.0
"""Cache of the cloud's preemptible servers.

Each cell is read as a whole once, then only for changes (Nova has an index for
that). It does not depend on messages of the compute services, which an
operator may have switched off ([filter_scheduler]track_instance_changes) and
which do not reach the scheduler if cells have message queues of their own.
"""

import dataclasses
import sys
import threading
import time

from oslo_log import log as logging

from nova_preempt.cloud import cell_reader as readings
from nova_preempt.cloud import change_cursor
from nova_preempt.cloud import departure_tracker
from nova_preempt.cloud import extra_specs as specs
from nova_preempt.cloud import instances
from nova_preempt.core import eviction_actions as core_actions
from nova_preempt.core.model import PreemptibleServer
from nova_preempt.db import connection

LOG = logging.getLogger(__name__)

_ATTRS = ['flavor', 'numa_topology', 'pci_requests', 'resources']


@dataclasses.dataclass(frozen=True, slots=True)
class CachedServer(PreemptibleServer):
    """A preemptible server with the details that Nova's filters need.

    :ivar numa_topology: an InstanceNUMATopology, None if it has none
    """

    numa_topology: object = dataclasses.field(default=None, compare=False)


class ServerIndex:
    """Indexes the known preemptible servers. Not thread-safe.

    :param class_of: given a server's uuid and the class of service of its
        flavor, returns the server's own class, '' if it has none
    :ivar had_any: whether there has ever been a server
    """

    def __init__(self, class_of=None):
        self.had_any = False
        self._class_of = class_of or (lambda uuid, by_flavor: '')
        self._servers = {}        # uuid: PreemptibleServer
        self._by_flavor = {}      # the same, as their flavors have it
        # node: {uuid: PreemptibleServer}; copied on write, for callers keep it
        self._by_node = {}

    def __len__(self):
        return len(self._servers)

    def get(self, uuid):
        """Return a PreemptibleServer, None if it is unknown."""
        return self._servers.get(uuid)

    def find(self, passes):
        """Return the Servers that pass."""
        return [server for server in self._servers.values() if passes(server)]

    def by_node(self, unreadable):
        """Return {node: {uuid: PreemptibleServer}}, without empty nodes.

        :param unreadable: uuids of cells, whose servers are excluded
        """
        if not unreadable:
            return dict(self._by_node)
        found = {}
        for server in self.find(
                lambda server: server.cell_uuid not in unreadable):
            found.setdefault(server.node, {})[server.uuid] = server
        return found

    def change(self, uuids, make=lambda server: server):
        """Replace known Servers by the results of a function."""
        self.update({uuid: make(self._by_flavor[uuid])
                     for uuid in uuids & self._by_flavor.keys()})

    def update(self, found):
        """Store {uuid: PreemptibleServer, None if it is not preemptible}."""
        for uuid, server in found.items():
            old = self._servers.pop(uuid, None)
            self._by_flavor.pop(uuid, None)
            if old is not None:
                self._by_node[old.node] = {
                    other: server for other, server
                    in self._by_node[old.node].items() if other != uuid}
                if not self._by_node[old.node]:
                    del self._by_node[old.node]
            if server is not None:
                self.had_any = True
                self._by_flavor[uuid] = server
                server = core_actions.of_class(server, _shared(
                    self._class_of(uuid, server.class_name)))
                self._servers[uuid] = server
                self._by_node[server.node] = {
                    **self._by_node.get(server.node, {}), uuid: server}


class ServerCache:
    """Cache of the preemptible servers of all cells. Thread-safe.

    :param cells: returns {uuid: CellMapping} of the cells to read
    :param hinted: given uuids, returns those of servers that a hint makes
        preemptible, as a set
    :param left: called with the names of nodes that servers have left,
        preemptible or not
    :param monotonic: the clock that dates readings
    :param class_of: see ServerIndex
    :param devices: a one_time_devices.OneTimeDevices, None if no server has
        such a device
    """

    def __init__(self, cells, hinted, left=None, monotonic=time.monotonic,
                 class_of=None, devices=None):
        self._devices = devices
        self._readings = readings.CellReader(cells, self._refresh_cell,
                                           monotonic=monotonic)
        self._hinted = hinted
        self._departures = departure_tracker.DepartureTracker(left, monotonic)
        self._monotonic = monotonic
        self._read_at = None
        self._lock = threading.Lock()
        self._since = change_cursor.ChangeCursor(monotonic)
        self._known = ServerIndex(class_of)

    def __bool__(self):
        """Return whether there may be preemptible servers."""
        return bool(self._known) or not self._since

    @property
    def had_any(self):
        """Return whether this process has seen a preemptible server."""
        return self._known.had_any

    def by_node(self):
        """Return {node: {uuid: PreemptibleServer}}, without empty nodes.

        Excludes servers of unreadable cells: their records may be outdated,
        so they must not be evicted.
        """
        unreadable = self._readings.unreadable()
        with self._lock:
            return self._known.by_node(unreadable)

    def servers(self):
        """Return the Servers of readable cells, the oldest first."""
        unreadable = self._readings.unreadable()
        with self._lock:
            return sorted(
                self._known.find(
                    lambda server: server.cell_uuid not in unreadable),
                key=lambda server: (server.launched_at, server.uuid))

    def last_seen(self, project_id, cells):
        """Return the servers of a project in cells, readable or not."""
        with self._lock:
            return self._known.find(
                lambda server: server.project_id == project_id
                and server.cell_uuid in cells)

    def get(self, uuid):
        """Return a PreemptibleServer, None if it is unknown."""
        with self._lock:
            return self._known.get(uuid)

    def find(self, uuid):
        """Read the ObservedServer of any server, None if it does not exist.

        :raises CellDown: its cell does not answer
        """
        servers, unread = instances.get_many([uuid])
        if unread.get(uuid) is not None:
            raise unread[uuid]
        return servers.get(uuid)

    def is_away(self, uuid):
        """Return whether a server is in a cell that is known to hang.

        Of a known server without any query: it is asked right before a call.
        """
        hanging, server = self._readings.hanging(), self.get(uuid)
        if server is not None or not hanging:
            return server is not None and server.cell_uuid in hanging
        try:
            cell = instances.find_cells([uuid]).get(uuid)
        except connection.ERRORS:
            return False
        return cell is not None and cell.uuid in hanging

    def refresh(self, max_age_s=0):
        """Read the changes of each cell.

        An unreadable or slow cell keeps its known servers; see by_node().

        :param max_age_s: the age up to which the cache is not refreshed
        """
        now = self._monotonic()
        if max_age_s and self._read_at and now - self._read_at <= max_age_s:
            return
        self._readings.read()
        if self._devices:
            told = self._devices.refresh()
            with self._lock:
                self._known.change(told, lambda server: dataclasses.replace(
                    server, one_time=self._may_have_device(
                        server.uuid, server.node, server.flavor)))
        self._read_at = now

    def _may_have_device(self, *server):
        return bool(self._devices) and self._devices.may_have(*server)

    def _refresh_cell(self, context, cell):
        reading = self._since.begin(cell.uuid)
        found = self._read(context, cell, reading)
        if reading.whole and not reading.is_first:
            found |= dict.fromkeys(self._gone(context, cell, found))
        with self._lock:
            if self._since.is_outdated(reading):
                return
            self._known.update(found)
            self._since.done(reading)
        if self._devices:
            for uuid in found:
                if found[uuid] is None:
                    self._devices.forget(uuid)

    def _gone(self, context, cell, found):
        """Return {uuid: node} of cached servers that left a cell's database.

        :param found: uuids of servers that have just been read
        """
        with self._lock:
            gone = {server.uuid: server.node for server in self._known.find(
                lambda server: server.cell_uuid == cell.uuid
                and server.uuid not in found)}
        for server in instances.read(context, list(gone)):
            gone.pop(server.uuid, None)
        if gone:
            LOG.info('%(count)s preemptible servers of cell %(cell)s have '
                     'been deleted and archived.',
                     {'count': len(gone), 'cell': cell.identity})
            self._departures.tell(set(gone.values()))
        return gone

    def _read(self, context, cell, reading):
        """Return {uuid: PreemptibleServer, None if it is not preemptible}."""
        found = {}
        for page in instances.pages(context, reading.changes, _ATTRS,
                                    make=instances.as_instance):
            reading.saw(page)
            self._departures.note(page)
            by_hint = self._hinted([instance.uuid for instance in page
                                    if not _is_marked(instance)])
            found.update((instance.uuid, _server(
                instance, cell.uuid, instance.uuid in by_hint,
                self._may_have_device)) for instance in page)
        return found

    def note_classes(self, uuids):
        """Recompute the classes of servers after class_of has changed."""
        with self._lock:
            self._known.change(uuids)


def _is_marked(instance):
    return specs.flavor_is_preemptible(
        instances.extra_specs_of(instance.flavor))


def _is_pinned(instance, extra_specs):
    """Return whether stopping a server would keep some of its resources.

    Nova frees NUMA cells (with pinned CPUs and huge pages), PCI devices and
    other resource classes, such as virtual GPUs, only when a server is deleted
    or offloaded.
    """
    return bool(
        instance.numa_topology is not None or _has_pci_devices(instance)
        or instance.resources
        or not core_actions.is_plain(specs.resource_classes(extra_specs)))


def _has_pci_devices(instance):
    pci_requests = instance.pci_requests
    return bool(pci_requests is not None and pci_requests.requests)


def _server(instance, cell_uuid, by_hint, may_have_device):
    """Return the CachedServer of an Instance, None if not preemptible."""
    flavor = instance.flavor
    extra_specs = instances.extra_specs_of(flavor)
    if not (by_hint or _is_marked(instance)) or (
            instance.deleted or not instance.node):
        return None
    # Strings that many servers share are interned.
    return CachedServer(
        uuid=instance.uuid, host=_shared(instance.host),
        node=_shared(instance.node), cell_uuid=cell_uuid,
        project_id=_shared(instance.project_id),
        user_id=_shared(instance.user_id), flavor=_shared(flavor.name),
        launched_at=instance.launched_at or instance.created_at,
        vm_state=_shared(instance.vm_state), task_state=instance.task_state,
        locked_by=instances.locked_by(instance),
        minimum_runtime_s=specs.minimum_runtime_s(extra_specs),
        maximum_runtime_s=specs.maximum_runtime_s(extra_specs),
        notice_s=specs.notice_s(extra_specs), action=specs.action(extra_specs),
        restore=specs.restore(extra_specs),
        pinned=_is_pinned(instance, extra_specs),
        one_time=_has_pci_devices(instance) and may_have_device(
            instance.uuid, instance.node, flavor.name),
        vcpus=flavor.vcpus, memory_mb=flavor.memory_mb,
        disk_mb=(flavor.root_gb + flavor.ephemeral_gb) * 1024,
        class_name=_shared(specs.class_name(extra_specs)),
        numa_topology=instance.numa_topology)


def _shared(text):
    return text and sys.intern(text)
