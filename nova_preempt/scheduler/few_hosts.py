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
"""Host states of few hosts, without reading the services of all.

Nova's HostManager reads the records of all compute services of each cell
whichever hosts are asked for. That is one query, and right for as many hosts
as Placement offers; where ten hosts are looked at it is nearly all of the
time, and grows with the cloud.
"""

from nova import exception
from nova import objects
from nova.scheduler import host_manager

from nova_preempt.cloud import cell_calls

# Up to so many hosts a query for each is cheaper than one for all.
FEW = 20


def get(manager, context, uuids, spec_obj):
    """The HostStates of compute nodes, as Nova's HostManager makes them.

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
            services[host] = objects.Service.get_by_compute_host(context,
                                                                 host)
        except exception.ComputeHostNotFound:
            # Nova leaves it out, and says so.
            continue
    return nodes, services
