# SPDX-License-Identifier: Apache-2.0

"""Filters plans, and confirms a plan before its claim."""

from collections.abc import Collection, Iterable, Sequence

from nova_preempt.core import victims
from nova_preempt.core.scheduling.cloud_view import CloudView
from nova_preempt.core.scheduling.cloud_view import HostTrial
from nova_preempt.core.scheduling.plan_search import Accept
from nova_preempt.core.scheduling.plan_search import PlanSearch
from nova_preempt.core.scheduling.preemption_plan import Plan

#: Data on servers and on hosts with capacity are read again before a claim if
#: they are older, in seconds.
LATEST_S = 1


def passing_plans(cloud: CloudView, search: PlanSearch,
                  planned: Sequence[Plan]) -> list[Plan]:
    """Return plans of the hosts that pass the filters without their victims.

    Hosts are filtered first without all candidates, then without the victims
    only, since only those will end. A host that fails the second time gets its
    next cheapest plan.
    """
    at_best = _passing(
        cloud,
        (
            HostTrial(plan.host.uuid, tuple(plan.servers.values()))
            for plan in planned),
    )
    planned = [plan for plan in planned if plan.host.uuid in at_best]
    enough = _passing(
        cloud, (HostTrial(plan.host.uuid, plan.victims) for plan in planned))
    found = (
        plan if plan.host.uuid in enough
        else search.plan(
            plan.host.name, plan.host.providers,
            _accept(cloud, plan.host.uuid), ) for plan in planned)
    return [plan for plan in found if plan is not None]


def latest(
    cloud: CloudView, search: PlanSearch, plan: Plan, *, had_room: bool
) -> Plan | None:
    """Return the plan of a host that is about to be claimed, on fresh data.

    :param had_room: whether the request fitted there without victims
    :raises Unanswered:
    """
    uuid, name = plan.host.uuid, plan.host.name
    cloud.refresh(LATEST_S)
    listing = cloud.list_again(uuid, LATEST_S)
    if listing is None:
        return None
    # Capacity that was read before other requests chose may have changed.
    may_have_room = had_room or cloud.room_age_s() > LATEST_S
    if (
        listing.fresh and not may_have_room and _is_least(cloud, search, plan)
    ):
        return plan
    search.forget_budgets()
    providers = cloud.read(uuid)
    found = search.plan(name, providers)
    accept = _accept(cloud, uuid)
    if found is None or accept(found.victims):
        return found
    return search.plan(name, providers, accept)


def _is_least(cloud: CloudView, search: PlanSearch, plan: Plan) -> bool:
    """Return whether no fresh read would change the plan.

    An eviction is needed, since there is no capacity; if other servers have
    ended meanwhile the plan is still right, and if others were placed there
    Placement refuses the claim. As far as is known its victim is the same.
    """
    return (
        search.budgets is None
        and victims.stays_cheapest(plan.host.candidates, plan.victim_set)
        and all(
            cloud.server(server.uuid) == server and search.may_end(server)
            for server in plan.victims))


def _accept(cloud: CloudView, host: str) -> Accept:
    """Return a test whether a host passes without given servers."""
    return lambda servers: bool(_passing(cloud, [HostTrial(host, servers)]))


def _passing(cloud: CloudView, trials: Iterable[HostTrial]) -> Collection[str]:
    trials = list(trials)
    return cloud.passing(trials) if trials else ()
