# SPDX-License-Identifier: Apache-2.0
"""Groups the requests of a batch into kinds and bundles.

Requests that must be on one host become one bundle that asks for all of it.
Bundles with equal demands and constraints are of one kind.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import operator

from nova_preempt.core import capacity
from nova_preempt.core.batch import batch_model


@dataclasses.dataclass(frozen=True, slots=True)
class RequestKind:
    """The demand and constraints that interchangeable requests share.

    :param demand: amounts by resource class, none of them 0
    :param apart: (group, most on a host, how many members this is)
    """

    demand: tuple[tuple[str, int], ...]
    hosts: frozenset[str] | None
    traits: frozenset[str]
    forbidden: frozenset[str]
    apart: tuple[tuple[str, int, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Bundle:
    """A request, or all requests that must be on one host.

    :param count: how often it is wanted: 1 for several requests
    """

    members: tuple[batch_model.Request, ...]
    kind: RequestKind
    count: int
    least: int


def bundles(requests: Iterable[batch_model.Request]) -> list[Bundle]:
    """Return the bundles, in order of the first request of each.

    :raises ValueError: two requests of the same uuid, or a negative amount
    """
    pool = sorted(requests, key=operator.attrgetter("order", "uuid"))
    if len({request.uuid for request in pool}) < len(pool):
        raise ValueError(
            f"some requests are the same: {[r.uuid for r in pool]}")
    # The most of each group on a host: the smallest given limit.
    most: dict[str, int] = {}
    found: dict[tuple[str, str], list[batch_model.Request]] = {}
    for request in pool:
        if min(request.resources.values(), default=0) < 0:
            raise ValueError(f"request {request.uuid} asks for a negative "
                             f"amount: {request.resources}")
        for item in request.apart:
            most[item.group] = min(item.most, most.get(item.group, item.most))
        alone = "" if request.together else request.uuid
        found.setdefault((request.together, alone), []).append(request)
    kinds: dict[RequestKind, RequestKind] = {}
    return [_bundle(members, most, kinds) for members in found.values()]


def _bundle(members: Sequence[batch_model.Request], most: Mapping[str, int],
        kinds: dict[RequestKind, RequestKind]) -> Bundle:
    first = members[0]
    # Servers of an affinity group count as one.
    times = {member.uuid: member.count if member.together else 1
             for member in members}
    demand = capacity.total(
        {name: amount * times[member.uuid]
         for name, amount in member.resources.items() if amount}
        for member in members)
    counts = capacity.total(
        {item.group: times[member.uuid]}
        for member in members for item in member.apart)
    hosts = [member.hosts for member in members if member.hosts is not None]
    kind = RequestKind(tuple(sorted(demand.items())), frozenset.intersection(
        *hosts) if hosts else None, frozenset().union(*(
        member.traits for member in members)), frozenset().union(*(
        member.forbidden for member in members)), tuple((group, most[group],
        counts[group]) for group in sorted(counts)))
    return Bundle(
        tuple(members), kinds.setdefault(kind, kind),
        1 if first.together else first.count,
        1 if first.together else first.least)
