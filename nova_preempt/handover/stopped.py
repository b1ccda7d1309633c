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
"""A victim that is stopped to give way, and deleted later."""

from nova_preempt.cloud import placement as placement_api
from nova_preempt.core import actions as core_actions
from nova_preempt.core.eviction import rollback

# Why it is locked.
LOCKED = 'It has given way; it is to be deleted.'


def is_ours(server):
    """Whether a lock of a server is ours.

    :param server: a core.model.ObservedServer, of Nova's API
    """
    return server.locked_reason == LOCKED


def release(nova, victim, server):
    """Let a victim that has its space back be its owner's again.

    :param nova: a nova_preempt.cloud.nova_api.NovaAPI
    :param server: as Nova's API shows it; a lock that is not ours stays
    """
    if is_ours(server):
        nova.unlock(victim.server_uuid)
    if victim.notice_s:
        nova.clear_notice(victim.server_uuid)


def leave(placement, uuid):
    """Leave a stopped server only what it takes while it is stopped."""
    consumer = placement.get_consumer(uuid)
    left = {}
    for provider_uuid, item in consumer.allocations.items():
        resources = core_actions.kept(item['resources'], core_actions.STOP)
        if resources:
            left[provider_uuid] = {**item, 'resources': resources}
    if left != consumer.allocations:
        placement.post_allocations([consumer.with_allocations(left)])


def give_back(placement, victim):
    """Give a victim what was taken from it as it was stopped.

    Nothing where it has what it needs already.

    :raises Conflict: its host has no room for it, or somebody was faster
    """
    consumer = placement.get_consumer(victim.server_uuid)
    has, had = ({uuid: item['resources'] for uuid, item in each.items()}
                for each in (consumer.allocations, victim.allocations))
    if rollback.lacks_what_stop_freed(has, had):
        placement.post_allocations([placement_api.Consumer(
            victim.server_uuid, victim.allocations, consumer.generation,
            victim.consumer_project_id or victim.project_id,
            victim.consumer_user_id or victim.user_id)])
