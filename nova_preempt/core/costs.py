# SPDX-License-Identifier: Apache-2.0

"""Cost functions of evicting a server, in micro-units.

A cost function maps a server and the options to a whole number >= 0. The cost
of a set of victims is the sum of their costs.
"""

from collections.abc import Callable, Mapping
import dataclasses
from typing import TypeAlias

from nova_preempt.core.model import SECOND, Resources


@dataclasses.dataclass(frozen=True, slots=True)
class CostInputs:
    """The properties of a preemptible server that cost functions use."""

    uuid: str
    uptime_us: int
    resources: Resources
    project_id: str = ""
    flavor: str = ""
    #: how often it was evicted before
    preemptions: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class CostOptions:
    """The operator's options about costs.

    :raises ValueError: if the billing period is not positive, or the cost of a
        repetition is negative
    """

    billing_period_s: int = 3600
    repeat_cost_s: int = 0

    def __post_init__(self) -> None:
        if self.repeat_cost_s < 0:
            raise ValueError(
                f"repeat_cost_s is negative: {self.repeat_cost_s}")
        if self.billing_period_s <= 0:
            raise ValueError("billing_period_s must be positive, not "
                             f"{self.billing_period_s}")


CostFunction: TypeAlias = Callable[[CostInputs, CostOptions], int]


def total(
    function: CostFunction, server: CostInputs, options: CostOptions
) -> int:
    """Return the cost by the function plus that of earlier preemptions."""
    repeated = server.preemptions * options.repeat_cost_s * SECOND
    return function(server, options) + repeated


#: Ten years, in micro-seconds; ``oldest_first`` counts down from here.
HORIZON_US = 10 * 365 * 24 * 3600 * SECOND


def partial_hour(server: CostInputs, options: CostOptions) -> int:
    """Return the time since the last full billing period (Algorithm 4).

    Where customers pay for whole periods, this is the work that is thrown
    away unpaid (A. Lopez Garcia et al., FGCS 2019,
    doi 10.1016/j.future.2018.12.057).
    """
    return server.uptime_us % (options.billing_period_s * SECOND)


def count(server: CostInputs, options: CostOptions) -> int:
    """Return one second's worth for every server: fewest victims first."""
    del server, options
    return SECOND


def youngest_first(server: CostInputs, options: CostOptions) -> int:
    """Return the uptime: least work lost."""
    del options
    return server.uptime_us


def oldest_first(server: CostInputs, options: CostOptions) -> int:
    """Return ten years less the uptime, never below 0.

    Fewest victims first, as long as the uptimes of a set add up to less
    than the horizon, and among equally many the oldest.
    """
    del options
    return max(0, HORIZON_US - server.uptime_us)


#: Returns the least cost of a server from an uptime on, and the uptime up to
#: which that holds. The built-in cost functions depend on the uptime only.
LowerBound: TypeAlias = Callable[[int, CostOptions], tuple[int, int]]

#: Later than any time.
NEVER_US = 2**62
_HOUR_US = 3600 * SECOND


def _floor_partial_hour(
    uptime_us: int, options: CostOptions) -> tuple[int, int]:
    period_us = options.billing_period_s * SECOND
    cost = uptime_us % period_us
    return cost, uptime_us - cost + period_us


def _floor_oldest_first(
    uptime_us: int, options: CostOptions) -> tuple[int, int]:
    del options
    then_us = uptime_us + _HOUR_US
    return max(0, HORIZON_US - then_us), then_us


#: A cost function that is not listed here has no known bound: the cost of each
#: server is computed for each request.
LOWER_BOUNDS: Mapping[CostFunction, LowerBound] = {
    partial_hour: _floor_partial_hour,
    count: lambda uptime_us, options: (SECOND, NEVER_US),
    youngest_first: lambda uptime_us, options: (uptime_us, NEVER_US),
    oldest_first: _floor_oldest_first,
}
