# SPDX-License-Identifier: Apache-2.0
"""Data model of batch placement.

Amounts are whole numbers in the unit of their resource class. Scores are
whole too, in millionths, so that each solver finds the same best sum.
"""

from collections.abc import Mapping
import dataclasses

from nova_preempt.core.model import Resources

# Modes.
EXACT = "exact"
GREEDY = "greedy"
MODES = (EXACT, GREEDY)

# Scores.
DP = "dp"
ML = "ml"
WEIGHTS = "weights"
SCORES = (DP, ML, WEIGHTS)

# Which method found what is answered.
PROGRAM = "program"

#: A batch is cut into parts of no more servers than this, whatever is set:
#: sums of that many scores are exact in the numbers of each solver.
MOST_AT_ONCE = 8192
#: What the integer program settles in its time on some thousand hosts.
BATCH_SIZE = 1000
#: A score is no farther from 0.
MOST_SCORE = 2**40


@dataclasses.dataclass(frozen=True, slots=True)
class AntiAffinity:
    """An anti-affinity group of which a host takes at most ``most`` servers.
    """

    group: str
    most: int = 1

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(
                f"most of group {self.group} is {self.most}, at least 1")


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """Servers of one flavor that a request waits for.

    :param order: its rank among all waiting requests, the lowest comes first
    :param resources: of one of its servers
    :param count: the most servers
    :param least: so many start together, or none does
    :param hosts: the names of its allowed hosts, None: any
    :param traits: required traits of its host
    :param forbidden: forbidden traits of its host
    :param together: the affinity group whose members are all on one host, ''
        for none; if some run already, ``hosts`` has theirs
    :param apart: its anti-affinity groups; the hosts of their running servers
        are passed separately
    :raises ValueError: inconsistent counts
    """

    uuid: str
    order: int
    resources: Resources
    count: int = 1
    least: int = 1
    hosts: frozenset[str] | None = None
    traits: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    together: str = ""
    apart: tuple[AntiAffinity, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.count:
            raise ValueError(
                f"request {self.uuid}: least is {self.least} and count "
                f"{self.count}; it must be 1 <= least <= count")


@dataclasses.dataclass(frozen=True, slots=True)
class HostState:
    """A host of a batch.

    :param free: unallocated amounts
    :param capacity: amounts of the empty host
    :param weight: of one-by-one placement, in millionths; the score "weights"
        uses it
    """

    name: str
    free: Resources
    capacity: Resources
    traits: frozenset[str] = frozenset()
    weight: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Options of batch placement.

    :param mode: "exact": by an integer program, which is never worse than
        one by one; "greedy": one by one in order, each where the score is
        best
    :param score: "dp" or "ml" as published, or "weights" of hosts
    :param most_at_once: servers; more are placed in parts, one after another
    :param time_limit_s: exact: of the solver, for all parts together
    :param gap: exact: the sum of scores may be lower by such a share
    :raises ValueError: an unknown name, or a number out of range
    """

    mode: str = EXACT
    score: str = DP
    most_at_once: int = BATCH_SIZE
    time_limit_s: float = 2.0
    gap: float = 2e-3

    def __post_init__(self) -> None:
        for name, known in (("mode", MODES), ("score", SCORES)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}; it must be one of "
                    f"{', '.join(known)}")
        for name, low, high in (
            ("most_at_once", 1, MOST_AT_ONCE),
            ("time_limit_s", 0.001, 3600),
            ("gap", 0, 1),
        ):
            if not low <= getattr(self, name) <= high:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be from {low} "
                    f"to {high}")


@dataclasses.dataclass(frozen=True, slots=True)
class PartResult:
    """The result of one part of a batch.

    :param servers: how many were wanted in it
    :param method: "program" or "greedy"
    :param optimal: whether it is proven optimal, by ``Options`` and up to its
        gap
    """

    servers: int
    method: str
    optimal: bool


@dataclasses.dataclass(frozen=True, slots=True)
class BatchResult:
    """The placement of a batch.

    :param placed: {uuid: {host: how many of its servers}}
    :param unplaced: the uuids of the other requests
    :param score: the sum over all servers of their score when their part
        began
    """

    placed: Mapping[str, Mapping[str, int]]
    unplaced: tuple[str, ...]
    score: int
    parts: tuple[PartResult, ...] = ()
