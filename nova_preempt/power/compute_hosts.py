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
"""The compute hosts as Nova's records show them, and who uses them."""

import dataclasses
import datetime
import time

from nova import context as nova_context
from nova import objects
from nova import servicegroup
from oslo_log import log as logging

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import cells
from nova_preempt.core.energy import steps
from nova_preempt.core.reservation import occupancy

LOG = logging.getLogger(__name__)

REASON = steps.REASON

#: The key of an aggregate's metadata with how many of its hosts stay on.
MINIMUM = 'preemptible:minimum_hosts'


class CellsAway(Exception):
    """Not all cells can be read; the message names those."""


@dataclasses.dataclass(frozen=True)
class ComputeHost:
    """A host with one compute service and one node.

    :param name: of the node
    :param host: of the service
    :param seen_at: when the service has reported last, None if never
    :param servers: how many the service has counted there
    """

    name: str
    host: str
    cell_uuid: str
    service_uuid: str
    provider_uuid: str
    up: bool
    seen_at: datetime.datetime | None
    disabled: bool
    disabled_reason: str
    vcpus: int
    vcpus_used: int
    servers: int
    aggregates: frozenset

    @property
    def is_ours(self):
        """Whether we have disabled it."""
        return self.disabled and self.disabled_reason.startswith(REASON)

    @property
    def is_operators(self):
        """Whether somebody else has."""
        return self.disabled and not self.is_ours


class ComputeHosts:
    """Reads the hosts.

    :param placement: a nova_preempt.cloud.placement.Placement
    :param get_cells: returns {uuid: CellMapping} of the cells to look into
    :param monotonic: a clock of seconds
    :param readings: see nova_preempt.cloud.cells.Readings
    """

    def __init__(self, placement, get_cells, monotonic=time.monotonic,
                 readings=cells.Readings):
        self._monotonic = monotonic
        self._read = None, None
        self._readings = readings(
            get_cells, self._read_cell, monotonic=monotonic,
            consequence='none of its hosts is switched until it can be read')
        self._of_cell = {}        # uuid: [ComputeHost], of no aggregates
        self._placement = placement
        self._get_cells = get_cells
        self._service_group = servicegroup.API()

    def read(self, max_age_s=0, partly=False):
        """{name: ComputeHost} of all cells.

        :param max_age_s: how long ago it may have been read, in seconds
        :param partly: whether to do without cells that cannot be read
        :raises CellsAway: there are such cells

        Hosts of several nodes, as of Ironic, are not there: to power one of
        those off would not be to power a host off. Who decides by half of the
        hosts decides wrongly.
        """
        read_at, found = self._read
        if found is not None and (
                self._monotonic() - read_at < max_age_s):
            return found
        read_at = self._monotonic()
        found, whole = self._read_all(partly)
        if whole:
            self._read = read_at, found
        return found

    def _read_all(self, partly):
        """Hosts by name, and whether these are all."""
        aggregates = {}
        for aggregate in objects.AggregateList.get_all(
                nova_context.get_admin_context()):
            for host in aggregate.hosts:
                aggregates.setdefault(host, set()).add(aggregate.name)
        self._readings.read()
        mappings, away = self._get_cells(), self._readings.unreadable()
        if away and not partly:
            raise CellsAway('Cannot read ' + ', '.join(sorted(
                f'cell {mappings[uuid].identity}' if uuid in mappings
                else uuid for uuid in away)))
        return {
            host.name: dataclasses.replace(host, aggregates=frozenset(
                aggregates.get(host.host, ())))
            for uuid in mappings.keys() - away
            for host in self._of_cell.get(uuid, ())}, not away

    def minimums(self, default):
        """{aggregate: how many of its hosts are on at least}.

        :param default: of those whose metadata says nothing
        """
        found = {}
        for aggregate in objects.AggregateList.get_all(
                nova_context.get_admin_context()):
            text = aggregate.metadata.get(MINIMUM, str(default))
            if not text.isdecimal():
                LOG.error('Aggregate %(name)s, %(key)s: %(text)r is not a '
                          'number of hosts',
                          {'name': aggregate.name, 'key': MINIMUM,
                           'text': text})
                text = str(default)
            found[aggregate.name] = int(text)
        return found

    def _read_cell(self, cell):
        with cell_calls.opened(cell) as cell_context:
            services = objects.ServiceList.get_by_binary(
                cell_context, 'nova-compute', include_disabled=True)
            nodes = {}
            for node in objects.ComputeNodeList.get_all(cell_context):
                nodes.setdefault(node.host, []).append(node)
        self._of_cell[cell.uuid] = [
            self._host(service, nodes[service.host][0], cell.uuid)
            for service in services if len(nodes.get(service.host, ())) == 1]

    def _host(self, service, node, cell_uuid):
        return ComputeHost(
            name=node.hypervisor_hostname, host=service.host,
            cell_uuid=cell_uuid, service_uuid=service.uuid,
            provider_uuid=node.uuid, **self._service(service),
            vcpus=node.vcpus, vcpus_used=node.vcpus_used,
            servers=node.running_vms or 0, aggregates=frozenset())

    def _service(self, service):
        seen_at = service.last_seen_up
        return {'up': bool(self._service_group.service_is_up(service)),
                'seen_at': seen_at and seen_at.replace(tzinfo=None),
                'disabled': service.disabled,
                'disabled_reason': service.disabled_reason or ''}

    def reread(self, host):
        """A ComputeHost with its service as it is now."""
        cell = self._get_cells()[host.cell_uuid]
        service = cell_calls.call(cell, objects.Service.get_by_uuid,
                                  host.service_uuid)
        return dataclasses.replace(host, **self._service(service))

    def tokens(self):
        """{uuid of a root provider: what changes as soon as somebody is given
        anything of the host, or gives it back}.
        """
        found = {}
        for provider in self._placement.list_all_providers([]):
            found.setdefault(provider.root_uuid, []).append(
                (provider.uuid, provider.generation))
        return found

    def is_empty(self, host):
        """Whether nothing at all is, comes to or leaves a ComputeHost."""
        return occupancy.is_empty(self.occupants(host))

    def occupants(self, host):
        """The occupancy.Occupants of a ComputeHost, asked now."""
        consumers = self._placement.get_consumers_in_tree(host.provider_uuid)
        cell = self._get_cells()[host.cell_uuid]
        servers = cell_calls.call(
            cell, objects.InstanceList.get_uuids_by_host, host.host)
        migrations = cell_calls.call(
            cell, objects.MigrationList.get_in_progress_by_host_and_node,
            host.host, host.name)
        return occupancy.Occupants(
            frozenset(consumers), frozenset(servers),
            frozenset(item.instance_uuid for item in migrations))
