# SPDX-License-Identifier: Apache-2.0

"""Policy of preemption: eligible victims, and their cost."""

from collections.abc import Hashable, Iterable, Mapping
import dataclasses
import datetime
from typing import Any, Protocol

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core import eviction_actions
from nova_preempt.core.costs import CostInputs
from nova_preempt.core.costs import CostOptions
from nova_preempt.core.model import PreemptibleServer, Resources, SlotAmounts
from nova_preempt.core.notice_period import NoticeRule


@dataclasses.dataclass(frozen=True, slots=True)
class PreemptionRight:
    """The right of a request to preempt.

    ``claim``: of a preemptible request, its claim as Policy.classes knows it;
    None without a class, which preempts nobody.
    """

    is_preemptible: bool
    claim: object = None


PREEMPTIBLE = PreemptionRight(is_preemptible=True)
NORMAL = PreemptionRight(is_preemptible=False)


#: How many hosts that need victims are filtered and weighed at once, the
#: cheapest first, then twice as many each time: it bounds the work, not the
#: choice by cost. Weighers compare only the hosts of these batches.
FIRST_BATCH = 10

#: How often a request is scheduled with fresh data because it lost the race on
#: every host it tried or a victim did not end; then it gets NoValidHost.
MAX_ATTEMPTS = 10

#: The largest cost in a record: the limit of a database column.
MAX_PUBLISHED_COST_US = 2**63 - 1


class ClassPromises(Protocol):
    """Promises of classes of service to preemptible servers, at one time."""

    @property
    def table(self) -> Hashable:
        """The definitions of the classes."""

    @property
    def source(self) -> object:
        """The object that all promises were read from; never changed."""

    def known(self, servers: Iterable[PreemptibleServer]) -> tuple[object,
                                                                   ...]:
        """Return the promises to servers, None for one without a class.

        While they are equal, all other answers for the same time are, too.
        """

    def may_preempt(self, claim: Any, server: PreemptibleServer) -> bool:
        """Return whether a claim may preempt a server.

        Part of a strict order: a victim never preempts its preemptor.
        """

    def cost(self, server: PreemptibleServer, cost_us: int) -> int:
        """Return the cost of a server, given its cost without classes."""

    def floor(self, server: PreemptibleServer, until_us: int) -> int | None:
        """Return a lower bound of its cost until a time.

        None for a server without a class.
        """

    def other_cost_us(self, cost: int) -> int:
        """Return the part of a sum of costs that is not due to promises."""


@dataclasses.dataclass(frozen=True)
class Policy:
    """The operator's policy of preemption, with past preemptions.

    ``actions``: the allowed actions, the default first. ``always``: weigh
    hosts that need victims beside those with capacity; else only if no host
    has capacity. ``first_batch``: the size of the first batch of hosts.
    ``preemptions``: {uuid: how often a server was evicted}. ``classes``: None
    if there are none.
    """

    rules: eligibility.Rules
    actions: tuple[str, ...]
    cost: costs.CostFunction
    cost_options: CostOptions = dataclasses.field(default_factory=CostOptions)
    notice: NoticeRule = dataclasses.field(
        default_factory=lambda: NoticeRule(0))
    preemptions: Mapping[str, int] = dataclasses.field(default_factory=dict)
    always: bool = False
    first_batch: int = dataclasses.field(default_factory=lambda: FIRST_BATCH)
    classes: ClassPromises | None = None

    def may_preempt_any(self, rank: PreemptionRight) -> bool:
        """Return whether a request of this rank may preempt at all."""
        return not rank.is_preemptible or (
            rank.claim is not None and self.classes is not None)

    def may_preempt(self, rank: PreemptionRight,
                    server: PreemptibleServer) -> bool:
        """Return whether a request of this rank may preempt a server.

        A strict order: normal requests preempt all preemptible servers, and
        among preemptible ones the classes decide. No server is preempted by an
        equal one, nor by itself.
        """
        if not rank.is_preemptible:
            return True
        return (
            rank.claim is not None and self.classes is not None
            and self.classes.may_preempt(rank.claim, server))

    def may_be_victim(self, server: PreemptibleServer,
                      now: datetime.datetime) -> bool:
        """Return whether a server may be a victim of any request now."""
        return self.is_able(server) and self.rules.has_run(
            server, server.uptime_us(now))

    def is_able(self, server: PreemptibleServer) -> bool:
        """Return the same apart from the minimum run time.

        A server that holds resources of its host while it is stopped cannot be
        a victim if stop is the only action. A server of a class is promised to
        return, and does so only if it is shelved.
        """
        action = self.action(server)
        if eviction_actions.why_kept(server, action):
            return False
        if server.pinned and action == eviction_actions.STOP:
            return False
        return not self.rules.why_not(server, action)

    def action(self, server: PreemptibleServer) -> str:
        """Return the action for a server that is not migrated."""
        return eviction_actions.choose(
            server.action, self.actions, pinned=server.pinned)

    def notice_s(self, server: PreemptibleServer) -> int:
        """Return the length of the notice of a server."""
        return self.notice.length_s(server.notice_s)

    def cost_us(
        self, server: PreemptibleServer, resources: Resources,
        now: datetime.datetime) -> int:
        """Return the cost of evicting a server now, in micro-units."""
        return self.cost_at_us(server, resources, server.uptime_us(now))

    def cost_at_us(
        self, server: PreemptibleServer, resources: Resources,
        uptime_us: int) -> int:
        """Return the cost of evicting it at an uptime, in micro-units."""
        cost_us = costs.total(
            self.cost,
            CostInputs(
                server.uuid, uptime_us, resources, server.project_id,
                server.flavor, self.preemptions.get(server.uuid, 0), ),
            self.cost_options, )
        if self.classes is None:
            return cost_us
        return self.classes.cost(server, cost_us)

    def published_cost_us(self, cost: int) -> int:
        """Return the cost to report for a cost or a sum, in micro-units.

        The cost by the cost function. With classes the compared cost has far
        more digits, which mean nothing to users.
        """
        if self.classes is not None:
            cost = self.classes.other_cost_us(cost)
        return min(cost, MAX_PUBLISHED_COST_US)

    def freed(self, server: PreemptibleServer,
              held: SlotAmounts) -> SlotAmounts:
        """Return the amounts that a server's end frees of its allocations."""
        # Without migration, which may fail: the least that it frees.
        action = self.action(server)
        return {
            slot: amount
            for slot, amount in held.items()
            if eviction_actions.frees(slot[1], action)
        }
