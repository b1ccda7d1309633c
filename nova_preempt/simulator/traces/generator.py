# SPDX-License-Identifier: Apache-2.0
"""Generates synthetic traces from a seed.

Requests come as a Poisson process whose rate follows the hour of the day.
How long servers run is log-normal, as in most published traces of clouds: a
few of them hold most of what is used.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import math
import random

from nova_preempt.core.model import SECOND, Resources
from nova_preempt.simulator.traces import trace_model

_HOUR_S = 3600
_DAY_H = 24

#: Of A. Lopez Garcia et al. (FGCS 2019), Table 2.
SIZES = {
    'small': {'VCPU': 1, 'MEMORY_MB': 2000, 'DISK_GB': 20},
    'medium': {'VCPU': 2, 'MEMORY_MB': 4000, 'DISK_GB': 40},
    'large': {'VCPU': 4, 'MEMORY_MB': 8000, 'DISK_GB': 80},
}


@dataclasses.dataclass(frozen=True)
class LoadPart:
    """Servers of one class.

    :param weight: how many there are, relative to other parts
    :param mean_s: how long they run
    :param sigma: how much that differs: the deviation of its logarithm; 0 is
        not at all, 1 to 2 is usual
    :param sizes: {name of SIZES: how many, relative to the others}
    """

    class_name: str
    weight: float = 1.0
    mean_s: float = 3600.0
    sigma: float = 1.5
    sizes: Mapping[str, float] = dataclasses.field(
        default_factory=lambda: {'small': 4, 'medium': 2, 'large': 1})


@dataclasses.dataclass(frozen=True)
class Load:
    """The load of a generated trace.

    :param swing: how far the rate goes up and down within a day, as a part
        of its mean, from 0 to 1
    :param peak_hour: when it is highest
    :raises ValueError: a value is out of its bounds
    """

    hours: float
    per_hour: float
    swing: float = 0.3
    peak_hour: float = 14.0
    parts: tuple[LoadPart, ...] = (LoadPart('normal'), LoadPart('preemptible'))

    def __post_init__(self) -> None:
        trace_model.number(self.hours, 'hours',
                           most=trace_model.LATEST_US / SECOND / _HOUR_S)
        trace_model.number(self.per_hour, 'per_hour', most=1e9)
        trace_model.number(self.swing, 'swing', most=1.0)
        trace_model.number(self.peak_hour, 'peak_hour', most=float(_DAY_H))
        for part in self.parts:
            trace_model.number(part.weight, 'weight', most=1e9)
            trace_model.number(part.mean_s, 'mean_s', most=1e9)
            trace_model.number(part.sigma, 'sigma', most=5.0)
            unknown = sorted(part.sizes.keys() - SIZES.keys())
            if unknown:
                raise ValueError(f'size is {unknown[0]!r}; it must be one of '
                                 + ', '.join(SIZES))


#: The load of Google's cluster of May 2011, as those say who have used it:
#: 25 million requests in 29 days on 12 500 hosts (M. Carvalho et al., JISA
#: 2020), which run for 764 s (Y. Hu et al., FGCS 2020).
GOOGLE_PER_HOUR = 25e6 / 29 / _DAY_H
GOOGLE_MEAN_S = 764.0


def generate(load: Load, seed: int) -> Iterator[trace_model.Boot]:
    """Yield the servers in order of time.

    Equal loads and seeds give equal servers.
    """
    chance = random.Random(f'trace/{seed}')
    parts = [part.weight for part in load.parts]
    most_per_us = load.per_hour * (1 + load.swing) / _HOUR_S / SECOND
    end_us = round(load.hours * _HOUR_S * SECOND)
    at_us = 0.0
    serial = 0
    while most_per_us:
        # Those that come at the highest rate, of which each hour takes its
        # part (P. A. W. Lewis and G. S. Shedler, 1979).
        at_us += chance.expovariate(most_per_us)
        if at_us >= end_us:
            return
        hour = at_us / SECOND / _HOUR_S
        rate = 1 + load.swing * math.cos(
            2 * math.pi * (hour - load.peak_hour) / _DAY_H)
        if chance.random() * (1 + load.swing) >= rate:
            continue
        serial += 1
        part = chance.choices(load.parts, parts)[0]
        size = chance.choices(list(part.sizes), list(part.sizes.values()))[0]
        yield trace_model.Boot(
            int(at_us), f's{serial}', SIZES[size], '', part.class_name,
            _duration_us(chance, part))


def _duration_us(chance: random.Random, part: LoadPart) -> int:
    if not part.mean_s:
        return 0
    found = lognormal(chance, part.mean_s, part.sigma)
    return min(trace_model.LATEST_US, round(found * SECOND))


def lognormal(chance: random.Random, mean: float, sigma: float) -> float:
    """Draw a number; the mean of such numbers is above their median."""
    return chance.lognormvariate(math.log(mean) - sigma ** 2 / 2, sigma)


def peak(uses: Iterable[tuple[float, float, Resources]]
         ) -> collections.Counter[str]:
    """Return the most of each that is in use at once.

    :param uses: (from when, until when, how much of what)
    """
    changes = [(at, sign, amounts) for begin, end, amounts in uses
               for at, sign in ((begin, 1), (end, -1))]
    held: collections.Counter[str] = collections.Counter()
    found: collections.Counter[str] = collections.Counter()
    # What ends makes room for what begins then.
    for _, sign, amounts in sorted(changes, key=lambda change: change[:2]):
        for name, amount in amounts.items():
            held[name] += sign * amount
            found[name] = max(found[name], held[name])
    return found
