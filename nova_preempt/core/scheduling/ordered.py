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

"""The hosts that a server of a request may take, as they were ordered."""

from __future__ import annotations

from collections.abc import Iterable

from nova_preempt.core.model import Server
from nova_preempt.core.scheduling.plan import Plan
from nova_preempt.core.scheduling.port import Trial
from nova_preempt.core.scheduling.record import Considered
from nova_preempt.core.scheduling.record import consider


class Ordered:
    """For the server that is placed now; names for all of the request.

    :ivar names: of hosts that were looked at, by uuid
    :ivar plans: of those that the server may take, None where there is room
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.plans: dict[str, Plan | None] = {}
        self._considered: dict[str, Plan | None] = {}

    def begin(self, free: Iterable[str]) -> None:
        """Forget the last server's; these have room."""
        self.plans = dict.fromkeys(free)

    def plan(self, plan: Plan) -> None:
        """Take a host with the victims of a plan.

        One that has room but does not pass as it is may pass once some have
        ended: then it is planned too.
        """
        self.plans.pop(plan.host.uuid, None)
        self.plans[plan.host.uuid] = plan

    def keep(self, ordered: Iterable[str]) -> None:
        """Keep those that came out of it, the best first."""
        self.plans = {uuid: self.plans[uuid] for uuid in ordered}
        self._considered = dict(self.plans)

    def trial(self, host: str) -> Trial:
        plan = self.plans.get(host)
        if plan is None:
            return Trial(host)
        return Trial(host, plan.victims, plan.cost_us)

    def victims(self, host: str) -> tuple[Server, ...]:
        plan = self.plans.get(host)
        return plan.victims if plan else ()

    @property
    def considered(self) -> list[Considered]:
        """Those that were kept last, the best first."""
        return sorted(
            (
                consider(uuid, self.names[uuid], plan)
                for uuid, plan in self._considered.items()
            ),
            key=lambda item: item.key,
        )
