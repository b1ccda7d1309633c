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
"""Nova's server groups: who is in which.

Nova's own object reads a group with all that belongs to it; who is in the
same group as any of many servers takes one query of its table.
"""

import collections

from nova import context as nova_context
from nova.db.api import api as api_db_api
from nova.db.api import models

# Servers asked for in one query.
_AT_ONCE = 500


def get_groups(uuids):
    """{uuid of a server: ids of its groups} for each of these servers."""
    groups = {uuid: set() for uuid in uuids}
    member = models.InstanceGroupMember
    ordered = sorted(groups)
    for start in range(0, len(ordered), _AT_ONCE):
        for uuid, group_id in _read(member.instance_uuid.in_(
                ordered[start:start + _AT_ONCE])):
            groups[uuid].add(group_id)
    return groups


def get_members(group_ids):
    """{id of a group: uuids of its servers, also of those now deleted}."""
    members = collections.defaultdict(set)
    if group_ids:
        for uuid, group_id in _read(
                models.InstanceGroupMember.group_id.in_(sorted(group_ids))):
            members[group_id].add(uuid)
    return members


def _read(condition):
    return _query(nova_context.get_admin_context(), condition)


@api_db_api.context_manager.reader
def _query(context, condition):
    member = models.InstanceGroupMember
    return [tuple(row) for row in context.session.query(
        member.instance_uuid, member.group_id).filter(condition)]
