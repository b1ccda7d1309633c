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
"""Flows, by three solvers."""

import itertools
import random
import unittest

import numpy as np
import scipy.optimize

from nova_preempt.core.batch import flow
from nova_preempt.core.batch import model
from nova_preempt.core.batch.arrays import NO

SOLVERS = (model.CLASSES, model.ASSIGNMENT, model.ORTOOLS)


def total(scores, owner):
    return sum(int(scores[f, j]) for j, f in enumerate(owner) if f >= 0)


def instance(chance, classes=5, columns=12, servers=14, least=-5):
    count = chance.randint(1, classes), chance.randint(1, columns)
    share = chance.random()
    scores = np.array([
        [NO if chance.random() < share else chance.randint(least, 50)
         for _ in range(count[1])] for _ in range(count[0])])
    return scores, [chance.randrange(count[0])
                    for _ in range(chance.randint(1, servers))]


class TestAssign(unittest.TestCase):

    def test_001_g(self):
        """A thousand cases: equal sums, and scipy's with a row for each."""
        chance = random.Random(1)
        for _ in range(1000):
            scores, order = instance(chance)
            costs = np.where(scores > NO, -scores, 10**6)
            rows, columns = scipy.optimize.linear_sum_assignment(costs[order])
            most = (costs[order][rows, columns] < 10**6).sum()
            for solver in SOLVERS:
                owner = flow.assign(scores, order, solver)
                self.assertEqual(most, (owner >= 0).sum())
                # Of those that are placed, which may not be the dearest.
                chosen = costs[owner[owner >= 0]]
                rows, columns = scipy.optimize.linear_sum_assignment(chosen)
                self.assertEqual(-chosen[rows, columns].sum(),
                                 total(scores, owner))

    def test_who_is_left_out(self):
        """The last in order, whatever the others add to the sum."""
        chance = random.Random(2)
        for _ in range(200):
            scores, order = instance(chance, 4, 5, 6)
            best = max(
                tuple(j is not None for j in chosen)
                for chosen in itertools.product(
                    [None, *range(scores.shape[1])], repeat=len(order))
                if all(j is None or scores[f, j] > NO
                       for f, j in zip(order, chosen, strict=True))
                and len({j for j in chosen if j is not None})
                == sum(j is not None for j in chosen))
            counts = np.bincount(
                [f for f, placed in zip(order, best, strict=True) if placed],
                minlength=len(scores)) if any(best) else (
                    np.zeros(len(scores)))
            for solver in SOLVERS:
                owner = flow.assign(scores, order, solver)
                self.assertEqual(
                    counts.tolist(),
                    [(owner == f).sum() for f in range(len(scores))])

    def test_leaving_out_is_free(self):
        chance = random.Random(3)
        for _ in range(300):
            scores, order = instance(chance, least=-50)
            costs = np.minimum(np.where(scores > NO, -scores, 0), 0)[order]
            rows, columns = scipy.optimize.linear_sum_assignment(costs)
            for solver in SOLVERS:
                self.assertEqual(
                    -costs[rows, columns].sum(),
                    total(scores, flow.assign(scores, order, solver,
                                              unscheduled_free=True)))

    def test_many_classes(self):
        """They are as many as servers, and assigned by scipy."""
        chance = random.Random(4)
        scores = np.array([[chance.randint(0, 1000) for _ in range(90)]
                           for _ in range(60)])
        sums = {total(scores, flow.assign(scores, range(60), solver))
                for solver in ('auto', *SOLVERS)}
        self.assertEqual(1, len(sums))

    def test_nothing_to_assign(self):
        for solver in SOLVERS:
            for scores, order in ((np.zeros((1, 0), np.int64), [0]),
                                  (np.zeros((0, 3), np.int64), []),
                                  (np.full((1, 2), NO), [0, 0])):
                self.assertEqual({-1}, {
                    -1, *flow.assign(scores, order, solver).tolist()})

    def test_scores_too_large_for_ortools(self):
        from nova_preempt.core.batch import ortools_flow

        with self.assertRaisesRegex(ValueError, f'score is {2**60}'):
            ortools_flow.assign(np.array([[2**60]]), np.array([1]), False)


class TestWorthIt(unittest.TestCase):

    def test_best_of_each_class(self):
        scores = np.array([[5, 4, 3, 2, 4], [NO, 1, NO, 7, 7]])
        self.assertEqual([0, 3], flow.worth_it(scores, 1).tolist())
        self.assertEqual([0, 1, 3, 4], flow.worth_it(scores, 2).tolist())
        self.assertEqual([0, 1, 2, 3, 4], flow.worth_it(scores, 9).tolist())
