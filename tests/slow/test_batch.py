# SPDX-License-Identifier: Apache-2.0
"""Batches that are too large for the unit tests, and many small ones."""

import random
import unittest

from nova_preempt.core.batch import batch_model
from tests.unit.core.batch import base
from tests.unit.core.batch import test_laws


class TestBatches(unittest.TestCase):

    def test_a_thousand_against_all_placements(self):
        """Three resource classes, some of three hosts for each request."""
        chance = random.Random(1)
        for _ in range(1000):
            names = ['a', 'b', 'c'][:chance.randint(1, 3)]
            hosts = [base.host(name, *(chance.randint(0, 9)
                                       for _ in base.NAMES),
                               capacity=(9, 9, 9)) for name in names]
            flavors = [tuple(chance.randint(0, 4) for _ in base.NAMES)
                       for _ in range(2)]
            requests = [
                base.request(number, *chance.choice(flavors),
                             hosts=chance.choice((None, None, names[:2])))
                for number in range(chance.randint(1, 6))]
            found = base.place(requests, hosts)
            wanted, most = test_laws.best(requests, hosts, batch_model.DP)
            self.assertEqual(wanted, test_laws.outcome(requests, found))
            self.assertAlmostEqual(most, found.score, delta=len(requests))

    def test_a_hundred_thousand(self):
        """They are placed in parts, and no host is overcommitted."""
        chance = random.Random(2)
        hosts = [base.host(f'h{number:03}', chance.randint(0, 64),
                           chance.randint(0, 256)) for number in range(500)]
        flavors = [(2 ** chance.randrange(4), 2 ** chance.randrange(6))
                   for _ in range(10)]
        requests = [base.request(number, *chance.choice(flavors))
                    for number in range(100_000)]
        free = {host.name: host.free for host in hosts}
        for mode in batch_model.MODES:
            found = base.place(requests, hosts, mode=mode, time_limit_s=5)
            self.assertEqual(100, len(found.parts))
            self.assertEqual(100_000,
                             len(found.placed) + len(found.unplaced))
            for (name, item), amount in base.used(requests, found).items():
                self.assertLessEqual(amount, free[name][item])
