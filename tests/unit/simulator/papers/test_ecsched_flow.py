# SPDX-License-Identifier: Apache-2.0
"""Rounds of a flow, and the cases of the paper, made exact."""

import functools
import itertools
import random
import unittest

import numpy as np

from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch.free_capacity import IMPOSSIBLE
from nova_preempt.simulator.papers import ecsched_flow
from tests.unit.core.batch import base

DEMANDS = ((10, 10), (20, 10), (50, 60))
FREE = ((25, 25), (50, 50), (100, 100))


def containers(**more):
    return [base.request(number, *demand, **more)
            for number, demand in enumerate(DEMANDS)]


def machines(free=FREE):
    return [base.host(f'm{number}', *amounts)
            for number, amounts in enumerate(free)]


class TestPaper(unittest.TestCase):

    def place(self, requests, hosts, score=batch_model.DP):
        """Place all in one round."""
        return ecsched_flow.placer(score, rounds=1).place(requests, hosts)

    def test_001_a(self):
        """Dot product."""
        found = self.place(containers(), machines())
        self.assertEqual({'r0': 'm0', 'r1': 'm1', 'r2': 'm2'},
                         base.where(found))
        self.assertEqual(1_300_000, found.score)

    def test_001_a_one_by_one(self):
        """The first takes the place that the last would have needed."""
        # One on a machine, as in the paper's network.
        found = base.place(containers(apart=['all']), machines(),
                           mode=batch_model.GREEDY)
        self.assertEqual({'r0': 'm2', 'r1': 'm1'}, base.where(found))
        self.assertEqual(350_000, found.score)
        self.assertEqual(('r2',), found.unplaced)

    def test_001_b(self):
        """Most loaded."""
        found = self.place(containers(), machines(), score=batch_model.ML)
        self.assertEqual({'r0': 'm1', 'r1': 'm0', 'r2': 'm2'},
                         base.where(found))
        self.assertEqual(2_700_000, found.score)

    def test_001_c(self):
        """As many as possible are placed."""
        requests = [base.request(0, 50, 50),
                    base.request(1, 5, 5, hosts=['m0'])]
        hosts = machines(((100, 100), (50, 50)))
        found = self.place(requests, hosts)
        self.assertEqual(({'r0': 'm1', 'r1': 'm0'}, 600_000),
                         (base.where(found), found.score))

    def test_001_d(self):
        """Capacities are shares of the largest machine's."""
        hosts = [base.host('medium', 1, 3), base.host('large', 2, 6),
                 base.host('xlarge', 4, 12)]
        for number, share in enumerate((0.25, 0.5, 1)):
            # What asks for all of the largest, times a share in each class.
            found = self.place(
                [base.request(0, 1, 3, hosts=[hosts[number].name])], hosts)
            self.assertEqual(round(2 * 0.25 * share * 10**6), found.score)

    def test_001_f(self):
        """Containers of an affinity group share a machine."""
        requests = [base.request(number, 40, together='g')
                    for number in (0, 1)]
        placers = [ecsched_flow.placer(batch_model.DP).place] + [
            functools.partial(base.place, mode=mode)
            for mode in batch_model.MODES]
        for place in placers:
            found = place(
                requests, [base.host('a', 50), base.host('b', 90)])
            self.assertEqual({'r0': 'b', 'r1': 'b'}, base.where(found))
            found = place(
                requests, [base.host('a', 50), base.host('b', 70)])
            self.assertEqual(('r0', 'r1'), found.unplaced)

    def test_rounds(self):
        """A round places one container a machine; rounds are limited."""
        requests = [base.request(number, 10) for number in range(9)]
        for rounds, placed in ((1, 2), (3, 5), (20, 7)):
            found = ecsched_flow.placer(batch_model.ML, rounds).place(
                requests, [base.host('a', 50), base.host('b', 20)])
            self.assertEqual([f'r{number}' for number in range(placed)],
                             sorted(found.placed))
            self.assertLessEqual(base.used(requests, found)['a', 'VCPU'], 50)
            self.assertEqual(9 - placed, len(found.unplaced))


class TestAssign(unittest.TestCase):

    def test_best_of_all(self):
        """Earlier containers are placed first; then the sum is the largest."""
        chance = random.Random(1)
        for _ in range(300):
            scores = np.array([
                [IMPOSSIBLE if chance.random() < 0.4 else chance.randint(-5,
                    50)
                 for _ in range(4)]
                for _ in range(chance.randint(1, 3))])
            order = [chance.randrange(len(scores))
                     for _ in range(chance.randint(1, 5))]
            found = ecsched_flow.assign(scores, order)
            self.assertEqual(len(found), len({*found.values()}))
            self.assertEqual(best(scores, order), key(scores, order, [
                found.get(number) for number in range(len(order))]))

    def test_nothing_to_assign(self):
        for scores, order in ((np.zeros((1, 0), np.int64), [0]),
                              (np.zeros((0, 3), np.int64), []),
                              (np.full((1, 2), IMPOSSIBLE), [0, 0])):
            self.assertEqual({}, ecsched_flow.assign(scores, order))


def key(scores, order, chosen):
    return (tuple(j is not None for j in chosen),
            sum(int(scores[f, j]) for f, j in zip(order, chosen, strict=True)
                if j is not None))


def best(scores, order):
    return max(
        key(scores, order, chosen)
        for chosen in itertools.product(
            [None, *range(scores.shape[1])], repeat=len(order))
        if all(j is None or scores[f, j] > IMPOSSIBLE
               for f, j in zip(order, chosen, strict=True))
        and len({j for j in chosen if j is not None})
        == sum(j is not None for j in chosen))
