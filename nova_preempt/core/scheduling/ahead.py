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

#: No more servers than this are chosen from, the cheapest first.
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

    The cheapest that free enough of what is missing, by class; all that help
    if none do.

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
    candidates.sort(key=lambda each: (each.cost, each.uuid))
    del candidates[MOST:]
    found = cheapest_victims(
        candidates,
        missing,
        capacity={name: group.capacity(name) for name in missing},
        caps=budgets.caps(able[each.uuid] for each in candidates)
        if budgets
        else (),
    )
    chosen = (
        found.victims
        if found is not None
        else [
            each
            for each in candidates
            if any(map(each.resources.get, missing))
        ]
    )
    return [(able[each.uuid], policy.told_us(each.cost)) for each in chosen]


def freeing(
    group: Group, allocations: Iterable[Mapping[str, Resources]]
) -> dict[str, int]:
    """Return what those who end for it already will free, by class.

    :param allocations: {uuid of a provider: {class: amount}} of each
    """
    uuids = group.uuids()
    return capacity.total(
        resources
        for each in allocations
        for uuid, resources in each.items()
        if uuid in uuids
    )
