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
"""The order by four SLA priorities, see core/classes/priorities.py."""

from __future__ import annotations

from collections.abc import Iterable
import datetime

from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.order import Options
from nova_preempt.core.backlog.order import Shares
from nova_preempt.core.classes import priorities

_US = datetime.timedelta(microseconds=1)

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
        self._order = priorities.ByPriorities(
            options.weights,
            linear=options.linear,
            patience_s=options.patience_s or None,
        )

    def rank(
        self,
        requests: Iterable[model.Request],
        now: datetime.datetime,
        shares: Shares,
    ) -> list[model.Request]:
        of = {request.uuid: request for request in requests}
        # By a clock that shows 0 now.
        best = self._order.ordered(
            (
                priorities.Waiting(
                    request.uuid,
                    (request.created_at - now) // _US,
                    request.priorities or _NONE,
                    request.serial,
                )
                for request in of.values()
            ),
            0,
        )
        return [of[uuid] for uuid in best]
