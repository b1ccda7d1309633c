# SPDX-License-Identifier: Apache-2.0

"""Decides what happens to the victims of a rolled back preemption.

Those that are there live on with their space. Those that Nova is just
deleting or shelving are looked at until it is known what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nova_preempt.core import actions
from nova_preempt.core import capacity
from nova_preempt.core import victim_status
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction import return_controller
from nova_preempt.core.model import Resources
from nova_preempt.core.observed_server import DELETING
from nova_preempt.core.observed_server import ObservedServer

#: It is on the host that was cleared for it, as was asked for.
SERVED = "served"
#: It is on another host.
ELSEWHERE = "elsewhere"
#: It is in ERROR, or still what it was: nobody needed to end.
FAILED = "failed"
#: It was deleted before it was seen to be there.
DELETED = "deleted"


def is_there(seen: ObservedServer | None, host: str) -> bool:
    """Tell whether a victim is on the host, and needs its space there.

    That it is being deleted or shelved changes nothing: nobody knows when, or
    whether, that comes to an end.
    """
    return (
        seen is not None and not eviction_steps.is_offloaded(seen)
        and seen.host == host)


def is_leaving(seen: ObservedServer) -> bool:
    """Tell whether a server is on its way out already."""
    return seen.task_state in DELETING | eviction_steps.SHELVING


def is_moving(seen: ObservedServer) -> bool:
    """Tell whether it may be elsewhere soon, or here, but is not yet either.

    Nova's migration holds nothing for the place that it comes from, since the
    victim had nothing there when it began. So its space is kept as it is until
    that is over.
    """
    return seen.task_state in eviction_steps.MOVING


def lacks_space(
    has: Mapping[str, Resources], had: Mapping[str, Resources], provider: str,
) -> bool:
    """Tell whether a server on its host gets back what it had there.

    Not one that has more than it had: it was resized on its host since. Nova
    leaves a server what it was to have elsewhere, where the migration fails,
    if it had nothing on its host when the migration began.

    ``has``, ``had``: {uuid of a provider: {class: amount}}; ``provider``: the
    uuid of its host's.
    """
    if provider in had and provider not in has:
        return True
    return has != had and capacity.fits(
        capacity.by_slot(has), capacity.by_slot(had))


def lacks_what_stop_freed(
    has: Mapping[str, Resources], had: Mapping[str, Resources]) -> bool:
    """Tell whether a stopped victim gets back what its stop has freed.

    Not one that has more than the stop left it: it has got it back, or was
    moved or resized since, and Nova has claimed for it what it needs.

    ``has``, ``had``: {uuid of a provider: {class: amount}}
    """
    left = {
        uuid: actions.kept(resources, actions.STOP)
        for uuid, resources in had.items()
    }
    return capacity.fits(capacity.by_slot(has), capacity.by_slot(left))


def is_at_rest(seen: ObservedServer) -> bool:
    """Tell whether it is offloaded, and nobody has asked it to return."""
    return eviction_steps.is_offloaded(seen) and seen.task_state is None


def closing_status(seen: ObservedServer | None, host: str, asked: str) -> str:
    """Return what became of a victim whose preemption is taken back.

    ``asked``: what Nova was asked for first.
    """
    if seen is None:
        return victim_status.GONE
    if eviction_steps.is_offloaded(seen) or _was_shelved(seen, asked):
        return victim_status.SHELVED
    if is_leaving(seen):
        # Nobody knows yet what it will be, nor when Nova frees its space.
        return victim_status.ENDING
    if seen.host != host:
        return victim_status.MIGRATED
    # One that is being deleted may look as before: where it was resized Nova
    # confirms that first, and forgets its task.
    return (
        victim_status.ENDING if asked == "force_delete" else victim_status.KEPT
    )


def may_stay(seen: ObservedServer | None, status: str) -> bool:
    """Tell whether one that ends, by closing_status(), may have been refused.

    Nothing shows that Nova is at it.
    """
    return (
        status == victim_status.ENDING and seen is not None
        and not is_leaving(seen))


def last_status(seen: ObservedServer | None, asked: str) -> str | None:
    """Return what became of one that was ending then, None while it is.

    KEPT counts where it is seen twice in a row only: one that is being deleted
    may look as before for a while.

    ``asked``: what Nova was asked for first.
    """
    # Nova keeps the record for a moment longer.
    if seen is None or seen.vm_state == "deleted":
        return victim_status.GONE
    if seen.task_state is not None:
        return None
    if eviction_steps.is_offloaded(seen) or _was_shelved(seen, asked):
        return victim_status.SHELVED
    return victim_status.KEPT


def have_left(statuses: Iterable[str]) -> bool:
    """Tell whether all victims with these statuses have left their place.

    Not those that a roll-back has kept: their space was never given away.
    """
    return not any(status in victim_status.STAYING for status in statuses)


def _was_shelved(seen: ObservedServer, asked: str) -> bool:
    """Tell whether it was shelved to give way, and is on its host still.

    Nova may be told to offload servers later. What its owner has shelved was
    to be offloaded only.
    """
    return (
        seen.vm_state == "shelved" and seen.task_state is None
        and return_controller.is_shelved_by(asked))


def preemptor_outcome(
    server: ObservedServer | None, host: str, operation: str, flavor: str
) -> str | None:
    """Return what became of it, None if nobody can tell yet.

    ``server``: None if Nova knows nothing of it; ``host``: that was cleared
    for it; ``flavor``: the name of the one that it was to have.
    """
    if server is None:
        return DELETED
    if server.deleted:
        served = server.launched_at is not None and server.host == host
        return SERVED if served else DELETED
    if server.vm_state == "deleted":
        # Not quite: whether it ever was there is told once it is.
        return None
    if server.vm_state == "error":
        # One that is evacuated out of it stays in it until it is rebuilt.
        is_rebuilt = (
            operation == "evacuate"
            and server.task_state in eviction_steps.MOVING)
        return None if is_rebuilt else FAILED
    if server.task_state is not None or server.vm_state == "building":
        return None
    if eviction_steps.is_offloaded(server):
        return FAILED
    if operation == "resize" and server.flavor != flavor:
        return FAILED
    return SERVED if server.host == host else ELSEWHERE
