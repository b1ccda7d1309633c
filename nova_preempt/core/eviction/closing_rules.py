# SPDX-License-Identifier: Apache-2.0

"""Decides how the victims of a closed preemption ended, and its server.

After a rollback, victims that still exist keep running with their allocations.
Victims that Nova is deleting or shelving are polled until their state is
known.
"""

from collections.abc import Iterable, Mapping
import itertools

from nova_preempt.core import capacity
from nova_preempt.core import eligibility
from nova_preempt.core import eviction_actions
from nova_preempt.core import eviction_status
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction import return_controller
from nova_preempt.core.model import Resources
from nova_preempt.core.observed_server import DELETING
from nova_preempt.core.observed_server import ObservedServer

#: It is on the host whose victims ended for it, with the right flavor.
SERVED = "served"
#: It is on another host.
ELSEWHERE = "elsewhere"
#: It is in ERROR, or unchanged: the victims ended in vain.
FAILED = "failed"
#: It was deleted before it was seen on the host.
DELETED = "deleted"


#: How long a call whose answer was lost may take to arrive.
LATE_S = 60.0


def is_there(seen: ObservedServer | None, host: str) -> bool:
    """Return whether a victim is on the host, and needs its allocations.

    A deletion or a shelve in progress changes nothing: it may fail, at any
    time.
    """
    return seen is not None and (
        seen.host == host and not eviction_steps.is_offloaded(seen))


def is_leaving(seen: ObservedServer) -> bool:
    """Return whether Nova is deleting or shelving a server."""
    return seen.task_state in DELETING | eviction_steps.SHELVING


def is_moving(seen: ObservedServer) -> bool:
    """Return whether a server may move to another host.

    Nova's migration holds no allocation on the source host, since the victim
    had none when it began. So its allocations remain as they are until it is
    over.
    """
    return seen.task_state in eviction_steps.MOVING


def lacks_space(has: Mapping[str, Resources], had: Mapping[str, Resources],
                provider: str) -> bool:
    """Return whether a server on its host gets back its allocations.

    Not a server with more than it had: it was resized on its host since. After
    a failed migration Nova leaves a server its allocations for the other host,
    if it had none on its own when the migration began.

    ``has``, ``had``: {uuid of a provider: {class: amount}}; ``provider``: the
    uuid of the root provider of its host.
    """
    if provider in had and provider not in has:
        return True
    return has != had and capacity.fits(
        capacity.by_slot(has), capacity.by_slot(had))


def lacks_what_stop_freed(
    has: Mapping[str, Resources], had: Mapping[str, Resources]) -> bool:
    """Return whether a stopped victim gets back what its stop has freed.

    Not a server with more than the stop left it: it got that back, or was
    migrated or resized since, and Nova has claimed what it needs.

    ``has``, ``had``: {uuid of a provider: {class: amount}}
    """
    left = {uuid: eviction_actions.kept(resources, eviction_actions.STOP)
            for uuid, resources in had.items()}
    return capacity.fits(capacity.by_slot(has), capacity.by_slot(left))


def is_at_rest(seen: ObservedServer) -> bool:
    """Return whether it is offloaded, and is not being unshelved."""
    return eviction_steps.is_offloaded(seen) and seen.task_state is None


def closing_status(seen: ObservedServer | None, host: str, asked: str) -> str:
    """Return the status of a victim when its preemption is rolled back.

    ``asked``: the first call to Nova.
    """
    if seen is None:
        return eviction_status.GONE
    if eviction_steps.is_offloaded(seen) or _was_shelved(seen, asked):
        return eviction_status.SHELVED
    if is_leaving(seen):
        # Its next state is not known yet, nor when Nova frees its allocations.
        return eviction_status.ENDING
    if seen.host != host:
        return eviction_status.MIGRATED
    # A server that is being deleted may look unchanged: Nova confirms a resize
    # first, and resets its task. And a call whose answer was lost may be late.
    # After a stop that may be the lock.
    may_end = asked in ("force_delete", "stop") or (
        asked == "shelve" and seen.vm_state in eligibility.RUNNING)
    return eviction_status.ENDING if may_end else eviction_status.KEPT


def may_stay(seen: ObservedServer | None, status: str) -> bool:
    """Return whether the call to end a victim may have been refused.

    Its closing_status() is ENDING, but Nova shows no task.
    """
    return status == eviction_status.ENDING and (
        seen is not None and not is_leaving(seen))


def last_status(seen: ObservedServer | None, asked: str, unchanged_s: float
                ) -> str | None:
    """Return the final status of a victim that was ENDING, None until then.

    KEPT of a running server counts only after LATE_S: one that is being
    deleted may look unchanged for a while, and a call whose answer was lost
    may be late.

    ``asked``: the first call to Nova; ``unchanged_s``: for how long it was
    seen without a task
    """
    # Nova removes the record a moment later.
    if seen is None or seen.vm_state == "deleted":
        return eviction_status.GONE
    if seen.task_state is not None:
        return None
    if eviction_steps.is_offloaded(seen) or _was_shelved(seen, asked):
        return eviction_status.SHELVED
    may_end = seen.vm_state in eligibility.RUNNING and unchanged_s < LATE_S
    return None if may_end else eviction_status.KEPT


def is_left_off(
    vm_state: str, actions: Iterable[tuple[str, str | None, str | None]]
) -> bool:
    """Return whether a failed shelve has switched a server off.

    Nova switches the guest off before it makes the image; if that fails, it
    restores the task state only (_shelve_instance in nova/compute/manager.py).
    Its record shows power_state RUNNING until _sync_instance_power_state there
    compares it with the hypervisor, which at once stops the server, for no
    project, and again later if that fails. So only the actions on the server
    tell it; of others that failed, only a stop counts that was asked for: it
    is to be off. Nova's API starts an active server by a hard reboot only
    (nova/compute/api.py).

    ``actions``: (name, message, project id) of each, the latest first
    """
    kinds = [
        "failed" if (name, message) == ("shelve", "Error")
        else "by Nova" if (name, project) == ("stop", None) else name
        for name, message, project in actions
        if name not in ("lock", "unlock") and (message != "Error" or (
            name == "shelve" or (name == "stop" and project)))]
    if vm_state == "stopped":
        # An eviction tries again to shelve it.
        kinds = [*itertools.dropwhile("failed".__eq__, kinds)]
        return kinds[:2] == ["by Nova", "failed"]
    return vm_state in ("active", "paused") and kinds[:1] == ["failed"]


def have_left(statuses: Iterable[str]) -> bool:
    """Return whether all victims with these statuses have left their hosts.

    Not those that a roll-back has kept: their capacity was never given away.
    """
    return not any(status in eviction_status.STAYING for status in statuses)


def _was_shelved(seen: ObservedServer, asked: str) -> bool:
    """Return whether an eviction shelved it, and it is not offloaded yet.

    Nova may be configured to offload servers later. A server that its owner
    has shelved was to be offloaded only.
    """
    return (seen.vm_state == "shelved" and seen.task_state is None
            and return_controller.is_shelved_by(asked))


def preemptor_outcome(
    server: ObservedServer | None, host: str, operation: str, flavor: str
) -> str | None:
    """Return the outcome of the preemptor, None if it is not known yet.

    ``server``: None if Nova has no record of it; ``host``: where its victims
    ended; ``flavor``: the name of its flavor after the operation.
    """
    if server is None:
        return DELETED
    if server.deleted:
        served = server.launched_at is not None and server.host == host
        return SERVED if served else DELETED
    if server.vm_state == "deleted":
        # The launch time is known once it is deleted.
        return None
    if server.vm_state == "error":
        # A server that is evacuated stays in ERROR until it is rebuilt.
        is_rebuilt = operation == "evacuate" and (
            server.task_state in eviction_steps.MOVING)
        return None if is_rebuilt else FAILED
    if server.task_state is not None or server.vm_state == "building":
        return None
    if eviction_steps.is_offloaded(server):
        return FAILED
    if operation == "resize" and server.flavor != flavor:
        return FAILED
    return SERVED if server.host == host else ELSEWHERE
