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
"""Servers that are found by the tags they were booted with.

Nova's API leaves out what is in a cell that is down, once tags are asked for;
who is about to boot a server again has to know that, so it is looked into the
cells themselves. A server is a build request until it is in its cell, and is
in its cell before the build request goes: in this order none is missed.
"""

import collections
import dataclasses

from nova import context as nova_context
from nova import objects
from oslo_log import log as logging

from nova_preempt.cloud import cell_calls

LOG = logging.getLogger(__name__)

# How long a cell is waited for, in seconds.
TIMEOUT_S = 30

# So much is asked for at once.
_MANY = 500

_ATTRS = ['tags']


@dataclasses.dataclass(frozen=True)
class Tagged:
    """A server; vm_state and task_state are Nova's.

    :ivar launched: whether it has ever run
    :ivar is_locked: by its owner or an administrator
    """

    uuid: str
    project_id: str
    vm_state: str
    task_state: str | None
    tags: tuple[str, ...]
    fault: str = ''
    launched: bool = False
    is_locked: bool = False


@dataclasses.dataclass(frozen=True)
class Found:
    """What was found.

    :ivar servers: {uuid: Tagged}
    :ivar unsure: the uuids of those that may be where nobody can look
    :ivar is_whole: whether all cells could be looked into
    """

    servers: dict
    unsure: frozenset = frozenset()
    is_whole: bool = True


def find(tags=(), uuids=()):
    """Servers that have one of these tags or uuids, as a Found.

    Those that were deleted are not there; soft-deleted ones are.
    """
    tags, uuids = set(tags), set(uuids)
    if not tags and not uuids:
        return Found({})
    context = nova_context.get_admin_context()
    found = {}
    for item in objects.BuildRequestList.get_all(context):
        server = _tagged(item.instance, item.tags)
        if server.uuid in uuids or tags.intersection(server.tags):
            found[server.uuid] = server
    cells, of_cell = _cells(context, tags, uuids)
    answers = cell_calls.gather(
        cells, lambda cell_context: _read(
            cell_context, tags, of_cell[cell_context.cell_uuid]),
        limit_s=TIMEOUT_S)
    unsure = set()
    is_whole = True
    for cell_uuid, answer in answers.items():
        if isinstance(answer, Exception):
            is_whole = False
            unsure.update(of_cell[cell_uuid])
        else:
            found.update(answer)
    unsure |= _moved(context, uuids - found.keys() - unsure, of_cell)
    return Found(found, frozenset(unsure), is_whole)


def _moved(context, uuids, of_cell):
    """Those of these that are in another cell than they were looked for in.

    After a resize into another cell Nova hides them in the one before.

    :param of_cell: {uuid of a cell: uuids that were looked for there}
    """
    return {uuid for uuid, cell in _homes(context, uuids).items()
            if uuid not in of_cell.get(cell.uuid, ())}


def _cells(context, tags, uuids):
    """The cells to look into, and {uuid of a cell: uuids of servers}."""
    of_cell = collections.defaultdict(list)
    cells = {}
    for uuid, cell in _homes(context, uuids).items():
        cells[cell.uuid] = cell
        of_cell[cell.uuid].append(uuid)
    if tags:
        # Cell 0 too: there are those for which no host was found.
        for cell in objects.CellMappingList.get_all(context):
            cells[cell.uuid] = cell
    return list(cells.values()), of_cell


def _homes(context, uuids):
    """{uuid: CellMapping} of the servers that have a cell."""
    return {item.instance_uuid: item.cell_mapping for some in _pieces(uuids)
            for item in objects.InstanceMappingList.get_by_instance_uuids(
                context, some) if item.cell_mapping is not None}


def _read(context, tags, uuids):
    found = {}
    faulty = []
    for name, wanted in (('uuid', uuids), ('tags-any', tags)):
        for some in _pieces(wanted):
            for item in objects.InstanceList.get_by_filters(
                    context, {name: some, 'deleted': False,
                              'soft_deleted': True}, expected_attrs=_ATTRS):
                found[item.uuid] = _tagged(item, item.tags)
                if item.vm_state == 'error':
                    faulty.append(item.uuid)
    for some in _pieces(faulty):
        for fault in objects.InstanceFaultList.get_latest_by_instance_uuids(
                context, some):
            found[fault.instance_uuid] = dataclasses.replace(
                found[fault.instance_uuid], fault=fault.message or '')
    return found


def _tagged(instance, tags):
    return Tagged(instance.uuid, instance.project_id,
                  instance.vm_state or 'building', instance.task_state,
                  tuple(tag.tag for tag in tags or ()),
                  launched=bool('launched_at' in instance
                                and instance.launched_at),
                  is_locked='locked' in instance and bool(instance.locked))


def _pieces(items):
    items = sorted(items)
    for start in range(0, len(items), _MANY):
        yield items[start:start + _MANY]
