# SPDX-License-Identifier: Apache-2.0
"""Controller of returns: unshelves shelved victims once there is room.

Several at once, the one that ended first before all others. An unshelved
server is a preemptible request like any other: it takes what is free and
never preempts. One that takes longer to come than until its next try keeps
nobody waiting.

Those of a class of service come before all others, for as long as it takes;
the scheduler may end others of a class for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import enum
import heapq
import itertools
import math
from typing import Protocol, TypeAlias

from nova_preempt.core import capacity
from nova_preempt.core.controller import Step
from nova_preempt.core.model import SECOND, Resources

#: How long after a failed return the next is tried, in seconds; twice as long
#: each time, up to LONGEST_S.
INTERVAL_S = 60
LONGEST_S = 3600

#: How long one that was asked to come counts as coming without a look, and
#: how long it is between two looks at one.
LOOK_S = 60
#: How many servers are looked at in one step since their last look is that
#: long ago: where there are more, it takes longer until each has its turn.
MOST_LOOKS = 50

#: How long a server that is offloaded may still have its host. Nova takes it
#: away last, from one that has come back meanwhile, too; never where its
#: compute died just before.
LET_GO_S = 600

_COMING = frozenset(("unshelving", "spawning"))

# Who is offloaded has no host; who is not is started where it is.
_SHELVED = frozenset(("SHELVED", "SHELVED_OFFLOADED"))
_DELETED = frozenset(("SOFT_DELETED", "DELETED"))


# What is asked for first of one that is shelved in the end.
_TOWARDS_SHELVED = frozenset(
    ("shelve", "confirm_resize", "unrescue", "live_migrate"))


class ShelvedState(enum.Enum):
    """State of a shelved server, as a look at it shows."""

    GONE = "gone"  # its owner has deleted it
    BACK = "back"
    COMING = "coming"
    BUSY = "busy"  # something else is being done with it
    SHELVED = "shelved"


@dataclasses.dataclass(frozen=True, slots=True)
class ShelvedVictim:
    """A victim that was shelved, and what it needs to come back.

    :ivar tries: how often it was asked to come since
    :ivar next_try_us: when it may be asked again
    :ivar period_s: how long after a try the next one is, of one of a class;
        None of others
    """

    uuid: str
    resources: Resources
    ended_us: int = 0
    tries: int = 0
    next_try_us: int | None = None
    period_s: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The operator's options of the same names, without restore_."""

    at_once: int
    timeout_s: int


@dataclasses.dataclass(frozen=True, slots=True)
class Unshelve:
    """Write down the next try, then ask a server to come back."""

    uuid: str
    next_try_us: int


@dataclasses.dataclass(frozen=True, slots=True)
class GiveUp:
    """Leave a server to its owner: there was no room for too long."""

    uuid: str


@dataclasses.dataclass(frozen=True, slots=True)
class Close:
    """Forget a server that is gone, or back."""

    uuid: str
    sight: ShelvedState


Intent: TypeAlias = Unshelve | GiveUp | Close


class Observed(Protocol):
    """The shelved victims that are to come back, and the room for them."""

    options: Options

    def asked(self) -> Iterable[ShelvedVictim]:
        """Return those that were asked to come, and may be on their way."""

    def waiting(self) -> Iterable[Iterable[ShelvedVictim]]:
        """Return those of no class, in groups of one size each.

        A group is in order of (end, uuid), and may be gone through again.
        """

    def of_class(self) -> Iterable[ShelvedVictim]:
        """Return those of a class that wait."""

    def unseen(self) -> Sequence[str]:
        """Return the uuids of those that had no look for LOOK_S.

        The one whose look is the longest ago comes first.
        """

    def sight(self, uuid: str) -> ShelvedState | None:
        """Look at one; None if nothing can be seen."""

    def holds(self, uuid: str) -> bool:
        """Tell whether one on its way has its room already."""

    def room(self, server: ShelvedVictim) -> Mapping[str, Resources]:
        """Return what is free, by host, on hosts with room for one."""

    def choose(self, waiting: Sequence[ShelvedVictim], most: int,
               memory: int | None, now_us: int) -> Step[str, int | None]:
        """Return the uuids of those of a class that come next, in order."""


def step(
    observed: Observed, memory: int | None, now_us: int
) -> Step[Intent, int | None]:
    """Return who is asked to come, left to its owner, or back.

    :param memory: that of observed.choose()
    """
    options = observed.options
    unseen = observed.unseen()[:MOST_LOOKS]
    sights = {
        each.uuid: observed.sight(each.uuid)
        for each in _to_look_at(observed, frozenset(unseen), now_us)}
    coming = [
        each for each in observed.asked()
        if sights.get(each.uuid) is ShelvedState.COMING]
    left: list[Intent] = [
        GiveUp(each.uuid) for group in observed.waiting()
        for each in _too_late(group, options, now_us)]
    chosen: list[ShelvedVictim] = []
    ready = {each.uuid: each
             for each in _ready(observed.of_class(), options, now_us)}
    if ready:
        found = observed.choose(
            [*ready.values()], options.at_once - len(coming), memory, now_us)
        memory = found.memory
        chosen += [ready[uuid] for uuid in found.intents]
    chosen += _choose_others(observed, [*coming, *chosen], now_us)
    for uuid in sorted(set(unseen) - sights.keys() - {
            each.uuid for each in chosen} - {each.uuid for each in left}):
        sights[uuid] = observed.sight(uuid)
    return Step((
        *(Close(uuid, sight) for uuid, sight in sorted(sights.items())
          if sight in (ShelvedState.GONE, ShelvedState.BACK)),
        *left,
        *(Unshelve(each.uuid, now_us + SECOND * _pause_s(
            each, each.tries)) for each in chosen),
    ), memory)


def _to_look_at(observed: Observed, unseen: Collection[str], now_us: int
                ) -> Iterator[ShelvedVictim]:
    """Yield those that were asked to come, as often as they have a look.

    Nova may not show yet that one was asked lately.
    """
    for each in observed.asked():
        to_next_s = _to_next_s(each, now_us)
        just_asked = _pause_s(each, each.tries - 1) - to_next_s <= LOOK_S
        if to_next_s > 0 and (just_asked or each.uuid in unseen):
            yield each


def _ready(
    servers: Iterable[ShelvedVictim], options: Options, now_us: int
) -> Iterator[ShelvedVictim]:
    """Yield those that may be asked to come now."""
    for each in servers:
        if _to_next_s(each, now_us) <= 0 and not _is_over(
                each, options, now_us):
            yield each


def _too_late(
    group: Iterable[ShelvedVictim], options: Options, now_us: int
) -> Iterator[ShelvedVictim]:
    """Yield those for which there was no room for too long.

    One that was asked may still come until its next try.
    """
    for each in group:
        if not _is_over(each, options, now_us):
            return
        if _to_next_s(each, now_us) <= 0:
            yield each


def _is_over(each: ShelvedVictim, options: Options, now_us: int) -> bool:
    """Tell whether room was looked for as long as it may be."""
    timeout_s = math.inf if each.period_s is not None else options.timeout_s
    return now_us - each.ended_us >= timeout_s * SECOND


def _choose_others(
    observed: Observed, coming: Sequence[ShelvedVictim], now_us: int
) -> list[ShelvedVictim]:
    """Return those of no class that are asked to come."""
    options = observed.options
    if len(coming) >= options.at_once:
        return []
    rooms: dict[str, Resources] = {}
    fitting = []
    for group in observed.waiting():
        ready = _ready(group, options, now_us)
        for first in ready:
            room = observed.room(first)
            rooms.update(room)
            if room:
                fitting.append(itertools.chain([first], ready))
            break
    if not fitting:
        return []
    coming = [
        dataclasses.replace(each, resources={})
        if observed.holds(each.uuid) else each for each in coming]
    return choose(
        heapq.merge(*fitting, key=lambda each: (each.ended_us, each.uuid)),
        coming, rooms, options.at_once)


def is_shelved_by(asked: str) -> bool:
    """Tell whether one that is shelved was shelved to give way.

    What its owner has shelved, before it was chosen or in answer to its
    notice, was to be offloaded at most.

    :param asked: what Nova was asked for first
    """
    return asked in _TOWARDS_SHELVED


def pause_s(interval_s: int, tries: int) -> int:
    """How long after a try the next one is, with so many tries before it."""
    # Beyond that many doublings the longest is reached whatever it began at.
    return min(LONGEST_S, interval_s << min(tries, 12))


def _pause_s(each: ShelvedVictim, tries: int) -> int:
    """Return how long after a try the next one is, with so many before."""
    if each.period_s is not None:
        return each.period_s
    return pause_s(INTERVAL_S, max(0, tries))


def _to_next_s(each: ShelvedVictim, now_us: int) -> float:
    """Return how long it is until the next try, if it was asked at all.

    Not longer than it ever is, by more than clocks of engines may differ:
    else the clock was set back since that time was written.
    """
    if not each.tries or each.next_try_us is None:
        return 0
    left_s = (each.next_try_us - now_us) / SECOND
    longest_s = _pause_s(each, each.tries - 1) + LOOK_S
    return left_s if left_s <= longest_s else 0


def is_held(
        status: str | None, task_state: str | None, host: str | None) -> bool:
    """Whether it is offloaded, and its host has not let go of it yet."""
    return (
        status == "SHELVED_OFFLOADED" and task_state is None
        and host is not None)


def has_run_since(launched_at: datetime.datetime | None,
                  launched_before: datetime.datetime | None,
                  ended_at: datetime.datetime) -> bool:
    """Whether it has been started anew since it gave way.

    The clocks of computes and ours need not agree, so that a launch that was
    known before counts as none.

    :param launched_at: when it was launched last, by Nova's record
    :param launched_before: the same as it was chosen to give way
    """
    return (
        launched_at is not None and launched_at != launched_before
        and launched_at > ended_at)


def classify(status: str | None, task_state: str | None, host: str | None,
             held_s: float, *, has_run: bool = False) -> ShelvedState:
    """Say what Nova shows.

    :param status: None if there is no such server
    :param held_s: for how long it was seen to be is_held()
    :param has_run: see has_run_since()
    """
    if status is None:
        return ShelvedState.GONE
    if task_state is not None:
        return (ShelvedState.COMING if task_state in _COMING
                else ShelvedState.BUSY)
    if is_held(status, task_state, host) and held_s < LET_GO_S:
        return ShelvedState.BUSY
    if status in _DELETED:
        return ShelvedState.GONE
    if has_run:
        # It was back, and its owner has shelved it again.
        return ShelvedState.BACK
    return ShelvedState.SHELVED if status in _SHELVED else ShelvedState.BACK


def choose(waiting: Iterable[ShelvedVictim], coming: Iterable[ShelvedVictim],
           room: Mapping[str, Resources], most: int) -> list[ShelvedVictim]:
    """Return the servers that may be unshelved now, in this order.

    1. What is on its way, and holds nothing yet, takes its room first.
    2. Then each that waits, the first before all others, takes room on the
       first host that has it. One that finds none lets others pass.
    3. No more than ``most`` are on their way at once.

    Where they come to the scheduler decides: this only keeps more from being
    asked than there is room for.

    :param room: what is free, by host
    """
    free = {host: dict(resources) for host, resources in room.items()}
    on_their_way = 0
    for item in coming:
        _take(free, item.resources)
        on_their_way += 1
    chosen = []
    for item in waiting:
        if on_their_way >= most:
            break
        if _take(free, item.resources):
            chosen.append(item)
            on_their_way += 1
    return chosen


def _take(free: dict[str, dict[str, int]], resources: Resources) -> bool:
    for host in sorted(free):
        if capacity.fits(resources, free[host]):
            free[host] = capacity.subtract(free[host], resources)
            return True
    return False
