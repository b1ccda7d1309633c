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
"""What is left of hosts while a batch is placed, and what that is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nova_preempt.core.batch.arrays import NO
from nova_preempt.core.batch.arrays import Problem

Array: TypeAlias = npt.NDArray[Any]


class Table:
    """What each class may have where.

    :ivar free: [j, k], in the units of the problem
    :ivar members: [group, j]: how many of each group were placed there
    :ivar scores: [f, j] of one more server, NO where there is none
    """

    def __init__(self, problem: Problem, free: Array) -> None:
        self.problem = problem
        self.free = free.copy()
        self.members = np.zeros(
            (len(problem.limits), len(problem.hosts)), dtype=np.int64)
        self.scores = self._scores(slice(None))

    def copy(self) -> Table:
        """Return another that has the same left."""
        other = Table.__new__(Table)
        other.problem = self.problem
        other.free = self.free.copy()
        other.members = self.members.copy()
        other.scores = self.scores.copy()
        return other

    def take(self, f: int, j: int, count: int = 1) -> None:
        """Place so many of a class on a host; less than 0 gives back."""
        self.move([f], [j], [count])

    def move(self, f: Any, j: Any, count: Any) -> None:
        """Place several at once: sequences of the same length."""
        counts = np.asarray(count, dtype=np.int64)
        np.add.at(
            self.free, j, -self.problem.demand[f] * counts[:, None])
        for layer in self.problem.layers:
            np.add.at(
                self.members, (layer.group[f], j), layer.count[f] * counts)
        columns = np.unique(j)
        self.scores[:, columns] = self._scores(columns)

    def add_members(self, there: Mapping[tuple[int, int], int]) -> None:
        """Count members of groups that are on hosts: {(group, host): n}."""
        for key, count in there.items():
            self.members[key] += count
        if there:
            self.scores = self._scores(slice(None))

    def is_possible(self) -> bool:
        """Say whether nothing is overdrawn."""
        return bool((self.free >= 0).all()) and all(
            bool((there <= limit.most).all())
            for limit, there in zip(
                self.problem.limits, self.members, strict=True)
        )

    def times(self, f: int, most: int) -> Array:
        """Return how many of a class fit on each host, up to ``most``."""
        found = np.where(self.scores[f] > NO, most, 0)
        for k, amount in enumerate(self.problem.demand[f]):
            if amount:
                found = np.minimum(found, self.free[:, k] // amount)
        for layer in self.problem.layers:
            if layer.count[f]:
                there = self.members[layer.group[f]]
                found = np.minimum(
                    found, (layer.most[f] - there) // layer.count[f])
        times: Array = np.maximum(found, 0)
        return times

    def slots(self, classes: Array, most: int) -> Array:
        """Return how many of these fit on each host, whichever they are.

        :param classes: numbers of those that are to be placed
        """
        can = self.scores[classes] > NO
        found = np.where(can.any(axis=0), most, 0)
        for k in range(self.free.shape[1]):
            amounts = self.problem.demand[classes, k, None] * can
            largest = amounts.max(axis=0)
            some = largest > 0
            found[some] = np.minimum(
                found[some], self.free[some, k] // largest[some])
        return found

    def _scores(self, columns: Any) -> Array:
        problem = self.problem
        free = self.free[columns]
        possible = problem.allowed[:, columns].copy()
        for k in range(free.shape[1]):
            possible &= problem.demand[:, k, None] <= free[None, :, k]
        for layer in problem.layers:
            rows = layer.rows
            there = self.members[layer.group[rows]][:, columns]
            possible[rows] &= (
                layer.count[rows, None] + there <= layer.most[rows, None])
        return np.where(possible, problem.scorer.of(free, columns), NO)
