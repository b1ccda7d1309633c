# SPDX-License-Identifier: Apache-2.0
"""Promised availabilities with ten seeds, and both ways to choose victims."""

import functools
import statistics

from nova_preempt.core.classes import scheduling_rules
from nova_preempt.simulator.papers import availability
from tests.unit.simulator.papers import test_availability
from tests.unit.simulator.papers.test_availability import REPRIEVE
from tests.unit.simulator.papers.test_availability import SERVERS
from tests.unit.simulator.papers.test_availability import run

SEEDS = range(10)


class TestValidation(test_availability.Ranges):

    def each(self, check, *args, **kwargs):
        found = []
        for seed in SEEDS:
            with self.subTest(seed=seed):
                found.append(run(*args, seed=seed, **kwargs))
                check(found[-1])
        return found

    def test_002_v1q(self):
        for rule in (scheduling_rules.PromiseRule, REPRIEVE):
            # One of ten orders of arrival gives 0.4752 to the mean of bronze
            # ones. It is 0.475 at most for the ten together.
            found = self.each(
                functools.partial(self.assert_002_v1q, bronze=(.470, .4755)),
                test_availability.VALIDATION_1, rule=rule)
            mean = statistics.mean(
                test_availability.mean(each, 'bronze') for each in found)
            self.assertLessEqual(.470, mean)
            self.assertLessEqual(mean, .475)

    def test_002_v1p(self):
        self.each(self.assert_002_v1p, test_availability.VALIDATION_1,
                  rule=availability.ByPriority)

    def test_002_v2q(self):
        for rule in (scheduling_rules.PromiseRule, REPRIEVE):
            self.each(self.assert_002_v2q, test_availability.VALIDATION_2,
                      rule=rule)

    def test_002_v2p(self):
        self.each(self.assert_002_v2p, test_availability.VALIDATION_2,
                  rule=availability.ByPriority)

    def test_002_vm(self):
        self.each(self.assert_002_vm, test_availability.VALIDATION_1,
                  **SERVERS)
