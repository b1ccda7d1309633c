# SPDX-License-Identifier: Apache-2.0
"""Energy saved and delay caused by powering hosts off.

The three metrics of Rossigneux et al. (res_idle, e_savings, delay_req), and
the energy in kWh. Intervals are half-open, in seconds since any epoch.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import math

#: How often the sources of watts are read, and a sample is taken.
INTERVAL_S = 60

_J_PER_KWH = 3.6e6


@dataclasses.dataclass(frozen=True)
class CloudSample:
    """The state of the cloud at a time; it holds until the next sample.

    :param watts: its power, None if unknown
    :param watts_saved: the idle power of hosts that were asleep, as far as
        known
    :param cores_total: of all hosts, on or off
    :param cores_off: of hosts that were asleep
    :param cores_used: by servers
    """

    time_s: float
    cores_total: int = 0
    cores_off: int = 0
    cores_used: int = 0
    watts: float | None = None
    watts_saved: float = 0.0


@dataclasses.dataclass(frozen=True)
class DelayedRequest:
    """A request that waited for hosts to boot.

    :param duration_s: how long its server ran, above 0
    """

    cores: int
    boot_s: float
    duration_s: float


@dataclasses.dataclass(frozen=True)
class EnergyTotals:
    """Sums over time; delays are not among them.

    :param idle_core_s: the core-seconds that were on and unused, res_idle
    :param saved_core_s: the core-seconds that were off, e_savings
    """

    idle_core_s: float = 0.0
    saved_core_s: float = 0.0
    used_kwh: float = 0.0
    saved_kwh: float = 0.0


def delay_req(delays: Iterable[DelayedRequest]) -> float:
    """Return delay_req: the boot time of each request by its duration.

    Summed over requests, for each core.
    """
    return math.fsum(delay.cores * delay.boot_s / delay.duration_s
                     for delay in delays)


def kwh(watts: float, seconds: float) -> float:
    return watts * seconds / _J_PER_KWH


def totals(samples: Sequence[CloudSample], end_s: float,
           max_gap_s: float = math.inf) -> EnergyTotals:
    """Return sums over time of samples, up to end_s.

    :param max_gap_s: how long a sample holds at most; time without samples is
        not counted
    """
    held = list(_held(samples, end_s, max_gap_s))
    return EnergyTotals(
        math.fsum((each.cores_total - each.cores_off - each.cores_used)
                  * seconds for each, seconds in held),
        math.fsum(each.cores_off * seconds for each, seconds in held),
        math.fsum(kwh(each.watts, seconds) for each, seconds in held
                  if each.watts is not None),
        math.fsum(kwh(each.watts_saved, seconds) for each, seconds in held))


def _held(samples: Sequence[CloudSample], end_s: float,
          max_gap_s: float) -> Iterator[tuple[CloudSample, float]]:
    """Iterate over samples with how long each holds, in seconds."""
    ends = [sample.time_s for sample in samples[1:]] + [end_s]
    for sample, next_s in zip(samples, ends, strict=False):
        until_s = min(next_s, end_s, sample.time_s + max_gap_s)
        if until_s > sample.time_s:
            yield sample, until_s - sample.time_s
