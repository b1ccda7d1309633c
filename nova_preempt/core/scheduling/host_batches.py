# SPDX-License-Identifier: Apache-2.0

"""Batches of hosts that need victims, the cheapest first.

Reading hosts has a fixed cost per call: batches double in size.
"""

from collections.abc import Collection, Iterable
import itertools

from nova_preempt.core.scheduling.cloud_view import CloudView
from nova_preempt.core.scheduling.plan_search import PlanSearch
from nova_preempt.core.scheduling.preemption_plan import Plan


class HostBatches:
    """Plans in batches, in ascending order of cost.

    :param idle_age_s: how old data on hosts may be while no eviction is needed
    :param list_age_s: how old the list of hosts may be in any case
    :ivar plans: {uuid of a host: its Plan}
    :ivar has_begun: whether victims were searched
    :ivar is_exhausted: whether no host is left
    """

    def __init__(
        self, cloud: CloudView, search: PlanSearch, idle_age_s: float = 0,
        list_age_s: float = 0, ) -> None:
        self.plans: dict[str, Plan] = {}
        self.has_begun = False
        self.is_exhausted = False
        self._cloud = cloud
        self._search = search
        self._size = search.policy.first_batch  # of the next batch
        self._ages_s = (idle_age_s, list_age_s)
        self._ranked: Iterable[Plan] | None = None
        self._is_old = False        # whether the list may be outdated
        self._skips = False         # whether hosts are skipped
        self._must_evict = False    # whether ending servers are excluded
        self._last_cost = 0

    def begin(
        self, skip: Collection[str] = (), *, must_evict: bool,
        afresh: bool = False, ) -> None:
        """Begin a search for plans.

        :param skip: hosts to leave out
        :param must_evict: whether the victims will be evicted
        :param afresh: whether the list of hosts must be read anew
        """
        if must_evict and not self._must_evict:
            self._must_evict = True
            self._search.exclude_ending()
        self.has_begun = True
        idle_age_s, list_age_s = self._ages_s
        age_s = 0 if self._must_evict else idle_age_s
        self._cloud.refresh(age_s)
        list_age_s = 0 if afresh else max(age_s, list_age_s)
        self._is_old = list_age_s > 0
        self._ranked = self._search.ranked(skip, list_age_s)
        self._skips = bool(skip)
        self._size = self._search.policy.first_batch
        self._last_cost = 0

    def next(self) -> list[Plan]:
        """Return the new plans of the next batch.

        :raises Unanswered:
        """
        self.is_exhausted = True
        batch = list(itertools.islice(self._ranked or (), self._size))
        self._size *= 2
        self.is_exhausted = not batch
        if batch:
            self._last_cost = batch[-1].cost_us
        new = [plan for plan in batch if plan.host.uuid not in self.plans]
        self.plans.update((plan.host.uuid, plan) for plan in new)
        return new

    def more(self) -> list[Plan]:
        """Return the next batch of plans whose victims will be evicted.

        :raises Unanswered:
        """
        if self._ranked is None or self._skips:
            self.begin(must_evict=True)
        return self.next()

    def afresh(self) -> list[Plan]:
        """Return plans on fresh data, after those on old data failed.

        :raises Unanswered:
        """
        if not self._must_evict or not self._is_old:
            return []
        self.plans.clear()
        self.begin(must_evict=True, afresh=True)
        return self.next()

    def is_beyond(self, cost_us: int) -> bool:
        """Return whether no further host is cheaper than this."""
        return (
            self._ranked is not None and not self._skips
            and cost_us <= self._last_cost)

    def restart(self) -> None:
        """Plan all hosts again for the next server of the request."""
        self._ranked = None
