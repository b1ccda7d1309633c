# SPDX-License-Identifier: Apache-2.0
"""Promised availabilities with ten seeds, and both ways to choose victims."""

import functools
import statistics

from nova_preempt.core.classes import class_policies
from nova_preempt.simulator.papers import qos_experiment
from tests.unit.simulator.papers import test_qos_experiment
from tests.unit.simulator.papers.test_qos_experiment import REPRIEVE
from tests.unit.simulator.papers.test_qos_experiment import SERVERS
from tests.unit.simulator.papers.test_qos_experiment import run

SEEDS = range(10)


class TestValidation(test_qos_experiment.Ranges):

    def each(self, check, *args, **kwargs):
        found = []
        for seed in SEEDS:
            with self.subTest(seed=seed):
                found.append(run(*args, seed=seed, **kwargs))
                check(found[-1])
        return found

    def test_002_v1q(self):
        for policy in (class_policies.PromisePolicy, REPRIEVE):
            # One of ten orders of arrival gives 0.4752 to the mean of bronze
            # ones. It is 0.475 at most for the ten together.
            found = self.each(
                functools.partial(self.assert_002_v1q, bronze=(.470, .4755)),
                test_qos_experiment.VALIDATION_1, policy=policy)
            mean = statistics.mean(
                test_qos_experiment.mean(each, 'bronze') for each in found)
            self.assertLessEqual(.470, mean)
            self.assertLessEqual(mean, .475)

    def test_002_v1p(self):
        self.each(self.assert_002_v1p, test_qos_experiment.VALIDATION_1,
                  policy=qos_experiment.PriorityPolicy)

    def test_002_v2q(self):
        for policy in (class_policies.PromisePolicy, REPRIEVE):
            self.each(self.assert_002_v2q, test_qos_experiment.VALIDATION_2,
                      policy=policy)

    def test_002_v2p(self):
        self.each(self.assert_002_v2p, test_qos_experiment.VALIDATION_2,
                  policy=qos_experiment.PriorityPolicy)

    def test_002_vm(self):
        self.each(self.assert_002_vm, test_qos_experiment.VALIDATION_1,
                  **SERVERS)
