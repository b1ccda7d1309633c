# SPDX-License-Identifier: Apache-2.0
"""Ranks hosts by FLOPS per watt (KWRanking).

Published by Rossigneux et al. as benchmarked FLOPS per measured watt.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math

#: The most watts that one host draws: meters that fail say more.
MAX_WATTS = 50000.0
#: How old a reading of watts may be to count.
MAX_AGE_S = 300


@dataclasses.dataclass(frozen=True)
class Figures:
    """Efficiency figures of a host; None is unknown.

    :param flops: floating-point operations a second with all its cores
    :param watts: its power at full load
    :param idle_watts: its power without servers
    """

    flops: float | None = None
    watts: float | None = None
    idle_watts: float | None = None

    @property
    def flops_per_watt(self) -> float | None:
        if self.flops is None or not self.watts:
            return None
        return self.flops / self.watts

    def marginal_watts(self, share: float | None, *,
                       in_use: bool) -> float | None:
        """Return the watts that a request adds to the power of a host.

        A host without servers could be asleep, drawing nothing, so all its
        power is due to the request. A host in use draws its idle power anyway.
        Between idle and full load the power is taken to rise linearly.

        :param share: of all that the host may be given, see share()
        :param in_use: whether it has servers already
        """
        if share is None or self.watts is None or self.idle_watts is None:
            return None
        slope = max(0.0, self.watts - self.idle_watts) * share
        return slope if in_use else self.idle_watts + slope

    def as_measured(self, watts_now: float | None,
                    share: float | None) -> 'Figures':
        """Return these figures, with the watts corrected by a reading.

        A host that draws a tenth more than expected at its load is taken to
        draw a tenth more at any load. To divide by the reading itself would
        prefer idle hosts, which draw the least. Only if the expected power is
        unknown is the reading taken for the watts at full load.

        :param watts_now: its power, None if it is not read
        :param share: the share in use of all that the host may be given, see
            share()
        """
        # A host that is looked at is on: 0 W is a meter that failed.
        if not watts_now or watts_now < 0:
            return self
        expected = self._expected_watts(share or 0.0)
        if not expected:
            return dataclasses.replace(self, watts=watts_now)
        factor = watts_now / expected
        return dataclasses.replace(
            self, watts=self.watts and self.watts * factor,
            idle_watts=self.idle_watts and self.idle_watts * factor)

    def _expected_watts(self, share: float) -> float | None:
        if self.watts is None or self.idle_watts is None:
            return None
        slope = max(0.0, self.watts - self.idle_watts)
        return self.idle_watts + slope * min(1.0, max(0.0, share))


def share(vcpus: float, total: int,
          allocation_ratio: float | None) -> float | None:
    """Return the share of so many vCPUs in all that a host may be given.

    A host with all of them given is taken to be at full load.

    :param allocation_ratio: 1 where it is unknown
    :returns: None if it has none to give
    """
    most = total * (allocation_ratio or 1.0)
    return vcpus / most if most else None


def ranking(efficiencies: Mapping[str, float | None]) -> list[str]:
    """Return the names of hosts, the most efficient first, unknown last.

    Ties go to the first by name.
    """
    def key(name: str) -> tuple[float, str]:
        efficiency = efficiencies[name]
        return math.inf if efficiency is None else -efficiency, name

    return sorted(efficiencies, key=key)


def fill_unknown(values: Sequence[float | None], *,
                 last: bool = False) -> list[float]:
    """Return values to compare hosts by, where some are unknown.

    :param last: whether the unknown get less than all others; else they get
        the mean of the others
    :returns: as many values, higher is better; all the same if none is known
    """
    known = [value for value in values if value is not None]
    if not known:
        return [0.0] * len(values)
    least = min(known)
    if last:
        # For FLOPS per watt this is 0: no work at all.
        unknown = least - (abs(least) or 1.0)
    else:
        unknown = math.fsum(known) / len(known)
    return [unknown if value is None else value for value in values]


def invalid_figures(figures: Figures) -> dict[str, str]:
    """Return {figure: error} of invalid figures, such as "must be above 0".

    For figures of a host from a file or from the API.
    """
    found = {key: _why_wrong(key, value, figures.watts)
             for key, value in dataclasses.asdict(figures).items()
             if value is not None}
    return {key: why for key, why in found.items() if why}


def _why_wrong(key: str, value: float, watts: float | None) -> str:
    if not math.isfinite(value):
        return 'is not a number'
    if key == 'idle_watts':
        if value < 0:
            return 'must be 0 or more'
        if watts is not None and value > watts:
            return f'must be at most watts, {watts:g}'
    elif value <= 0:
        return 'must be above 0'
    if key != 'flops' and value > MAX_WATTS:
        return f'must be at most {MAX_WATTS:g}'
    return ''
