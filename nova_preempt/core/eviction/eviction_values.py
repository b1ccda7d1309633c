# SPDX-License-Identifier: Apache-2.0
"""Observed values, memory and intents of the eviction controller."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_preempt.core import controller_step
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction.eviction_steps import Progress
from nova_preempt.core.eviction.eviction_steps import StepKind
from nova_preempt.core.observed_server import ObservedServer

#: How old the state of a host may be, so that victims there share a check.
HOST_AGE_S = 1.0
#: The same after all victims have ended, before the host is handed over.
HANDOVER_AGE_S = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Victim:
    """A server to evict, and its terms.

    ``decision``: the uuid of its decision.
    """

    uuid: str
    decision: str
    terms: eviction_steps.VictimTerms
    notice_s: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """State of the victims of some decisions.

    A key that is missing from a mapping was not read in this round; None: it
    could not be read.

    ``victims``: in the order of their evictions; ``waiting``: {uuid of a
    decision: name of the host} if a server waits for it. ``seen``: {uuid of a
    victim: (its record, None if it is gone; whether it was read)}. ``holds``:
    {uuid: whether a victim off its host still has allocations there}.
    ``hosts``: {name: whether it is up}. ``unwanted``: {uuid of a decision: why
    its capacity is not needed}. ``is_held``: whether stand-ins hold the
    claimed capacity, False if it could not be read; None if it was not read.
    """

    victims: Mapping[str, Victim]
    waiting: Mapping[str, str]
    seen: Mapping[str, tuple[ObservedServer | None, bool]]
    holds: Mapping[str, bool | None]
    hosts: Mapping[str, bool | None]
    unwanted: Mapping[str, str | None]
    is_held: bool | None = True


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """Progress of the evictions; times are by the caller's clock.

    ``pending``: {uuid of a victim that has not ended: its Progress}.
    ``closed``: the Progress of others. ``acted_us``: the time of the last
    action. ``has_notice``: whether all have been given notice, except
    ``unwarned``: their hosts were down. ``stuck``: uuids of victims that timed
    out. ``unwanted``: {uuid of a decision: why its capacity is not needed any
    more}. ``refusals``: {uuid of a victim, or of a decision: why it is given
    up}; no other victim is evicted then. ``is_over``: whether the eviction is
    done.
    """

    pending: Mapping[str, Progress]
    acted_us: int
    closed: tuple[Progress, ...] = ()
    has_notice: bool = False
    unwarned: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    unwanted: Mapping[str, str] = dataclasses.field(default_factory=dict)
    refusals: Mapping[str, str] = dataclasses.field(default_factory=dict)
    is_over: bool = False

    @property
    def has_begun(self) -> bool:
        """Return whether an eviction has begun, so that all must end."""
        return any(each.has_begun
                   for each in (*self.pending.values(), *self.closed))

    def note(self, uuid: str, **values: Any) -> Memory:
        """Return the memory with changes of a victim."""
        return self.note_all({uuid: values})

    def note_all(self, found: Mapping[str, Mapping[str, Any]]) -> Memory:
        """Return the memory with changes, {uuid: {field: value}}."""
        return dataclasses.replace(self, pending={
            **self.pending, **{
                uuid: dataclasses.replace(self.pending[uuid], **values)
                for uuid, values in found.items()}})

    def close(self, uuid: str) -> Memory:
        """Return the memory with a victim closed."""
        pending = dict(self.pending)
        closed = pending.pop(uuid)
        return dataclasses.replace(
            self, closed=(*self.closed, closed), pending=pending)


@dataclasses.dataclass(frozen=True, slots=True)
class GiveNotice:
    """Give notice to victims, and note in the memory when it is over."""

    victims: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ReadServer:
    """Read Nova's record of a victim."""

    victim: str


@dataclasses.dataclass(frozen=True, slots=True)
class ReadAllocation:
    """Read whether a victim off its host still has allocations there."""

    victim: str


@dataclasses.dataclass(frozen=True, slots=True)
class CheckHostUp:
    """Check whether the compute service of a host is up.

    ``victim``: a server there; ``max_age_s``: how old the answer may be.
    """

    host: str
    victim: str
    max_age_s: float = HOST_AGE_S


@dataclasses.dataclass(frozen=True, slots=True)
class CheckClaimedCapacity:
    """Check whether stand-ins still hold the claimed capacity."""


@dataclasses.dataclass(frozen=True, slots=True)
class CallNova:
    """Call a method of Nova's API, and note that in the memory.

    ``is_recorded``: whether the call is recorded in the database first.
    """

    victim: str
    method: str
    is_recorded: bool


@dataclasses.dataclass(frozen=True, slots=True)
class LockVictim:
    """Lock a victim that was stopped, and note that in the memory."""

    victim: str


@dataclasses.dataclass(frozen=True, slots=True)
class CloseVictim:
    """Record how a victim has ended, and close it in the memory.

    ``status``: see eviction_status. ``first``: StepKind.FREE if Nova did not
    free its allocations, StepKind.LEAVE_STOPPED if a stopped server keeps
    some.
    """

    victim: str
    status: str
    first: StepKind = StepKind.DONE


@dataclasses.dataclass(frozen=True, slots=True)
class SpareVictim:
    """Report that a victim, or those of a decision, are not evicted."""

    uuid: str
    why: str


Read = ReadServer | ReadAllocation | CheckHostUp | CheckClaimedCapacity
Intent = GiveNotice | Read | CallNova | LockVictim | CloseVictim | SpareVictim
Step = controller_step.Step[Intent, Memory]
