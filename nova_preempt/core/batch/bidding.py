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
"""A first assignment of classes to columns, by bids.

An auction (D. P. Bertsekas, 1979) with a price for each class: a class that
has fewer columns than servers lowers its price until it has enough, whoever
had them before. What each of them has is then the best for so many columns; so
what is still missing when the bids end is added by shortest paths, and the sum
is the largest as if they had done it all.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nova_preempt.core.batch.arrays import NO

Array: TypeAlias = npt.NDArray[Any]

# Bids of each class; two may outbid each other by little for long.
_MOST_BIDS = 8


def bid(scores: Array, counts: Array) -> Array:
    """Return the class of each column, -1 where it stays empty.

    No class has more columns than it has servers.

    :param scores: [class, column], NO where it is not possible
    :param counts: how many servers each class has
    """
    owner = np.full(scores.shape[1], -1)
    # What a class offers for a column, NO where it does not.
    offers = np.full_like(scores, NO)
    can = np.count_nonzero(scores > NO, axis=1)
    wanted = np.minimum(counts, can)
    missing = wanted.copy()
    for _ in range(_MOST_BIDS * len(scores)):
        # Who lacks most takes most at once; of equal ones the first.
        f = int(missing.argmax())
        if missing[f] <= 0:
            break
        offers[f] = NO
        worth = scores[f] - np.maximum(offers.max(axis=0), 0)
        worth[scores[f] == NO] = NO
        # Of equal ones those that it has: they are wanted by others, too.
        order = np.argsort(owner != f, kind="stable")
        best = order[np.argsort(-worth[order], kind="stable")]
        most = int(wanted[f])
        # The highest price at which no other column is worth more.
        price = worth[best[most if most < can[f] else most - 1]]
        offers[f] = np.where(scores[f] > NO, scores[f] - price, NO)
        owner[owner == f] = -1
        owner[best[:most]] = f
        missing = wanted - np.bincount(
            owner[owner >= 0], minlength=len(scores))
    return owner
