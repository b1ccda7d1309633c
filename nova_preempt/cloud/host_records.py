# SPDX-License-Identifier: Apache-2.0

"""Reads compute hosts, their services and aggregates from Nova's records."""

import dataclasses
import datetime
import functools

from nova import context as nova_context
from nova import exception
from nova import objects
from nova import servicegroup

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import instances
from nova_preempt.cloud import nova_api
from nova_preempt.core.energy import power_steps


@dataclasses.dataclass(frozen=True)
class ComputeHost:
    """A host with one compute service and one node.

    :param name: of the node
    :param host: of the service
    :param seen_at: when the service has reported last, None if never
    :param servers: the number of servers that the service has counted
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
        """Return whether nova_preempt has disabled its service."""
        return self.disabled and self.disabled_reason.startswith(
            power_steps.REASON)

    @property
    def is_operators(self):
        """Return whether an operator has disabled its service."""
        return self.disabled and not self.is_ours


@functools.cache
def _service_group():
    return servicegroup.API()


def is_up(service):
    """Return whether a service reports and is not forced down.

    :param service: Nova's Service, or its dict in a HostState
    """
    return bool(_service_group().service_is_up(service))


def host_is_up(server_uuid, host):
    """Return whether the compute service of a host is up.

    :param server_uuid: a server on the host, by which its cell is found
    :raises NovaError: that cannot be read
    """
    try:
        cell = instances.find_cells([server_uuid]).get(server_uuid)
        # A server without a cell is gone and cannot be evicted.
        return cell is None or is_up(cell_calls.call(
            cell, objects.Service.get_by_compute_host, host))
    except exception.ComputeHostNotFound:
        return False
    except Exception as exc:
        raise nova_api.NovaError(
            f'cannot tell whether host {host} is up: {exc}') from exc


def read_hosts(context, cell_uuid):
    """Return [ComputeHost] of a context's cell, without their aggregates.

    Hosts with several nodes, such as those of Ironic, are excluded.
    """
    services = objects.ServiceList.get_by_binary(
        context, 'nova-compute', include_disabled=True)
    nodes = {}
    for node in objects.ComputeNodeList.get_all(context):
        nodes.setdefault(node.host, []).append(node)
    return [_host(service, nodes[service.host][0], cell_uuid)
            for service in services if len(nodes.get(service.host, ())) == 1]


def _host(service, node, cell_uuid):
    return ComputeHost(
        name=node.hypervisor_hostname, host=service.host, cell_uuid=cell_uuid,
        service_uuid=service.uuid, provider_uuid=node.uuid, **_state(service),
        vcpus=node.vcpus, vcpus_used=node.vcpus_used,
        servers=node.running_vms or 0, aggregates=frozenset())


def _state(service):
    seen_at = service.last_seen_up
    return {'up': is_up(service),
            'seen_at': seen_at and seen_at.replace(tzinfo=None),
            'disabled': service.disabled,
            'disabled_reason': service.disabled_reason or ''}


def reread(cell, host):
    """Return a ComputeHost with the current state of its service."""
    return dataclasses.replace(host, **_state(cell_calls.call(
        cell, objects.Service.get_by_uuid, host.service_uuid)))


def users(cell, host):
    """Return uuids of (servers on a host, servers migrating to or from it)."""
    servers = cell_calls.call(
        cell, objects.InstanceList.get_uuids_by_host, host.host)
    migrations = cell_calls.call(
        cell, objects.MigrationList.get_in_progress_by_host_and_node,
        host.host, host.name)
    return frozenset(servers), frozenset(
        item.instance_uuid for item in migrations)


def list_hosts(cell):
    """Return the names of a cell's hosts by Nova's API database."""
    return {mapping.host for mapping in objects.HostMappingList.get_by_cell_id(
        nova_context.get_admin_context(), cell.id)}


def list_nodes(cell):
    """Return the names of a cell's compute nodes."""
    return {node.hypervisor_hostname for node in cell_calls.call(
        cell, objects.ComputeNodeList.get_all, limit_s=cell_calls.LONG_S)}


def list_aggregates(key=None):
    """Return Nova's Aggregates, optionally only those with a metadata key."""
    context = nova_context.get_admin_context()
    return list(objects.AggregateList.get_all(context) if key is None else
                objects.AggregateList.get_by_metadata_key(context, key))
