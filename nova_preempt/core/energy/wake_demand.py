# SPDX-License-Identifier: Apache-2.0
"""Chooses sleeping hosts to wake for requests without capacity.

All requests that wait count together: what is promised to one is not promised
to another, and how many wake at once does not matter for what is promised.
"""

from collections.abc import Callable, Collection, Iterable
import dataclasses
import enum
import fractions
import math

from nova_preempt.core import poll_backoff
from nova_preempt.core.energy import power_steps


@dataclasses.dataclass(frozen=True)
class Promise:
    """Room of a host for a request.

    :param servers: so many of the request's
    :param room: of as many as would fit on the whole host
    """

    request: str
    host: str
    servers: int
    room: int


@dataclasses.dataclass(frozen=True)
class SleepingHost:
    """A host that will be on if it is wanted.

    :param room: how many servers of the request fit on it
    :param waking: whether it is on its way already
    :param late: whether its boot, or its shutdown, takes longer than it should
    """

    name: str
    room: int
    waking: bool = False
    late: bool = False
    efficiency: float | None = None


@dataclasses.dataclass(frozen=True)
class Promised:
    """What has become of hosts that were promised.

    :param coming: that are not on yet, in the order to wake them
    :param kept: those, and the ones that are on: whoever waits for several
        hosts has no use for the first alone
    :param lost: that nobody can wait for any more
    """

    coming: tuple[str, ...]
    kept: frozenset[str]
    lost: frozenset[str]


def classify_promises(names: Iterable[str], state: Callable[[str], str],
             switchable: Callable[[list[str]], Collection[str]],
             readable: Callable[[], Collection[str]]) -> Promised:
    """Tell which promised hosts are to wake, to stay on, or to be forgotten.

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
    return Promised(coming, kept, frozenset(names) - kept)


def kept(request: str, promises: Iterable[Promise],
         is_on: Callable[[str], bool]) -> list[Promise]:
    """Return the promised hosts that a request keeps: those that are on.

    They are kept for it until it is served, though the first alone were of no
    use to it.
    """
    return [item for item in promises
            if item.request == request and is_on(item.host)]


def promise(request: str, servers: int, sleepers: Iterable[SleepingHost],
            others: Iterable[Promise]) -> list[Promise]:
    """The hosts that a request is to wait for, in the order to wake them.

    1. those on their way, 2. those that others wait for and that have room
    left, 3. the most efficient, the unknown last, 4. those on their way whose
    boot hangs: they get a second one. One whose shutdown hangs would be waited
    for in vain. Servers of another size take the part of a host that they take
    of an empty one.

    :param others: what is promised; what is promised to this request is not
        looked at
    :returns: for fewer servers than asked if there is no more room
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
    """The memory of a request that waits for hosts to wake.

    :ivar limit: for how long it waits
    :ivar hosts: that it was promised last
    :ivar coming: those of them that were not seen on, or failed, since
    :ivar tried: hosts that were on and did not help it
    """

    limit: poll_backoff.Wait
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
    """Tell what a request does, as its hosts are now.

    A host that is idle may be asleep again before the last one is on, and
    nobody wakes it then.

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
    # What is up and did not help the request is not asked again.
    return NextAction.RETRY, dataclasses.replace(waiting,
        tried=waiting.tried | up)
