# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""The two states of a host.

The full state is Nova's HostState: everything that runs. The state without
some preemptible servers is a copy of it from which they are un-consumed; what
a normal request is filtered on (Algorithm 2 of López García et al., FGCS
2019: h_f and h_n).
"""

import copy
import dataclasses

from nova import exception
from nova.virt import hardware
from oslo_log import log as logging

from nova_preempt.core import capacity
from nova_preempt.scheduler import devices

LOG = logging.getLogger(__name__)


def without(host_state, servers, pci_devices=None):
    """A copy of the state as if these servers were gone.

    :param host_state: a nova.scheduler.host_manager.HostState
    :param servers: cloud.servers.CachedServers
    :param pci_devices: {uuid: see devices.give_back()} of those that matter
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
        state.pci_stats = devices.give_back(state.pci_stats, freed)
    return state


def remove(host_state, servers, pci_devices=None):
    """Take these servers out of the state itself."""
    host_state.__dict__.update(
        without(host_state, servers, pci_devices).__dict__)


@dataclasses.dataclass(frozen=True)
class Mark:
    """What a host needs to serve the request: our one attribute of a state.

    :ivar victims: uuids of the servers that end, () where there is room
    :ivar cost_us: what their end costs
    :ivar filtered_as: the state without them, which filters are shown
    """

    victims: tuple = ()
    cost_us: int = 0
    filtered_as: object = None


_NO_MARK = Mark()


def mark_of(state):
    """The Mark of a host state."""
    return getattr(state, 'preemption', _NO_MARK)


def set_mark(state, trial, view=None):
    """Note what the core's Trial of a host is, for filters and weighers.

    :param view: of on_trial(), where servers end
    """
    if trial.without:
        state.preemption = Mark(_uuids(trial.without), trial.cost_us, view)
    else:
        state.preemption = _NO_MARK


def on_trial(state, trial, candidates, pci_devices=None):
    """The state to filter on for a core's Trial.

    :param candidates: the allocation requests that would claim it then
    """
    view = without(state, trial.without, pci_devices)
    view.preemption = Mark(_uuids(trial.without))
    view.allocation_candidates = candidates
    return view


def claimed(state):
    """{class: amount} that a server of the request takes on a host."""
    for claim_request in state.allocation_candidates[:1]:
        if state.uuid in claim_request['allocations']:
            return capacity.total(
                item['resources']
                for item in claim_request['allocations'].values())
    return {}


def outside_headroom(states, headroom, takes=claimed):
    """The hosts that a preemptible request may take.

    :param headroom: a nova_preempt.headroom.Headroom, None if nothing has to
        stay free
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
