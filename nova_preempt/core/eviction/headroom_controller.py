# SPDX-License-Identifier: Apache-2.0

"""Controller of headroom: evicts servers ahead of demand."""

from collections.abc import Callable, Collection, Iterable, Mapping
import dataclasses
import datetime
import itertools

from nova_preempt.core import capacity
from nova_preempt.core import times
from nova_preempt.core.controller_step import Step
from nova_preempt.core.headroom_account import HostGroup
from nova_preempt.core.model import (
    Candidate,
    Host,
    PreemptibleServer,
    Resources,
)
from nova_preempt.core.scheduling.eviction_budgets import EvictionBudgets
from nova_preempt.core.scheduling.preemption_policy import Policy
from nova_preempt.core.victims import cheapest_victims

#: The most candidates per missing class, the cheapest first.
MOST = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Candidates:
    """Servers that may be evicted for headroom, and the rules.

    :ivar servers: the preemptible ones, on whichever host
    :ivar excluded: uuids of servers that are being evicted, or recently failed
        to end
    """

    servers: Iterable[PreemptibleServer]
    policy: Policy
    budgets: EvictionBudgets | None = None
    excluded: Collection[str] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """A group of hosts that keeps headroom.

    :ivar ending: {uuid: {uuid of a provider: allocations}} of servers that are
        evicted for no preemptor
    :ivar candidates: returns the Candidates; called if there is a shortfall
    :ivar changes: grows with each change of the group, None if not counted
    """

    group: HostGroup
    ending: Mapping[str, Mapping[str, Resources]]
    candidates: Callable[[], Candidates]
    changes: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Evict:
    """Give notice to a server.

    :ivar missing: the shortfall of the group
    """

    server: PreemptibleServer
    cost_us: int
    missing: Resources


def step(
    observed: Observed, memory: int | None, now_us: int
) -> Step[Evict, int | None]:
    """Return the fewest and cheapest servers to evict for a group.

    :param memory: the value of ``changes`` at which nothing was missing
    """
    group, changes = observed.group, observed.changes
    if changes is not None and changes == memory:
        return Step((), memory)
    missing = group.missing(_freeing(group, observed.ending.values()))
    if not missing:
        return Step((), changes)
    chosen = choose(group, missing, observed.candidates(), times.at(now_us),
                    observed.ending)
    return Step(tuple(Evict(server, cost_us, missing)
                      for server, cost_us in chosen), None)


def choose(group: HostGroup, missing: Resources, among: Candidates,
           now: datetime.datetime,
           ending: Collection[str] = ()) -> list[tuple[PreemptibleServer,
                                                       int]]:
    """Return the servers to evict for a group, each with its cost.

    The cost is published, see Policy.published_cost_us().

    The cheapest servers that free the shortfall, by class, or as much of it as
    can be freed: an amount that no server holds is no reason to evict others.
    All that help if budgets allow fewer than needed.

    :param missing: of group.missing()
    :param ending: uuids of servers that are being evicted
    """
    policy, budgets = among.policy, among.budgets
    excluded = {*ending, *among.excluded}
    able: dict[str, PreemptibleServer] = {}
    candidates = []
    for server in among.servers:
        provider = group.nodes.get(server.node)
        if (
                provider is None or server.uuid not in provider.allocations
                or server.uuid in excluded
                or not policy.may_be_victim(server, now)
                or not (budgets is None or budgets.allows(server))):
            continue
        held = Host(server.node, (provider,)).held(server.uuid)
        able[server.uuid] = server
        candidates.append(Candidate(
            server.uuid, capacity.by_class(policy.freed(server, held)),
            policy.cost_us(server, capacity.by_class(held), now)))
    candidates = _cheapest(candidates, missing)
    freed = capacity.total(each.resources for each in candidates)
    wanted = {name: min(amount, freed[name])
              for name, amount in missing.items() if freed.get(name)}
    if not wanted:
        return []
    found = cheapest_victims(
        candidates, wanted,
        capacity={name: group.capacity(name) for name in wanted},
        caps=budgets.caps(able[each.uuid] for each in candidates) if budgets
        else ())
    chosen = candidates if found is None else found.victims
    return [(able[each.uuid], policy.published_cost_us(each.cost))
            for each in chosen]


def _cheapest(
    candidates: Iterable[Candidate], missing: Resources) -> list[Candidate]:
    """Return the cheapest candidates that free missing classes."""
    ordered = sorted(candidates, key=lambda each: (each.cost, each.uuid))
    some = {
        each.uuid: each
        for name in missing
        for each in itertools.islice(
            (each for each in ordered if each.resources.get(name)), MOST)}
    return sorted(some.values(), key=lambda each: (each.cost, each.uuid))


def _freeing(
    group: HostGroup, allocations: Iterable[Mapping[str, Resources]]
) -> dict[str, int]:
    """Return the amounts that pending evictions for headroom free, by class.

    :param allocations: {uuid of a provider: {class: amount}} of each server
    """
    uuids = group.uuids()
    return capacity.total(
        resources for each in allocations for uuid, resources in each.items()
        if uuid in uuids)
