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

"""Which host serves a request, and who has to leave it.

Algorithms 2 and 6 of A. Lopez Garcia et al., FGCS 2019 (doi
10.1016/j.future.2018.12.057) without the filters of Nova: a request for a
normal server looks past the preemptible ones, and the host is chosen whose
victims cost least. (Adding up all preemptible servers of a host, as the
text of Algorithm 4 has it, would contradict the paper's own Tables 5 and 6;
the cost of a host is that of its cheapest sufficient set.)
"""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import itertools

from nova_preempt.core.capacity import missing
from nova_preempt.core.model import Host, Plan, Refusal, Resources
from nova_preempt.core.ordering import Key
from nova_preempt.core.ordering import ascending
from nova_preempt.core.victims import DEFAULT_LIMITS
from nova_preempt.core.victims import SearchLimits
from nova_preempt.core.victims import cheapest_victims
from nova_preempt.core.victims import lower_bound


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """The best plan, if any, and what else there was.

    ``considered``: all plans, the best first, by (needs victims, cost,
    number of victims, name and uuid of the host). ``refusals``: (uuid of
    the host, why), in order of the hosts' names and uuids.
    """

    plan: Plan | None
    considered: tuple[Plan, ...]
    refusals: tuple[tuple[str, Refusal], ...]


def decide(
    hosts: Iterable[Host],
    request: Resources,
    limits: SearchLimits = DEFAULT_LIMITS,
    *,
    at_most: int | None = None,
) -> Decision:
    """Return the best plan to serve a normal server's request.

    A host where nobody has to leave always wins over one that needs
    victims, even free ones. Leave out the candidates of the hosts to decide
    for a request that must not preempt. ``at_most``: stop after so many
    plans, which saves the search for victims on most hosts; None = all.
    """
    lacks: list[tuple[Host, dict[str, int]]] = []
    refusals: list[tuple[str, Refusal]] = []
    for host in sorted(hosts, key=lambda host: (host.name, host.uuid)):
        lack = missing(request, host)
        if isinstance(lack, Refusal):
            refusals.append((host.uuid, lack))
        else:
            lacks.append((host, lack))

    def bound(item: tuple[Host, dict[str, int]]) -> Key | None:
        host, lack = item
        cost = lower_bound(host.candidates, lack)
        return None if cost is None else (bool(lack), cost)

    def exact(item: tuple[Host, dict[str, int]]) -> tuple[Key, Plan] | None:
        plan = _plan(*item, limits)
        return None if plan is None else (_key(plan), plan)

    plans = (plan for _, _, plan in ascending(lacks, bound, exact))
    considered = tuple(itertools.islice(plans, at_most))
    return Decision(
        considered[0] if considered else None, considered, tuple(refusals)
    )


def _plan(
    host: Host, lack: dict[str, int], limits: SearchLimits
) -> Plan | None:
    """Return the cheapest plan on the host."""
    found = cheapest_victims(
        host.candidates,
        lack,
        capacity={
            name: inventory.capacity
            for name, inventory in host.inventories.items()
        },
        limits=limits,
    )
    return None if found is None else Plan(host, found, lack)


def _key(plan: Plan) -> Key:
    """Return what plans are ordered by."""
    return (
        bool(plan.missing),
        plan.victim_set.cost,
        len(plan.victim_set.victims),
        plan.host.name,
        plan.host.uuid,
    )
