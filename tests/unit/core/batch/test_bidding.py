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
"""Bids of classes for columns."""

import random
import unittest

import numpy as np
import scipy.optimize

from nova_preempt.core.batch import bidding
from nova_preempt.core.batch import flow
from nova_preempt.core.batch.arrays import NO


def instance(chance, highest):
    """Scores of which many are equal, and counts that may be too many."""
    classes, columns = chance.randint(1, 6), chance.randint(1, 30)
    scores = np.array([[
        NO if chance.random() < 0.15 else chance.randint(-3, highest)
        for _ in range(columns)] for _ in range(classes)])
    return scores, np.array([chance.randint(0, 8) for _ in range(classes)])


def best(scores, counts):
    """The largest sum with so many columns of each class."""
    rows = np.repeat(np.arange(len(scores)), counts)
    worth = np.where(scores > NO, scores, -10 ** 9)[rows]
    return int(worth[scipy.optimize.linear_sum_assignment(
        worth, maximize=True)].sum()) if len(rows) else 0


class TestBid(unittest.TestCase):

    def test_the_best_for_so_many(self):
        chance = random.Random(3)
        for number in range(500):
            scores, counts = instance(chance, chance.choice((0, 2, 50)))
            owner = bidding.bid(scores, counts)
            mine = np.flatnonzero(owner >= 0)
            found = np.bincount(owner[mine], minlength=len(scores))
            self.assertTrue((found <= counts).all())
            taken = scores[owner[mine], mine]
            self.assertTrue((taken > NO).all())
            self.assertEqual(best(scores, found), int(taken.sum()), number)
            # And so it is when shortest paths have added what was missing.
            order = np.repeat(np.arange(len(scores)), counts).tolist()
            chance.shuffle(order)
            whole = flow.assign(scores, order, 'classes')
            mine = np.flatnonzero(whole >= 0)
            self.assertEqual(
                best(scores, np.bincount(whole[mine],
                                         minlength=len(scores))),
                int(scores[whole[mine], mine].sum()), number)

    def test_nothing_to_bid_for(self):
        for scores, counts in (
                (np.full((2, 3), NO), [1, 2]), (np.zeros((2, 3), int), [0, 0]),
                (np.zeros((1, 1), int), [0])):
            self.assertEqual({-1}, set(bidding.bid(
                scores, np.array(counts)).tolist()))

    def test_it_comes_to_an_end(self):
        """Two who outbid each other by one for ever."""
        scores = np.array([[10 ** 12, 0], [10 ** 12 - 1, 0], [10 ** 12, 1]])
        counts = np.array([1, 1, 1])
        owner = bidding.bid(scores, counts)
        self.assertLessEqual((owner >= 0).sum(), 2)
        found = flow.assign(scores, [0, 1, 2], 'classes')
        self.assertEqual([0, 1], found.tolist())


if __name__ == '__main__':
    unittest.main()
