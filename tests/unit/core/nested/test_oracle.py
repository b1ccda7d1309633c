# SPDX-License-Identifier: Apache-2.0

from collections.abc import Iterator
import dataclasses
import random
import unittest
from unittest import mock

from nova_preempt.core import capacity
from nova_preempt.core.model import (
    Host,
    Inventory,
    Provider,
    Refusal,
    Request,
)
from nova_preempt.core.nested import nested_victims
from nova_preempt.core.nested import placements
from tests.unit.core.nested import trees


def check(case: unittest.TestCase, seed: int) -> bool:
    """Compare with the oracle; return whether victims are needed."""
    rng = random.Random(seed)
    empty = trees.draw_host(rng)
    host = trees.fill(empty, *trees.draw_tenants(rng, empty))
    request = trees.draw_request(rng)
    best = trees.oracle(request, host)
    found = nested_victims.cheapest_victims(request, host)
    bound = nested_victims.lower_bound(request, host)
    if best is None:
        case.assertTrue(found is None or isinstance(found, Refusal), seed)
        return False
    assert not isinstance(found, Refusal)
    assert found is not None, seed
    case.assertEqual(
        (best[0], best[3]),
        (found.cost, tuple(each.uuid for each in found.victims)),
        seed,
    )
    case.assertTrue(found.optimal, seed)
    assert isinstance(bound, int), (seed, bound)
    case.assertLessEqual(bound, best[0], seed)
    freed = capacity.total(each.resources for each in found.victims)
    alone = dataclasses.replace(host, candidates=())
    ways = placements.placements(request, alone, freed, 5)
    case.assertTrue(ways, seed)
    for way in ways:
        lack = placements.lack(host, way.amounts)
        case.assertTrue(capacity.fits(lack, freed), seed)
    for spared in found.victims:
        rest = [each for each in found.victims if each is not spared]
        case.assertEqual(
            [],
            placements.placements(
                request,
                host,
                capacity.total(each.resources for each in rest),
            ),
            seed,
        )
    return bool(found.victims)


class PlacementsTest(unittest.TestCase):

    def test_no_more_ways_are_looked_for_than_asked_for(self) -> None:
        host = Host("h", (Provider("h", 0, {"VCPU": Inventory(1)}, {}),))

        def ways(*_: object) -> Iterator[tuple[int, ...]]:
            yield (0,)
            self.fail("another one was looked for")

        with mock.patch.object(placements, "ways", ways):
            self.assertEqual(
                [{("h", "VCPU"): 1}],
                [
                    each.amounts for each in placements.placements(
                        Request.of({"VCPU": 1}), host
                    )
                ],
            )


class OracleTest(unittest.TestCase):
    """Against every set of victims and every way to place the groups."""

    def test_random_trees(self) -> None:
        preempting = sum([check(self, seed) for seed in range(60)])
        self.assertGreater(preempting, 10)
