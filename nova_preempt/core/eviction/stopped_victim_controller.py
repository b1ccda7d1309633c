# SPDX-License-Identifier: Apache-2.0
"""Controller of stopped victims: deletes each at the end of its retention."""

import dataclasses
import enum

from nova_preempt.core import eligibility
from nova_preempt.core.controller_step import Step
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import ObservedServer


class NextAction(enum.Enum):
    """The next action for a victim that was stopped."""

    DELETE = "delete"
    #: it runs again: restore the allocations taken from it
    GIVE_BACK = "give back"
    #: Nova has no record of it
    GONE = "gone"
    #: it was shelved since, and holds nothing on its host
    SHELVED = "shelved"
    #: report that it is kept beyond its retention
    NOT_OURS = "not ours"


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """A victim that was stopped.

    :ivar seen: None if Nova has no record of it
    :ivar ours: whether its lock has the reason of this service
    :ivar paused: whether deletions are paused
    """

    seen: ObservedServer | None
    stopped_us: int
    retention_s: int
    ours: bool = True
    paused: bool = False


def is_kept(stopped_us: int, retention_s: int, now_us: int) -> bool:
    """Return whether the retention of a stopped victim is not over yet."""
    return now_us - stopped_us < retention_s * SECOND


def step(
    observed: Observed, memory: None, now_us: int) -> Step[NextAction, None]:
    """Return the action for a victim, and when its retention ends.

    A running victim is never deleted, since an administrator may have unlocked
    and started it; nor is one that was unlocked, or locked for another reason.
    """
    action = _next_action(observed, now_us)
    ends_us = observed.stopped_us + observed.retention_s * SECOND
    return Step(() if action is None else (action,), memory,
                ends_us if action is None and now_us < ends_us else None)


def _next_action(observed: Observed, now_us: int) -> NextAction | None:
    seen = observed.seen
    left = having_left(seen)
    if left is not None or seen is None:
        return left
    if seen.task_state is not None:
        return None
    if seen.vm_state in eligibility.RUNNING:
        return NextAction.GIVE_BACK
    if observed.paused or is_kept(
            observed.stopped_us, observed.retention_s, now_us):
        return None
    return NextAction.DELETE if observed.ours else NextAction.NOT_OURS


def having_left(seen: ObservedServer | None) -> NextAction | None:
    """Return GONE or SHELVED if it holds nothing on its host, or None."""
    if seen is None:
        return NextAction.GONE
    if seen.task_state is None and eviction_steps.is_offloaded(seen):
        return NextAction.SHELVED
    return None
