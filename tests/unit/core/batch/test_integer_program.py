# SPDX-License-Identifier: Apache-2.0

import itertools
import random
import unittest

import numpy as np

from nova_preempt.core.batch import integer_program
from nova_preempt.core.batch.free_capacity import IMPOSSIBLE


def found(demand, free, hosts, x):
    return integer_program.cuts(np.array(demand), np.array(free),
                                np.array(hosts), np.array(x, dtype=float))


class TestCuts(unittest.TestCase):

    def test_half_a_server(self):
        rows, right = found([[2]], [[3]], [0], [1.5])
        self.assertEqual(([1], 1), (rows.toarray()[0].tolist(), right[0]))

    def test_nothing_to_cut_off(self):
        for demand, free, x in (
                ([[2]], [[3]], [1]), ([[2]], [[4]], [1.5]),
                ([[2], [3]], [[9]], [1.5, 2]), ([[0]], [[0]], [1.5]),
                ([[2 ** 60]], [[2 ** 61 - 1]], [1.5])):
            rows, right = found(demand, free, [0] * len(x), x)
            self.assertEqual((0, 0), (rows.shape[0], len(right)))

    def test_servers_that_fit_stay(self):
        """No whole solution is cut off, but the fractional one is."""
        chance = random.Random(3)
        several = 0
        for _ in range(300):
            count, hosts = chance.randint(1, 5), []
            demand = [[chance.randint(0, 9) for _ in range(2)]
                      for _ in range(count)]
            free = [[chance.randint(1, 20) for _ in range(2)]
                    for _ in range(2)]
            hosts = [chance.randrange(2) for _ in range(count)]
            x = [chance.random() * 4 for _ in range(count)]
            rows, right = found(demand, free, hosts, x)
            several += len(right) > 1
            self.assertTrue((rows @ np.array(x) > right).all())
            for whole in itertools.product(range(5), repeat=count):
                used = np.zeros((2, 2), dtype=int)
                np.add.at(used, hosts, np.array(demand) * np.array(
                    whole)[:, None])
                if (used <= free).all():
                    self.assertTrue((rows @ np.array(whole) <= right).all(),
                                    (demand, free, hosts, whole))
        self.assertLess(50, several)


class TestWorthIt(unittest.TestCase):

    def test_best_of_each_class(self):
        scores = np.array([[5, 4, 3, 2, 4], [IMPOSSIBLE, 1, IMPOSSIBLE, 7, 7]])
        self.assertEqual([0, 3],
            integer_program.useful_columns(scores, 1).tolist())
        self.assertEqual([0, 1, 3, 4],
                         integer_program.useful_columns(scores, 2).tolist())
        self.assertEqual([0, 1, 2, 3, 4],
                         integer_program.useful_columns(scores, 9).tolist())


if __name__ == '__main__':
    unittest.main()
