# SPDX-License-Identifier: Apache-2.0

"""Policy of preemption: who may be evicted, and at what cost."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
import dataclasses
import datetime
from typing import Any, Protocol

from nova_preempt.core import actions
from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.costs import CostOptions
from nova_preempt.core.costs import PreemptibleServer
from nova_preempt.core.model import Resources, Server, SlotAmounts
from nova_preempt.core.notice_period import NoticeRule


@dataclasses.dataclass(frozen=True, slots=True)
class Rank:
    """Whom a request may end.

    ``claim``: of a preemptible one, what Policy.classes knows it by; None
    where it has no class, and then it ends nobody.
    """

    is_preemptible: bool
    claim: object = None


PREEMPTIBLE = Rank(is_preemptible=True)
NORMAL = Rank(is_preemptible=False)


#: How many hosts that need victims are filtered and weighed at once, the
#: cheapest first, then twice as many each time: it bounds work, not the choice
#: by cost. What outweighs the cost is only compared among these.
SHORTLIST_SIZE = 10

#: How often a request is scheduled with fresh data because others were faster
#: on every host it tried or a victim did not end; then it gets NoValidHost.
MAX_ATTEMPTS = 10

#: The most that a record holds: what fits into a column of a database.
MOST_TOLD_US = 2**63 - 1


class Classes(Protocol):
    """What promises to preemptible servers add, as they stand at one time."""

    @property
    def table(self) -> Hashable:
        """What is promised in general."""

    @property
    def source(self) -> object:
        """What all that is known comes from; never changed."""

    def known(self, servers: Iterable[Server]) -> tuple[object, ...]:
        """Return what is known of servers, None of one without a class.

        Where it is equal, so is all else at the same time.
        """

    def may_preempt(self, claim: Any, server: Server) -> bool:
        """Tell whether a claim is good for the end of a server.

        Part of a strict order: who gave way never preempts back.
        """

    def cost(self, server: Server, cost_us: int) -> int:
        """Return the cost of a server that costs so much otherwise."""

    def floor(self, server: Server, until_us: int) -> int | None:
        """Return a cost that it is not below until then.

        None of one without a class.
        """

    def other_cost_us(self, cost: int) -> int:
        """Return what of a sum of costs has nothing to do with promises."""


@dataclasses.dataclass(frozen=True)
class Policy:
    """The operator's options, and what the past adds to them.

    ``actions``: what may happen to victims, the default first. ``always``:
    hosts that need victims are weighed beside those with room; else only
    where no host has room. ``shortlist``: how many hosts are looked at
    together to begin with. ``preemptions``: {uuid: how often a server has
    given way before}. ``classes``: None where there are none.
    """

    rules: eligibility.Rules
    actions: tuple[str, ...]
    cost: costs.CostFunction
    cost_options: CostOptions = dataclasses.field(default_factory=CostOptions)
    notice: NoticeRule = dataclasses.field(
        default_factory=lambda: NoticeRule(0))
    preemptions: Mapping[str, int] = dataclasses.field(default_factory=dict)
    always: bool = False
    shortlist: int = dataclasses.field(default_factory=lambda: SHORTLIST_SIZE)
    classes: Classes | None = None

    def may_preempt_any(self, rank: Rank) -> bool:
        """Tell whether a request of this rank may end servers at all."""
        return not rank.is_preemptible or (
            rank.claim is not None and self.classes is not None)

    def may_preempt(self, rank: Rank, server: Server) -> bool:
        """Tell whether a request of this rank may end a preemptible server.

        A strict order: normal ones end all others, and among preemptible ones
        the classes decide. Nobody gives way to an equal, nor to itself.
        """
        if not rank.is_preemptible:
            return True
        return (
            rank.claim is not None and self.classes is not None
            and self.classes.may_preempt(rank.claim, server))

    def may_give_way(self, server: Server, now: datetime.datetime) -> bool:
        """Tell whether a server may be a victim of anybody now."""
        return self.is_able(server) and self.rules.has_run(
            server, server.uptime_us(now))

    def is_able(self, server: Server) -> bool:
        """Tell the same of one that has run for long enough.

        One that keeps parts of its host while it is stopped makes no room,
        where nothing but stopping is allowed. One of a class is promised to
        come back, and does only if it is shelved.
        """
        action = self.action(server)
        if actions.why_kept(server, action):
            return False
        if server.pinned and action == actions.STOP:
            return False
        return not self.rules.why_not(server, action)

    def action(self, server: Server) -> str:
        """Return what happens to it, where it cannot be moved."""
        return actions.choose(
            server.action, self.actions, pinned=server.pinned)

    def notice_s(self, server: Server) -> int:
        """Return how long before its end a server knows of it."""
        return self.notice.length_s(server.notice_s)

    def cost_us(
        self, server: Server, resources: Resources, now: datetime.datetime
    ) -> int:
        """Return what the end of a server costs now, in micro-units."""
        return self.cost_at_us(server, resources, server.uptime_us(now))

    def cost_at_us(
        self, server: Server, resources: Resources, uptime_us: int) -> int:
        """Return what it costs at an age, in micro-units."""
        cost_us = costs.total(
            self.cost,
            PreemptibleServer(
                server.uuid, uptime_us, resources, server.project_id,
                server.flavor, self.preemptions.get(server.uuid, 0), ),
            self.cost_options, )
        if self.classes is None:
            return cost_us
        return self.classes.cost(server, cost_us)

    def published_cost_us(self, cost: int) -> int:
        """Return what is said of a cost, or of a sum of some, in micro-units.

        That by the cost function. With classes the cost that is compared has
        far more digits, which mean nothing to anybody.
        """
        if self.classes is not None:
            cost = self.classes.other_cost_us(cost)
        return min(cost, MOST_TOLD_US)

    def freed(self, server: Server, held: SlotAmounts) -> SlotAmounts:
        """Return what of what a server holds its end frees."""
        # The least that it may: nobody knows whether it can be moved.
        action = self.action(server)
        return {
            slot: amount
            for slot, amount in held.items()
            if actions.frees(slot[1], action)
        }
