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

"""The order of requests by four priorities, and by how long they waited.

T. Menouer and P. Darmon, LNCS 11339 (doi 10.1007/978-3-030-10549-5_6), step
1: PROMETHEE II, with waiting time as a fifth criterion so that nobody waits
for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nova_preempt.core.backlog.model import Priorities
from nova_preempt.core.classes import promethee
from nova_preempt.core.model import SECOND

#: The four respects, of which each request has a priority.
RESPECTS = ("time", "reputation", "cores", "redundancy")


class Waiting(NamedTuple):
    """A request; ``submitted_us`` by the same clock as now.

    ``serial``: of those of one time the smaller one came first.
    """

    uuid: str
    submitted_us: int
    priorities: Priorities
    serial: int = 0


class ByPriorities:
    """How requests are put in order.

    :param weights: of respects by name; 1 where nothing is said
    :param linear: whether a priority that is two levels higher counts twice
    :param patience_s: requests age, see promethee.ageing(); None where they
        do not, as in the text
    :raises ValueError: a weight of another name, a negative one, or none
        above 0
    """

    def __init__(self, weights: Mapping[str, int] | None = None, *,
                 linear: bool = False, patience_s: int | None = None) -> None:
        weights = weights or {}
        unknown = sorted(weights.keys() - set(RESPECTS))
        if unknown:
            raise ValueError(
                f"a weight is named {unknown[0]!r}, it must be one of "
                f"{', '.join(RESPECTS)}")
        # Three levels lie 2 apart at most.
        preference = 2 if linear else 1
        self._names = [name for name in RESPECTS if weights.get(name, 1)]
        self._criteria = [
            promethee.Criterion(name, weights.get(name, 1), preference)
            for name in self._names]
        if not self._criteria:
            raise ValueError(
                "the weights of all priorities are 0, one must be more")
        self._ages = patience_s is not None
        if patience_s is not None:
            self._criteria.append(promethee.ageing(self._criteria, patience_s))

    def ordered(self, waiting: Iterable[Waiting], now_us: int) -> list[str]:
        """Return the uuids, the one that comes first being the first.

        :param now_us: counts where requests age; one that is submitted later,
            by a clock that is ahead, has waited for no time
        """
        found = promethee.ordered(
            (self._alternative(each, now_us) for each in waiting),
            self._criteria)
        return [each.uuid for each in found]

    def _alternative(self, one: Waiting, now_us: int) -> promethee.Alternative:
        values = [getattr(one.priorities, name) for name in self._names]
        if self._ages:
            values.append(waited_s(one.submitted_us, now_us))
        return promethee.Alternative(
            one.uuid, one.submitted_us, tuple(values), one.serial)


def waited_s(since_us: int, now_us: int) -> int:
    """Return whole seconds of waiting, never negative."""
    return max(0, now_us - since_us) // SECOND
