# SPDX-License-Identifier: Apache-2.0

"""The next step with a victim, given what Nova shows of it now.

Asked before every act upon a victim, by whoever ends it; rollback.py has
what becomes of one whose preemption is taken back. During a notice a server
may become anything: its owner shelves, resizes or deletes it, an administrator
moves it. Who is off the host and holds nothing there has given way, however
that came about.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import enum

from nova_preempt.core import actions as core_actions
from nova_preempt.core import eligibility
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import DELETING
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.core.victim_status import GONE
from nova_preempt.core.victim_status import MIGRATED
from nova_preempt.core.victim_status import SHELVED
from nova_preempt.core.victim_status import STOPPED

#: Operations whose servers end wherever they are: to be somewhere else is not
#: what they get their notice for.
FOR_GOOD = frozenset(("maximum_runtime",))

#: Of a server that is being shelved, or shelved already and offloaded.
SHELVING = frozenset(
    (
        "shelving",
        "shelving_image_pending_upload",
        "shelving_image_uploading",
        "shelving_offloading",
    ))
#: Of a server that will be elsewhere, or here, but is not yet either.
MOVING = frozenset(
    (
        "migrating",
        "resize_prep",
        "resize_migrating",
        "resize_migrated",
        "resize_finish",
        "resize_reverting",
        "resize_confirming",
        "rebuilding",
        "rebuild_block_device_mapping",
        "rebuild_spawning",
    ))
_LEAVING = DELETING | SHELVING | MOVING

_OFFLOADED = "shelved_offloaded"
_ADMINISTRATORS = eligibility.Rules()

#: How often an action that Nova accepted but that did not happen is asked
#: for again, and what Nova forgets to free or to finish is looked at.
ASK_AGAIN_S = 10.0
#: After how long a migration that was accepted shows.
BEGUN_S = 1.0
#: For how long a start that Nova accepted before a lock may not show.
LOCKED_S = 1.0

LOCK = "lock"
#: Calls of Nova's API after which a victim ends, or moves. What comes before
#: them leaves it where it is.
_LAST_CALLS = frozenset(("force_delete", "shelve", "shelve_offload", "stop",
                         "live_migrate", "abort_migration"))


class StepKind(enum.Enum):
    """Kinds of steps."""

    WAIT = "wait"
    #: look whether it holds anything on its host, and ask anew
    LOOK = "look"
    #: look whether its host's compute service is up, and ask anew
    LOOK_AT_HOST = "look_at_host"
    #: ask Nova for ``Step.detail``
    ASK = "ask"
    #: free what Nova has forgotten to; then it is done
    FREE = "free"
    #: it is stopped: have nobody start it
    LOCK = "lock"
    #: it is stopped and locked: leave it what it needs; then it is done
    LEAVE_STOPPED = "leave_stopped"
    #: it has given way; ``Step.detail`` says how
    DONE = "done"
    #: it cannot be migrated: ask anew for what follows
    NEXT = "next"
    #: it has not given way in time
    GIVE_UP = "give_up"
    #: it must not end any more; ``Step.detail`` says why
    KEEP = "keep"


@dataclasses.dataclass(frozen=True, slots=True)
class VictimStep:
    """What to do with a victim."""

    what: StepKind
    detail: str = ""


WAIT = VictimStep(StepKind.WAIT)
_LOOK = VictimStep(StepKind.LOOK)
_LOOK_AT_HOST = VictimStep(StepKind.LOOK_AT_HOST)
_NEXT = VictimStep(StepKind.NEXT)


@dataclasses.dataclass(frozen=True, slots=True)
class VictimTerms:
    """How a victim ends.

    ``host``: where it has to give way; ``action``: delete, shelve or stop;
    ``allowed``: what else the operator allows; ``migrate``: whether it is
    moved if it can be; ``for_good``: whether it ends wherever it is;
    ``rules``: whose locks leave it alone. ``pinned``: whether its host lets
    go of something of it, a device or a NUMA cell, only after its deletion.
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
    """How far the end of a victim is; times are by one clock.

    ``acting_since_us``: when the notice of all was over. ``asked``,
    ``asked_us``: what Nova was asked for last. ``migration_over``: whether it
    cannot be moved.
    ``gone_us``: when Nova was first seen to know it no more.
    ``offloaded_us``: when it was first seen offloaded, and held by its host.
    ``locked_us``: when it was locked, as it was stopped.
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
        """Whether it was asked to end or to move, so that this is finished."""
        return self.asked in _LAST_CALLS or self.may_be_locked

    @property
    def may_be_locked(self) -> bool:
        """Whether Nova was asked to lock it; the answer may be lost."""
        return self.asked == LOCK or self.locked_us is not None


def next_step(seen: ObservedServer | None, terms: VictimTerms,
              progress: Progress, now_us: int, *, known: bool = True,
              holds: bool | None = None,
              host_up: bool | None = None) -> VictimStep:
    """Return the next step with a victim.

    ``seen``: None if Nova knows it no more. ``known``: False if nobody can
    tell. ``holds``: whether it has anything on its host (or anywhere, where
    it is gone), in Placement; None if nobody has looked. ``host_up``: whether
    the compute service of its host is up; None if nobody has looked.
    """
    step = _next_step(seen, terms, progress, now_us, known=known, holds=holds)
    asks = step.what is StepKind.ASK and step.detail in _LAST_CALLS
    if terms.for_good or not (asks or step == WAIT):
        return step
    if host_up is False:
        # Nova would delete it from its records alone, and the space would go
        # to a server that nobody can build.
        return VictimStep(StepKind.KEEP, host_is_down(terms.host))
    return _LOOK_AT_HOST if asks and host_up is None else step


def host_is_down(host: str) -> str:
    """Return why no victim of a host ends."""
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
    """Return how long after the notice of all a victim may take to end."""
    return terms.timeout_s + (terms.migrate_timeout_s if terms.migrate else 0)


def has_passed(seconds: float, since_us: int, now_us: int) -> bool:
    """Tell whether it is so long ago."""
    return now_us - since_us >= round(seconds * SECOND)


def _is_kept_by_lock(
    seen: ObservedServer, terms: VictimTerms, progress: Progress) -> bool:
    """Tell whether a lock that was set during the notice leaves it alone.

    Our own locks do not, nor what comes once it was asked to end.
    """
    return (
        terms.rules.counts(seen.locked_by) and not progress.has_begun
        and seen.task_state not in _LEAVING and not is_away(seen, terms))


def is_gone(seen: ObservedServer | None, terms: VictimTerms) -> bool:
    """Tell whether a server is deleted.

    Nova says so once its guest and its disks are gone from the host. It takes
    the record away after it has updated what the host and Placement have.
    """
    return seen is None or (
        not terms.pinned and seen.vm_state == "deleted"
        and seen.task_state is None)


def is_away(seen: ObservedServer, terms: VictimTerms) -> bool:
    """Tell whether it has left its host, as far as Nova's record says."""
    if is_offloaded(seen):
        return True
    return (
        not terms.for_good and seen.host != terms.host
        and seen.task_state is None)


def is_offloaded(seen: ObservedServer) -> bool:
    """Tell whether it needs no host, or has none yet while it returns."""
    return seen.vm_state == _OFFLOADED and seen.task_state in (
        None, "unshelving")


def is_held(seen: ObservedServer) -> bool:
    """Tell whether it is offloaded, and its host has not let go of it yet.

    Nova takes the host from it last. Where its compute dies just before, that
    is never done.
    """
    return is_offloaded(seen) and seen.host is not None


def _gone(progress: Progress, now_us: int, holds: bool | None) -> VictimStep:
    if holds is None:
        return _LOOK
    if not holds:
        return VictimStep(StepKind.DONE, GONE)
    # Nova frees the space of a server just after it knows it no more.
    if not _is_since(progress.gone_us, now_us):
        return WAIT
    return VictimStep(StepKind.FREE, GONE)


def _is_since(when_us: int | None, now_us: int) -> bool:
    """Tell whether Nova has had the time to finish since then."""
    return when_us is not None and has_passed(ASK_AGAIN_S, when_us, now_us)


def _away(
    seen: ObservedServer, terms: VictimTerms, progress: Progress, now_us: int,
    holds: bool | None, ) -> VictimStep:
    if not is_away(seen, terms):
        return WAIT
    if seen.vm_state == "resized":
        # What is left of it here is kept for the case that it comes back.
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
    """Ask Nova for something, not too often."""
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
    # What was read before Nova has shown that it has begun says nothing: who
    # gives up now would end a server on its way.
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
        # What it will be is not known yet, nor where.
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
    # Its owner may have started it after we looked and before it was locked.
    if not has_passed(LOCKED_S, progress.locked_us, seen.read_us):
        return WAIT
    return VictimStep(StepKind.LEAVE_STOPPED, STOPPED)
