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

"""What was considered, and in words why a host and its victims were chosen."""

from __future__ import annotations

import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core.scheduling.plan import Plan


@dataclasses.dataclass(frozen=True, slots=True)
class Considered:
    """A host that could serve a request, for the record."""

    host: str
    name: str
    victims: tuple[str, ...] = ()
    cost_us: int = 0
    optimal: bool = True
    steps: int = 0

    @property
    def key(self) -> tuple[bool, int, str, str]:
        """What the best of them comes first by: room, then least cost."""
        return (bool(self.victims), self.cost_us, self.name, self.host)


def consider(host: str, name: str, plan: Plan | None) -> Considered:
    """Return a host as it is considered with a plan, or without victims."""
    if plan is None or not plan.victims or plan.joins:
        return Considered(host, name)
    return Considered(
        host,
        name,
        tuple(server.uuid for server in plan.victims),
        plan.cost_us,
        plan.victim_set.optimal,
        plan.victim_set.steps,
    )


def why(
    host: str,
    plan: Plan,
    cost_us: int,
    runner_up: tuple[str, int] | None,
    promised: bool = False,
) -> str:
    """Say it in a sentence.

    :param host: its name, as it is to be called
    :param cost_us: what is told of the cost of the plan
    :param runner_up: (name, cost in micro-units) of the next best host
    :param promised: whether classes come before the cost
    """
    lack = capacity.by_class(plan.missing)
    missing = ", ".join(f"{lack[name]} {name}" for name in sorted(lack))
    text = (
        f"{host} lacks {missing}"
        if missing
        else f"{host} has room but does not pass the filters as it is"
    )
    text += (
        f"; ending {len(plan.victims)} preemptible server(s) there costs "
        f"{cost_us / 1e6:g} s, the least of any sufficient set"
    )
    if promised:
        text += " that harms promises to classes as little"
    if not plan.victim_set.optimal:
        text += " that was found within the search budget"
    if runner_up is None:
        return text + "; no other host can serve the request"
    name, next_us = runner_up
    return text + f"; next would be {name} at {next_us / 1e6:g} s"
