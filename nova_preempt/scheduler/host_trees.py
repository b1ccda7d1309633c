# SPDX-License-Identifier: Apache-2.0
"""Provider trees of hosts for one request."""

import functools

from nova import exception
from oslo_log import log as logging

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import instances
from nova_preempt.cloud import request_specs
from nova_preempt.core.nested import provider_fit
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.db import connection

LOG = logging.getLogger(__name__)

_UNKNOWN = (), False


class HostTrees:
    """Provider trees of the candidate hosts of a request.

    :param preemption: a scheduler_context.SchedulerContext
    :param asked: a nova_preempt.scheduler.request_context.RequestContext
    :param wanted: a core Request
    :ivar search: the core's Search, of whoever decides
    """

    def __init__(self, preemption, asked, wanted):
        self.search = None
        self._preemption = preemption
        self._asked = asked
        self._wanted = wanted
        self._providers = {}     # uuid of a root: its tree as it was told
        self._devices = {}       # server uuid: [(PciDevice, spec)]

    # -- what is known ---------------------------------------------------

    def listed(self, found, max_age_s):
        """The core's Listings of hosts.

        :param found: [(Provider, core Provider or None, whether that holds)]
        :param max_age_s: how old the list of trees may be, in seconds
        """
        look = functools.cache(functools.partial(
            self._preemption.known.trees.look, max_age_s))
        return [self._listed(each, lambda uuid: look().get(uuid, _UNKNOWN))
                for each in found]

    def listed_again(self, found, max_age_s):
        """Return the current listing of one host."""
        return self._listed(
            found, lambda uuid: self._preemption.known.trees.look_again(
                uuid, max_age_s))

    def _listed(self, found, look):
        """The core's Listing of a host.

        :param look: given its uuid, (its tree or (), whether that holds)
        """
        provider, known, holds = found
        providers = () if known is None else (known,)
        if known is None:
            holds = False
        elif provider_fit.needs_tree(self._wanted, known):
            providers, still = look(provider.uuid)
            holds = holds and still
        self._providers[provider.uuid] = providers
        return cloud_view.ListedHost(provider.uuid, provider.name, providers,
                                     holds)

    def read(self, uuid):
        """The providers of a host as they are now, () if it is gone."""
        known = self._preemption.known
        root = known.providers.known(uuid)
        providers = ()
        if root is None or not provider_fit.needs_tree(self._wanted, root):
            root = known.providers.read(uuid)
            providers = () if root is None else (root,)
        if root is not None and provider_fit.needs_tree(self._wanted, root):
            providers = known.trees.read(uuid)
        self._providers[uuid] = providers
        return providers

    # -- what is claimed -------------------------------------------------

    def allocation_requests(self, uuid, name, victims):
        """Return allocation requests for a host without the victims.

        An empty list if the host is gone meanwhile.
        """
        return [_allocation_request(each) for each in self._providers[uuid] and
                self.search.placements(name, self._providers[uuid], victims)]

    def devices(self, servers, others=()):
        """Return {uuid: [(PciDevice, spec)]} of servers.

        Nothing where the request asks for no devices. The spec is that of
        the request that each was taken for.

        :param others: servers that are read with them, where any are to be:
            it will be asked for some of theirs
        """
        if not request_specs.has_pci_requests(self._asked.spec_obj):
            return {}
        if any(server.uuid not in self._devices for server in servers):
            self._read_devices([
                server for server in {each.uuid: each for each in (
                    *servers, *others)}.values()
                if server.uuid not in self._devices])
        return {server.uuid: self._devices[server.uuid]
                for server in servers}

    def _read_devices(self, servers):
        by_cell = {}
        for server in servers:
            self._devices[server.uuid] = []
            by_cell.setdefault(server.cell_uuid, []).append(server.uuid)
        cells = self._preemption.clients.get_cells()
        for cell_uuid, uuids in by_cell.items():
            if cell_uuid not in cells:
                continue
            try:
                self._devices.update(cell_calls.call(
                    cells[cell_uuid], instances.read, uuids,
                    attrs=['pci_devices', 'pci_requests'], make=_pci_devices))
            except (exception.NovaException, *connection.ERRORS) as exc:
                # Nothing is known to become free, so nothing is promised.
                LOG.warning('Cannot read the PCI devices of preemptible '
                            'servers in cell %(cell)s: %(exc)s',
                            {'cell': cells[cell_uuid].identity, 'exc': exc})


def _pci_devices(instance):
    """Return (uuid, [(PciDevice, spec)]) of an Instance."""
    asked = {} if instance.pci_requests is None else {
        item.request_id: item.spec[0] if item.spec else {}
        for item in instance.pci_requests.requests}
    return instance.uuid, [(device, asked.get(device.request_id, {}))
                           for device in instance.pci_devices]


def _allocation_request(placement):
    allocations = {}
    for (uuid, name), amount in placement.amounts.items():
        allocations.setdefault(uuid, {'resources': {}})[
            'resources'][name] = amount
    return {'allocations': allocations,
            'mappings': {suffix: list(uuids)
                         for suffix, uuids in placement.mappings}}


def summary(host):
    """Return the provider summary of a host, in Placement's form."""
    root = host.root
    return {
        'resources': {name: {'capacity': inventory.capacity,
                             'used': root.used.get(name, 0)}
                      for name, inventory in root.inventories.items()},
        'traits': [],
        'parent_provider_uuid': None,
        'root_provider_uuid': root.uuid,
    }
