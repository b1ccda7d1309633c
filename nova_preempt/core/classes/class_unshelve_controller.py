# SPDX-License-Identifier: Apache-2.0
"""Controller of returns of victims of a class of service.

The pass of M. Carvalho et al. (JISA 11, 2020), over shelved victims. It
chooses the servers to unshelve; the scheduler chooses their hosts and victims
as for any request of a class.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core import times
from nova_preempt.core.classes import class_dispatch
from nova_preempt.core.classes import class_policies
from nova_preempt.core.classes.availability_margin import QosClasses
from nova_preempt.core.controller_step import Step
from nova_preempt.core.eviction.return_controller import ShelvedVictim
from nova_preempt.core.model import (
    SECOND,
    PreemptibleServer,
    Provider,
    Resources,
)
from nova_preempt.core.scheduling.eviction_budgets import EvictionBudgets
from nova_preempt.core.scheduling.preemption_policy import Policy


@dataclasses.dataclass(frozen=True, slots=True)
class EvictableServers:
    """The running servers of classes that may be evicted for others.

    :ivar hosts: (name, provider, the preemptible servers there) of each host
    :ivar claimants: {uuid: Claimant} of servers with complete clocks
    :ivar busy: uuids of servers whose eviction has begun or lately failed
    """

    hosts: Iterable[tuple[str, Provider, Iterable[PreemptibleServer]]]
    claimants: Mapping[str, class_dispatch.Claimant]
    policy: Policy
    budgets: EvictionBudgets | None
    busy: Collection[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """Shelved servers of a class, and callbacks for a pass over them.

    :ivar most: how many may be unshelved
    :ivar claimants: {uuid: Claimant}
    :ivar room: see return_controller.Observed.room()
    :ivar may_preempt: tells whether victims may be evicted for them
    :ivar evictable: returns the Evictable
    """

    waiting: Sequence[ShelvedVictim]
    most: int
    claimants: Mapping[str, class_dispatch.Claimant]
    room: Callable[[ShelvedVictim], Mapping[str, Resources]]
    may_preempt: Callable[[], bool]
    evictable: Callable[[], EvictableServers]


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The operator's table of classes.

    :ivar period_s: how often victims may be evicted for waiting servers
    """

    classes: QosClasses
    period_s: int


def step(terms: Options, observed: Observed, memory: int | None,
        now_us: int) -> Step[class_dispatch.HostAndVictims, int | None]:
    """Return the placements of the servers to unshelve, in order.

    Free capacity is used in each step, and once a period victims as well.

    :param memory: when victims could be evicted last
    """
    waiting, most = observed.waiting, observed.most
    if not waiting or most <= 0:
        return Step((), memory)
    rooms, spared = _rooms(observed)
    placed = _round(terms, observed, spared, rooms, now_us)
    if (
            len(placed) < min(most, len(waiting))
            and _is_time(memory, terms.period_s, now_us)
            and observed.may_preempt()):
        memory = now_us
        # Who would take what is kept free is in nobody's way.
        placed = (*_round(terms, observed, waiting, {
            **rooms, **_hosts(observed.evictable(), now_us)}, now_us), *placed)
    found: dict[str, class_dispatch.HostAndVictims] = {}
    for each in placed:
        found.setdefault(each.uuid, each)
    return Step(tuple(found.values())[:most], memory)


def _is_time(passed_us: int | None, period_s: int, now_us: int) -> bool:
    """Tell whether a period has passed since then, or the clock was set back.
    """
    return passed_us is None or not (
        0 <= now_us - passed_us < period_s * SECOND)


def _round(terms: Options, observed: Observed, waiting: Iterable[
        ShelvedVictim], hosts: Mapping[str, class_dispatch.PassHost],
        now_us: int) -> tuple[class_dispatch.HostAndVictims, ...]:
    policy = class_policies.PromisePolicy(terms.classes)
    claimants = observed.claimants
    # Some may be forgotten meanwhile.
    known = [
        dataclasses.replace(claimants[each.uuid], resources=each.resources)
        for each in waiting if each.uuid in claimants]
    first = class_dispatch.first_requests(known, terms.classes, policy, now_us,
                                    observed.most)
    return class_dispatch.dispatch(
        first, [*hosts.values()], terms.classes, policy, now_us)


def _rooms(
    observed: Observed,
) -> tuple[dict[str, class_dispatch.PassHost], list[ShelvedVictim]]:
    """Return the hosts with free capacity, and the servers that fit there."""
    rooms: dict[str, Resources] = {}
    found: dict[object, Mapping[str, Resources]] = {}
    spared = []
    for each in observed.waiting:
        size = tuple(sorted(each.resources.items()))
        if size not in found:
            found[size] = observed.room(each)
            for host, free in found[size].items():
                # It may have changed since it was asked for another one.
                rooms[host] = capacity.minimum(rooms.get(host, free), free)
        if found[size]:
            spared.append(each)
    return {host: class_dispatch.PassHost(host, free)
            for host, free in rooms.items()}, spared


def _hosts(evictable: EvictableServers,
           now_us: int) -> dict[str, class_dispatch.PassHost]:
    """Return the hosts with servers that may be evicted."""
    now = times.at(now_us)
    claimants, budgets = evictable.claimants, evictable.budgets
    found = {}
    for name, provider, servers in evictable.hosts:
        there = tuple(
            dataclasses.replace(
                claimants[server.uuid],
                resources=provider.allocations[server.uuid])
            for server in servers if server.uuid in claimants
            and server.uuid in provider.allocations
            and server.uuid not in evictable.busy
            and claimants[server.uuid].is_certain
            and evictable.policy.may_be_victim(server, now)
            and (budgets is None or budgets.allows(server)))
        if there:
            free = {each: provider.free(each) for each in provider.inventories}
            found[name] = class_dispatch.PassHost(
                name,
                capacity.total((free, *(each.resources for each in there))),
                there)
    return found
