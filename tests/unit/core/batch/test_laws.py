# SPDX-License-Identifier: Apache-2.0
"""Laws of batches."""

import unittest

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from nova_preempt.core.batch import batch_model
from tests.unit.core.batch import base

amounts = st.integers(0, 5)


@st.composite
def batches(draw, most=6, hosts=3):
    """Requests of some flavors, and hosts that are partly free."""
    flavors = draw(st.lists(st.tuples(amounts, amounts), min_size=1,
                            max_size=3))
    names = [f'h{number}' for number in range(draw(st.integers(1, hosts)))]
    found = [
        base.host(name, *draw(st.tuples(st.integers(-1, 8),
                                        st.integers(-1, 8))),
                  capacity=(8, 8), weight=draw(st.integers(-3, 3)))
        for name in names]
    requests = [
        base.request(
            number, *draw(st.sampled_from(flavors)),
            hosts=draw(st.one_of(st.none(), st.none(),
                                 st.sets(st.sampled_from(names)))))
        for number in range(draw(st.integers(0, most)))]
    return requests, found


def score_of(name, request, host, hosts):
    """Return the published score, with shares of the largest machine."""
    if name == batch_model.WEIGHTS:
        return host.weight
    total = 0
    for item, amount in request.resources.items():
        if name == batch_model.DP:
            largest = max(each.capacity[item] for each in hosts)
            total += amount * host.free[item] / largest ** 2
        elif amount:
            total += amount / host.free[item]
    return total * 10**6


def best(requests, hosts, name):
    """Return the best of all placements, as (placed requests, score)."""
    by_name = {host.name: host for host in hosts}

    def key(chosen):
        placed = tuple(at is not None for at in chosen.values())
        score = sum(
            score_of(name, each, by_name[chosen[each.uuid]], hosts)
            for each in requests if chosen[each.uuid] is not None)
        return placed, score

    return max(map(key, base.all_placements(requests, hosts)))


def outcome(requests, found):
    return tuple(each.uuid in found.placed for each in requests)


options = st.fixed_dictionaries({
    'mode': st.sampled_from(batch_model.MODES),
    'score': st.sampled_from(batch_model.SCORES),
    'most_at_once': st.sampled_from((2, 100))})


class TestLaws(unittest.TestCase):

    @settings(max_examples=60)
    @given(batches(), st.sampled_from(batch_model.SCORES))
    def test_exact_is_the_best_of_all(self, batch, score):
        requests, hosts = batch
        found = base.place(requests, hosts, score=score)
        wanted, most = best(requests, hosts, score)
        self.assertEqual(wanted, outcome(requests, found))
        # A millionth for each server is rounding.
        self.assertAlmostEqual(most, found.score, delta=len(requests))
        self.assertTrue(all(part.optimal for part in found.parts))

    @settings(max_examples=60)
    @given(batches(), options)
    def test_nothing_is_overdrawn(self, batch, chosen):
        requests, hosts = batch
        found = base.place(requests, hosts, **chosen)
        self.assertEqual({each.uuid for each in requests},
                         {*found.placed, *found.unplaced})
        self.assertTrue(found.placed.keys().isdisjoint(found.unplaced))
        free = {host.name: host.free for host in hosts}
        for (host, item), amount in base.used(requests, found).items():
            self.assertLessEqual(amount, max(0, free[host][item]))
        for each in requests:
            for host in found.placed.get(each.uuid, ()):
                self.assertIn(host, each.hosts or free)

    @settings(max_examples=60)
    @given(batches(), options, st.randoms(use_true_random=False))
    def test_order_of_input(self, batch, chosen, chance):
        requests, hosts = batch
        found = base.place(requests, hosts, **chosen)
        self.assertEqual(found, base.place(
            chance.sample(requests, len(requests)),
            chance.sample(hosts, len(hosts)), **chosen))

    @settings(max_examples=60)
    @given(batches(9, 4))
    def test_no_move_is_better(self, batch):
        """No move of a single server, placed or not, is better."""
        requests, hosts = batch
        found = base.place(requests, hosts)
        by_name = {host.name: host for host in hosts}
        room = base.fits_where(requests, hosts, found)
        for each in requests:
            if each.uuid in found.unplaced:
                self.assertEqual([], room[each.uuid])
                continue
            here = by_name[base.where(found)[each.uuid]]
            for name in room[each.uuid]:
                self.assertLessEqual(
                    score_of(batch_model.DP, each, by_name[name], hosts),
                    score_of(batch_model.DP, each, here, hosts) + 1)

    @settings(max_examples=60)
    @given(batches(9, 4), options)
    def test_no_request_is_omitted_for_a_later_one(self, batch, chosen):
        """It does not fit even without all later requests."""
        requests, hosts = batch
        found = base.place(requests, hosts, **chosen)
        for number, each in enumerate(requests):
            if each.uuid in found.placed:
                continue
            earlier = batch_model.BatchResult(
                {other.uuid: found.placed[other.uuid]
                 for other in requests[:number]
                 if other.uuid in found.placed}, (), 0)
            self.assertEqual(
                [], base.fits_where(requests, hosts, earlier)[each.uuid])

    @settings(max_examples=40)
    @given(batches(9, 4), st.sampled_from(batch_model.SCORES),
           st.integers(0, 6))
    def test_never_worse_than_one_by_one(self, batch, score, ticks):
        """For any time limit."""
        requests, hosts = batch
        clock = iter([0, *[0] * ticks, *[9] * 1000])
        found = base.place(requests, hosts, lambda: next(clock), score=score,
                           time_limit_s=5)
        greedy = base.place(requests, hosts, mode=batch_model.GREEDY,
                            score=score)
        self.assertLessEqual(
            (outcome(requests, greedy), greedy.score),
            (outcome(requests, found), found.score))
