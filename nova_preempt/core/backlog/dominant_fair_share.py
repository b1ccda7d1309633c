# SPDX-License-Identifier: Apache-2.0
"""Dominant resource fairness between projects."""

from collections.abc import Iterable
import datetime
import math

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog.queue_order import Options
from nova_preempt.core.backlog.queue_order import ProjectUsage
from nova_preempt.core.backlog.queue_order import oldest_first


class DominantFairShare:
    """Ranks requests by dominant resource fairness (Ghodsi et al., NSDI 2011).

    The project with the smallest dominant share is next, with its oldest
    request, whose first alternative is then added to the project's usage. Of
    equal shares the older request comes first.

    A project's share before its k-th request does not depend on the
    allocations of other projects, so all shares are known at once, and ranking
    is one sort.
    """

    def __init__(self, options: Options | None = None) -> None:
        pass

    def rank(
        self, requests: Iterable[backlog_model.Request],
        now: datetime.datetime, shares: ProjectUsage,
    ) -> list[backlog_model.Request]:
        oldest = oldest_first(requests)
        totals = {name: n for name, n in shares.total.items() if n > 0}
        # Shares in units of 1 / product of totals are whole, so exact.
        parts = math.prod(totals.values())
        parts_of = {name: parts // total for name, total in totals.items()}
        used: dict[str, dict[str, int]] = {}
        before = []
        for request in oldest:
            mine = used.get(request.project_id)
            if mine is None:
                had = shares.used.get(request.project_id, {})
                mine = used[request.project_id] = {
                    name: had.get(name, 0) * n for name, n in parts_of.items()}
            before.append(max(mine.values(), default=0))
            count = backlog_model.missing(request)
            for name, amount in request.alternatives[0].resources.items():
                if name in mine:
                    mine[name] += amount * count * parts_of[name]
        return [oldest[at] for at in sorted(
            range(len(oldest)), key=before.__getitem__)]
