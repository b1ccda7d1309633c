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

"""Who ends ahead of demand, for space that is to be kept free."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
import datetime
import itertools

from nova_preempt.core import capacity
from nova_preempt.core.headroom import Group
from nova_preempt.core.model import (
    Candidate,
    Host,
    Resources,
    Server,
)
from nova_preempt.core.scheduling.budgets import Budgets
from nova_preempt.core.scheduling.policy import Policy
from nova_preempt.core.victims import cheapest_victims

#: No more servers than this are chosen from for what is missing of a class,
#: the cheapest first.
MOST = 200


def choose(
    group: Group,
    missing: Resources,
    servers: Iterable[Server],
    policy: Policy,
    now: datetime.datetime,
    budgets: Budgets | None = None,
    excluded: Collection[str] = (),
) -> list[tuple[Server, int]]:
    """Return who ends so that a group has its headroom, and at what cost.

    The cost is what is told of it, see Policy.told_us().

    The cheapest that free what is missing, by class, or as much of it as can
    be freed: what nobody would give up is no reason for others to end. All
    that help where budgets do not allow as many.

    :param missing: of group.missing()
    :param servers: the preemptible ones, on whatever host
    :param excluded: uuids of those that end already, or lately did not
    """
    able: dict[str, Server] = {}
    candidates = []
    for server in servers:
        provider = group.nodes.get(server.node)
        if (
            provider is None
            or server.uuid not in provider.allocations
            or server.uuid in excluded
            or not policy.may_give_way(server, now)
            or not (budgets is None or budgets.allows(server))
        ):
            continue
        held = Host(server.node, (provider,)).held(server.uuid)
        able[server.uuid] = server
        candidates.append(
            Candidate(
                server.uuid,
                capacity.by_class(policy.freed(server, held)),
                policy.cost_us(server, capacity.by_class(held), now),
            )
        )
    candidates = _cheapest(candidates, missing)
    freed = capacity.total(each.resources for each in candidates)
    wanted = {
        name: min(amount, freed[name])
        for name, amount in missing.items()
        if freed.get(name)
    }
    if not wanted:
        return []
    found = cheapest_victims(
        candidates,
        wanted,
        capacity={name: group.capacity(name) for name in wanted},
        caps=budgets.caps(able[each.uuid] for each in candidates)
        if budgets
        else (),
    )
    chosen = candidates if found is None else found.victims
    return [(able[each.uuid], policy.told_us(each.cost)) for each in chosen]


def _cheapest(
    candidates: Iterable[Candidate], missing: Resources
) -> list[Candidate]:
    """Return the cheapest of those that free something of what is missing."""
    ordered = sorted(candidates, key=lambda each: (each.cost, each.uuid))
    some = {
        each.uuid: each
        for name in missing
        for each in itertools.islice(
            (each for each in ordered if each.resources.get(name)), MOST
        )
    }
    return sorted(some.values(), key=lambda each: (each.cost, each.uuid))


def freeing(
    group: Group, allocations: Iterable[Mapping[str, Resources]]
) -> dict[str, int]:
    """Return what those who end already, for no server, will free, by class.

    :param allocations: {uuid of a provider: {class: amount}} of each
    """
    uuids = group.uuids()
    return capacity.total(
        resources
        for each in allocations
        for uuid, resources in each.items()
        if uuid in uuids
    )
