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
"""What a victim still has though Nova has offloaded it.

Nova frees the space of a server just before it says that the server is
offloaded, and never again. What a victim is given back in between, since its
preemption is taken back, would be its own until it is deleted, beside what it
claims when it returns.
"""

from oslo_log import log as logging

from nova_preempt.cloud import placement as placement_api
from nova_preempt.core.eviction import rollback

LOG = logging.getLogger(__name__)


def holds(placement, uuid, seen, is_gone, provider_uuid):
    """Whether a victim that has left has anything on its host still.

    :param seen: its ObservedServer, None if Nova knows it no more
    :param is_gone: whether it is deleted
    :param provider_uuid: of its host
    :raises PlacementError: nobody knows
    """
    try:
        allocations = placement.get_consumer(uuid).allocations
    except placement_api.PlacementError as exc:
        if not is_gone:
            raise
        # It does not live any more; that is what the others wait for.
        LOG.warning('Cannot see whether victim %(uuid)s has freed its '
                    'space: %(exc)s', {'uuid': uuid, 'exc': exc})
        return False
    if is_gone or rollback.is_at_rest(seen):
        return bool(allocations)
    return provider_uuid in allocations


def free(placement, victim, look):
    """Free what an offloaded victim was given back, if anything.

    :param look: returns the victim's ObservedServer as it is now
    :raises PlacementError, Conflict: not yet; it can be done again
    """
    consumer = placement.get_consumer(victim.server_uuid)
    # What it has elsewhere it has claimed to return.
    if consumer.allocations and (
            consumer.allocations.keys() <= victim.allocations.keys()):
        # Looked at after that was read: a return shows before it claims, and
        # who claims afterwards moves the generation.
        seen = look()
        if seen is not None and rollback.is_at_rest(seen):
            placement.post_allocations([consumer.with_allocations({})])
