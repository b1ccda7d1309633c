# SPDX-License-Identifier: Apache-2.0
"""Allocations of victims that were stopped or offloaded.

Nova frees the allocations of a server just before it reports the server as
offloaded, and never again. Allocations that a roll-back restores in between
would remain until the server is deleted, in addition to those that it claims
when it is unshelved.
"""

from collections.abc import Callable
from typing import Any

from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import capacity
from nova_preempt.core import eviction_actions as core_actions
from nova_preempt.core.eviction import closing_rules
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.db import decisions

LOG = logging.getLogger(__name__)

# The reason for the lock of a stopped victim.
LOCKED = 'It has given way; it is to be deleted.'


def is_locked_by_us(server: ObservedServer) -> bool:
    """Return whether nova_preempt has locked the server."""
    return server.locked_reason == LOCKED


def unlock(nova: nova_api.NovaAPI, server: ObservedServer) -> None:
    """Unlock a server, unless its lock is not ours."""
    if is_locked_by_us(server):
        nova.unlock(server.uuid)


def resume(store: decisions.Decisions, nova: nova_api.NovaAPI,
           victim: decisions.Victim, server: ObservedServer | None) -> None:
    """Unlock a kept victim, and start it if its preemption has stopped it.

    A failed shelve may have switched it off, see closing_rules.is_left_off().
    One that an earlier preemption has stopped stays so.
    """
    if server is None or server.uuid in {
            each.server_uuid for _, each in
            store.get_victims(decisions.STOPPED)}:
        return
    unlock(nova, server)
    stopped = victim.asked == core_actions.STOP and (
        server.vm_state == 'stopped')
    if stopped or (victim.asked and nova.is_left_off(server)):
        LOG.info('Starting server %s again, whose eviction was rolled back.',
                 server.uuid)
        (nova.start if stopped else nova.hard_reboot)(server.uuid)


def as_it_was(victim: decisions.Victim, generation: int | None
              ) -> placement_api.Consumer:
    """Return the Consumer of a victim with its original allocations."""
    return placement_api.Consumer(
        victim.server_uuid, victim.allocations, generation,
        victim.consumer_project_id or victim.project_id,
        victim.consumer_user_id or victim.user_id)


def resources(allocations: dict[str, dict[str, Any]]
              ) -> dict[str, dict[str, int]]:
    """Return {provider uuid: {class: amount}} of a Consumer's allocations."""
    return {uuid: item['resources'] for uuid, item in allocations.items()}


def leave_stopped(placement: placement_api.Placement, uuid: str,
                  may_act: Callable[[], bool]) -> bool:
    """Reduce a stopped server's allocations to what it needs while stopped.

    :param may_act: called after they were read
    :returns: its answer; if False, nothing was changed
    :raises Conflict: they have changed since, by a roll-back for example
    """
    consumer = placement.get_consumer(uuid)
    left = consumer.with_slots(capacity.by_slot({
        provider_uuid: core_actions.kept(held, core_actions.STOP)
        for provider_uuid, held in resources(consumer.allocations).items()}))
    if not may_act():
        return False
    if left.slots != consumer.slots:
        placement.post_allocations([left])
    return True


def restore_stopped(placement: placement_api.Placement, nova: nova_api.NovaAPI,
                    victim: decisions.Victim, server: ObservedServer) -> bool:
    """Restore the allocations of a stopped victim, and unlock it.

    :param server: the victim's ObservedServer; a lock that is not ours remains
    :returns: False if its host has no capacity for it; nothing was changed
    :raises Conflict: another request was faster
    """
    consumer = placement.get_consumer(victim.server_uuid)
    if closing_rules.lacks_what_stop_freed(resources(consumer.allocations),
                                           resources(victim.allocations)):
        try:
            placement.post_allocations(
                [as_it_was(victim, consumer.generation)])
        except placement_api.Conflict as exc:
            if not exc.is_capacity_conflict:
                raise
            return False
    unlock(nova, server)
    if victim.notice_s:
        nova.clear_notice(victim.server_uuid)
    return True


def holds(placement: placement_api.Placement, uuid: str,
          seen: ObservedServer | None, is_gone: bool, provider_uuid: str
          ) -> bool:
    """Return whether an evicted victim still has allocations on its host.

    :param seen: its ObservedServer, None if Nova has none
    :param is_gone: whether it is deleted
    :param provider_uuid: of its host
    :raises PlacementError: that is unknown
    """
    try:
        allocations = placement.get_consumer(uuid).allocations
    except placement_api.PlacementError as exc:
        if not is_gone:
            raise
        # It is deleted, so the preemption need not wait.
        LOG.warning('Cannot read the allocations of victim %s: %s', uuid, exc)
        return False
    if is_gone or (seen is not None and closing_rules.is_at_rest(seen)):
        return bool(allocations)
    return provider_uuid in allocations


def free_offloaded(placement: placement_api.Placement,
                   victim: decisions.Victim,
                   look: Callable[[str], ObservedServer | None]) -> None:
    """Free allocations that were restored to an offloaded victim.

    :param look: given its uuid, returns the current ObservedServer
    :raises PlacementError, Conflict: it has failed and can be retried
    """
    consumer = placement.get_consumer(victim.server_uuid)
    # Allocations on other providers are those of an unshelve.
    if consumer.allocations and (
            consumer.allocations.keys() <= victim.allocations.keys()):
        # Read after the allocations: an unshelve shows before it claims, and a
        # later claim changes the generation.
        seen = look(victim.server_uuid)
        if seen is not None and closing_rules.is_at_rest(seen):
            placement.post_allocations([consumer.with_allocations({})])
