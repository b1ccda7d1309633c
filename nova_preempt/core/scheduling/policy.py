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

"""What an operator has settled about who gives way, and at what cost."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import datetime

from nova_preempt.core import actions
from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.model import (
    CostOptions,
    PreemptibleServer,
    Resources,
    Server,
    SlotAmounts,
)
from nova_preempt.core.notice import NoticeRule

#: The ranks of servers: who has a lower one gives way.
PREEMPTIBLE = 0
NORMAL = 1


def may_preempt(rank: int, server: Server) -> bool:
    """Tell whether a request of this rank may end a server.

    A strict order: nobody gives way to an equal, and so never to itself.
    """
    del server  # All that are known of are preemptible.
    return rank > PREEMPTIBLE


@dataclasses.dataclass(frozen=True)
class Policy:
    """The operator's options, and what the past adds to them.

    ``actions``: what may happen to victims, the default first. ``always``:
    hosts that need victims are weighed beside those with room; else only
    where no host has room. ``shortlist``: how many hosts are looked at
    together to begin with. ``preemptions``: {uuid: how often a server has
    given way before}.
    """

    rules: eligibility.Rules
    actions: tuple[str, ...]
    cost: costs.CostFunction
    cost_options: CostOptions = dataclasses.field(default_factory=CostOptions)
    notice: NoticeRule = dataclasses.field(
        default_factory=lambda: NoticeRule(0)
    )
    preemptions: Mapping[str, int] = dataclasses.field(default_factory=dict)
    always: bool = False
    shortlist: int = 10

    def may_give_way(self, server: Server, now: datetime.datetime) -> bool:
        """Tell whether a server may be a victim of anybody now."""
        return self.is_able(server) and self.rules.has_run(
            server, server.uptime_us(now)
        )

    def is_able(self, server: Server) -> bool:
        """Tell the same of one that has run for long enough.

        One that keeps parts of its host while it is stopped makes no room,
        where nothing but stopping is allowed.
        """
        action = self.action(server)
        if server.pinned and action == actions.STOP:
            return False
        return not self.rules.why_not(server, action)

    def action(self, server: Server) -> str:
        """Return what happens to it, where it cannot be moved."""
        return actions.choose(
            server.action, self.actions, pinned=server.pinned
        )

    def notice_s(self, server: Server) -> int:
        """Return how long before its end a server knows of it."""
        return self.notice.length_s(server.notice_s)

    def cost_us(
        self, server: Server, resources: Resources, now: datetime.datetime
    ) -> int:
        """Return what the end of a server costs now, in micro-units."""
        return self.cost_at_us(server, resources, server.uptime_us(now))

    def cost_at_us(
        self, server: Server, resources: Resources, uptime_us: int
    ) -> int:
        """Return what it costs at an age, in micro-units."""
        return costs.total(
            self.cost,
            PreemptibleServer(
                server.uuid,
                uptime_us,
                resources,
                server.project_id,
                server.flavor,
                self.preemptions.get(server.uuid, 0),
            ),
            self.cost_options,
        )

    def freed(self, server: Server, held: SlotAmounts) -> SlotAmounts:
        """Return what of what a server holds its end frees."""
        # The least that it may: nobody knows whether it can be moved.
        action = self.action(server)
        return {
            slot: amount
            for slot, amount in held.items()
            if actions.frees(slot[1], action)
        }
