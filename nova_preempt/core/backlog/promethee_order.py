# SPDX-License-Identifier: Apache-2.0
"""Ranks requests by four SLA priorities and by their waiting time.

T. Menouer and P. Darmon, LNCS 11339 (doi 10.1007/978-3-030-10549-5_6), step
1: PROMETHEE II, with waiting time as a fifth criterion so that no request
starves.
"""

from collections.abc import Iterable
import datetime

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog.queue_order import Options
from nova_preempt.core.backlog.queue_order import ProjectUsage
from nova_preempt.core.classes import promethee

#: The four respects in which each request has a priority.
RESPECTS = ("time", "reputation", "cores", "redundancy")

_SECOND = datetime.timedelta(seconds=1)
_US = datetime.timedelta(microseconds=1)

#: Default of requests without priorities: best effort.
_NONE = backlog_model.SlaPriorities()


class PrometheeOrder:
    """PROMETHEE II over time, reputation, cores, redundancy and waiting time.

    :param options: the weights of the four by name, and after how long a wait
        beats them all (0: never)
    :raises ValueError: a weight of another name, a negative one, or none
        above 0
    """

    def __init__(self, options: Options) -> None:
        weights = options.weights
        unknown = sorted(weights.keys() - set(RESPECTS))
        if unknown:
            raise ValueError(
                f"the weight {unknown[0]!r} is unknown; known are "
                f"{', '.join(RESPECTS)}")
        self._names = [name for name in RESPECTS if weights.get(name, 1)]
        self._criteria = [
            promethee.Criterion(name, weights.get(name, 1))
            for name in self._names]
        if not self._criteria:
            raise ValueError(
                "all weights are 0; at least one must be greater than 0")
        self._ages = options.patience_s > 0
        if self._ages:
            self._criteria.append(
                promethee.ageing(self._criteria, options.patience_s))

    def rank(
        self, requests: Iterable[backlog_model.Request],
        now: datetime.datetime, shares: ProjectUsage,
    ) -> list[backlog_model.Request]:
        of = {request.uuid: request for request in requests}
        return [of[each.uuid] for each in promethee.ordered(
            (self._alternative(request, now) for request in of.values()),
            self._criteria)]

    def _alternative(
        self, request: backlog_model.Request, now: datetime.datetime
    ) -> promethee.Alternative:
        levels = request.priorities or _NONE
        values = [getattr(levels, name) for name in self._names]
        age = now - request.created_at
        if self._ages:
            # A creation time in the future, by a fast clock, is no wait.
            values.append(max(0, age // _SECOND))
        return promethee.Alternative(
            request.uuid, -age // _US, tuple(values), request.serial)
