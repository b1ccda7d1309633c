# SPDX-License-Identifier: Apache-2.0
"""Controller of returns: unshelves shelved victims once capacity is free.

Several at once, in order of their evictions. An unshelved server is a
preemptible request like any other: it uses free capacity and never preempts. A
server that has not returned until its next try delays no other.

Servers of a class of service come before all others, without a timeout; the
scheduler may preempt other servers of a class for them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import enum
import heapq
import itertools
import math
from typing import Protocol, TypeAlias

from nova_preempt.core import capacity
from nova_preempt.core.controller_step import Step
from nova_preempt.core.model import SECOND, Resources

#: How long after a failed return the next is tried, in seconds; twice as long
#: each time, up to LONGEST_S.
INTERVAL_S = 60
LONGEST_S = 3600

#: How long an unshelved server counts as returning without a read, and the
#: interval between two reads of a server.
LOOK_S = 60
#: How many servers are read in one step because their last read is that long
#: ago: with more servers, the interval of each grows.
MOST_LOOKS = 50

#: How long an offloaded server may still have its host. Nova clears it last,
#: also from a server that has returned meanwhile; never if its compute died
#: just before.
LET_GO_S = 600

_COMING = frozenset(("unshelving", "spawning"))

# An offloaded server has no host; a shelved one is started on its host.
_SHELVED = frozenset(("SHELVED", "SHELVED_OFFLOADED"))
_DELETED = frozenset(("SOFT_DELETED", "DELETED"))


# First calls of an eviction that shelves a server.
_TOWARDS_SHELVED = frozenset(
    ("shelve", "confirm_resize", "unrescue", "live_migrate"))


class ShelvedState(enum.Enum):
    """State of a shelved victim, by its record in Nova."""

    GONE = "gone"  # its owner has deleted it
    BACK = "back"
    COMING = "coming"
    BUSY = "busy"  # Nova carries out another task
    SHELVED = "shelved"


@dataclasses.dataclass(frozen=True, slots=True)
class ShelvedVictim:
    """A shelved victim, and the resources that it needs to return.

    :ivar tries: how many times it was unshelved since its eviction
    :ivar next_try_us: when it may be unshelved again
    :ivar period_s: the time between two tries of a server of a class; None for
        other servers
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
    """Record the next try, then unshelve a server."""

    uuid: str
    next_try_us: int


@dataclasses.dataclass(frozen=True, slots=True)
class GiveUp:
    """Do not unshelve a server any more: its timeout is over."""

    uuid: str


@dataclasses.dataclass(frozen=True, slots=True)
class Close:
    """Forget a server that is gone, or has returned."""

    uuid: str
    sight: ShelvedState


Intent: TypeAlias = Unshelve | GiveUp | Close


class Observed(Protocol):
    """The shelved victims that shall return, and free capacity."""

    options: Options

    def asked(self) -> Iterable[ShelvedVictim]:
        """Return the servers that were unshelved, and may be returning."""

    def waiting(self) -> Iterable[Iterable[ShelvedVictim]]:
        """Return the servers without a class, in groups of one size each.

        A group is in order of (end, uuid), and can be iterated again.
        """

    def of_class(self) -> Iterable[ShelvedVictim]:
        """Return the waiting servers of a class."""

    def unseen(self) -> Sequence[str]:
        """Return the uuids of servers that were not read for LOOK_S.

        The least recently read comes first.
        """

    def sight(self, uuid: str) -> ShelvedState | None:
        """Read the state of a server; None if it cannot be read."""

    def holds(self, uuid: str) -> bool:
        """Return whether a returning server has its allocations already."""

    def room(self, server: ShelvedVictim) -> Mapping[str, Resources]:
        """Return the free amounts of hosts with capacity for a server."""

    def choose(self, waiting: Sequence[ShelvedVictim], most: int,
               memory: int | None, now_us: int) -> Step[str, int | None]:
        """Return the uuids of the servers of a class to unshelve, in order."""


def step(
    observed: Observed, memory: int | None, now_us: int
) -> Step[Intent, int | None]:
    """Return the servers to unshelve, give up or close.

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
    """Yield the unshelved servers whose state is to be read.

    Nova may not show yet that one was unshelved recently.
    """
    for each in observed.asked():
        to_next_s = _to_next_s(each, now_us)
        just_asked = _pause_s(each, each.tries - 1) - to_next_s <= LOOK_S
        if to_next_s > 0 and (just_asked or each.uuid in unseen):
            yield each


def _ready(
    servers: Iterable[ShelvedVictim], options: Options, now_us: int
) -> Iterator[ShelvedVictim]:
    """Yield the servers that may be unshelved now."""
    for each in servers:
        if _to_next_s(each, now_us) <= 0 and not _is_over(
                each, options, now_us):
            yield each


def _too_late(
    group: Iterable[ShelvedVictim], options: Options, now_us: int
) -> Iterator[ShelvedVictim]:
    """Yield the servers that found no capacity until their timeout.

    A server that was unshelved may still return until its next try.
    """
    for each in group:
        if not _is_over(each, options, now_us):
            return
        if _to_next_s(each, now_us) <= 0:
            yield each


def _is_over(each: ShelvedVictim, options: Options, now_us: int) -> bool:
    """Return whether the timeout of a server is over."""
    timeout_s = math.inf if each.period_s is not None else options.timeout_s
    return now_us - each.ended_us >= timeout_s * SECOND


def _choose_others(
    observed: Observed, coming: Sequence[ShelvedVictim], now_us: int
) -> list[ShelvedVictim]:
    """Return the servers without a class to unshelve."""
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
    """Return whether a preemption shelved a server that is shelved now.

    A server that its owner had shelved, before it was chosen or during its
    notice, was offloaded at most.

    :param asked: the first call to Nova
    """
    return asked in _TOWARDS_SHELVED


def pause_s(interval_s: int, tries: int) -> int:
    """Return the time from a try to the next, after so many tries."""
    # That many doublings reach the longest from any interval.
    return min(LONGEST_S, interval_s << min(tries, 12))


def _pause_s(each: ShelvedVictim, tries: int) -> int:
    """Return the time from a try of a server to the next."""
    if each.period_s is not None:
        return each.period_s
    return pause_s(INTERVAL_S, max(0, tries))


def _to_next_s(each: ShelvedVictim, now_us: int) -> float:
    """Return the seconds until the next try, 0 for a first try.

    At most the interval plus the clock difference of engines: a longer time
    means that the clock was set back since the next try was recorded.
    """
    if not each.tries or each.next_try_us is None:
        return 0
    left_s = (each.next_try_us - now_us) / SECOND
    longest_s = _pause_s(each, each.tries - 1) + LOOK_S
    return left_s if left_s <= longest_s else 0


def is_held(
        status: str | None, task_state: str | None, host: str | None) -> bool:
    """Return whether it is offloaded, but its record still has the host."""
    return (
        status == "SHELVED_OFFLOADED" and task_state is None
        and host is not None)


def has_run_since(launched_at: datetime.datetime | None,
                  launched_before: datetime.datetime | None,
                  ended_at: datetime.datetime) -> bool:
    """Return whether it was started again since its eviction.

    The clocks of computes and of this service may differ, so that a launch
    that was known before does not count.

    :param launched_at: its last launch in Nova's record
    :param launched_before: the same when it was chosen as a victim
    """
    return (
        launched_at is not None and launched_at != launched_before
        and launched_at > ended_at)


def classify(status: str | None, task_state: str | None, host: str | None,
             held_s: float, *, has_run: bool = False) -> ShelvedState:
    """Return the state that Nova's record shows.

    :param status: None if there is no such server
    :param held_s: how long is_held() has been true
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
        # It had returned, and its owner has shelved it again.
        return ShelvedState.BACK
    return ShelvedState.SHELVED if status in _SHELVED else ShelvedState.BACK


def choose(waiting: Iterable[ShelvedVictim],
           coming: Collection[ShelvedVictim],
           room: Mapping[str, Resources], most: int) -> list[ShelvedVictim]:
    """Return the servers to unshelve now, in this order.

    1. A returning server that holds nothing yet takes its capacity first.
    2. Then each waiting server, in order, takes capacity on the first host
       that has it. A server that finds none is passed over.
    3. At most ``most`` servers return at once.

    The scheduler decides on the hosts: this only limits the number of servers
    to the capacity.

    :param room: the free amounts, by host
    """
    free = {host: dict(resources) for host, resources in room.items()}
    for item in coming:
        _take(free, item.resources)
    chosen: list[ShelvedVictim] = []
    for item in waiting:
        if len(coming) + len(chosen) >= most:
            break
        if _take(free, item.resources):
            chosen.append(item)
    return chosen


def _take(free: dict[str, dict[str, int]], resources: Resources) -> bool:
    for host in sorted(free):
        if capacity.fits(resources, free[host]):
            free[host] = capacity.subtract(free[host], resources)
            return True
    return False
