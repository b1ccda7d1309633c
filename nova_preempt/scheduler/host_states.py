# SPDX-License-Identifier: Apache-2.0
"""Host states with and without preemptible servers.

The full state is Nova's HostState with all servers. The other state is a copy
of it without some preemptible servers, on which a normal request is filtered
(Algorithm 2 of López García et al., FGCS
2019: h_f and h_n).
"""

import copy
import dataclasses

from nova import exception
from nova import objects
from nova.pci import stats
from nova.scheduler import host_manager
from nova.virt import hardware
from oslo_log import log as logging

from nova_preempt.cloud import cell_calls
from nova_preempt.core import capacity

LOG = logging.getLogger(__name__)

# Up to this many hosts, a query of each is cheaper than one of all.
FEW = 20

_OF_DEVICE = ('vendor_id', 'product_id', 'numa_node')


def without(host_state, servers, pci_devices=None):
    """Return a copy of a host state without these servers.

    :param host_state: a nova.scheduler.host_manager.HostState
    :param servers: cloud.preemptible_server_cache.CachedServers
    :param pci_devices: {uuid: see free_devices()} of those that matter
    """
    state = copy.copy(host_state)
    # Nova may share this dict with its tracking of instances: never change
    # it in place.
    gone = {server.uuid for server in servers}
    state.instances = {uuid: instance for uuid, instance
                       in host_state.instances.items() if uuid not in gone}
    for server in servers:
        _unconsume(state, server)
    freed = [item for server in servers
             for item in (pci_devices or {}).get(server.uuid, ())]
    if freed:
        state.pci_stats = free_devices(state.pci_stats, freed)
    return state


def remove(host_state, servers, pci_devices=None):
    """Remove these servers from the state itself."""
    host_state.__dict__.update(
        without(host_state, servers, pci_devices).__dict__)


@dataclasses.dataclass(frozen=True)
class PreemptionMark:
    """The victims that the request needs on a host, an attribute of its state.

    :ivar victims: uuids of the victims, () if none is needed
    :ivar cost_us: their cost
    :ivar filtered_as: the state without them, for filters
    """

    victims: tuple = ()
    cost_us: int = 0
    filtered_as: object = None


_NO_MARK = PreemptionMark()


def mark_of(state):
    """Return the PreemptionMark of a host state."""
    return getattr(state, 'preemption', _NO_MARK)


def set_mark(state, trial, view=None):
    """Mark a host state with a core Trial, for filters and weighers.

    :param view: the state of on_trial(), if there are victims
    """
    state.preemption = _NO_MARK if not trial.without else PreemptionMark(
        _uuids(trial.without), trial.cost_us, view)


def on_trial(state, trial, candidates, pci_devices=None):
    """Return the state that a core Trial is filtered on.

    :param candidates: the allocation requests that would claim it then
    """
    view = without(state, trial.without, pci_devices)
    view.preemption = PreemptionMark(_uuids(trial.without))
    view.allocation_candidates = candidates
    return view


def claimed(state):
    """Return {class: amount} that the request allocates on a host."""
    for claim_request in state.allocation_candidates[:1]:
        if state.uuid in claim_request['allocations']:
            return capacity.total(
                item['resources']
                for item in claim_request['allocations'].values())
    return {}


def outside_headroom(states, headroom, takes=claimed):
    """Return the states that a preemptible request may use.

    :param headroom: a nova_preempt.headroom.Headroom, None if there is none
    :param takes: given a state, {class: amount} of what is free there that
        the request takes
    """
    if headroom is None:
        return states
    hosts, closed = [], []
    for state in states:
        (closed if headroom.is_closed(state.uuid, takes(state))
         else hosts).append(state)
    if closed:
        LOG.info('Closed to preemptible servers, to keep headroom free: %s',
                 ', '.join(state.nodename for state in closed))
    return hosts


def _uuids(servers):
    return tuple(server.uuid for server in servers)


def _unconsume(state, server):
    state.free_ram_mb += server.memory_mb
    state.free_disk_mb += server.disk_mb
    state.vcpus_used -= server.vcpus
    state.num_instances -= 1
    if state.numa_topology and server.numa_topology:
        try:
            state.numa_topology = hardware.numa_usage_from_instance_numa(
                state.numa_topology, server.numa_topology, free=True)
        except exception.NovaException as exc:
            # The compute's record is older than the server's: nothing is
            # known to become free, so nothing is promised.
            LOG.debug('Cannot take server %(server)s out of the NUMA '
                      'topology of host %(host)s: %(exc)s',
                      {'server': server.uuid, 'host': state.host,
                       'exc': exc})


# -- PCI devices, as Nova's tracker has them ------------------------------


def free_devices(pci_stats, devices):
    """A copy of the PciDeviceStats of a host with these devices free.

    A pool of which nothing was free is not known to Nova's scheduler: it is
    made of what its devices say.

    :param devices: [(PciDevice, spec of the request it was taken for)]
    """
    found = copy.copy(pci_stats) if pci_stats is not None else (
        stats.PciDeviceStats(None))
    found.pools = copy.deepcopy(found.pools)
    for device, spec in devices:
        pool = next((pool for pool in found.pools
                     if _is_of(device, pool)), None)
        if pool is None:
            pool = _make_pool(device, spec)
            found.pools.append(pool)
        pool['count'] += 1
    return found


def _is_of(device, pool):
    rp_uuid = device.extra_info.get('rp_uuid')
    if rp_uuid and 'rp_uuid' in pool:
        return rp_uuid == pool['rp_uuid']
    return all(getattr(device, key) == pool.get(key) for key in _OF_DEVICE) \
        and pool.get('dev_type', device.dev_type) == device.dev_type \
        and pool.get('address', _address(device)) == _address(device)


def _address(device):
    return device.parent_addr or device.address


def _make_pool(device, spec):
    pool = {key: getattr(device, key) for key in _OF_DEVICE}
    pool.update(count=0, devices=[], dev_type=device.dev_type,
                address=_address(device))
    for key in ('rp_uuid', 'parent_ifname'):
        if device.extra_info.get(key):
            pool[key] = device.extra_info[key]
    for key in ('physical_network', 'remote_managed'):
        if key in spec:
            pool[key] = spec[key]
    stats.PciDeviceStats._ensure_remote_managed_tag(device, pool)
    return pool


# -- states of few hosts --------------------------------------------------


def get_few(manager, context, uuids, spec_obj):
    """The HostStates of compute nodes, as Nova's HostManager makes them.

    It reads the records of all compute services of each cell whichever hosts
    are asked for. That is one query, and right for as many hosts as Placement
    offers; where ten hosts are looked at it is nearly all of the time, and
    grows with the cloud.

    :param manager: Nova's HostManager
    :param uuids: of compute nodes, None for all there are
    """
    if uuids is not None and len(uuids) <= FEW:
        manager = _FewHosts(manager)
    return manager.get_host_states_by_uuids(context, uuids, spec_obj)


class _FewHosts(host_manager.HostManager):
    """A HostManager that shares all it knows with another."""

    def __init__(self, manager):
        # Nothing of Nova's: it would read everything once more.
        self._manager = manager

    def __getattr__(self, name):
        return getattr(self._manager, name)

    def _get_computes_for_cells(self, context, cells, compute_uuids):
        nodes, services = {}, {}
        if not compute_uuids:
            return nodes, services
        for cell_uuid, answer in cell_calls.gather(
                cells, _read, compute_uuids).items():
            if not isinstance(answer, Exception):
                nodes[cell_uuid], found = answer
                services.update(found)
        return nodes, services


def _read(context, uuids):
    """The compute nodes of a cell, and their services by host."""
    nodes = objects.ComputeNodeList.get_all_by_uuids(context, uuids)
    services = {}
    for host in sorted({node.host for node in nodes}):
        try:
            services[host] = objects.Service.get_by_compute_host(context, host)
        except exception.ComputeHostNotFound:
            # Nova leaves it out, and says so.
            continue
    return nodes, services
