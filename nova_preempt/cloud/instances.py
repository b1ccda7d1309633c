# SPDX-License-Identifier: Apache-2.0

"""Reads servers from the databases of Nova's cells.

Nova's API would wait a minute for a cell that is down, and leaves out what is
there once tags are asked for; so the cells themselves are read, with the time
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

#: Filters: servers that exist, soft-deleted ones too.
PRESENT = {'deleted': False, 'soft_deleted': True}

# Servers are read in pages of this size: what Nova makes of each is large.
PAGE = 1000

# How long find() waits for the cells, in seconds.
_FIND_S = 30

# And find_unwanted(), for which requests wait.
_UNWANTED_S = 2


class ServerNotOnHost(Exception):
    """A server is not on its host any more, or is about to leave it."""


@dataclasses.dataclass(frozen=True)
class FoundServers:
    """The servers that find() was asked for.

    :ivar servers: {uuid: ObservedServer}
    :ivar unsure: uuids of servers that may be where nobody can look
    :ivar is_whole: whether all cells could be read
    """

    servers: dict
    unsure: frozenset = frozenset()
    is_whole: bool = True


def observe(instance, fault=''):
    """The ObservedServer of an Instance, as far as that was loaded."""
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
    """'owner' or 'admin', '' if it is not locked."""
    if 'locked' not in instance or not instance.locked:
        return ''
    # Records of old releases do not say it.
    return instance.locked_by or 'admin'


def extra_specs_of(flavor):
    """The extra specs of a Flavor."""
    return (flavor.extra_specs if 'extra_specs' in flavor else None) or {}


# -- one cell ----------------------------------------------------------------


def read(context, uuids=None, filters=PRESENT, attrs=(), make=observe):
    """[ObservedServer] of the servers in the cell of a context.

    :param uuids: of the servers to read; None for all that pass
    :param filters: Nova's, see nova.objects.InstanceList
    :param attrs: what is loaded with each, such as 'flavor'
    :param make: what is made of an Instance
    """
    queries = [filters] if uuids is None else (
        {**filters, 'uuid': some} for some in parallel_calls.batches(uuids))
    return [make(instance) for query in queries
            for instance in objects.InstanceList.get_by_filters(
                context, query, expected_attrs=list(attrs))]


def as_instance(instance):
    """The Instance itself, for what observe() does not tell."""
    return instance


def check(cell):
    """Fail where a cell does not answer."""
    cell_calls.call(cell, objects.InstanceList.get_by_filters,
                    {'deleted': False}, limit=1, expected_attrs=[])


def read_cell(cell, uuids, attrs=(), deleted=False):
    """{uuid: ObservedServer} of those of these servers that are in a cell.

    :param deleted: whether to read deleted ones, too
    """
    return {server.uuid: server for server in cell_calls.call(
        cell, read, uuids, **_which(deleted), attrs=attrs)}


def _which(deleted):
    return ({'filters': {}, 'read_deleted': 'yes'} if deleted
            else {'filters': PRESENT})


def pages(context, filters, attrs, make=observe):
    """Yield the servers that pass, a page at a time, at least once.

    :param attrs: what is loaded with each
    :param make: what is made of an Instance
    """
    def page(key, marker=None):
        return objects.InstanceList.get_by_filters(
            context, filters, expected_attrs=attrs, sort_key=key,
            sort_dir='asc', limit=PAGE, marker=marker)

    if 'changes-since' in filters:
        # Mostly few, which the index of this column finds. In no other order
        # is it certain that all are seen while they change.
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
    """Return what Nova would claim for a preemptible server on its host.

    :param server: a core Server
    :returns: ({class: amount} without numbered groups, the uuid of the node,
        {class: amount} of what parts of a host have)
    :raises ServerNotOnHost:
    """
    try:
        return cell_calls.call(cell, _expected_allocation, server)
    except exception.NotFound as exc:
        raise ServerNotOnHost(str(exc)) from exc


def _expected_allocation(context, server):
    instance = objects.Instance.get_by_uuid(
        context, server.uuid, expected_attrs=['flavor'])
    # What is known of it may be from before it moved or began to.
    if (instance.host, instance.node) != (server.host, server.node) or (
            not eligibility.needs_space(instance.vm_state,
                                        instance.task_state)):
        raise ServerNotOnHost(server.uuid)
    node = objects.ComputeNode.get_by_host_and_nodename(
        context, server.host, server.node)
    return (utils.resources_from_flavor(instance, instance.flavor), node.uuid,
            specs.resource_amounts(instance.flavor.extra_specs or {}))


def read_migrations(context, uuids):
    """The Migrations of a cell among these uuids."""
    found = []
    for uuid in uuids:
        try:
            found.append(objects.Migration.get_by_uuid(context, uuid))
        except exception.MigrationNotFound:
            continue
    return found


# -- all cells ---------------------------------------------------------------


def find_cells(uuids):
    """{uuid: CellMapping, or None while it has none} of Nova's servers."""
    return {mapping.instance_uuid: mapping.cell_mapping
            for mapping in _mappings(uuids)}


def _mappings(uuids):
    context = nova_context.get_admin_context()
    return [mapping for some in parallel_calls.batches(uuids) for mapping
            in objects.InstanceMappingList.get_by_instance_uuids(
                context, some)]


def requested(project_id):
    """The uuids of a project's servers that are in no cell yet, as a set."""
    # A context that is not an admin's: of this project only.
    context = nova_context.RequestContext(project_id=project_id,
                                          is_admin=False)
    return {item.instance_uuid
            for item in objects.BuildRequestList.get_all(context)}


def get_many(uuids, attrs=(), deleted=False, limit_s=None):
    """({uuid: ObservedServer}, {uuid: why it could not be looked at}).

    Nova writes a server into its cell before it says in which cell it is: in
    this order none is missed. None stands for a server without a cell.

    :param deleted: whether to read deleted ones, too
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
    """The uuids of those of these servers that are to be nowhere, as a set.

    A server that is being deleted is marked so where its cell is named, and
    one that Nova has given up is in cell 0. The mark stays where a deletion
    has failed, so the cells of marked servers are read; it is trusted where a
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
    """Servers that have one of these tags or uuids, as FoundServers.

    Those that were deleted are not there; soft-deleted ones are. A server is a
    build request until it is in its cell, and is in its cell before the build
    request goes: in this order none is missed.
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
    # Cell 0 too: there are those for which no host was found.
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
    # After a resize into another cell Nova hides them in the one before.
    unsure |= {uuid for uuid, cell
               in _homes(uuids - found.keys() - unsure).items()
               if uuid not in homes or homes[uuid].uuid != cell.uuid}
    return FoundServers(found, frozenset(unsure), not away)


def _homes(uuids):
    """{uuid: CellMapping} of the servers that have a cell."""
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
    """Yield the ObservedServers of cells, deleted ones too, the oldest first.

    A page of each cell is read. Those of which Nova has deleted even the
    flavor, as an archive does, are not there any more.

    :param cells: {uuid: CellMapping}
    :param page: how many are read of a cell at once
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
        yield from (
            dataclasses.replace(observe(instance),
                                resources=_resources(instance))
            for instance in found if _has_flavor(instance))
        if len(found) < page:
            return
        marker = found[-1].uuid


def _has_flavor(instance):
    # The other half of a resize to another cell is the same server.
    return (not instance.hidden and instance.obj_attr_is_set('flavor')
            and instance.flavor is not None)


def _resources(instance):
    """As Nova has them of a flavor alone, without ports or devices."""
    spec = objects.RequestSpec(flavor=instance.flavor,
                               is_bfv=not instance.image_ref)
    return dict(utils.ResourceRequest.from_request_spec(
        spec).merged_resources())
