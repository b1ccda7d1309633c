# SPDX-License-Identifier: Apache-2.0
"""Detects servers and projects that evict each other repeatedly.

Each round costs work and serves nobody: a server is returned and evicted again
and again, or the normal servers of two projects evict each other's preemptible
ones. Frequent rounds in a short time point to a wrong set-up: too little
headroom, returns that are too eager, or a controller that replaces evicted
servers at once.
"""

import collections
from collections.abc import Collection, Iterable
import dataclasses
import itertools

SERVER = "server"
PROJECTS = "projects"

#: Within how many seconds evictions are counted: returning so often within an
#: hour gains nobody anything.
WINDOW_S = 3600

#: Two evictions may be chance.
LEAST = 3


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Eviction:
    """A server was evicted for another, at a time in seconds.

    ``taker`` and ``taker_project`` are empty if no server needed the capacity.
    """

    at_s: float
    decision: str
    victim: str
    victim_project: str
    taker: str = ""
    taker_project: str = ""


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class EvictionLoop:
    """A server or a pair of projects with repeated evictions.

    ``kind`` is SERVER or PROJECTS, ``ids`` the server, or the two projects,
    and ``turns`` the number of rounds.
    """

    kind: str
    ids: tuple[str, ...]
    turns: int


def grown(
    found: Iterable[EvictionLoop], known: Collection[EvictionLoop]
) -> list[EvictionLoop]:
    """Return the loops that are new, or have more rounds than known ones."""
    turns = {(loop.kind, loop.ids): loop.turns for loop in known}
    return [loop for loop in found
            if loop.turns > turns.get((loop.kind, loop.ids), 0)]


def find(
    turns: Iterable[Eviction], least: int = LEAST
) -> tuple[EvictionLoop, ...]:
    """Return the loops with at least so many rounds, ordered.

    1. A server: how often it was evicted, by whichever server; or, if it also
       preempts, how often it changed between victim and preemptor.
    2. Two projects: how often the evicted side changes. A project that evicts
       its own servers, or is always the one evicted, is not a loop.
    """
    servers: dict[str, list[bool]] = collections.defaultdict(list)
    pairs: dict[tuple[str, ...], list[str]] = collections.defaultdict(list)
    for turn in sorted(set(turns)):
        servers[turn.victim].append(True)
        if turn.taker:
            servers[turn.taker].append(False)
        if turn.taker_project and turn.taker_project != turn.victim_project:
            pair = tuple(sorted((turn.victim_project, turn.taker_project)))
            pairs[pair].append(turn.victim_project)
    found = [EvictionLoop(SERVER, (uuid,), max(sum(sides), _runs(sides)))
             for uuid, sides in servers.items() if any(sides)]
    found += [EvictionLoop(PROJECTS, pair, _runs(sides))
              for pair, sides in pairs.items()]
    return tuple(sorted(cycle for cycle in found if cycle.turns >= least))


def _runs(sides: Iterable[object]) -> int:
    """Return the number of runs of equal sides."""
    return sum(1 for _side, _items in itertools.groupby(sides))
