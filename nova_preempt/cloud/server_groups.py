# SPDX-License-Identifier: Apache-2.0
"""Reads the members of Nova's server groups.

Nova's object loads each group with all its details. One query of the table is
enough to find the groups of many servers.
"""

import collections
import dataclasses

from nova import context as nova_context
from nova.db.api import api as api_db_api
from nova.db.api import models
from oslo_serialization import jsonutils

from nova_preempt.cloud import parallel_calls


@dataclasses.dataclass(frozen=True)
class ServerGroup:
    """A server group.

    :ivar max_server_per_host: its rule, by default 1 as in Nova
    :ivar members: uuids of its servers, also of those now deleted
    """

    uuid: str
    project_id: str
    policy: str
    max_server_per_host: int
    members: frozenset


def find(uuids, policies):
    """Return {uuid: ServerGroup} of the groups with one of the policies."""
    found = {}
    for some in parallel_calls.batches(uuids):
        for group_id, uuid, project_id, policy, rules in _query_named(
                nova_context.get_admin_context(), some):
            # Old groups have several policies, of which the first counts.
            found.setdefault(uuid, (group_id, project_id, policy, rules))
    found = {uuid: row for uuid, row in found.items() if row[2] in policies}
    members = get_members({row[0] for row in found.values()})
    return {
        uuid: ServerGroup(uuid, project_id, policy, _most(rules),
                          frozenset(members.get(group_id, ())))
        for uuid, (group_id, project_id, policy, rules) in found.items()}


def _most(rules):
    """Return max_server_per_host of rules, which are JSON or None."""
    return int((jsonutils.loads(rules) if rules else {}).get(
        'max_server_per_host', 1))


def get_groups(uuids):
    """Return {server uuid: ids of its groups}."""
    groups = {uuid: set() for uuid in uuids}
    member = models.InstanceGroupMember
    for some in parallel_calls.batches(groups):
        for uuid, group_id in _read(member.instance_uuid.in_(some)):
            groups[uuid].add(group_id)
    return groups


def get_members(group_ids):
    """Return {group id: uuids of its servers, including deleted ones}."""
    members = collections.defaultdict(set)
    for some in parallel_calls.batches(group_ids):
        for uuid, group_id in _read(
                models.InstanceGroupMember.group_id.in_(some)):
            members[group_id].add(uuid)
    return members


def _read(condition):
    return _query(nova_context.get_admin_context(), condition)


@api_db_api.context_manager.reader
def _query(context, condition):
    member = models.InstanceGroupMember
    return [tuple(row) for row in context.session.query(
        member.instance_uuid, member.group_id).filter(condition)]


@api_db_api.context_manager.reader
def _query_named(context, uuids):
    group, policy = models.InstanceGroup, models.InstanceGroupPolicy
    return [tuple(row) for row in context.session.query(
        group.id, group.uuid, group.project_id, policy.policy, policy.rules
    ).join(policy, policy.group_id == group.id).filter(
        group.uuid.in_(uuids)).order_by(policy.id)]
