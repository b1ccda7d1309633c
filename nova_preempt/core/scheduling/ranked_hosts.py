# SPDX-License-Identifier: Apache-2.0

"""Ranks the hosts for a server, and explains the choice of the best."""

from collections.abc import Iterable
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core.model import PreemptibleServer
from nova_preempt.core.scheduling.cloud_view import HostTrial
from nova_preempt.core.scheduling.preemption_plan import Plan


@dataclasses.dataclass(frozen=True, slots=True)
class ConsideredHost:
    """A host that could serve a request, for the decision record."""

    host: str
    name: str
    victims: tuple[str, ...] = ()
    cost_us: int = 0
    optimal: bool = True
    steps: int = 0

    @property
    def key(self) -> tuple[bool, int, str, str]:
        """Sort key: hosts without victims first, then by cost."""
        return (bool(self.victims), self.cost_us, self.name, self.host)


class RankedHosts:
    """The hosts for the current server of a request, the best first.

    :ivar names: of hosts that any server of the request was offered, by uuid
    :ivar plans: of the hosts for this server, by uuid; None if it fits without
        victims
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.plans: dict[str, Plan | None] = {}
        self._ranked: dict[str, Plan | None] = {}

    def add(self, plan: Plan) -> None:
        """Add a host with its plan, after all others.

        A host on which the server fits may fail a filter, and pass it without
        some servers: the plan replaces it.
        """
        self.plans.pop(plan.host.uuid, None)
        self.plans[plan.host.uuid] = plan

    def rank(self, ordered: Iterable[str]) -> None:
        """Keep these hosts only, in this order."""
        self.plans = {uuid: self.plans[uuid] for uuid in ordered}
        self._ranked = dict(self.plans)

    def victims(self, host: str) -> tuple[PreemptibleServer, ...]:
        plan = self.plans.get(host)
        return plan.victims if plan else ()

    def trial(self, host: str) -> HostTrial:
        plan = self.plans.get(host)
        return HostTrial(host, self.victims(host), plan.cost_us if plan else 0)

    @property
    def considered(self) -> list[ConsideredHost]:
        """The hosts of the last ranking, sorted by cost."""
        return sorted(
            (self._consider(uuid, plan)
             for uuid, plan in self._ranked.items()),
            key=lambda item: item.key, )

    def _consider(self, host: str, plan: Plan | None) -> ConsideredHost:
        if plan is None or not plan.victims or plan.joins:
            return ConsideredHost(host, self.names[host])
        return ConsideredHost(
            host, self.names[host],
            tuple(server.uuid for server in plan.victims), plan.cost_us,
            plan.victim_set.optimal, plan.victim_set.steps, )


def explain(
    host: str, plan: Plan, cost_us: int, runner_up: tuple[str, int] | None,
    promised: bool = False, ) -> str:
    """Explain the choice of a host and its victims in a sentence.

    :param host: its name for the reader
    :param cost_us: the published cost of the plan
    :param runner_up: (name, cost in micro-units) of the next best host
    :param promised: whether promises of classes come before the cost
    """
    lack = capacity.by_class(plan.missing)
    missing = ", ".join(f"{lack[name]} {name}" for name in sorted(lack))
    text = (
        f"{host} lacks {missing}" if missing
        else f"{host} has capacity, but does not pass the filters")
    text += (
        f"; evicting {len(plan.victims)} preemptible server(s) there costs "
        f"{cost_us / 1e6:g} s, the least of all sufficient sets")
    if promised:
        text += " with the same harm to promises of classes"
    if not plan.victim_set.optimal:
        text += " found within the search budget"
    if runner_up is None:
        return text + "; no other host can serve the request"
    name, next_us = runner_up
    return text + f"; next would be {name} at {next_us / 1e6:g} s"
