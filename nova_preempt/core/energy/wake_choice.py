# SPDX-License-Identifier: Apache-2.0
"""Chooses sleeping hosts to wake for requests without capacity.

All waiting requests count together: a host that is promised to one is not
promised to another, and promises do not depend on how many may wake at once.
"""

from collections.abc import Callable, Collection, Iterable
import dataclasses
import enum
import fractions
import math

from nova_preempt.core import poll_timing
from nova_preempt.core.energy import power_steps


@dataclasses.dataclass(frozen=True)
class Promise:
    """Capacity of a host that is promised to a request.

    :param servers: of the request
    :param room: how many would fit on the whole host
    """

    request: str
    host: str
    servers: int
    room: int


@dataclasses.dataclass(frozen=True)
class SleepingHost:
    """A host that can wake.

    :param room: how many servers of the request fit on it
    :param waking: whether it is waking already
    :param late: whether its boot, or its shutdown, takes longer than it should
    """

    name: str
    room: int
    waking: bool = False
    late: bool = False
    efficiency: float | None = None


@dataclasses.dataclass(frozen=True)
class PromisedHosts:
    """Promised hosts by what to do with them.

    :param coming: hosts that are not on yet, in the order to wake them
    :param kept: these, and hosts that are on: a request that waits for several
        hosts has no use for the first alone
    :param lost: hosts that will not be on
    """

    coming: tuple[str, ...]
    kept: frozenset[str]
    lost: frozenset[str]


def classify_promises(names: Iterable[str], state: Callable[[str], str],
             switchable: Callable[[list[str]], Collection[str]],
             readable: Callable[[], Collection[str]]) -> PromisedHosts:
    """Sort promised hosts into hosts to wake, to keep on, and to forget.

    :param names: in the order in which they were promised, each once
    :param state: returns one of power_steps.STATES of a host
    :param switchable: returns those of hosts that may be switched
    :param readable: returns the hosts that Nova could be asked for. A host in
        a cell that cannot be read is not lost: its promise ends by its time
    """
    names = list(names)
    asleep = [name for name in names if state(name) in power_steps.COMING]
    may = switchable(asleep) if asleep else ()
    known = readable() if asleep else ()
    coming = tuple(name for name in asleep if name in may)
    kept = frozenset(coming).union(
        name for name in names if state(name) == power_steps.ON
        or (name in asleep and name not in known))
    return PromisedHosts(coming, kept, frozenset(names) - kept)


def kept(request: str, promises: Iterable[Promise],
         is_on: Callable[[str], bool]) -> list[Promise]:
    """Return the promised hosts of a request that are on.

    They are kept for it until it is served.
    """
    return [item for item in promises
            if item.request == request and is_on(item.host)]


def promise(request: str, servers: int, sleepers: Iterable[SleepingHost],
            others: Iterable[Promise]) -> list[Promise]:
    """Return the hosts that a request is to wait for, in the order to wake.

    1. waking hosts, 2. hosts promised to others that have capacity left, 3.
    the most efficient, unknown last, 4. waking hosts whose boot hangs: they
    get a second one. Hosts whose shutdown hangs are left out. Servers of
    another size take the same share of a host as they take of an empty one.

    :param others: all promises; those to this request are ignored
    :returns: for fewer servers than asked if there is no more capacity
    """
    taken: dict[str, fractions.Fraction] = {}
    for item in others:
        if item.request != request:
            taken[item.host] = taken.get(item.host, fractions.Fraction(
            )) + fractions.Fraction(item.servers, max(1, item.room))
    able = [sleeper for sleeper in sleepers
            if sleeper.waking or not sleeper.late]
    ordered = sorted(able, key=lambda sleeper: (
        sleeper.late, not sleeper.waking, sleeper.name not in taken,
        math.inf if sleeper.efficiency is None else -sleeper.efficiency,
        sleeper.name))
    found = []
    for sleeper in ordered:
        free = math.floor(sleeper.room * (1 - taken.get(
            sleeper.name, fractions.Fraction())))
        given = min(free, servers)
        if given > 0:
            found.append(Promise(request, sleeper.name, given, sleeper.room))
            servers -= given
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """The state of a request that waits for hosts to wake.

    :ivar limit: its time limit
    :ivar hosts: the hosts that it was promised last
    :ivar coming: those of them that were not seen on, or failed, since
    :ivar tried: hosts that were on and did not fit it
    """

    limit: poll_timing.BoundedWait
    hosts: frozenset[str] = frozenset()
    coming: frozenset[str] = frozenset()
    tried: frozenset[str] = frozenset()

    def promised(self, hosts: Iterable[str]) -> 'Waiting':
        """Return it with other hosts to wait for."""
        found = frozenset(hosts)
        return dataclasses.replace(self, hosts=found, coming=found)


class NextAction(enum.Enum):
    """The next action of a waiting request."""

    WAIT = 'wait on'
    RETRY = 'ask for a host anew'
    GIVE_UP = 'give up'


def step(waiting: Waiting, state: Callable[[str], str],
         now_s: float) -> tuple[NextAction, Waiting]:
    """Return the next action of a request, as its hosts are now.

    An idle host may be asleep again before the last one is on, and is not
    woken again then.

    :param state: returns one of power_steps.STATES of a host
    """
    waiting = dataclasses.replace(waiting, coming=frozenset(
        name for name in waiting.coming if state(name) in power_steps.COMING))
    is_over = waiting.limit.is_over(now_s)
    if waiting.coming and not is_over:
        return NextAction.WAIT, waiting
    up = frozenset(name for name in waiting.hosts
                   if state(name) == power_steps.ON)
    if not up and is_over:
        return NextAction.GIVE_UP, waiting
    # Hosts that are up and did not fit the request are not retried.
    return NextAction.RETRY, dataclasses.replace(waiting,
        tried=waiting.tried | up)
