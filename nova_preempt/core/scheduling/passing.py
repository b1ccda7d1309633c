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

"""Which plans pass the filters, as these see the host afterwards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from nova_preempt.core.scheduling.plan import Plan
from nova_preempt.core.scheduling.plans import Accept
from nova_preempt.core.scheduling.plans import Search
from nova_preempt.core.scheduling.port import Cloud
from nova_preempt.core.scheduling.port import Trial


def passing(
    cloud: Cloud, search: Search, planned: Sequence[Plan]
) -> list[Plan]:
    """Return plans of the hosts that pass once their victims are gone.

    First as if all servers that may end were gone, which is what a normal
    request is filtered on; then without the victims only, since they are all
    that will end. A host that needs more of them gets its next cheapest plan.
    """
    at_best = _passing(
        cloud,
        (
            Trial(plan.host.uuid, tuple(plan.servers.values()))
            for plan in planned
        ),
    )
    planned = [plan for plan in planned if plan.host.uuid in at_best]
    enough = _passing(
        cloud, (Trial(plan.host.uuid, plan.victims) for plan in planned)
    )
    found = (
        plan
        if plan.host.uuid in enough
        else search.plan(
            plan.host.name,
            plan.host.providers,
            accept(cloud, plan.host.uuid),
        )
        for plan in planned
    )
    return [plan for plan in found if plan is not None]


def accept(cloud: Cloud, host: str) -> Accept:
    """Return what tells of victims whether a host passes without them."""
    return lambda servers: bool(_passing(cloud, [Trial(host, servers)]))


def latest(cloud: Cloud, search: Search, plan: Plan) -> Plan | None:
    """Return the plan of a host on what is so now.

    :raises Unanswered:
    """
    uuid, name = plan.host.uuid, plan.host.name
    providers = cloud.read(uuid)
    found = search.plan(name, providers)
    if found is None:
        return None
    accepts = accept(cloud, uuid)
    if accepts(found.victims):
        return found
    return search.plan(name, providers, accepts)


def _passing(cloud: Cloud, trials: Iterable[Trial]) -> Collection[str]:
    trials = list(trials)
    return cloud.passing(trials) if trials else ()
