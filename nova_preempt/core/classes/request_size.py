# SPDX-License-Identifier: Apache-2.0

"""Number of cores and copies of a request of a service class.

T. Menouer et al. (LNCS 11339, doi 10.1007/978-3-030-10549-5_6) offer premium,
advanced and best-effort service in four respects: how soon a request is
served, on how good hosts, with how many cores, and in how many copies. Users
do not choose the number of cores; it follows from the idle cores and the
other waiting requests.

Where their text is open: bounds and shares are rounded down (their own example
divides 63 by 6 and goes on with 10); the bounds are cut to the cores of the
smallest host; a share is cut to the bounds for best-effort requests too, which
their example forgets; and all copies start, or none.
"""

from collections.abc import Mapping
import dataclasses
import enum
import operator
from typing import TypeVar


class ServiceLevel(enum.IntEnum):
    """Level of service in one respect; the number is its priority."""

    BEST_EFFORT = 1
    ADVANCED = 2
    PREMIUM = 3


class HostReputation(enum.Enum):
    """The reputation of a host: of its site, hardware and network."""

    LOW = "low"
    AVERAGE = "average"
    HIGH = "high"


#: {level of reputation: category of hosts}.
CATEGORIES: Mapping[ServiceLevel, HostReputation] = {
    ServiceLevel.BEST_EFFORT: HostReputation.LOW,
    ServiceLevel.ADVANCED: HostReputation.AVERAGE,
    ServiceLevel.PREMIUM: HostReputation.HIGH}


#: {level of redundancy: number of servers}.
COPIES: Mapping[ServiceLevel, int] = {
    ServiceLevel.BEST_EFFORT: 1,
    ServiceLevel.ADVANCED: 2,
    ServiceLevel.PREMIUM: 3}


@dataclasses.dataclass(frozen=True, slots=True)
class CoreBounds:
    """The fewest and the most cores of a service, both included."""

    least: int
    most: int

    def clamp(self, cores: int) -> int:
        """Return the nearest number within the bounds."""
        return min(max(cores, self.least), self.most)


def bounds(smallest: int) -> dict[ServiceLevel, CoreBounds]:
    """Return the bounds of each service, where no host has fewer cores.

    Thirds of the smallest host, so that each service fits everywhere, and a
    better service never gets fewer cores. On hosts of one or two cores the
    thirds overlap.

    :raises ValueError: the smallest host has no core
    """
    if smallest < 1:
        raise ValueError(
            f"the smallest host has {smallest} cores; it must have 1 or more")
    low = max(1, smallest // 3)
    high = max(low, 2 * smallest // 3)
    advanced = min(low + 1, smallest)
    return {
        ServiceLevel.BEST_EFFORT: CoreBounds(1, low),
        ServiceLevel.ADVANCED: CoreBounds(advanced, max(advanced, high)),
        ServiceLevel.PREMIUM: CoreBounds(min(high + 1, smallest), smallest)}


def cores(priority: int, of_all: int, idle_cores: int,
          limits: Mapping[ServiceLevel, CoreBounds]) -> int:
    """Return the number of cores of a request (Formula 1).

    Its share, by priority, of all idle cores, within its bounds.

    :param priority: its own, for cores
    :param of_all: the sum over all requests that wait for hosts of the same
        category, its own included
    :param idle_cores: of these hosts together
    :param limits: see bounds()
    """
    share = priority * idle_cores // of_all
    return limits[ServiceLevel(priority)].clamp(share)


Name = TypeVar("Name")


def rung(ladder: Mapping[Name, int], most: int) -> Name | None:
    """Return the largest flavor of at most so many cores, None if none is.

    The cores of a server are those of its flavor, so a ladder is a set of
    flavors that differ in their cores only.

    :param ladder: {flavor: its VCPUs}; ties go to the first by name
    """
    fits = [
        (-vcpus, str(name), name) for name, vcpus in ladder.items()
        if vcpus <= most]
    return min(fits, key=operator.itemgetter(0, 1))[2] if fits else None
