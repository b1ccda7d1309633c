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

from nova_preempt.core.as_list import as_list
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.order import Options
from nova_preempt.core.backlog.order import Shares
from nova_preempt.core.backlog.order import oldest_first
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
        oldest = oldest_first(requests)
        if not oldest:
            return []
        names = sorted(name for name, n in shares.total.items() if n > 0)
        # A share of a class is a number of these parts, whatever the class.
        parts = math.lcm(*(shares.total[name] for name in names))
        weights = {name: parts // shares.total[name] for name in names}
        before = _shares_before(oldest, weights, shares.used)
        return list(
            map(
                oldest.__getitem__,
                as_list(np.argsort(before, kind="stable")),
            )
        )


def _weighted(
    resources: Resources, weights: Mapping[str, int]
) -> tuple[int, ...]:
    """How many parts of each class these are; one 0 at least."""
    return 0, *(
        resources.get(name, 0) * weight for name, weight in weights.items()
    )


def _demands(
    requests: Sequence[model.Request], weights: Mapping[str, int]
) -> tuple[list[tuple[int, ...]], list[int], list[int], list[str]]:
    """What is asked for in parts of each class, and who asks for which.

    :returns: (what is asked for, the number of it for each request, the
        number of the project of each, the projects)
    """
    # Many ask for the same, as the same object.
    known: dict[tuple[int, int], int] = {}
    index: dict[str, int] = {}
    rows: list[tuple[int, ...]] = []
    which, projects = [], []
    for request in requests:
        missing = model.missing(request) if request.servers else request.count
        key = id(request.alternatives), missing
        number = known.get(key)
        if number is None:
            number = known[key] = len(rows)
            resources = request.alternatives[0].resources
            rows.append(
                tuple(part * missing for part in _weighted(resources, weights))
            )
        which.append(number)
        projects.append(index.setdefault(request.project_id, len(index)))
    return rows, which, projects, list(index)


def _shares_before(
    requests: Sequence[model.Request],
    weights: Mapping[str, int],
    used: Mapping[str, Resources],
) -> npt.NDArray[Any]:
    """The dominant share of the project of each request before it."""
    rows, demands, projects, uuids = _demands(requests, weights)
    had = [_weighted(used.get(uuid, {}), weights) for uuid in uuids]
    most = len(demands) * max(map(max, rows)) + max(map(max, had))
    # What 64 bits cannot hold is slower, and as exact.
    kind = np.int64 if most < 2**62 else object
    project = np.array(projects)
    by_project = np.argsort(project, kind="stable")
    project, which = project[by_project], np.array(demands)[by_project]
    starts = np.searchsorted(project, np.arange(len(uuids)))
    ordered = np.zeros(len(which), kind)
    # One class after the other: rows of a few numbers are slow to go through.
    for wanted, before in zip(
        np.array(rows, kind).T, np.array(had, kind).T, strict=True
    ):
        each = wanted[which]
        sums = each.cumsum() - each
        ordered = np.maximum(ordered, sums + (before - sums[starts])[project])
    shares = np.zeros(len(which), kind)
    shares[by_project] = ordered
    return shares
