# SPDX-License-Identifier: Apache-2.0
"""Several servers of one request."""

import unittest

from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import solver_choice


def hosts(**free):
    return [batch_model.HostState(name, {'VCPU': amount}, {'VCPU': 16})
            for name, amount in free.items()]


class TestPlace(unittest.TestCase):

    def place(self, count, rooms, *args, score=batch_model.ML, wanted=2):
        placer = solver_choice.make(
            batch_model.Options(mode=batch_model.GREEDY, score=score))
        return dict(solver_choice.place_identical(
            placer, {'VCPU': wanted}, count, rooms, *args))

    def test_as_many_as_there_is_room_for(self):
        rooms = hosts(a=4, b=7, c=1)
        for score in (batch_model.DP, batch_model.ML):
            self.assertEqual({'a': 2, 'b': 3}, self.place(
                5, rooms, score=score))
            self.assertEqual({}, self.place(6, rooms, score=score))

    def test_where_they_are_good(self):
        self.assertEqual({'a': 2}, self.place(2, hosts(a=4, b=16)))
        self.assertEqual({'b': 2}, self.place(2, hosts(a=4, b=16),
                                              score=batch_model.DP))

    def test_on_one_host(self):
        """The fullest host with capacity for all is chosen."""
        rooms = hosts(a=2, b=8, c=6, d=16)
        self.assertEqual({'c': 3},
                         self.place(3, rooms, solver_choice.AFFINITY))
        self.assertEqual({}, self.place(9, rooms, solver_choice.AFFINITY))

    def test_apart(self):
        rooms = hosts(a=2, b=8, c=6)
        self.assertEqual({'a': 1, 'b': 1, 'c': 1},
                         self.place(3, rooms, solver_choice.ANTI_AFFINITY))
        self.assertEqual({}, self.place(4, rooms, solver_choice.ANTI_AFFINITY))
        self.assertEqual({'a': 1, 'b': 2, 'c': 2},
                         self.place(5, rooms, solver_choice.ANTI_AFFINITY, 2))

    def test_nowhere(self):
        self.assertEqual({}, self.place(2, []))


if __name__ == '__main__':
    unittest.main()
