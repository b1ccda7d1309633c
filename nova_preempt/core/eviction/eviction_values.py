# SPDX-License-Identifier: Apache-2.0
"""Values that the eviction controller is given, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_preempt.core import controller
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction.eviction_steps import Progress
from nova_preempt.core.eviction.eviction_steps import StepKind
from nova_preempt.core.observed_server import ObservedServer

#: How old a look at a host may be, so that victims there share it.
HOST_AGE_S = 1.0
#: The same once all have ended, before the host is handed over.
HANDOVER_AGE_S = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Victim:
    """A server that is to be evicted, and the terms of that.

    ``decision``: the uuid of the one that it belongs to.
    """

    uuid: str
    decision: str
    terms: eviction_steps.VictimTerms
    notice_s: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """State of the victims of some decisions.

    What is not in a mapping has not been looked at in this round; where it is
    None nobody can tell.

    ``victims``: in the order in which they are asked; ``waiting``: {uuid of a
    decision: name of the host} of those that a server waits for. ``seen``:
    {uuid: (the record of a victim, None if it is gone, and whether that is
    known)}. ``holds``: {uuid: whether a victim that has left still has its
    space}. ``hosts``: {name: whether it is up}. ``unwanted``: {uuid of a
    decision: why nobody needs the space}. ``is_held``: whether the space that
    victims end for is held by its stand-ins, False where nobody can tell;
    None if that has not been looked at.
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
    """How far the evictions are; times are by the edge's clock.

    ``pending``: {uuid of a victim that has not ended: its Progress}.
    ``closed``: the Progress of others. ``acted_us``: when something changed
    last by what was done here. ``has_notice``: whether all have been given
    notice, but ``unwarned``: their hosts were down. ``stuck``: uuids of those
    that did not end in time. ``unwanted``: {uuid of a decision: why nobody
    needs the space any more}. ``refusals``: {uuid of a victim, or of a
    decision: why it comes to nothing}; nobody else is asked to end.
    ``is_over``: whether nothing more is to be done.
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
        """Whether a victim was asked to end, so that all this is finished."""
        return any(each.has_begun
                   for each in (*self.pending.values(), *self.closed))

    def note(self, uuid: str, **values: Any) -> Memory:
        """Return it with what the edge has done with a victim."""
        return self.note_all({uuid: values})

    def note_all(self, found: Mapping[str, Mapping[str, Any]]) -> Memory:
        """Return it with changes of many, {uuid: {field: value}}."""
        return dataclasses.replace(self, pending={
            **self.pending, **{
                uuid: dataclasses.replace(self.pending[uuid], **values)
                for uuid, values in found.items()}})

    def close(self, uuid: str) -> Memory:
        """Return it where a victim has ended, or is somebody else's."""
        pending = dict(self.pending)
        closed = pending.pop(uuid)
        return dataclasses.replace(
            self, closed=(*self.closed, closed), pending=pending)


@dataclasses.dataclass(frozen=True, slots=True)
class GiveNotice:
    """Give notice to victims, and note in the memory until when it lasts."""

    victims: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ReadServer:
    """Read Nova's record of a victim."""

    victim: str


@dataclasses.dataclass(frozen=True, slots=True)
class ReadAllocation:
    """See whether a victim that has left still has its space."""

    victim: str


@dataclasses.dataclass(frozen=True, slots=True)
class CheckHost:
    """See whether the compute service of a host is up.

    ``victim``: a server there; ``max_age_s``: how old the answer may be.
    """

    host: str
    victim: str
    max_age_s: float = HOST_AGE_S


@dataclasses.dataclass(frozen=True, slots=True)
class CheckClaim:
    """See whether stand-ins still hold the space that victims end for."""


@dataclasses.dataclass(frozen=True, slots=True)
class CallNova:
    """Ask Nova for something, and note that in the memory.

    ``is_recorded``: whether it is written down before.
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

    ``status``: see victim_status. ``first``: What.FREE where Nova has
    forgotten to free its space, What.LEAVE_STOPPED where a stopped server
    keeps some of it.
    """

    victim: str
    status: str
    first: StepKind = StepKind.DONE


@dataclasses.dataclass(frozen=True, slots=True)
class SpareVictim:
    """Say that a victim, or those of a decision, are not evicted, and why."""

    uuid: str
    why: str


Read = ReadServer | ReadAllocation | CheckHost | CheckClaim
Intent = GiveNotice | Read | CallNova | LockVictim | CloseVictim | SpareVictim
Step = controller.Step[Intent, Memory]
