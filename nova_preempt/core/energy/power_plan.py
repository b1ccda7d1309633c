# SPDX-License-Identifier: Apache-2.0
"""Chooses the hosts to power on and off.

The published rules of Rossigneux et al., corrected: their loops have both
inequalities turned around, and the second one never ends when no host is
eligible. The paper takes the number of required hosts from a forecast and the
reservations; spare hosts, minimums, limits and excluded hosts are additions.
"""

import collections
from collections.abc import Callable, Collection, Iterable, Mapping
import dataclasses
import math

#: How often hosts without servers are noted, as published.
NOTE_INTERVAL_S = 60
#: A gap of more than so many intervals interrupts idleness.
GAP = 2.5


@dataclasses.dataclass(frozen=True)
class PowerHost:
    """A host of the power decision.

    Hosts that are unusable now, since an operator has disabled them or they
    have failed, and hosts that are being powered off must not be passed to
    decide().

    :param on: whether it is on, or booting
    :param busy: whether servers are on it, or on their way to it
    :param idle_intervals: how often in a row it was noted as idle
    :param efficiency: FLOPS per watt, None if unknown
    :param reserved: whether a reservation of it runs, or begins within the
        horizon
    :param due: whether it must be on now for a reservation that begins within
        the time of a boot
    :param excluded: whether it is never switched
    :param aggregates: its host aggregates
    """

    name: str
    on: bool
    busy: bool = False
    idle_intervals: int = 0
    efficiency: float | None = None
    reserved: bool = False
    due: bool = False
    excluded: bool = False
    aggregates: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class PowerPolicy:
    """Operator options of the power decision.

    :param idle_intervals: how often in a row a host must have been noted as
        idle before it is powered off
    :param spare: hosts on beyond the required ones; so many at least have
        neither servers nor a reservation
    :param minimum: hosts that are on in any case
    :param minimum_of: {aggregate: minimum}; aggregates not in it have none
    :param max_wakes: hosts that may be powered on now, None for any number
    :param max_sleeps: hosts that may be powered off now, likewise
    """

    idle_intervals: int = 5
    spare: int = 0
    minimum: int = 0
    minimum_of: Mapping[str, int] = dataclasses.field(default_factory=dict)
    max_wakes: int | None = None
    max_sleeps: int | None = None


@dataclasses.dataclass(frozen=True)
class HostSwitches:
    """Hosts to switch, in order.

    :param wake: names of hosts to power on
    :param sleep: names of hosts to power off
    :param required: how many hosts were to be on
    """

    wake: tuple[str, ...] = ()
    sleep: tuple[str, ...] = ()
    required: int = 0


@dataclasses.dataclass(frozen=True)
class ReservationStart:
    """The coming start of a reservation, of one of its hosts.

    :param in_s: in how many seconds it begins
    :param lead_s: how long before that the host has to be woken
    """

    name: str
    in_s: float
    lead_s: float


def queue_s(number: int, per_minute: int, step_s: float) -> float:
    """Return how long it takes until so many hosts have been woken, in s.

    :param step_s: the end of a minute is noticed within so long
    """
    return number // per_minute * (60 + step_s)


def due(starts: Iterable[ReservationStart], per_minute: int,
        step_s: float) -> tuple[str, ...]:
    """Return the hosts that have to wake now for all to be up in time.

    Only so many may be woken in a minute, and the first to be needed go first:
    so hosts ahead of a host whose turn would come too late are due with it.

    :param step_s: see queue_s()
    """
    ordered = sorted(starts, key=lambda start: (start.in_s, start.name))
    last = max((position for position, start in enumerate(ordered, 1)
                if start.in_s <= start.lead_s + queue_s(
                    position - 1, per_minute, step_s)), default=0)
    return tuple(start.name for start in ordered[:last])


def max_gap_s(step_interval_s: float) -> float:
    """Return the longest gap between notes that still counts as in a row.

    :param step_interval_s: the time between two steps
    """
    return GAP * max(NOTE_INTERVAL_S, step_interval_s)


def count_idle(noted: Mapping[str, int],
               idle: Collection[str]) -> dict[str, int]:
    """Return for how many intervals in a row hosts are idle, now included.

    :param noted: how many there were before, of hosts that were noted no
        longer ago than max_gap_s()
    :param idle: the names of hosts that are idle now; all others begin anew
    """
    return {name: 1 + noted.get(name, 0) for name in idle}


def required_hosts(hosts: Iterable[PowerHost], forecast: float,
                   policy: PowerPolicy) -> int:
    """Return how many hosts are to be on.

    :param forecast: how many will have servers; parts of a host are rounded up
    """
    return max(policy.minimum, policy.spare + max(
        math.ceil(forecast), sum(host.reserved for host in hosts)))


def decide(hosts: Collection[PowerHost], forecast: float,
           policy: PowerPolicy) -> HostSwitches:
    """Choose the hosts to power on and off now.

    1. on: hosts whose reservation is about to begin; 2. on: hosts of
    aggregates that have fewer than their minimum; 3. on: hosts until as many
    are on as are required. In 2 and 3 hosts with a reservation within the
    horizon come first, then the most efficient; 4. on: hosts that are not
    reserved, until enough are idle to be spare; 5. off: as long as more are on
    than are required, and more idle than are to be spare, the least efficient
    of those that have been idle long enough, unless they are reserved or their
    aggregate needs them. Hosts that 1 to 4 power on do not count here: they
    are not up yet.

    Hosts of unknown efficiency come last in 2 to 4, and first in 5.
    O(n log n + n a) for n hosts in a aggregates each.

    :param forecast: see required_hosts()
    """
    required = required_hosts(hosts, forecast, policy)
    return HostSwitches(_wake(hosts, required, policy),
                        _sleep(hosts, required, policy), required)


def _wake(hosts: Collection[PowerHost], required: int,
          policy: PowerPolicy) -> tuple[str, ...]:
    on = _PoweredOn(hosts, policy)
    asleep = sorted((host for host in hosts
                     if not host.on and not host.excluded),
                    key=lambda host: (not host.reserved, *_best_first(host)))
    rules: tuple[Callable[[PowerHost], bool], ...] = (
        lambda host: host.due, on.lacks, lambda host: on.total < required,
        lambda host: on.spare < policy.spare and _is_spare(host))
    woken: dict[str, None] = {}
    for wanted in rules:
        for host in asleep:
            if host.name not in woken and wanted(host):
                woken[host.name] = None
                on.count(host, 1)
    return tuple(woken)[:policy.max_wakes]


def _sleep(hosts: Collection[PowerHost], required: int,
           policy: PowerPolicy) -> tuple[str, ...]:
    on = _PoweredOn(hosts, policy)
    idle = sorted((host for host in hosts if _may_sleep(host, policy)),
                  key=_worst_first)
    put: list[str] = []
    for host in idle:
        if on.total <= required or on.spare <= policy.spare:
            break
        if not on.needs(host):
            put.append(host.name)
            on.count(host, -1)
    return tuple(put[:policy.max_sleeps])


def _is_spare(host: PowerHost) -> bool:
    """Tell whether all its capacity is free for new servers, once on."""
    return not (host.busy or host.reserved or host.due)


def _may_sleep(host: PowerHost, policy: PowerPolicy) -> bool:
    return (host.on and not host.busy and not host.reserved
            and not host.due and not host.excluded
            and host.idle_intervals >= policy.idle_intervals)


def _efficiency(host: PowerHost) -> float:
    return -math.inf if host.efficiency is None else host.efficiency


def _best_first(host: PowerHost) -> tuple[float, str]:
    return -_efficiency(host), host.name


def _worst_first(host: PowerHost) -> tuple[float, str]:
    return _efficiency(host), host.name


class _PoweredOn:
    """Counts the hosts that are on, in all and by aggregate."""

    def __init__(self, hosts: Iterable[PowerHost],
                 policy: PowerPolicy) -> None:
        self._minimum_of = policy.minimum_of
        self._of: collections.Counter[str] = collections.Counter()
        self.total = 0
        self.spare = 0
        for host in hosts:
            if host.on:
                self.count(host, 1)

    def count(self, host: PowerHost, number: int) -> None:
        self.total += number
        self.spare += number * _is_spare(host)
        for aggregate in host.aggregates:
            self._of[aggregate] += number

    def lacks(self, host: PowerHost) -> bool:
        """Tell whether an aggregate of the host has fewer on than its minimum.
        """
        return any(self._of[aggregate] < self._minimum_of.get(aggregate, 0)
                   for aggregate in host.aggregates)

    def needs(self, host: PowerHost) -> bool:
        """Tell whether an aggregate of the host needs it to stay on."""
        return any(self._of[aggregate] <= self._minimum_of.get(aggregate, 0)
                   for aggregate in host.aggregates)
