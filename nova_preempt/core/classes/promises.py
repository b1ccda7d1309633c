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

"""What promises say to a decision on one request (core.scheduling).

Made for one time, and given to its Policy as ``classes``: which server of a
class may end for which request of one, and how dear that is. A normal request
ends whom it likes, as ever, but chooses by promises first.
"""

from __future__ import annotations

from collections.abc import Mapping

from nova_preempt.core.classes import harm
from nova_preempt.core.classes.margin import Classes
from nova_preempt.core.classes.margin import Standing
from nova_preempt.core.classes.margin import may_preempt
from nova_preempt.core.classes.rounds import Claimant

#: Other costs come below those of promises, and never add up to one: 285
#: years each, in micro-units.
_OTHER_BITS = 64
_MOST_OTHER = 2**53


class Promises:
    """Those to all servers of a class, as they stand at a time.

    :param classes: the table
    :param claimants: {uuid of a server: Claimant}. Of others it is not known
        whether something was promised to them: no request of a class ends
        them, and they cost what they cost without classes.
    :param now_us: the time
    """

    def __init__(
        self,
        classes: Classes,
        claimants: Mapping[str, Claimant],
        now_us: int,
    ) -> None:
        self._classes = classes
        self._claimants = claimants
        self._now_us = now_us
        self._standings: dict[str, Standing] = {}

    def claim(self, claimant: Claimant) -> Standing:
        """Return the claim of a request: of scheduling.policy.Rank."""
        return claimant.stand(self._classes, self._now_us)

    def may_preempt(self, claim: Standing, uuid: str) -> bool:
        """Tell whether a request may end a server."""
        standing = self._standing(uuid)
        return standing is not None and may_preempt(claim, standing)

    def cost(self, uuid: str, cost_us: int) -> int:
        """Return the cost of a server that costs so much otherwise.

        What its end does to promises comes first, see harm.folded(). Sums
        compare like that too.
        """
        standing = self._standing(uuid)
        cost_us = min(cost_us, _MOST_OTHER)
        if standing is None:
            return cost_us
        folded = harm.folded(self._classes, standing)
        return folded << _OTHER_BITS | cost_us

    def _standing(self, uuid: str) -> Standing | None:
        found = self._standings.get(uuid)
        if found is None:
            claimant = self._claimants.get(uuid)
            if claimant is None:
                return None
            found = self._standings[uuid] = self.claim(claimant)
        return found


def other_cost_us(cost: int) -> int:
    """Return what a sum of costs is without promises.

    That is what fits into a column of a database, and what an operator knows
    as the cost.
    """
    return cost & ((1 << _OTHER_BITS) - 1)
