# SPDX-License-Identifier: Apache-2.0
"""Servers and projects that take each other's place in turns.

Each turn costs work and serves nobody: a server that comes back and gives way
again and again, or two projects whose normal servers end each other's
preemptible ones. What comes round so often in a short time is a sign that
something is set up wrongly: too little headroom, a return that is too eager,
a controller that replaces at once what has ended.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable
import dataclasses
import itertools

SERVER = "server"
PROJECTS = "projects"


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Eviction:
    """One server gave way to another, at a time in seconds.

    ``taker`` and ``taker_project`` are empty where it was for no server.
    """

    at_s: float
    decision: str
    victim: str
    victim_project: str
    taker: str = ""
    taker_project: str = ""


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class EvictionLoop:
    """What came round.

    ``kind`` is SERVER or PROJECTS, ``ids`` the server, or the two projects,
    and ``turns`` how often.
    """

    kind: str
    ids: tuple[str, ...]
    turns: int


def find(turns: Iterable[Eviction], least: int) -> tuple[EvictionLoop, ...]:
    """Return what has come round at least so often, ordered.

    1. A server: how often it gave way, whoever took its place; and if it
       takes others' places in between, how often it changed sides.
    2. Two projects: how often the side changes that gives way. A project
       that ends its own servers is none, nor is one that always gives way.
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
    """Return how often the side changes, the first one included."""
    return sum(1 for _side, _items in itertools.groupby(sides))
