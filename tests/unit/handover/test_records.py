# SPDX-License-Identifier: Apache-2.0

"""Tests of recorded costs."""

import unittest

from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.scheduling import ranked_hosts
from tests.unit.core.scheduling import test_classes
from tests.unit.core.scheduling import world


class TestCosts(unittest.TestCase):
    """Records have micro-units, whatever plans are compared by."""

    def told(self, cost_us, promised):
        """Return (record of a plan, records of victims, reason)."""
        cloud = test_classes.World()
        cloud.add('a', world.amounts(3), spots={
            uuid: (cost_us, world.amounts(1)) for uuid in 'xyz'})
        if promised:
            cloud.promise(*(test_classes.claimant(uuid, 'gold', 60)
                            for uuid in 'xyz'))
        cycle = cloud.cycle(world.amounts(3))
        (host,) = cycle.order(cloud.offered(cycle))
        plan = cycle.plan_of(host)
        policy = cycle.search.policy
        get_cost_us = policy.published_cost_us
        why = ranked_hosts.explain('a', plan, get_cost_us(plan.cost_us), None,
                                   promised=policy.classes is not None)
        return (get_cost_us(plan.cost_us),
                [get_cost_us(each.cost) for each in plan.victim_set.victims],
                why)

    def test_recorded_costs_exclude_promises(self):
        plain = self.told(7_000_000, promised=False)
        promised = self.told(7_000_000, promised=True)
        self.assertEqual((21_000_000, [7_000_000] * 3), plain[:2])
        self.assertEqual(plain[:2], promised[:2])
        self.assertIn('there costs 21 s, the least', promised[2])
        self.assertIn('harm to promises', promised[2])
        self.assertNotIn('promises', plain[2])

    def test_huge_costs_fit_into_the_column(self):
        for cost_us in (2**63, 2**200):
            for promised in (False, True):
                total, each, why = self.told(cost_us, promised)
                self.assertTrue(0 < total <= 2**63 - 1)
                self.assertTrue(all(0 < one <= total for one in each))
                self.assertIn('evicting 3 preemptible server(s)', why)

    def test_the_sum_of_many_costs(self):
        cloud = test_classes.World()
        promises = cloud.promise(*(
            test_classes.claimant(f'{number}', 'gold', 60)
            for number in range(1023)))
        total = sum(promises.cost(world.server(f'{number}'), 2**300)
                    for number in range(1023))
        self.assertEqual(1023 * 2**53, cloud.policy.published_cost_us(total))
        self.assertLess(cloud.policy.published_cost_us(total),
                        preemption_policy.MAX_PUBLISHED_COST_US)


if __name__ == '__main__':
    unittest.main()
