# SPDX-License-Identifier: Apache-2.0

"""Reads servers from the databases of Nova's cells.

Nova's API waits a minute for a cell that is down, and omits that cell's
servers in queries by tag. So the cells themselves are read, with the time
limits of nova_preempt.cloud.cell_calls.
"""

import collections
import dataclasses
import heapq

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler import utils
from oslo_utils import timeutils

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import extra_specs as specs
from nova_preempt.cloud import parallel_calls
from nova_preempt.core import eligibility
from nova_preempt.core import observed_server

#: Filters of existing servers, including soft-deleted ones.
PRESENT = {'deleted': False, 'soft_deleted': True}

# Servers are read in pages of this size, for Nova's objects are large.
PAGE = 1000

# How long find() waits for the cells, in seconds.
_FIND_S = 30

# The same for find_unwanted(), for which requests wait.
_UNWANTED_S = 2


class ServerNotOnHost(Exception):
    """A server has left its host, or is leaving it."""


@dataclasses.dataclass(frozen=True)
class FoundServers:
    """The result of find().

    :ivar servers: {uuid: ObservedServer}
    :ivar unsure: uuids of servers that may be in an unreadable cell
    :ivar is_whole: whether all cells could be read
    """

    servers: dict
    unsure: frozenset = frozenset()
    is_whole: bool = True


def observe(instance, fault=''):
    """Return the ObservedServer of an Instance, with its loaded fields."""
    def get(name, default=None):
        return getattr(instance, name) if name in instance else default

    def naive(name):
        return (at := get(name)) and timeutils.normalize_time(at)

    flavor = get('flavor')
    return observed_server.ObservedServer(
        instance.uuid, instance.vm_state or 'building', instance.task_state,
        get('host'), get('node'), instance.project_id,
        created_at=naive('created_at'), updated_at=naive('updated_at'),
        launched_at=naive('launched_at'),
        ended_at=naive('terminated_at') or naive('deleted_at')
        if get('deleted') else None,
        deleted=bool(get('deleted')), locked_by=locked_by(instance),
        flavor=flavor.name if flavor else '',
        extra_specs=extra_specs_of(flavor) if flavor else {},
        from_volume=not get('image_ref'),
        tags=tuple(tag.tag for tag in get('tags') or ()), fault=fault)


def locked_by(instance):
    """Return 'owner' or 'admin', '' if the Instance is not locked."""
    if 'locked' not in instance or not instance.locked:
        return ''
    # Records of old releases have no locked_by.
    return instance.locked_by or 'admin'


def extra_specs_of(flavor):
    """Return the extra specs of a Flavor, translated if they have to be."""
    return specs.translated(
        (flavor.extra_specs if 'extra_specs' in flavor else None) or {})


# -- one cell ----------------------------------------------------------------


def read(context, uuids=None, filters=PRESENT, attrs=(), make=observe):
    """Return [ObservedServer] of the servers in a context's cell.

    :param uuids: of the servers to read; None for all that pass
    :param filters: Nova's, see nova.objects.InstanceList
    :param attrs: attributes to load, such as 'flavor'
    :param make: converts an Instance to a result
    """
    queries = [filters] if uuids is None else (
        {**filters, 'uuid': some} for some in parallel_calls.batches(uuids))
    return [make(instance) for query in queries
            for instance in objects.InstanceList.get_by_filters(
                context, query, expected_attrs=list(attrs))]


def as_instance(instance):
    """Return the Instance itself, for fields that observe() omits."""
    return instance


def check(cell):
    """Raise an exception if a cell does not answer."""
    cell_calls.call(cell, objects.InstanceList.get_by_filters,
                    {'deleted': False}, limit=1, expected_attrs=[])


def read_cell(cell, uuids, attrs=(), deleted=False):
    """Return {uuid: ObservedServer} of the servers that are in a cell.

    :param deleted: whether to include deleted servers
    """
    return {server.uuid: server for server in cell_calls.call(
        cell, read, uuids, **_which(deleted), attrs=attrs)}


def _which(deleted):
    return ({'filters': {}, 'read_deleted': 'yes'} if deleted
            else {'filters': PRESENT})


def pages(context, filters, attrs, make=observe):
    """Yield the servers that pass, a page at a time, at least once.

    :param attrs: attributes to load
    :param make: converts an Instance to a result
    """
    def page(key, marker=None):
        return objects.InstanceList.get_by_filters(
            context, filters, expected_attrs=attrs, sort_key=key,
            sort_dir='asc', limit=PAGE, marker=marker)

    if 'changes-since' in filters:
        # Mostly few servers, which the index of this column finds. Pages in
        # another order could miss servers that change meanwhile.
        found = page('updated_at')
        if len(found) < PAGE:
            yield [make(instance) for instance in found]
            return
    marker = None
    while True:
        found = page('uuid', marker)
        yield [make(instance) for instance in found]
        if len(found) < PAGE:
            return
        marker = found[-1].uuid


def expected_allocation(cell, server):
    """Return the allocation that Nova would claim for a server on its host.

    :param server: a core Server
    :returns: ({class: amount} of the flavor without numbered groups, the uuid
        of the node, {class: amount} of the flavor's extra specs)
    :raises ServerNotOnHost:
    """
    try:
        return cell_calls.call(cell, _expected_allocation, server)
    except exception.NotFound as exc:
        raise ServerNotOnHost(str(exc)) from exc


def _expected_allocation(context, server):
    instance = objects.Instance.get_by_uuid(
        context, server.uuid, expected_attrs=['flavor'])
    # The cached server may be from before a move.
    if (instance.host, instance.node) != (server.host, server.node) or (
            not eligibility.needs_allocation(instance.vm_state,
                                             instance.task_state)):
        raise ServerNotOnHost(server.uuid)
    node = objects.ComputeNode.get_by_host_and_nodename(
        context, server.host, server.node)
    return (utils.resources_from_flavor(instance, instance.flavor), node.uuid,
            specs.resource_amounts(instance.flavor.extra_specs or {}))


def read_migrations(context, uuids):
    """Return the Migrations with these uuids in a context's cell."""
    found = []
    for uuid in uuids:
        try:
            found.append(objects.Migration.get_by_uuid(context, uuid))
        except exception.MigrationNotFound:
            continue
    return found


# -- all cells ---------------------------------------------------------------


def find_cells(uuids):
    """Return {uuid: CellMapping, or None before it has a cell} of servers."""
    return {mapping.instance_uuid: mapping.cell_mapping
            for mapping in _mappings(uuids)}


def _mappings(uuids):
    context = nova_context.get_admin_context()
    return [mapping for some in parallel_calls.batches(uuids) for mapping
            in objects.InstanceMappingList.get_by_instance_uuids(
                context, some)]


def requested(project_id):
    """Return uuids of a project's servers that have no cell yet, as a set."""
    # A context without admin rights sees only this project.
    context = nova_context.RequestContext(project_id=project_id,
                                          is_admin=False)
    return {item.instance_uuid
            for item in objects.BuildRequestList.get_all(context)}


def get_many(uuids, attrs=(), deleted=False, limit_s=None):
    """Return ({uuid: ObservedServer}, {uuid: why it could not be read}).

    The reason is None for a server without a cell. Nova writes a server into
    its cell before its instance mapping, so this order misses none.

    :param deleted: whether to include deleted servers
    """
    cells, wanted, unread = {}, collections.defaultdict(list), {}
    for uuid, cell in find_cells(uuids).items():
        if cell is None:
            unread[uuid] = None
        else:
            cells[cell.uuid] = cell
            wanted[cell.uuid].append(uuid)
    servers = {}
    for cell_uuid, answer in cell_calls.gather(
            cells.values(), lambda context, **which: read(
                context, wanted[context.cell_uuid], **which),
            attrs=attrs, limit_s=limit_s, **_which(deleted)).items():
        if isinstance(answer, Exception):
            unread.update(dict.fromkeys(wanted[cell_uuid], answer))
        else:
            servers.update((server.uuid, server) for server in answer)
    return servers, unread


def find_unwanted(uuids) -> set[str]:
    """Return uuids of the servers that need no host any more, as a set.

    The instance mapping of a server that is being deleted is marked, and a
    server without a valid host is in cell 0. The mark remains if a deletion
    has failed, so the cells of marked servers are read; the mark counts if a
    cell does not answer.
    """
    found, marked = set(), set()
    for mapping in _mappings(uuids):
        cell = mapping.cell_mapping
        if cell is not None and cell.is_cell0():
            found.add(mapping.instance_uuid)
        elif mapping.queued_for_delete:
            marked.add(mapping.instance_uuid)
    servers, _ = get_many(marked, limit_s=_UNWANTED_S) if marked else ({}, {})
    return found | marked - {uuid for uuid, server in servers.items()
                             if not server.is_deleted}


def find(tags=(), uuids=()):
    """Return the FoundServers that have one of these tags or uuids.

    Excludes deleted servers, but not soft-deleted ones. Nova writes a server
    into its cell before it deletes the build request, so this order misses
    none.
    """
    tags, uuids = set(tags), set(uuids)
    if not tags and not uuids:
        return FoundServers({})
    context = nova_context.get_admin_context()
    found = {}
    for item in objects.BuildRequestList.get_all(context):
        server = dataclasses.replace(observe(item.instance), tags=tuple(
            tag.tag for tag in item.tags or ()))
        if server.uuid in uuids or tags.intersection(server.tags):
            found[server.uuid] = server
    homes = _homes(uuids)
    # Cell 0, too: it has the servers without a valid host.
    cells = {cell.uuid: cell for cell in [
        *homes.values(),
        *(objects.CellMappingList.get_all(context) if tags else ())]}
    answers = cell_calls.gather(
        cells.values(), lambda cell_context: _read_tagged(
            cell_context, tags, [uuid for uuid, cell in homes.items()
                                 if cell.uuid == cell_context.cell_uuid]),
        limit_s=_FIND_S)
    away = {uuid for uuid, answer in answers.items()
            if isinstance(answer, Exception)}
    for cell_uuid in answers.keys() - away:
        found.update(answers[cell_uuid])
    unsure = {uuid for uuid, cell in homes.items() if cell.uuid in away}
    # A cross-cell resize hides the server in its former cell.
    unsure |= {uuid for uuid, cell
               in _homes(uuids - found.keys() - unsure).items()
               if uuid not in homes or homes[uuid].uuid != cell.uuid}
    return FoundServers(found, frozenset(unsure), not away)


def _homes(uuids):
    """Return {uuid: CellMapping} of the servers that have a cell."""
    return {uuid: cell for uuid, cell in find_cells(uuids).items()
            if cell is not None}


def _read_tagged(context, tags, uuids):
    found = {server.uuid: server for servers in (
        read(context, uuids, attrs=['tags']),
        *(read(context, filters={**PRESENT, 'tags-any': some}, attrs=['tags'])
          for some in parallel_calls.batches(tags))) for server in servers}
    for some in parallel_calls.batches(uuid for uuid, server in found.items()
                                      if server.vm_state == 'error'):
        for fault in objects.InstanceFaultList.get_latest_by_instance_uuids(
                context, some):
            found[fault.instance_uuid] = dataclasses.replace(
                found[fault.instance_uuid], fault=fault.message or '')
    return found


# -- what Nova has recorded --------------------------------------------------


def recorded(cells, page=PAGE):
    """Yield all ObservedServers, including deleted ones, the oldest first.

    Excludes archived servers, which have no flavor any more.

    :param cells: {uuid: CellMapping}
    :param page: the number of servers to read of a cell at once
    """
    return heapq.merge(*(_recorded_in(cell, page) for cell in cells.values()),
                       key=lambda server: (server.created_at, server.uuid))


def _recorded_in(cell, page):
    marker = None
    while True:
        found = list(cell_calls.call(
            cell, objects.InstanceList.get_by_filters, {},
            expected_attrs=['flavor'], limit=page, marker=marker,
            sort_keys=['created_at', 'uuid'], sort_dirs=['asc', 'asc'],
            read_deleted='yes', limit_s=cell_calls.LONG_S))
        yield from (dataclasses.replace(
            observe(instance), resources=_resources(instance))
            for instance in found if _has_flavor(instance))
        if len(found) < page:
            return
        marker = found[-1].uuid


def _has_flavor(instance):
    # A hidden instance is the other half of a cross-cell resize.
    return (not instance.hidden and instance.obj_attr_is_set('flavor')
            and instance.flavor is not None)


def _resources(instance):
    """Return {class: amount} of a flavor, without ports and devices."""
    spec = objects.RequestSpec(flavor=instance.flavor,
                               is_bfv=not instance.image_ref)
    return dict(utils.ResourceRequest.from_request_spec(
        spec).merged_resources())
