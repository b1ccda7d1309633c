# SPDX-License-Identifier: Apache-2.0
"""Dominant resource fairness between projects."""

import fractions
import random
import unittest

from hypothesis import example
from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dominant_fair_share
from nova_preempt.core.backlog import queue_order
from tests.unit.core.backlog import base

TOTAL = {'VCPU': 9, 'MEMORY_MB': 18}
NOBODY = queue_order.ProjectUsage({}, TOTAL)


def uuids(requests):
    return [request.uuid for request in requests]


def one_by_one(requests, shares):
    """Return the published order: the smallest share is next."""
    waiting = sorted(requests, key=lambda r: (r.created_at, r.uuid))
    used = {r.project_id: dict(shares.used.get(r.project_id, {}))
            for r in waiting}
    found = []
    while waiting:
        def share(request):
            amounts = used[request.project_id]
            return max(fractions.Fraction(amounts.get(name, 0), total)
                       for name, total in shares.total.items())

        poorest = min(map(share, waiting))
        request = next(r for r in waiting if share(r) == poorest)
        waiting.remove(request)
        found.append(request)
        mine = used[request.project_id]
        for name, amount in request.alternatives[0].resources.items():
            mine[name] = (mine.get(name, 0)
                          + amount * backlog_model.missing(request))
    return found


class TestFairShare(unittest.TestCase):

    def rank(self, requests, shares=NOBODY):
        return dominant_fair_share.DominantFairShare().rank(requests, base.NOW,
                                                            shares)

    def test_published_example(self):
        """9 CPUs, 18 GB; A asks for <1, 4>, B for <3, 1>: 3 and 2 of them.

        Ghodsi et al., section 4.1.
        """
        a = base.alternative('a', VCPU=1, MEMORY_MB=4)
        b = base.alternative('b', VCPU=3, MEMORY_MB=1)
        requests = [
            base.request(f'{project}{number}', flavor, project_id=project)
            for project, flavor in (('a', a), ('b', b))
            for number in range(3)]
        self.assertEqual(['a0', 'b0', 'a1', 'b1', 'a2'],
                         uuids(self.rank(requests))[:5])

    def test_usage_of_a_project_counts(self):
        requests = [base.request('a'), base.request('b', project_id='p2')]
        shares = queue_order.ProjectUsage({'p1': {'VCPU': 1}}, TOTAL)
        self.assertEqual(['b', 'a'], uuids(self.rank(requests, shares)))

    def test_servers_that_run_are_not_asked_for(self):
        requests = [
            base.request('a', count=4, servers=base.servers(
                backlog_model.RUNNING, backlog_model.BUILDING,
                backlog_model.AWAY, backlog_model.ENDED)),
            base.request('b'), base.request('c', count=2, project_id='p2'),
            base.request('d', project_id='p2')]
        self.assertEqual(['a', 'c', 'b', 'd'], uuids(self.rank(requests)))

    def test_nothing(self):
        self.assertEqual([], self.rank([]))
        self.assertEqual(['r1'], uuids(self.rank(
            [base.request()], queue_order.ProjectUsage({}, {}))))

    def test_amounts_beyond_64_bits(self):
        big = base.alternative('big', VCPU=2 ** 62)
        shares = queue_order.ProjectUsage({'p1': {'VCPU': 2 ** 70}},
                                          {'VCPU': 2 ** 80})
        requests = [base.request('a', big),
                    base.request('b', big, project_id='p2'),
                    base.request('c', project_id='p2')]
        self.assertEqual(['b', 'c', 'a'], uuids(self.rank(requests, shares)))

    @given(st.lists(st.tuples(
        st.sampled_from('pqr'), st.integers(0, 3), st.integers(0, 6),
        st.integers(1, 3), st.integers(0, 3)), max_size=12),
        st.dictionaries(st.sampled_from('pqr'), st.integers(0, 9)),
        # Shares of the last two differ by less than a float can tell.
        st.sampled_from(((9, 18), (2 ** 34 + 1, 2 ** 33 + 1),
                         (2 ** 70 + 1, 2 ** 69 + 1))),
        st.randoms(use_true_random=False))
    @example([('p', 2, 0, 1, 9), ('q', 0, 1, 1, 8), ('p', 1, 1, 1, 7),
              ('q', 1, 1, 1, 6)], {}, (2 ** 34 + 1, 2 ** 33 + 1),
             random.Random(1))
    def test_the_order_agrees_with_the_published_one(self, rows, used,
                                                     totals, rng):
        requests = [
            base.request(
                f'{number:02}',
                base.alternative(f'{vcpus}-{memory}', VCPU=vcpus,
                                 MEMORY_MB=memory),
                project_id=project, count=count, created_at=base.ago(age))
            for number, (project, vcpus, memory, count, age)
            in enumerate(rows)]
        shares = queue_order.ProjectUsage(
            {name: {'VCPU': amount} for name, amount in used.items()},
            dict(zip(('VCPU', 'MEMORY_MB'), totals, strict=True)))
        expected = uuids(one_by_one(requests, shares))
        rng.shuffle(requests)
        self.assertEqual(expected, uuids(self.rank(requests, shares)))


class TestMany(unittest.TestCase):

    def test_all_are_there_once(self):
        rng = random.Random(1)
        flavors = [base.alternative(str(n), VCPU=n + 1) for n in range(5)]
        requests = [
            base.request(f'{number:05}', rng.choice(flavors),
                         project_id=f'p{rng.randrange(100)}')
            for number in range(5000)]
        self.assertEqual(
            sorted(uuids(requests)),
            sorted(uuids(dominant_fair_share.DominantFairShare().rank(
                requests, base.NOW, NOBODY))))


if __name__ == '__main__':
    unittest.main()
