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
"""Victims for those of a batch that what is free has no room for.

A step after the batch, one request after another: first everybody gets the
host that is best without anybody's end, then who is left, and outranks others,
ends as little as possible. Both at once would be better at times (see
``doc/source/how-a-batch-is-placed.rst`` for how often), but is a program of
servers that run and servers that wait at once, whose answer nobody could
explain to the owner of a victim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core.batch import model
from nova_preempt.core.model import (
    Candidate,
    Host,
    Provider,
    Refusal,
    Resources,
    VictimSet,
)
from nova_preempt.core.victims import cheapest_victims

#: Whether a request may have a server ended, and whether it may be on a host.
Outranks = Callable[[model.Request, Candidate], bool]
Allowed = Callable[[model.Request, Host], bool]


@dataclasses.dataclass(frozen=True, slots=True)
class Preemption:
    """A request, its host, and who ends for it; nobody, if it fits."""

    uuid: str
    host: str
    victims: VictimSet


def preempt(
    requests: Iterable[model.Request],
    hosts: Sequence[Host],
    placed: Mapping[str, Resources],
    outranks: Outranks,
    allowed: Allowed,
) -> tuple[list[Preemption], dict[str, model.Reason]]:
    """Find victims for requests that the batch has left out.

    In order; each gets the host on which the cheapest set of victims costs
    least, then with fewest victims, then the first by name. Who is a victim
    already frees its room for the first who wants it.

    :param requests: of one server each, and of no group
    :param hosts: as they are without the batch
    :param placed: {host: what the batch has placed there}
    :returns: what is found, and why the others get nothing, by uuid
    """
    left = {host.name: _with(host, placed.get(host.name, {}))
            for host in sorted(hosts, key=lambda host: host.name)}
    found: list[Preemption] = []
    refused: dict[str, model.Reason] = {}
    for request in sorted(requests, key=lambda one: (one.order, one.uuid)):
        if request.count > 1 or request.together or request.apart:
            refused[request.uuid] = model.Reason(
                model.GRANULAR,
                "No victims are looked for: it is for several servers, or "
                "in a group.",
            )
            continue
        best = _best(request, left.values(), outranks, allowed)
        if best is None:
            refused[request.uuid] = model.Reason(
                model.NO_ROOM,
                "No host would have room if all that it outranks had ended.",
            )
            continue
        found.append(best)
        left[best.host] = _without(
            left[best.host], best.victims.victims, request)
    return found, refused


def _best(
    request: model.Request,
    hosts: Iterable[Host],
    outranks: Outranks,
    allowed: Allowed,
) -> Preemption | None:
    best: tuple[tuple[int, int, str], Preemption] | None = None
    for host in hosts:
        if not allowed(request, host):
            continue
        some = tuple(
            each for each in host.candidates if outranks(request, each))
        lack = capacity.missing(
            request.server, dataclasses.replace(host, candidates=some))
        if isinstance(lack, Refusal):
            continue
        victims = cheapest_victims(some, lack)
        if victims is None:
            continue
        key = victims.cost, len(victims.victims), host.name
        if best is None or key < best[0]:
            best = key, Preemption(request.uuid, host.name, victims)
    return None if best is None else best[1]


def _with(host: Host, amounts: Resources) -> Host:
    """The host, with amounts of the batch taken from its root."""
    if not amounts:
        return host
    return _replace_root(host, {
        **host.root.allocations,
        _BATCH: capacity.total((
            host.root.allocations.get(_BATCH, {}), amounts)),
    })


def _without(
    host: Host, victims: Sequence[Candidate], request: model.Request
) -> Host:
    """The host, with a server in place of its victims."""
    gone = {victim.uuid for victim in victims}
    providers = tuple(
        dataclasses.replace(provider, allocations={
            uuid: amounts
            for uuid, amounts in provider.allocations.items()
            if uuid not in gone
        })
        for provider in host.providers
    )
    kept = tuple(each for each in host.candidates if each.uuid not in gone)
    return _with(
        dataclasses.replace(host, providers=providers, candidates=kept),
        capacity.total(group.resources for group in request.server.groups),
    )


def _replace_root(
    host: Host, allocations: Mapping[str, Resources]
) -> Host:
    root: Provider = dataclasses.replace(host.root, allocations=allocations)
    return dataclasses.replace(host, providers=(root, *host.providers[1:]))


#: Stands for what the batch has placed on a host.
_BATCH = "batch"
