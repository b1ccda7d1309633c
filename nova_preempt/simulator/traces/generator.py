# SPDX-License-Identifier: Apache-2.0
"""Generator of synthetic traces.

Requests arrive as a Poisson process whose rate follows the hour of the day.
Run times are log-normal, as in most published traces of clouds: a few servers
account for most of the use.
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

#: Sizes of A. Lopez Garcia et al. (FGCS 2019), Table 2.
SIZES = {
    'small': {'VCPU': 1, 'MEMORY_MB': 2000, 'DISK_GB': 20},
    'medium': {'VCPU': 2, 'MEMORY_MB': 4000, 'DISK_GB': 40},
    'large': {'VCPU': 4, 'MEMORY_MB': 8000, 'DISK_GB': 80},
}


@dataclasses.dataclass(frozen=True)
class Part:
    """Servers of one class in a Load.

    :param weight: share of the requests, relative to other parts
    :param mean_s: mean run time
    :param sigma: standard deviation of the logarithm of the run time; 1 to 2
        is usual
    :param sizes: {name of SIZES: relative share}
    """

    class_name: str
    weight: float = 1.0
    mean_s: float = 3600.0
    sigma: float = 1.5
    sizes: Mapping[str, float] = dataclasses.field(
        default_factory=lambda: {'small': 4, 'medium': 2, 'large': 1})


@dataclasses.dataclass(frozen=True)
class Load:
    """Parameters of a synthetic trace.

    :param swing: amplitude of the rate within a day, as a share of its mean,
        from 0 to 1
    :param peak_hour: hour of the highest rate
    :raises ValueError: a value is out of its bounds
    """

    hours: float
    per_hour: float
    swing: float = 0.3
    peak_hour: float = 14.0
    parts: tuple[Part, ...] = (Part('normal'), Part('preemptible'))

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
                raise ValueError(f'size {unknown[0]!r} is not known; there '
                                 f'are {", ".join(SIZES)}')


#: Load of Google's cluster of May 2011, by publications that have used the
#: trace: 25 million requests in 29 days on 12 500 hosts (M. Carvalho et al.,
#: JISA 2020).
GOOGLE_PER_HOUR = 25e6 / 29 / _DAY_H


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
        # Thinning of a process with the highest rate (P. A. W. Lewis and G.
        # S. Shedler, 1979).
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


def _duration_us(chance: random.Random, part: Part) -> int:
    if not part.mean_s:
        return 0
    found = lognormal(chance, part.mean_s, part.sigma)
    return min(trace_model.LATEST_US, round(found * SECOND))


def lognormal(chance: random.Random, mean: float, sigma: float) -> float:
    """Draw a log-normal number with this mean."""
    return chance.lognormvariate(math.log(mean) - sigma ** 2 / 2, sigma)


def peak(uses: Iterable[tuple[float, float, Resources]]
         ) -> collections.Counter[str]:
    """Return the peak of the concurrent use of each resource.

    :param uses: (begin, end, amounts)
    """
    changes = [(at, sign, amounts) for begin, end, amounts in uses
               for at, sign in ((begin, 1), (end, -1))]
    held: collections.Counter[str] = collections.Counter()
    found: collections.Counter[str] = collections.Counter()
    # At equal times, ends come before begins.
    for _, sign, amounts in sorted(changes, key=lambda change: change[:2]):
        for name, amount in amounts.items():
            held[name] += sign * amount
            found[name] = max(found[name], held[name])
    return found
