# SPDX-License-Identifier: Apache-2.0
"""The space of victims that are stopped or offloaded to give way.

Nova frees the space of a server just before it says that the server is
offloaded, and never again. What a victim is given back in between, since its
preemption is taken back, would be its own until it is deleted, beside what it
claims when it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import actions as core_actions
from nova_preempt.core import capacity
from nova_preempt.core.eviction import rollback
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.db import decisions

LOG = logging.getLogger(__name__)

# Why a victim is locked that was stopped.
LOCKED = 'It has given way; it is to be deleted.'


def is_locked_by_us(server: ObservedServer) -> bool:
    """Whether a lock of a server is ours."""
    return server.locked_reason == LOCKED


def as_it_was(victim: decisions.Victim, generation: int | None
              ) -> placement_api.Consumer:
    """The Consumer of a victim that has its space again."""
    return placement_api.Consumer(
        victim.server_uuid, victim.allocations, generation,
        victim.consumer_project_id or victim.project_id,
        victim.consumer_user_id or victim.user_id)


def resources(allocations: dict[str, dict[str, Any]]
              ) -> dict[str, dict[str, int]]:
    """{uuid of a provider: {class: amount}} of a Consumer's allocations."""
    return {uuid: item['resources'] for uuid, item in allocations.items()}


def leave_stopped(placement: placement_api.Placement, uuid: str) -> None:
    """Leave a stopped server only what it takes while it is stopped."""
    consumer = placement.get_consumer(uuid)
    left = consumer.with_slots(capacity.by_slot({
        provider_uuid: core_actions.kept(held, core_actions.STOP)
        for provider_uuid, held in resources(consumer.allocations).items()}))
    if left.slots != consumer.slots:
        placement.post_allocations([left])


def restore_stopped(placement: placement_api.Placement, nova: nova_api.NovaAPI,
              victim: decisions.Victim, server: ObservedServer) -> bool:
    """Let a victim that was stopped be its owner's again, with its space.

    :param server: the victim as Nova's API shows it; a lock that is not ours
        stays
    :returns: False if its host has no room for it: nothing was done
    :raises Conflict: somebody was faster
    """
    consumer = placement.get_consumer(victim.server_uuid)
    if rollback.lacks_what_stop_freed(resources(consumer.allocations),
                                      resources(victim.allocations)):
        try:
            placement.post_allocations(
                [as_it_was(victim, consumer.generation)])
        except placement_api.Conflict as exc:
            if not exc.is_capacity_conflict:
                raise
            return False
    if is_locked_by_us(server):
        nova.unlock(victim.server_uuid)
    if victim.notice_s:
        nova.clear_notice(victim.server_uuid)
    return True


def holds(placement: placement_api.Placement, uuid: str,
          seen: ObservedServer | None, is_gone: bool, provider_uuid: str
          ) -> bool:
    """Whether a victim that has left has anything on its host still.

    :param seen: None if Nova knows it no more
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
    if is_gone or (seen is not None and rollback.is_at_rest(seen)):
        return bool(allocations)
    return provider_uuid in allocations


def free_offloaded(placement: placement_api.Placement,
                   victim: decisions.Victim,
                   look: Callable[[str], ObservedServer | None]) -> None:
    """Free what an offloaded victim was given back, if anything.

    :param look: given its uuid, returns the victim as it is now
    :raises PlacementError, Conflict: not yet; it can be done again
    """
    consumer = placement.get_consumer(victim.server_uuid)
    # What it has elsewhere it has claimed to return.
    if consumer.allocations and (
            consumer.allocations.keys() <= victim.allocations.keys()):
        # Looked at after that was read: a return shows before it claims, and
        # who claims afterwards moves the generation.
        seen = look(victim.server_uuid)
        if seen is not None and rollback.is_at_rest(seen):
            placement.post_allocations([consumer.with_allocations({})])
