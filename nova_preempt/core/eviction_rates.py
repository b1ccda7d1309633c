# SPDX-License-Identifier: Apache-2.0
"""How often preemptible servers are evicted, by flavor and availability zone.

The rate is the share of the hours of servers in which they were evicted, as
sampled. What a project sees of it tells nothing of another one: ranges
instead of numbers, and only where servers of several other projects count.
"""

import collections
from collections.abc import Iterable, Mapping
import dataclasses
import datetime
import statistics

#: The periods before now for which there are rates, in hours.
PERIODS_H = (24, 30 * 24)

#: After this time samples are of no use.
LONGEST = datetime.timedelta(hours=max(PERIODS_H))

#: Operations of decisions whose victims had their time, or were evicted for a
#: test.
NOT_EARLY = ("maximum_runtime", "simulate")

#: How many other projects, and servers of theirs, a rate needs to be shown to
#: a project; none of them may have more than half of the servers.
LEAST_PROJECTS = 3
LEAST_SERVERS = 10

# An interval without samples is counted up to this: nobody knows what ran.
_LONGEST_S = 2 * 3600

# Upper bounds of ranges; the last one has none.
_SHARES = ((0.05, "<5%"), (0.1, "5-10%"), (0.15, "10-15%"), (0.2, "15-20%"))
_LIVES_S = ((3600, "<1h"), (6 * 3600, "1-6h"), (24 * 3600, "6-24h"),
            (7 * 24 * 3600, "1-7d"))


@dataclasses.dataclass(frozen=True)
class Sample:
    """Servers of a flavor, zone and project, as an engine has counted them.

    ``servers`` existed at that time. They ran ``server_s`` seconds together
    since the sample before, within which others were evicted that had lived
    for ``lifetimes_s``. The zone is empty if it is unknown.
    """

    at: datetime.datetime
    flavor: str
    zone: str
    project_id: str
    servers: int
    server_s: int
    lifetimes_s: list[int]


@dataclasses.dataclass(frozen=True)
class Rate:
    """How often servers of a flavor were evicted in a zone.

    ``share`` is that of their hours in which they were evicted, ``life_s``
    the median life of those that were; None if there were none.
    """

    flavor: str
    zone: str
    hours: int
    evictions: int
    server_hours: float
    share: float | None
    life_s: float | None

    @property
    def share_range(self) -> str:
        """The range of the share, '' if it is unknown."""
        return _range(self.share, _SHARES, ">20%")

    @property
    def life_range(self) -> str:
        """The range of the median life, '' if it is unknown."""
        return _range(self.life_s, _LIVES_S, ">7d")


def _range(
    value: float | None, ranges: Iterable[tuple[float, str]], last: str
) -> str:
    if value is None:
        return ""
    return next((name for bound, name in ranges if value < bound), last)


def sample(
    now: datetime.datetime,
    since: datetime.datetime,
    servers: Iterable[tuple[str, str, str]],
    victims: Iterable[tuple[str, str, str, int | None]],
    zones: Mapping[str, str],
) -> list[Sample]:
    """Return the Samples of now.

    :param since: the time of the samples before
    :param servers: (flavor, host, project id) of each server
    :param victims: the same of each server that was evicted since, and its
        lifetime in seconds, None if it is unknown
    :param zones: {host: availability zone}
    """
    passed_s = min((now - since).total_seconds(), _LONGEST_S)
    counts = collections.Counter(
        (flavor, zones.get(node, ""), project)
        for flavor, node, project in servers)
    lives = collections.defaultdict(list)
    for flavor, node, project, lifetime_s in victims:
        lives[flavor, zones.get(node, ""), project].append(lifetime_s or 0)
    return [
        Sample(now, *key, counts[key], int(counts[key] * passed_s),
               sorted(lives[key]))
        for key in sorted({*counts, *lives})]


@dataclasses.dataclass(slots=True)
class _Total:
    """Sums of the samples of a flavor and zone in a period.

    ``most`` is {project id: its largest number of servers in a sample}.
    """

    server_s: int = 0
    lifetimes_s: list[int] = dataclasses.field(default_factory=list)
    most: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter)

    def add(self, item: Sample) -> None:
        self.server_s += item.server_s
        self.lifetimes_s += item.lifetimes_s
        self.most[item.project_id] = max(
            self.most[item.project_id], item.servers + len(item.lifetimes_s))

    def tells_of_nobody(self, viewer: str) -> bool:
        """Return whether a project may see the rate."""
        others = [most for project_id, most in self.most.items()
                  if project_id != viewer]
        return (len(others) >= LEAST_PROJECTS and sum(others) >= LEAST_SERVERS
                and 2 * max(others) <= sum(others))

    def rate(self, flavor: str, zone: str, hours: int) -> Rate:
        lives, server_hours = self.lifetimes_s, self.server_s / 3600
        share = min(1.0, len(lives) / server_hours) if server_hours else (
            1.0 if lives else None)
        return Rate(flavor, zone, hours, len(lives), server_hours, share,
                    statistics.median(lives) if lives else None)


def rates(
    samples: Iterable[Sample],
    now: datetime.datetime,
    viewer: str | None = None,
) -> list[Rate]:
    """Return the Rates of all periods, by flavor and zone.

    :param samples: in any order; none is kept, as there may be very many
    :param viewer: the project that sees them, None for an administrator
    """
    totals: dict[tuple[str, str, int], _Total] = collections.defaultdict(
        _Total)
    for item in samples:
        for hours in PERIODS_H:
            if item.at > now - datetime.timedelta(hours=hours):
                totals[item.flavor, item.zone, hours].add(item)
    return [total.rate(*key) for key, total in sorted(totals.items())
            if viewer is None or total.tells_of_nobody(viewer)]
