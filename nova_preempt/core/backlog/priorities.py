# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""The order by four SLA priorities.

T. Menouer and P. Darmon, LNCS 11339 (doi 10.1007/978-3-030-10549-5_6), step
1, with waiting time as a fifth criterion so that nobody waits for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import datetime

from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.order import Options
from nova_preempt.core.backlog.order import Shares
from nova_preempt.core.classes import promethee

_US = datetime.timedelta(microseconds=1)
_S = datetime.timedelta(seconds=1)

#: Of a request that names none: best effort.
_NONE = model.Priorities()


class Promethee:
    """PROMETHEE II over time, reputation, cores, redundancy and waiting time.

    :param options: the weights of the four by name, the preference function,
        and after how long a wait beats them all (0: never)
    :raises ValueError: a weight of another name, a negative one, or none
        above 0
    """

    def __init__(self, options: Options) -> None:
        names = [field.name for field in dataclasses.fields(_NONE)]
        unknown = sorted(options.weights.keys() - set(names))
        if unknown:
            msg = (
                f"a weight is named {unknown[0]!r}, it must be one of "
                f"{', '.join(names)}"
            )
            raise ValueError(msg)
        # Three levels lie 2 apart at most.
        preference = 2 if options.linear else 1
        self._names = [name for name in names if options.weights.get(name, 1)]
        self._criteria = [
            promethee.Criterion(
                name, options.weights.get(name, 1), preference=preference
            )
            for name in self._names
        ]
        if not self._criteria:
            msg = "the weights of all priorities are 0, one must be more"
            raise ValueError(msg)
        if options.patience_s:
            self._criteria.append(
                promethee.ageing(self._criteria, options.patience_s)
            )
        self._ages = bool(options.patience_s)

    def rank(
        self,
        requests: Iterable[model.Request],
        now: datetime.datetime,
        shares: Shares,
    ) -> list[model.Request]:
        of = {request.uuid: request for request in requests}
        best = promethee.ordered(
            (
                promethee.Alternative(
                    request.uuid,
                    (request.created_at - now) // _US,
                    self._values(request, now),
                )
                for request in of.values()
            ),
            self._criteria,
        )
        return [of[item.uuid] for item in best]

    def _values(
        self, request: model.Request, now: datetime.datetime
    ) -> tuple[int, ...]:
        priorities = request.priorities or _NONE
        values = tuple(getattr(priorities, name) for name in self._names)
        if not self._ages:
            return values
        # The clock of who wrote it down may be ahead.
        return *values, max(0, (now - request.created_at) // _S)
