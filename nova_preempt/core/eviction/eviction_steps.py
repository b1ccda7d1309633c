# SPDX-License-Identifier: Apache-2.0

"""The next step of an eviction, by the victim's present state in Nova.

Computed before every action on a victim; closing_rules.py handles victims of
a rolled back preemption. During a notice a server may change in any way: its
owner shelves, resizes or deletes it, an administrator migrates it. A victim
that is off its host and holds nothing there has ended, by whatever cause.
"""

from collections.abc import Sequence
import dataclasses
import enum

from nova_preempt.core import eligibility
from nova_preempt.core import eviction_actions as core_actions
from nova_preempt.core.eviction_status import GONE
from nova_preempt.core.eviction_status import MIGRATED
from nova_preempt.core.eviction_status import SHELVED
from nova_preempt.core.eviction_status import STOPPED
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import DELETING
from nova_preempt.core.observed_server import ObservedServer

#: Operations whose victims end on whichever host they are: leaving the host is
#: not enough.
FOR_GOOD = frozenset(("maximum_runtime",))

#: Task states of a server that is being shelved or offloaded.
SHELVING = frozenset((
    "shelving", "shelving_image_pending_upload", "shelving_image_uploading",
    "shelving_offloading"))
#: Task states of a server that may move to another host.
MOVING = frozenset((
    "migrating", "resize_prep", "resize_migrating", "resize_migrated",
    "resize_finish", "resize_reverting", "resize_confirming", "rebuilding",
    "rebuild_block_device_mapping", "rebuild_spawning"))
_LEAVING = DELETING | SHELVING | MOVING

_OFFLOADED = "shelved_offloaded"
_ADMINISTRATORS = eligibility.Rules()

#: The interval of repeating a call that Nova accepted but did not carry out,
#: and how long Nova has to free allocations or to finish.
ASK_AGAIN_S = 10.0
#: How long an accepted migration may take to show in the record.
BEGUN_S = 1.0
#: How long a start that Nova accepted before a lock may take to show.
LOCKED_S = 1.0

LOCK = "lock"
#: Calls of Nova's API after which a victim ends, or moves. Earlier calls leave
#: it on its host.
_LAST_CALLS = frozenset(("force_delete", "shelve", "shelve_offload", "stop",
                         "live_migrate", "abort_migration"))


class StepKind(enum.Enum):
    """Kinds of steps."""

    WAIT = "wait"
    #: read its allocations on its host, and compute the step again
    LOOK = "look"
    #: check its compute service, and compute the step again
    LOOK_AT_HOST = "look_at_host"
    #: call ``VictimStep.detail`` of Nova
    ASK = "ask"
    #: free the allocations that Nova did not; then it is done
    FREE = "free"
    #: it is stopped: prevent a start
    LOCK = "lock"
    #: it is stopped and locked: free what it does not need; then done
    LEAVE_STOPPED = "leave_stopped"
    #: it has ended; ``VictimStep.detail`` is its status
    DONE = "done"
    #: it cannot be migrated: compute the step that follows
    NEXT = "next"
    #: it has not ended in time
    GIVE_UP = "give_up"
    #: it must not end any more; ``VictimStep.detail`` says why
    KEEP = "keep"


@dataclasses.dataclass(frozen=True, slots=True)
class VictimStep:
    """A step with a victim."""

    what: StepKind
    detail: str = ""


WAIT = VictimStep(StepKind.WAIT)
_LOOK = VictimStep(StepKind.LOOK)
_LOOK_AT_HOST = VictimStep(StepKind.LOOK_AT_HOST)
_NEXT = VictimStep(StepKind.NEXT)


@dataclasses.dataclass(frozen=True, slots=True)
class VictimTerms:
    """Terms of the eviction of a victim.

    ``host``: the host it must leave; ``action``: delete, shelve or stop;
    ``allowed``: all actions that the operator allows; ``migrate``: whether to
    try a live migration first; ``for_good``: whether it ends on whichever host
    it is; ``rules``: the locks that protect it. ``pinned``: whether its host
    releases a resource of it, a device or a NUMA cell, only after its
    deletion.
    """

    host: str
    action: str
    allowed: Sequence[str] = ()
    migrate: bool = False
    for_good: bool = False
    timeout_s: float = 0.0
    migrate_timeout_s: float = 0.0
    rules: eligibility.Rules = _ADMINISTRATORS
    pinned: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an eviction; all times are by one clock.

    ``acting_since_us``: when the notice of all victims was over. ``asked``,
    ``asked_us``: the last call to Nova. ``migration_over``: whether a live
    migration failed or is not possible. ``gone_us``: when Nova was first seen
    to have deleted it. ``offloaded_us``: when it was first seen offloaded
    while it still had a host. ``locked_us``: when it was locked after its
    stop.
    """

    notice_until_us: int
    acting_since_us: int | None = None
    asked: str = ""
    asked_us: int = 0
    migration_over: bool = False
    gone_us: int | None = None
    offloaded_us: int | None = None
    locked_us: int | None = None

    @property
    def has_begun(self) -> bool:
        """Return whether its end or move was requested."""
        return self.asked in _LAST_CALLS or self.may_be_locked

    @property
    def may_be_locked(self) -> bool:
        """Return whether its lock was requested from Nova."""
        return self.asked == LOCK or self.locked_us is not None


def next_step(seen: ObservedServer | None, terms: VictimTerms,
              progress: Progress, now_us: int, *, known: bool = True,
              holds: bool | None = None,
              host_up: bool | None = None) -> VictimStep:
    """Return the next step with a victim.

    ``seen``: None if Nova has no record of it. ``known``: False if it could
    not be read. ``holds``: whether it has allocations on its host (or
    anywhere, if it is gone), in Placement; None if not read. ``host_up``:
    whether the compute service of its host is up; None if not checked.
    """
    step = _next_step(seen, terms, progress, now_us, known=known, holds=holds)
    asks = step.what is StepKind.ASK and step.detail in _LAST_CALLS
    if terms.for_good or not (asks or step == WAIT):
        return step
    if host_up is False:
        # Nova would delete it in the database only, and the capacity would go
        # to a server that cannot be built.
        return VictimStep(StepKind.KEEP, host_is_down(terms.host))
    return _LOOK_AT_HOST if asks and host_up is None else step


def host_is_down(host: str) -> str:
    """Return why no victim of a host is evicted."""
    return f"host {host} is down"


def _next_step(seen: ObservedServer | None, terms: VictimTerms,
               progress: Progress, now_us: int, *, known: bool,
               holds: bool | None) -> VictimStep:
    if known:
        if seen is None or is_gone(seen, terms):
            return _gone(progress, now_us, holds)
        step = _away(seen, terms, progress, now_us, holds)
        if step != WAIT:
            return step
        if _is_kept_by_lock(seen, terms, progress):
            return VictimStep(StepKind.KEEP, "it is locked")
    if progress.acting_since_us is None:
        return WAIT
    if has_passed(patience_s(terms), progress.acting_since_us, now_us):
        return VictimStep(StepKind.GIVE_UP)
    if not known or seen is None or is_away(seen, terms):
        return WAIT
    return _act(seen, terms, progress, now_us)


def patience_s(terms: VictimTerms) -> float:
    """Return how long after the notices a victim may take to end."""
    return terms.timeout_s + (terms.migrate_timeout_s if terms.migrate else 0)


def has_passed(seconds: float, since_us: int, now_us: int) -> bool:
    """Return whether so much time has passed."""
    return now_us - since_us >= round(seconds * SECOND)


def _is_kept_by_lock(
    seen: ObservedServer, terms: VictimTerms, progress: Progress) -> bool:
    """Return whether a lock that was set during the notice protects it.

    A lock of this service does not, nor a lock after it was asked to end.
    """
    return (
        terms.rules.counts(seen.locked_by) and not progress.has_begun
        and seen.task_state not in _LEAVING and not is_away(seen, terms))


def is_gone(seen: ObservedServer | None, terms: VictimTerms) -> bool:
    """Return whether a server is deleted.

    Nova says so once its guest and its disks are gone from the host. It
    removes the record after it has updated the resource tracker and Placement.
    """
    return seen is None or (
        not terms.pinned and seen.vm_state == "deleted"
        and seen.task_state is None)


def is_away(seen: ObservedServer, terms: VictimTerms) -> bool:
    """Return whether it is off its host, by Nova's record."""
    if is_offloaded(seen):
        return True
    return (
        not terms.for_good and seen.host != terms.host
        and seen.task_state is None)


def is_offloaded(seen: ObservedServer) -> bool:
    """Return whether it is offloaded, or has no host yet to unshelve on."""
    return seen.vm_state == _OFFLOADED and seen.task_state in (
        None, "unshelving")


def is_held(seen: ObservedServer) -> bool:
    """Return whether it is offloaded, but its record still has the host.

    Nova clears the host last. If its compute service dies just before, the
    host remains.
    """
    return is_offloaded(seen) and seen.host is not None


def _gone(progress: Progress, now_us: int, holds: bool | None) -> VictimStep:
    if holds is None:
        return _LOOK
    if not holds:
        return VictimStep(StepKind.DONE, GONE)
    # Nova frees the allocations just after it has removed the record.
    if not _is_since(progress.gone_us, now_us):
        return WAIT
    return VictimStep(StepKind.FREE, GONE)


def _is_since(when_us: int | None, now_us: int) -> bool:
    """Return whether Nova has had enough time since then."""
    return when_us is not None and has_passed(ASK_AGAIN_S, when_us, now_us)


def _away(
    seen: ObservedServer, terms: VictimTerms, progress: Progress, now_us: int,
    holds: bool | None, ) -> VictimStep:
    if not is_away(seen, terms):
        return WAIT
    if seen.vm_state == "resized":
        # Its disk and allocations here are kept for a revert.
        return _ask("confirm_resize", progress, now_us)
    if is_held(seen) and not _is_since(progress.offloaded_us, now_us):
        return WAIT
    if holds is None:
        return _LOOK
    if holds:
        return WAIT
    return VictimStep(StepKind.DONE, SHELVED if is_offloaded(
        seen) else MIGRATED)


def _ask(what: str, progress: Progress, now_us: int) -> VictimStep:
    """Return a call of Nova, or WAIT if it was made recently."""
    if progress.asked == what and not has_passed(
            ASK_AGAIN_S, progress.asked_us, now_us):
        return WAIT
    return VictimStep(StepKind.ASK, what)


def _follow_migration(
    seen: ObservedServer, terms: VictimTerms, progress: Progress, now_us: int
) -> VictimStep:
    if seen.task_state is not None:
        late = has_passed(terms.migrate_timeout_s, progress.asked_us, now_us)
        return VictimStep(StepKind.ASK, "abort_migration") if late else WAIT
    # A record that was read before the migration shows does not prove that it
    # failed: an eviction now would end a server that is migrating.
    if has_passed(BEGUN_S, progress.asked_us, seen.read_us):
        return _NEXT
    return WAIT


def _act(
    seen: ObservedServer, terms: VictimTerms, progress: Progress, now_us: int
) -> VictimStep:
    if progress.asked in ("live_migrate", "abort_migration"):
        return _follow_migration(seen, terms, progress, now_us)
    if seen.task_state in _LEAVING or (
        seen.vm_state == _OFFLOADED and seen.task_state is not None):
        # Its next state and host are not known yet.
        return WAIT
    if terms.migrate and not progress.migration_over:
        if seen.vm_state == "active":
            return VictimStep(StepKind.ASK, "live_migrate")
        return _NEXT
    return _end(seen, terms, progress, now_us)


def _end(
    seen: ObservedServer, terms: VictimTerms, progress: Progress, now_us: int
) -> VictimStep:
    call = core_actions.next_call(terms.action, terms.allowed, seen.vm_state)
    if call == "force_delete":
        return _ask(call, progress, now_us)
    if call is None or seen.task_state is not None:
        return WAIT
    if call != eligibility.THERE:
        return _ask(call, progress, now_us)
    if seen.vm_state != "stopped":
        return WAIT
    if progress.locked_us is None:
        return VictimStep(StepKind.LOCK, STOPPED)
    # Its owner may have started it between the read and the lock.
    if not has_passed(LOCKED_S, progress.locked_us, seen.read_us):
        return WAIT
    return VictimStep(StepKind.LEAVE_STOPPED, STOPPED)
