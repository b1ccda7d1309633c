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
"""Dominant resource fairness between projects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import datetime
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.order import Options
from nova_preempt.core.backlog.order import Shares
from nova_preempt.core.backlog.order import created
from nova_preempt.core.model import Resources


class FairShare:
    """Dominant resource fairness (Ghodsi et al., NSDI 2011).

    The project with the smallest dominant share is next, with its oldest
    request, whose first alternative then counts as the project's. Where
    shares are equal the older request comes first.

    A project's share before its k-th request does not depend on what others
    get, so all of them are known at once, and the order is one sort.
    """

    def __init__(self, options: Options | None = None) -> None:
        pass

    def rank(
        self,
        requests: Iterable[model.Request],
        now: datetime.datetime,
        shares: Shares,
    ) -> list[model.Request]:
        oldest = sorted(requests, key=created)
        if not oldest:
            return []
        names = sorted(name for name, n in shares.total.items() if n > 0)
        # A share of a class is a number of these parts, whatever the class.
        parts = math.lcm(*(shares.total[name] for name in names))
        weights = {name: parts // shares.total[name] for name in names}
        used = {
            uuid: _weighted(shares.used.get(uuid, {}), weights)
            for uuid in sorted({request.project_id for request in oldest})
        }
        before = _shares_before(oldest, weights, used)
        return [oldest[number] for number in np.argsort(before, kind="stable")]


def _weighted(
    resources: Resources, weights: Mapping[str, int]
) -> tuple[int, ...]:
    """How many parts of each class these are; one 0 at least."""
    return 0, *(
        resources.get(name, 0) * weight for name, weight in weights.items()
    )


def _demands(
    requests: Sequence[model.Request], weights: Mapping[str, int]
) -> tuple[list[tuple[int, ...]], list[int]]:
    """What is asked for in parts of each class, and who asks for which."""
    # Many ask for the same, as the same object.
    known: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, ...]] = []
    which = []
    for request in requests:
        missing = model.missing(request) if request.servers else request.count
        key = id(request.alternatives), missing
        if key not in known:
            known[key] = len(rows)
            resources = request.alternatives[0].resources
            rows.append(
                tuple(part * missing for part in _weighted(resources, weights))
            )
        which.append(known[key])
    return rows, which


def _shares_before(
    requests: Sequence[model.Request],
    weights: Mapping[str, int],
    used: Mapping[str, tuple[int, ...]],
) -> npt.NDArray[Any]:
    """The dominant share of the project of each request before it."""
    rows, which = _demands(requests, weights)
    most = len(which) * max(map(max, rows)) + max(map(max, used.values()))
    # What 64 bits cannot hold is slower, and as exact.
    kind = np.int64 if most < 2**62 else object
    index = {uuid: number for number, uuid in enumerate(used)}
    project = np.array([index[request.project_id] for request in requests])
    wanted = np.array(rows, kind)[which]
    by_project = np.argsort(project, kind="stable")
    project, wanted = project[by_project], wanted[by_project]
    sums = wanted.cumsum(axis=0) - wanted
    starts = np.searchsorted(project, np.arange(len(index)))
    had = np.array(list(used.values()), kind)
    shares = np.zeros(len(which), kind)
    shares[by_project] = (
        sums - sums[starts][project] + had[project]
    ).max(axis=1)
    return shares
