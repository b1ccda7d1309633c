# SPDX-License-Identifier: Apache-2.0
"""Random delays of a simulation, drawn by seed."""

from collections.abc import Callable
import dataclasses
import math
import random
import re

from nova_preempt.core.model import SECOND

#: Nothing takes longer: a day.
LONGEST_S = 86400.0

_TEXT = re.compile(r'([a-z]+):([0-9.]+)(?:,([0-9.]+))?')


def _constant(chance: random.Random, value_s: float) -> float:
    return value_s


def _uniform(chance: random.Random, low_s: float, high_s: float) -> float:
    return chance.uniform(low_s, high_s)


def _exponential(chance: random.Random, mean_s: float) -> float:
    return chance.expovariate(1 / mean_s) if mean_s else 0.0


def _lognormal(chance: random.Random, median_s: float, sigma: float) -> float:
    if not median_s:
        return 0.0
    return chance.lognormvariate(math.log(median_s), sigma)


#: {name: (draws one, names of the parameters)}
_KINDS: dict[str, tuple[Callable[..., float], tuple[str, ...]]] = {
    'constant': (_constant, ('VALUE',)),
    'uniform': (_uniform, ('LOW', 'HIGH')),
    'exponential': (_exponential, ('MEAN',)),
    'lognormal': (_lognormal, ('MEDIAN', 'SIGMA')),
}

KNOWN = ', '.join(f'{name}:{",".join(parameters)}'
                  for name, (_, parameters) in _KINDS.items())


@dataclasses.dataclass(frozen=True)
class Delay:
    """A distribution of durations, at most LONGEST_S."""

    text: str
    _draw: tuple[Callable[..., float], tuple[float, ...]] = (
        dataclasses.field(init=False, repr=False, compare=False))

    def __post_init__(self) -> None:
        match = _TEXT.fullmatch(self.text)
        draw, names = _KINDS.get(match[1] if match else '', (None, ()))
        given = [part for part in match.groups()[1:] if part] if match else []
        try:
            values = tuple(float(part) for part in given)
        except ValueError:
            draw = None
        if draw is None or len(given) != len(names) or not all(
                value <= LONGEST_S for value in values):
            raise ValueError(
                f'{self.text!r:.60}: a duration in seconds is one of {KNOWN}, '
                f'with numbers from 0 to {LONGEST_S:.0f}')
        if names == ('LOW', 'HIGH') and values[0] > values[1]:
            raise ValueError(f'{self.text!r}: LOW is above HIGH')
        object.__setattr__(self, '_draw', (draw, values))

    def draw_us(self, chance: random.Random) -> int:
        """Return one, in microseconds."""
        draw, values = self._draw
        return round(min(LONGEST_S, draw(chance, *values)) * SECOND)


@dataclasses.dataclass(frozen=True)
class Delays:
    """The delays of operations of the cloud.

    :param boot: from a host to ACTIVE
    :param delete, shelve, stop: from the end of a notice until nothing is
        left that the host needs
    :param unshelve: from a host to ACTIVE, of one that was shelved
    :param migrate: from a host until a server is there that runs elsewhere
    :param power_on: of a host, until its compute service reports
    :param power_off: of a host that is to shut down, until it is off
    """

    boot: Delay = Delay('lognormal:20,0.5')
    delete: Delay = Delay('lognormal:5,0.5')
    shelve: Delay = Delay('lognormal:30,0.5')
    stop: Delay = Delay('lognormal:5,0.5')
    unshelve: Delay = Delay('lognormal:40,0.5')
    migrate: Delay = Delay('lognormal:60,0.5')
    power_on: Delay = Delay('lognormal:180,0.2')
    power_off: Delay = Delay('lognormal:30,0.3')


class DelaySampler:
    """Draws durations, with a separate generator for each kind.

    So that one that is drawn more often leaves the others as they are.
    """

    def __init__(self, delays: Delays, seed: int) -> None:
        self._kinds: dict[str, tuple[Delay, random.Random]] = {
            field.name: (getattr(delays, field.name),
                         random.Random(f'{field.name}/{seed}'))
            for field in dataclasses.fields(delays)}

    def draw_us(self, kind: str) -> int:
        delay, chance = self._kinds[kind]
        return delay.draw_us(chance)
