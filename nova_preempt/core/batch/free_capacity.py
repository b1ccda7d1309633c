# SPDX-License-Identifier: Apache-2.0
"""Free capacity of hosts during the placement of a batch, and their scores.

Rows are kinds of requests (f), columns hosts (j) in order of their names. A
resource (k) is a resource class or, after these, an anti-affinity group, of
which a server takes one and a host has as many as it may have members. Amounts
are divided by the greatest common divisor of all demands of a resource, which
changes no answer: a host that has V of it takes as many as one that has
``V // gcd``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import math
import operator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import host_scores
from nova_preempt.core.batch.request_kinds import RequestKind

Array: TypeAlias = npt.NDArray[Any]
#: (class, host) -> how many
Placed: TypeAlias = Mapping[tuple[int, int], int]

#: The score of an impossible placement.
IMPOSSIBLE = -(2**62)
_LARGEST = 2**62


@dataclasses.dataclass(frozen=True)
class PlacementProblem:
    """The constant input of the placement of a batch.

    :param classes: kinds of requests
    :param hosts: in order of their names
    :param demand: [f, k]
    :param layers: (k, amount) of each kind, first one resource of it, then
        the next: a kind asks for few of them, and groups may be many
    :param allowed: [f, j]: whether all constraints but capacity are met
    :param scorer: scores placements
    """

    classes: tuple[RequestKind, ...]
    hosts: tuple[batch_model.HostState, ...]
    demand: Array
    layers: tuple[tuple[Array, Array], ...]
    allowed: Array
    scorer: host_scores.Scorer


class FreeCapacity:
    """The free capacity of hosts for each kind of request.

    :ivar free: [j, k]
    :ivar scores: [f, j] of one more server, IMPOSSIBLE where none fits
    """

    def __init__(self, problem: PlacementProblem, free: Array,
                 scores: Array | None = None) -> None:
        self.problem = problem
        self.free = free
        self.scores = self._scores(slice(None)) if scores is None else scores

    def copy(self) -> FreeCapacity:
        """Return an independent copy."""
        return FreeCapacity(self.problem, self.free.copy(), self.scores.copy())

    def take(self, f: int, j: int, count: int = 1) -> None:
        """Place so many of a kind on a host; a negative count removes them."""
        self.free[j] -= self.problem.demand[f] * count
        self.scores[:, [j]] = self._scores([j])

    def move(self, where: Placed) -> None:
        """Place several kinds at once."""
        if where:
            f, j = map(list, zip(*where, strict=True))
            counts = np.array(list(where.values()))
            np.add.at(self.free, j, -self.problem.demand[f] * counts[:, None])
            columns = np.unique(j)
            self.scores[:, columns] = self._scores(columns)

    def is_possible(self) -> bool:
        """Tell whether no resource is overcommitted."""
        return bool((self.free >= 0).all())

    def score(self, where: Placed) -> int:
        """Return the sum of scores, as they are now."""
        return sum(
            int(self.scores[key]) * count for key, count in where.items())

    def times(self, f: int, most: int) -> Array:
        """Return how many of a kind fit on each host, up to ``most``."""
        found: Array = np.where(self.scores[f] > IMPOSSIBLE, most, 0)
        for k in np.flatnonzero(self.problem.demand[f]):
            found = np.minimum(
                found, self.free[:, k] // self.problem.demand[f, k])
        return found

    def _scores(self, columns: Any) -> Array:
        problem, free = self.problem, self.free[columns]
        possible = problem.allowed[:, columns].copy()
        for resources, amounts in problem.layers:
            possible &= amounts[:, None] <= free.T[resources]
        return np.where(possible, problem.scorer.of(free, columns), IMPOSSIBLE)


def make(
    wanted: Mapping[RequestKind, int], hosts: Iterable[batch_model.HostState],
    score: str, members: Mapping[str, Mapping[str, int]], ) -> FreeCapacity:
    """Return the free capacity of a batch before anything is placed.

    :param wanted: how many of each kind, in any order
    :param hosts: with distinct names
    :param members: {group: {host: how many are there}}
    :raises ValueError: a number is too large to be added up
    """
    states = tuple(sorted(hosts, key=operator.attrgetter("name")))
    number_of = {state.name: j for j, state in enumerate(states)}
    classes = tuple(sorted(wanted, key=_class_key))
    amounts: dict[str, dict[int, int]] = {}
    of_group: dict[str, dict[int, int]] = {}
    most: dict[str, int] = {}
    for f, item in enumerate(classes):
        for name, amount in item.demand:
            amounts.setdefault(name, {})[f] = amount
        for group, limit, count in item.apart:
            of_group.setdefault(group, {})[f] = count
            most[group] = limit
    names, groups = sorted(amounts), sorted(of_group)
    demand = np.zeros((len(classes), len(names) + len(groups)), np.int64)
    free = np.zeros((len(states), demand.shape[1]), np.int64)
    rest = np.zeros((len(states), len(names)))
    largest = np.ones(len(names))
    for k, name in enumerate(names):
        unit = math.gcd(*amounts[name].values())
        _check_sum(name, unit, {
            classes[f]: n for f, n in amounts[name].items()}, wanted)
        for f, amount in amounts[name].items():
            demand[f, k] = amount // unit
        there = [max(0, state.free.get(name, 0)) for state in states]
        free[:, k], rest[:, k] = _in_units(there, unit)
        largest[k] = max([unit, *there, *(
            state.capacity.get(name, 0) for state in states)]) / unit
    for k, group in enumerate(groups, len(names)):
        for f, count in of_group[group].items():
            demand[f, k] = count
        free[:, k] = most[group]
        for name, count in members.get(group, {}).items():
            if name in number_of:
                free[number_of[name], k] = max(0, most[group] - count)
    return FreeCapacity(PlacementProblem(
        classes, states, demand, _layers(demand),
        _allowed(classes, states, number_of), host_scores.make(score, demand[:,
        :len(names)], largest, rest, states)), free)


def _class_key(item: RequestKind) -> tuple[Any, ...]:
    """Return a key that sorts kinds in a fixed order."""
    return (
        item.demand, item.hosts is not None, sorted(item.hosts or ()),
        sorted(item.traits), sorted(item.forbidden), item.apart)


def _check_sum(name: str, unit: int, amounts: Mapping[RequestKind, int],
        wanted: Mapping[RequestKind, int]) -> None:
    total = sum(amount * wanted[item] for item, amount in amounts.items())
    if total // unit >= _LARGEST:
        raise ValueError(
            f"{name}: {max(amounts.values())} is asked for, {total} by all "
            f"together; no more than {_LARGEST * unit} can be added up")


def _in_units(amounts: list[int], unit: int) -> tuple[Any, Any]:
    """Return the whole units of amounts, and their remainders."""
    if max(amounts, default=0) < _LARGEST:
        array = np.array(amounts, dtype=np.int64)
        return array // unit, array % unit / unit
    # Larger amounts exceed the sum of all demands.
    return (
        [min(amount // unit, _LARGEST) for amount in amounts],
        [amount % unit / unit for amount in amounts],
    )


def _layers(demand: Array) -> tuple[tuple[Array, Array], ...]:
    f, k = np.nonzero(demand)
    depth = np.arange(len(f)) - np.searchsorted(f, f)
    found = []
    for number in range(int(depth.max(initial=-1)) + 1):
        here = depth == number
        resources = np.zeros(len(demand), dtype=np.intp)
        resources[f[here]] = k[here]
        amounts = np.zeros(len(demand), dtype=np.int64)
        amounts[f[here]] = demand[f[here], k[here]]
        found.append((resources, amounts))
    return tuple(found)


def _allowed(classes: Sequence[RequestKind], states: Sequence[
        batch_model.HostState], number_of: Mapping[str, int]) -> Array:
    """Return [f, j]: whether a host meets all constraints but capacity."""
    kinds: dict[frozenset[str], int] = {}
    kind_of = np.array([
        kinds.setdefault(state.traits, len(kinds)) for state in states
    ], dtype=np.intp)
    allowed = np.zeros((len(classes), len(states)), dtype=bool)
    for f, item in enumerate(classes):
        matches = np.array([
            item.traits <= traits and not item.forbidden & traits
            for traits in kinds], dtype=bool)
        allowed[f] = matches[kind_of]
        if item.hosts is not None:
            named = np.zeros(len(states), dtype=bool)
            named[[number_of[name] for name in item.hosts
                   if name in number_of]] = True
            allowed[f] &= named
    return allowed
