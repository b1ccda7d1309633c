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
"""Requests of a batch as the few kinds that they are of.

Those that have to be on one host become one that asks for all of it
(contraction: the aggregator node of the paper, behind which each machine takes
one container, can never put two on the same machine). What asks for the same
under the same constraints is one class, whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import dataclasses
import operator

from nova_preempt.core import capacity
from nova_preempt.core.batch import model
from nova_preempt.core.batch.model import Reason

Demand = tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Class:
    """What is the same of requests that may change places.

    :param demand: amounts by resource class, none of them 0
    :param each: the same of each server of it: what units are about
    :param apart: (group, most on a host, how many members this is)
    """

    demand: Demand
    each: tuple[Demand, ...]
    hosts: frozenset[str] | None
    zone: str
    traits: frozenset[str]
    forbidden: frozenset[str]
    apart: tuple[tuple[str, int, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Bundle:
    """What is placed as one: a request, or all that have to be together.

    :param order: of the first of them
    :param count: how often it is wanted: 1 if they have to be together
    """

    members: tuple[model.Request, ...]
    kind: Class
    order: int
    count: int
    least: int

    @property
    def uuid(self) -> str:
        """Of the first of them."""
        return self.members[0].uuid


_key = operator.attrgetter("order", "uuid")


def bundles(
    requests: Iterable[model.Request],
) -> tuple[list[Bundle], dict[str, Reason]]:
    """Return what is to be placed, in order, and what can not be at all.

    What is of the same class has the same object as its class.

    :raises ValueError: two requests of the same uuid, or a negative amount
    """
    pool = sorted(requests, key=_key)
    if len({request.uuid for request in pool}) < len(pool):
        msg = f"some requests are the same: {[r.uuid for r in pool]}"
        raise ValueError(msg)
    refused: dict[str, Reason] = {}
    found = []
    kinds: dict[Class, Class] = {}
    most = _most(pool)
    # Few flavors are shared by many, as the same object.
    demands: dict[int, Demand] = {}
    for members in _components(pool):
        made = _bundle(members, most, demands, kinds)
        if isinstance(made, Reason):
            refused.update((member.uuid, made) for member in members)
        else:
            found.append(made)
    return found, refused


def _most(pool: Iterable[model.Request]) -> dict[str, int]:
    """How many of each group a host takes: the least that is said."""
    most: dict[str, int] = {}
    for request in pool:
        for item in request.apart:
            most[item.group] = min(item.most, most.get(item.group, item.most))
    return most


def _components(
    pool: Sequence[model.Request],
) -> list[tuple[model.Request, ...]]:
    """Return who has to be together, in order of the first of each."""
    parents = list(range(len(pool)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    first: dict[str, int] = {}
    for number, request in enumerate(pool):
        for group in request.together:
            one, other = root(first.setdefault(group, number)), root(number)
            # The earlier one stays the root.
            parents[max(one, other)] = min(one, other)
    found: dict[int, list[model.Request]] = {}
    for number, request in enumerate(pool):
        found.setdefault(root(number), []).append(request)
    return [tuple(found[number]) for number in sorted(found)]


def _bundle(
    members: tuple[model.Request, ...],
    most: dict[str, int],
    demands: dict[int, Demand],
    kinds: dict[Class, Class],
) -> Bundle | Reason:
    each = []
    for member in members:
        demand = _demand(member, demands)
        if isinstance(demand, Reason):
            return demand
        each.append(demand)
    first = members[0]
    if not first.together:
        kind = Class(
            each[0], (each[0],), first.hosts, first.zone, first.traits,
            first.forbidden, _apart(members, most, single=True),
        )
        reason = _contradiction(kind)
        if reason is not None:
            return reason
        kind = kinds.setdefault(kind, kind)
        return Bundle(members, kind, first.order, first.count, first.least)
    zones = {member.zone for member in members} - {""}
    if len(zones) > 1:
        return Reason(
            model.CONFLICT,
            "Servers that have to be on one host are for the zones "
            f"{', '.join(sorted(zones))}.",
        )
    hosts = [member.hosts for member in members if member.hosts is not None]
    kind = Class(
        tuple(sorted(capacity.total(
            {name: amount * member.count for name, amount in demand}
            for member, demand in zip(members, each, strict=True)
        ).items())),
        tuple(sorted(set(each))),
        frozenset.intersection(*hosts) if hosts else None,
        next(iter(zones), ""),
        frozenset().union(*(member.traits for member in members)),
        frozenset().union(*(member.forbidden for member in members)),
        _apart(members, most, single=False),
    )
    reason = _contradiction(kind)
    if reason is not None:
        return reason
    kind = kinds.setdefault(kind, kind)
    return Bundle(members, kind, first.order, 1, 1)


def _demand(
    request: model.Request, demands: dict[int, Demand]
) -> Demand | Reason:
    """What one of its servers asks of the root provider."""
    known = demands.get(id(request.server))
    if known is not None:
        return known
    for group in request.server.groups:
        if group.suffix:
            return Reason(
                model.GRANULAR,
                f"It is not for a batch: group {group.suffix} is granular, "
                "so that its host has to be looked at as a tree.",
            )
    resources = capacity.total(
        group.resources for group in request.server.groups
    )
    if min(resources.values(), default=0) < 0:
        msg = f"request {request.uuid} asks for a negative amount: {resources}"
        raise ValueError(msg)
    found = tuple(sorted((k, n) for k, n in resources.items() if n))
    demands[id(request.server)] = found
    return found


def _apart(
    members: Iterable[model.Request], most: dict[str, int], *, single: bool
) -> tuple[tuple[str, int, int], ...]:
    counts = capacity.total(
        {item.group: 1 if single else member.count}
        for member in members
        for item in member.apart
    )
    return tuple((group, most[group], counts[group])
                 for group in sorted(counts))


def _contradiction(kind: Class) -> Reason | None:
    for group, most, count in kind.apart:
        if count > most:
            return Reason(
                model.CONFLICT,
                f"{count} servers of group {group} have to be on one host, "
                f"which takes no more than {most} of it.",
            )
    both = kind.traits & kind.forbidden
    if both:
        return Reason(
            model.CONFLICT,
            f"{', '.join(sorted(both))}: required and forbidden.",
        )
    return None
