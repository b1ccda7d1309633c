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
"""What holds of whole servers, and not of divisible ones.

A host of V takes whole servers of d: with any number q, a server counts
``c(d) = ceil(d (q + 1) / V) - 1``, and no host takes more than q in all. (If
it took some of q + 1 or more, these would need more than V: c(d) is less than
d (q + 1) / V.) Of three cores, say, two servers of two cores count q = 1 each,
so that there is one at most, and not one and a half. These are the cuts of
Chvatal (1973, doi 10.1016/0012-365X(73)90167-2) with a multiplier just above
(q + 1) / V, the largest of them for each q.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

Array: TypeAlias = npt.NDArray[Any]

#: Of more servers on a host little is cut off.
_MOST = 12
#: What is exceeded by less may be an error of the solver.
_LEAST = 1e-4
#: Products of whole numbers are not larger.
_LARGEST = 2**62


def cuts(demand: Array, free: Array, hosts: Array, x: Array) -> Any:
    """Return rows that some values violate, None if they violate none.

    :param demand: [n, k] of the variables, in whole numbers
    :param free: [j, k] of hosts
    :param hosts: [n], of the variables
    :param x: [n], their values
    :returns: (sparse matrix [rows, n], right side [rows]): its product with
        whole numbers of servers that fit is no more than the right side
    """
    # Whole numbers violate nothing.
    split = np.abs(x - np.rint(x)) > _LEAST
    concerned = np.zeros(len(free), dtype=bool)
    concerned[hosts[split]] = True
    n = np.flatnonzero(concerned[hosts])
    j, some = hosts[n], x[n]
    rows, columns, values, right = [], [], [], []
    count = 0
    for k in range(free.shape[1]):
        wanted = demand[n, k]
        if int(wanted.max(initial=0)) > _LARGEST // (_MOST + 1):
            continue
        room = np.maximum(free[j, k], 1)
        for q in range(1, _MOST + 1):
            counts = np.maximum((wanted * (q + 1) - 1) // room, 0)
            taken = np.bincount(j, counts * some, len(free))
            broken = np.flatnonzero(taken > q + _LEAST)
            number = np.full(len(free), -1)
            number[broken] = count + np.arange(len(broken))
            here = np.flatnonzero((number[j] >= 0) & (counts > 0))
            rows.append(number[j[here]])
            columns.append(n[here])
            values.append(counts[here])
            right.append(np.full(len(broken), q))
            count += len(broken)
    if not count:
        return None
    return scipy.sparse.csr_array(
        (
            np.concatenate(values).astype(float),
            (np.concatenate(rows), np.concatenate(columns)),
        ),
        shape=(count, len(x)),
    ), np.concatenate(right).astype(float)
