# SPDX-License-Identifier: Apache-2.0
"""Input of the energy controller: options of [energy], and the hosts."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import fnmatch
import math
from typing import Protocol

from nova_preempt.core.energy import demand_forecast
from nova_preempt.core.energy import power_plan
from nova_preempt.core.energy import power_steps
from nova_preempt.core.model import SECOND

#: The period of limits per minute.
MINUTE_US = 60 * SECOND

#: Default time from power on to the report of the compute service, until a
#: boot of the host was measured.
BOOT_TIME_S = 300
# Factor on the time of its last boot.
_MARGIN = 1.2
# It takes up to one look to see that a host must wake, and up to another one
# to see that it is up.
_LOOKS = 2
_PUT_TO_SLEEP = (power_steps.EMPTYING, power_steps.SLEEPING,
                 power_steps.ASLEEP)


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of [energy] of the same names, in seconds where they end so.

    :param policy: but for its maxima, which the limits of a minute give
    :param excluded: patterns of names of hosts that are left alone
    :param step_s: how long it is from one step to the next
    """

    policy: power_plan.PowerPolicy
    boot_timeout_s: int = 900
    forecast: demand_forecast.Forecast = demand_forecast.ewma
    switch_interval_s: int = 300
    max_wakes_per_minute: int = 10
    max_sleeps_per_minute: int = 5
    demand_wakes: bool = True
    demand_wait_s: int = 600
    excluded: tuple[str, ...] = ()
    minimum_hosts_per_aggregate: int = 0
    step_s: float = 10

    @property
    def promised_s(self) -> int:
        """Return how long a host is kept for a request, which may be gone."""
        return round(self.demand_wait_s
                     + power_steps.BOOTS * self.boot_timeout_s)

    def is_excluded(self, name: str) -> bool:
        """Tell whether an operator excludes a host from power control."""
        return any(fnmatch.fnmatchcase(name, pattern)
                   for pattern in self.excluded)

    def boot_s(self, hosts: 'Iterable[HostPower | None]') -> int:
        """Return how long the slowest of hosts may take to boot."""
        return max((
            BOOT_TIME_S if host is None or host.boot_s is None
            else math.ceil(_MARGIN * host.boot_s) for host in hosts),
            default=0)

    def lead_s(self, host: 'HostPower | None') -> float:
        """Return how long before it is needed a host has to be woken."""
        return self.boot_s([host]) + _LOOKS * self.step_s

    def queue_s(self, number: int) -> float:
        """Return how long it takes until so many hosts have been woken."""
        return power_plan.queue_s(number, self.max_wakes_per_minute,
                                  self.step_s)

    def left(self, hosts: 'Iterable[HostPower]',
             now_us: int) -> tuple[int, int]:
        """Return how many hosts may still wake and sleep this minute."""
        states = [host.state for host in hosts
                  if 0 <= now_us - host.since_us < MINUTE_US]
        sleeps = sum(state in _PUT_TO_SLEEP for state in states)
        return (max(0, self.max_wakes_per_minute
                    - states.count(power_steps.WAKING)),
                max(0, self.max_sleeps_per_minute - sleeps))


class HostPower(Protocol):
    """The power state of a host that was noted as idle, or was switched."""

    state: str
    since_us: int
    boots: int
    boot_s: float | None
    idle_intervals: int


class Host(Protocol):
    """A host as Nova has it."""

    up: bool
    disabled: bool
    is_operators: bool
    aggregates: frozenset[str]

    @property
    def is_ours(self) -> bool: ...

    @property
    def servers(self) -> int: ...


class Observed(Protocol):
    """Observations of a step; expensive ones are made only when read.

    :ivar states: power states by name of the host, as they are now; a host
        without one is on
    :ivar in_state: {state other than on: its hosts}
    :ivar hosts: all hosts, read in this step
    :ivar is_whole: whether no host is missing in hosts
    :ivar recent_hosts: all hosts, read lately; some may be missing
    :ivar promised: the hosts that requests wait for, in order of waking
    :ivar efficiencies: FLOPS per watt of hosts where it is known
    :ivar minimums: the minimum number of hosts on by aggregate
    """

    options: Options
    is_whole: bool

    @property
    def states(self) -> Mapping[str, HostPower]: ...

    @property
    def in_state(self) -> Mapping[str, Mapping[str, HostPower]]: ...

    @property
    def hosts(self) -> Mapping[str, Host]: ...

    @property
    def recent_hosts(self) -> Mapping[str, Host]: ...

    @property
    def promised(self) -> Sequence[str]: ...

    @property
    def efficiencies(self) -> Mapping[str, float]: ...

    @property
    def minimums(self) -> Mapping[str, int]: ...

    def changed_since(self, since_us: int) -> Iterable[HostPower]:
        """Return the hosts that entered their states after that."""

    def is_empty(self, name: str) -> bool:
        """Tell whether a host has no servers, allocations or migrations."""

    def needed(self, within_s: float) -> Mapping[str, float]:
        """Return in how many seconds reserved hosts are needed."""

    def loads(self, since_s: int,
              until_s: int) -> Sequence[demand_forecast.Load]:
        """Return how many hosts were in use, in [since, until)."""
