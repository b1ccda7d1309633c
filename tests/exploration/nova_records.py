# SPDX-License-Identifier: Apache-2.0
"""Answers nova_preempt's queries of Nova's databases from memory.

Replaces class methods of nova.objects for as long as an exploration runs.
"""

import contextlib
import datetime
import types
from unittest import mock

from nova import context as nova_context
from nova import exception
from nova import objects

from nova_preempt.cloud import cell_calls

CELL0 = '00000000-0000-0000-0000-000000000000'


class CellMapping:
    """Stands for nova.objects.CellMapping."""

    def __init__(self, uuid, name, number):
        self.uuid = uuid
        self.name = name
        self.id = number
        self.disabled = False

    @property
    def identity(self):
        return f'{self.name}({self.uuid})'

    def is_cell0(self):
        return self.uuid == CELL0


class Context:
    """The attributes of a cell's context that are read."""

    def __init__(self, cell, read_deleted):
        self.cell_uuid = cell.uuid
        self.read_deleted = read_deleted


class Records:
    """Answers from a world's MemoryNova.

    :param world: a world.World
    """

    def __init__(self, world):
        self._world = world

    @property
    def _nova(self):
        return self._world.nova

    def patches(self):
        """The mock patches that put it in place."""
        found = [mock.patch.object(cell_calls, 'opened', self.opened)]
        for cls, name, function in (
                (objects.InstanceList, 'get_by_filters', self.instances),
                (objects.InstanceList, 'get_uuids_by_host', self.on_host),
                (objects.Instance, 'get_by_uuid', self.instance),
                (objects.InstanceMappingList, 'get_by_instance_uuids',
                 self.mappings),
                (objects.InstanceMapping, 'get_by_instance_uuid',
                 self.mapping),
                (objects.BuildRequestList, 'get_all', self.build_requests),
                (objects.CellMappingList, 'get_all', self.cells),
                (objects.ComputeNode, 'get_by_host_and_nodename', self.node),
                (objects.ComputeNodeList, 'get_all', self.nodes),
                (objects.Service, 'get_by_compute_host', self.service),
                (objects.Service, 'get_by_uuid', self.service_of_uuid),
                (objects.ServiceList, 'get_by_binary', self.services),
                (objects.Migration, 'get_by_uuid', self.migration),
                (objects.MigrationList, 'get_in_progress_by_host_and_node',
                 self.migrations),
                (objects.AggregateList, 'get_all', lambda *args: []),
                (objects.AggregateList, 'get_by_metadata_key',
                 lambda *args, **kwargs: []),
                (objects.HostMappingList, 'get_by_cell_id', self.mapped),
                (objects.RequestSpec, 'get_by_instance_uuid', self.spec),
                (objects.InstanceFaultList, 'get_latest_by_instance_uuids',
                 self.faults)):
            found.append(mock.patch.object(cls, name, function))
        return found

    @contextlib.contextmanager
    def opened(self, cell, read_deleted='no'):
        self._world.seam('cell', cell.name)
        until_s = self._world.hanging.get(cell.name, 0)
        if until_s > self._world.loop.now_s and self._world.loop.current:
            self._world.loop.sleep(until_s - self._world.loop.now_s)
        yield Context(cell, read_deleted)

    # -- cells -----------------------------------------------------------

    def instances(self, context, filters, expected_attrs=None, limit=None,
                  marker=None, sort_key=None, sort_dir=None, sort_keys=None,
                  sort_dirs=None):
        key = sort_key or (sort_keys or ['uuid'])[0]
        found = sorted(
            (server for server in self._nova.servers.values()
             if self._is_in(server, context.cell_uuid)
             and self._passes(server, filters, context)),
            key=lambda server: (
                getattr(server, key) or server.created_at, server.uuid))
        if marker is not None:
            uuids = [server.uuid for server in found]
            found = found[uuids.index(marker) + 1:] if marker in uuids else []
        return found[:limit]

    def _is_in(self, server, cell_uuid):
        return server.cell is not None and (
            CELL0 if server.cell == 'cell0' else
            self._world.cells[server.cell].uuid) == cell_uuid

    @staticmethod
    def _passes(server, filters, context):
        since = filters.get('changes-since')
        if since is not None:
            # Nova reads deleted ones then.
            changed = server.updated_at or server.created_at
            if changed.replace(tzinfo=None) < since.replace(tzinfo=None):
                return False
        if server.deleted and (filters.get('deleted') is False or (
                since is None and context.read_deleted == 'no')):
            return False
        if 'uuid' in filters:
            wanted = filters['uuid']
            if server.uuid not in (
                    [wanted] if isinstance(wanted, str) else wanted):
                return False
        if 'tags-any' in filters:
            return bool(set(filters['tags-any']).intersection(
                tag.tag for tag in server.tags))
        return True

    def instance(self, context, uuid, expected_attrs=None):
        server = self._nova.servers.get(uuid)
        if server is None or server.deleted or not self._is_in(
                server, context.cell_uuid):
            raise exception.InstanceNotFound(instance_id=uuid)
        return server

    def on_host(self, context, host):
        return [server.uuid for server in self._nova.servers.values()
                if server.host == host and not server.deleted]

    def node(self, context, host, nodename):
        found = self._nova.hosts.get(host)
        if found is None:
            raise exception.ComputeHostNotFound(host=host)
        return self._node(found)

    def nodes(self, context):
        return [self._node(host) for host in self._nova.hosts.values()
                if self._world.cells[host.cell].uuid == context.cell_uuid]

    def _node(self, host):
        used = sum(server.flavor.vcpus
                   for server in self._nova.servers.values()
                   if server.guest == host.name)
        return types.SimpleNamespace(
            uuid=host.uuid, host=host.name, hypervisor_hostname=host.name,
            vcpus=host.amounts['VCPU'], vcpus_used=used, running_vms=0)

    def service(self, context, host):
        found = self._nova.hosts.get(host)
        if found is None:
            raise exception.ComputeHostNotFound(host=host)
        return self._service(found)

    def service_of_uuid(self, context, uuid):
        return next(self._service(host) for host in self._nova.hosts.values()
                    if host.uuid == uuid)

    def services(self, context, binary, include_disabled=False):
        return [self._service(host) for host in self._nova.hosts.values()
                if self._world.cells[host.cell].uuid == context.cell_uuid]

    def _service(self, host):
        return types.SimpleNamespace(
            uuid=host.uuid, host=host.name, disabled=host.disabled,
            disabled_reason=host.disabled_reason,
            forced_down=host.forced_down, binary='nova-compute',
            last_seen_up=datetime.datetime.fromtimestamp(
                host.reported_s, datetime.timezone.utc), is_up=host.is_up)

    def migration(self, context, uuid):
        found = self._nova.migrations.get(uuid)
        if found is None:
            raise exception.MigrationNotFound(migration_id=uuid)
        return types.SimpleNamespace(
            uuid=uuid, status=found.status, instance_uuid=found.server,
            source_compute=found.source, dest_compute=found.target,
            source_node=found.source, dest_node=found.target)

    def migrations(self, context, host, node):
        return [types.SimpleNamespace(instance_uuid=move.server)
                for move in self._nova.migrations.values()
                if host in (move.source, move.target)
                and move.status in ('preparing', 'running', 'finished')]

    def faults(self, context, uuids):
        return [types.SimpleNamespace(
            instance_uuid=uuid, message=self._nova.servers[uuid].fault)
            for uuid in uuids if self._nova.servers[uuid].fault]

    # -- the API's database ----------------------------------------------

    def mappings(self, context, uuids):
        self._world.seam('api database', 'mappings')
        return [self._mapping(self._nova.servers[uuid])
                for uuid in uuids if self._is_mapped(uuid)]

    def _is_mapped(self, uuid):
        return uuid in self._nova.servers and (
            self._nova.servers[uuid].is_mapped)

    def mapping(self, context, uuid):
        self._world.seam('api database', 'mapping')
        if not self._is_mapped(uuid):
            raise exception.InstanceMappingNotFound(uuid=uuid)
        return self._mapping(self._nova.servers[uuid])

    def _mapping(self, server):
        return types.SimpleNamespace(
            instance_uuid=server.uuid, project_id=server.project_id,
            queued_for_delete=server.is_marked_deleted,
            cell_mapping=None if server.cell is None else self._world.cell0
            if server.cell == 'cell0' else self._world.cells[server.cell])

    def build_requests(self, context):
        self._world.seam('api database', 'build requests')
        return [types.SimpleNamespace(
            instance_uuid=server.uuid, instance=server, tags=server.tags)
            for server in self._nova.servers.values()
            if server.cell is None and server.is_requested
            and (context.is_admin or context.project_id == server.project_id)]

    def cells(self, context):
        self._world.seam('api database', 'cells')
        return [self._world.cell0, *self._world.cells.values()]

    def mapped(self, context, cell_id):
        return [types.SimpleNamespace(host=host.name)
                for host in self._nova.hosts.values()
                if self._world.cells[host.cell].id == cell_id]

    def spec(self, context, uuid):
        server = self._nova.servers.get(uuid)
        if server is None or server.spec is None:
            raise exception.RequestSpecNotFound(instance_uuid=uuid)
        return server.spec


def admin_context(request_id):
    """Nova's context of a request."""
    return nova_context.RequestContext(
        user_id='user', project_id='project', is_admin=True,
        request_id=request_id, overwrite=False)
