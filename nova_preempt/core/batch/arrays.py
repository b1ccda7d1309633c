# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""The arrays of a batch: what is wanted, what is free, what is allowed.

Rows are classes of requests (f), columns hosts (j) in order of their names,
and k is a resource class. Amounts are divided by what is common to all that
is asked for of a resource class, which changes no answer: a host that has
V of it takes as many as one that has ``V // gcd``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import math
import operator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nova_preempt.core import capacity
from nova_preempt.core.batch import model
from nova_preempt.core.batch import scores
from nova_preempt.core.batch.grouping import Class
from nova_preempt.core.model import Inventory

Array: TypeAlias = npt.NDArray[Any]

#: The score of what is not possible.
NO = -(2**62)
_LARGEST = 2**62


@dataclasses.dataclass(frozen=True)
class Limit:
    """Of the members of a group a host takes no more than ``most``.

    :param members: of one server of each class; 0 for most classes
    """

    group: str
    most: int
    members: Array


@dataclasses.dataclass(frozen=True)
class Layer:
    """One limit of each class at most: they are few, and groups are many.

    :param rows: the classes that have one
    :param group: [f]: the number of the limit
    :param count: [f]: members of one server
    :param most: [f]
    """

    rows: Array
    group: Array
    count: Array
    most: Array


@dataclasses.dataclass(frozen=True)
class Problem:
    """What does not change while a batch is placed.

    :param classes: of requests
    :param hosts: in order of their names
    :param names: of resource classes
    :param demand: [f, k], divided by what is common to a resource class
    :param allowed: [f, j]: whether all but room is there
    :param layers: the same limits by class
    :param scorer: what is placed well
    """

    classes: tuple[Class, ...]
    hosts: tuple[model.HostState, ...]
    names: tuple[str, ...]
    demand: Array
    allowed: Array
    limits: tuple[Limit, ...]
    layers: tuple[Layer, ...]
    scorer: scores.Scorer


def make_problem(
    wanted: Mapping[Class, int],
    hosts: Iterable[model.HostState],
    score: str,
) -> tuple[Problem, Array]:
    """Return the problem, and what is free: [j, k].

    :param wanted: how many of each class, in any order
    :param hosts: no two of the same name
    :raises ValueError: a number is too large to be added up
    """
    states = tuple(sorted(hosts, key=operator.attrgetter("name")))
    classes = tuple(sorted(wanted, key=_class_key))
    names = tuple(sorted(
        {name for item in classes for name, _amount in item.demand}))
    demand, unit = _demand(classes, names, wanted)
    limits = _limits(classes)
    free, rest, largest = _room(states, names, unit)
    problem = Problem(
        classes, states, names, demand, _allowed(classes, states),
        limits, _layers(classes, limits),
        scores.make(score, demand, largest, rest, states),
    )
    return problem, free


def _class_key(item: Class) -> tuple[Any, ...]:
    """An order in which classes always come."""
    return (
        item.demand, item.each, item.hosts is not None,
        sorted(item.hosts or ()), item.zone, sorted(item.traits),
        sorted(item.forbidden), item.apart,
    )


def _demand(
    classes: Sequence[Class],
    names: Sequence[str],
    wanted: Mapping[Class, int],
) -> tuple[Array, list[int]]:
    rows = [dict(item.demand) for item in classes]
    units, columns = [], []
    for name in names:
        amounts = [row.get(name, 0) for row in rows]
        unit = math.gcd(*amounts)
        total = sum(
            amount // unit * wanted[item]
            for item, amount in zip(classes, amounts, strict=True)
        )
        if total >= _LARGEST:
            msg = (
                f"{name}: {max(amounts)} is asked for, {total * unit} by all "
                f"together; no more than {_LARGEST * unit} can be added up"
            )
            raise ValueError(msg)
        units.append(unit)
        columns.append([amount // unit for amount in amounts])
    demand = np.array(columns, dtype=np.int64).reshape(
        len(names), len(classes))
    return np.ascontiguousarray(demand.T), units


def _room(
    states: Sequence[model.HostState], names: Sequence[str], units: list[int]
) -> tuple[Array, Array, Array]:
    """Return what hosts have free, in units and beyond whole ones.

    And what the largest has in all.
    """
    free = np.zeros((len(states), len(names)), dtype=np.int64)
    rest = np.zeros((len(states), len(names)))
    largest = np.ones(len(names))
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        amounts = [state.free.get(name, 0) for state in states]
        free[:, k], rest[:, k] = _in_units(amounts, unit)
        capacities = [state.capacity.get(name, 0) for state in states]
        largest[k] = max(
            max(capacities, default=0), max(amounts, default=0), unit
        ) / unit
    return free, rest, largest


def _in_units(amounts: list[int], unit: int) -> tuple[Any, Any]:
    """Return how many whole units these are, and what is beyond them."""
    try:
        array = np.maximum(np.array(amounts, dtype=np.int64), 0)
        whole = array // unit
        return np.minimum(whole, _LARGEST), (array - whole * unit) / unit
    except OverflowError:
        amounts = [max(0, amount) for amount in amounts]
        # What is beyond this is more than all can ask for.
        return (
            [min(amount // unit, _LARGEST) for amount in amounts],
            [amount % unit / unit for amount in amounts],
        )


def _allowed(
    classes: Sequence[Class], states: Sequence[model.HostState]
) -> Array:
    """[f, j]: whether a host matches all that is not an amount."""
    kinds: dict[tuple[Any, ...], int] = {}
    kind_of = np.array([
        kinds.setdefault((state.zone, state.traits, state.units), len(kinds))
        for state in states
    ], dtype=np.intp)
    number_of = {state.name: j for j, state in enumerate(states)}
    allowed = np.zeros((len(classes), len(states)), dtype=bool)
    for f, item in enumerate(classes):
        matches = np.array(
            [_matches(item, *kind) for kind in kinds], dtype=bool)
        row = matches[kind_of] if len(kinds) else allowed[f]
        if item.hosts is not None:
            named = np.zeros(len(states), dtype=bool)
            named[[number_of[name] for name in item.hosts
                   if name in number_of]] = True
            row = row & named
        allowed[f] = row
    return allowed


def _matches(
    item: Class,
    zone: str,
    traits: frozenset[str],
    units: tuple[tuple[str, Inventory], ...],
) -> bool:
    if item.zone not in ("", zone):
        return False
    if not item.traits <= traits or item.forbidden & traits:
        return False
    if not units:
        return True
    rules = dict(units)
    return all(
        capacity.forbidden(name, amount, rules.get(name)) is None
        for demand in item.each
        for name, amount in demand
    )


def _limits(classes: Sequence[Class]) -> tuple[Limit, ...]:
    found: dict[str, tuple[int, Array]] = {}
    for f, item in enumerate(classes):
        for group, most, count in item.apart:
            members = found.setdefault(
                group, (most, np.zeros(len(classes), dtype=np.int64)))[1]
            members[f] = count
    return tuple(Limit(group, *found[group]) for group in sorted(found))


def _layers(
    classes: Sequence[Class], limits: Sequence[Limit]
) -> tuple[Layer, ...]:
    number_of = {limit.group: number for number, limit in enumerate(limits)}
    found = []
    for depth in range(max((len(item.apart) for item in classes), default=0)):
        # A group, how many it takes, and how many one server is of it.
        table = np.array([
            (number_of[item.apart[depth][0]], *item.apart[depth][1:])
            if depth < len(item.apart) else (0, 0, 0)
            for item in classes
        ], dtype=np.int64)
        found.append(Layer(
            np.flatnonzero(table[:, 2]), table[:, 0], table[:, 2],
            table[:, 1],
        ))
    return tuple(found)
