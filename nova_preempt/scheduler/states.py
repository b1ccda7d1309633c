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

from nova import exception
from nova.virt import hardware
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def without(host_state, servers):
    """A copy of the state as if these servers were gone.

    :param host_state: a nova.scheduler.host_manager.HostState
    :param servers: nova_preempt.scheduler.view.Server objects
    """
    state = copy.copy(host_state)
    # Nova may share this dict with its tracking of instances: never change
    # it in place.
    gone = {server.uuid for server in servers}
    state.instances = {uuid: instance for uuid, instance
                       in host_state.instances.items() if uuid not in gone}
    for server in servers:
        _unconsume(state, server)
    return state


def remove(host_state, servers):
    """Take these servers out of the state itself."""
    host_state.__dict__.update(without(host_state, servers).__dict__)


def as_planned(state, servers):
    """The state to filter on if these servers are the victims."""
    view = without(state, servers)
    view.victims = tuple(server.uuid for server in servers)
    view.filtered_as = None
    return view


def set_victims(state, option):
    """Note on a host state which victims it needs, for filters, weighers."""
    victims = option.victims if option is not None else []
    state.victims = tuple(server.uuid for server in victims)
    # Decisions whose victims these are; then they end in any case.
    state.joins = option.joins if option is not None else ()
    state.victims_cost_us = option.victim_set.cost if victims else 0
    state.filtered_as = as_planned(state, victims) if victims else None


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
