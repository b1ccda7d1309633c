# SPDX-License-Identifier: Apache-2.0
"""Availabilities that come of promises, held against published ones."""

import dataclasses
import fractions
import functools
import statistics
import unittest

from nova_preempt.core.classes import class_policies
from nova_preempt.core.model import SECOND
from nova_preempt.simulator.papers import qos_experiment
from nova_preempt.simulator.papers.qos_experiment import VALIDATION_1
from nova_preempt.simulator.papers.qos_experiment import VALIDATION_2
from nova_preempt.simulator.papers.qos_experiment import Arrival

#: As the text chooses victims.
REPRIEVE = functools.partial(class_policies.PromisePolicy, exact=False)


def run(counts, seed=0, **kwargs):
    return qos_experiment.run(
        qos_experiment.validation(counts, seed, **kwargs), seed)


def mean(outcome, name):
    return float(statistics.mean(outcome.availabilities[name]))


class Ranges(unittest.TestCase):
    """Ranges of the published simulator and a real cluster."""

    def assert_within(self, outcome, name, least, most, means=None):
        found = outcome.availabilities[name]
        self.assertLessEqual(least, min(found), name)
        self.assertLessEqual(max(found), most, name)
        if means is not None:
            self.assertLessEqual(means[0], mean(outcome, name), name)
            self.assertLessEqual(mean(outcome, name), means[1], name)

    def assert_002_v1q(self, outcome, bronze=(.470, .475)):
        self.assert_within(outcome, 'gold', .999, 1)
        self.assert_within(outcome, 'silver', .899, .910, (.904, .9065))
        self.assert_within(outcome, 'bronze', .466, .478, bronze)
        self.assertIn(outcome.preemptions, range(5500, 5801))
        self.assertEqual(0, outcome.gini('gold'))
        self.assertLessEqual(outcome.gini('silver'), .003)
        self.assertLessEqual(outcome.gini('bronze'), .003)

    def assert_002_v1p(self, outcome):
        self.assert_within(outcome, 'gold', .999, 1)
        self.assert_within(outcome, 'silver', .999, 1)
        bronze = sorted(outcome.availabilities['bronze'])
        self.assertLessEqual(bronze[55], .07)
        self.assertLessEqual(.99, bronze[56])
        self.assertEqual(96, len(bronze))
        self.assertAlmostEqual(.57, outcome.gini('bronze'), 1)

    def assert_002_v2q(self, outcome):
        self.assert_within(outcome, 'silver', .890, .908, (.8985, .9010))
        self.assertIn(outcome.preemptions, range(2500, 2601))

    def assert_002_v2p(self, outcome):
        silver = sorted(outcome.availabilities['silver'])
        self.assertEqual([0] * 21, silver[:21])
        self.assertLessEqual(.999, silver[21])
        self.assertEqual(221, len(silver))
        self.assertEqual(0, outcome.preemptions)

    def assert_002_vm(self, outcome):
        self.assert_within(outcome, 'gold', 1, 1)
        self.assert_within(outcome, 'silver', 0, 1, (.89, .90))
        self.assert_within(outcome, 'bronze', 0, 1, (.43, .46))
        self.assertLess(outcome.preemptions, 600)


#: Servers, which take a minute to resume, with a pass each five minutes.
SERVERS = {'period_us': 300 * SECOND, 'overheads_s': {60: 1}}


class TestValidation(Ranges):

    def test_002_v1q_each_class_gets_its_promise(self):
        self.assert_002_v1q(run(VALIDATION_1))

    def test_002_v1p_by_priority_some_starve(self):
        self.assert_002_v1p(run(VALIDATION_1,
                                policy=qos_experiment.PriorityPolicy))

    def test_002_v2q_of_equals_each_gets_the_same(self):
        self.assert_002_v2q(run(VALIDATION_2, policy=REPRIEVE))

    def test_002_v2p_by_priority_the_last_get_nothing(self):
        self.assert_002_v2p(run(VALIDATION_2,
                                policy=qos_experiment.PriorityPolicy))

    def test_002_vm_servers_are_preempted_less_often(self):
        self.assert_002_vm(run(VALIDATION_1, **SERVERS))

    def test_defaults_for_servers_keep_promises_to_silver(self):
        outcome = run(
            VALIDATION_1, classes=qos_experiment.published_classes(300, 300),
            **SERVERS)
        self.assert_within(outcome, 'gold', 1, 1)
        self.assert_within(outcome, 'silver', .9, 1)
        self.assertLess(outcome.preemptions, 400)

    def test_servers_with_a_pass_each_30_s_break_them(self):
        outcome = run(VALIDATION_2, overheads_s={60: 1})
        self.assertLess(mean(outcome, 'silver'), .85)


class TestRun(unittest.TestCase):

    def test_equal_seeds_give_equal_results(self):
        experiment = qos_experiment.validation(
            {'gold': 80, 'silver': 130}, 1)
        experiment = dataclasses.replace(experiment, until_us=400 * SECOND)
        self.assertEqual(qos_experiment.run(experiment, 5),
                         qos_experiment.run(experiment, 5))

    def run_one(self, *arrivals, until_s=100, slots=1):
        classes = qos_experiment.published_classes()
        return qos_experiment.run(
            qos_experiment.Experiment(
                classes, class_policies.PromisePolicy(classes),
                {'h': {'VCPU': slots}},
                [Arrival(at_s * SECOND, f'{number}', name, {'VCPU': 1},
                         life_s and life_s * SECOND)
                 for number, (at_s, name, life_s) in enumerate(arrivals)],
                until_s * SECOND, overheads_s={2: 1}), 0)

    def test_the_first_request_runs_at_once(self):
        outcome = self.run_one((0, 'gold', None))
        self.assertEqual({'gold': [1]}, outcome.availabilities)

    def test_an_end_makes_room_at_once(self):
        outcome = self.run_one((0, 'gold', 40), (20, 'gold', None))
        self.assertEqual([.75, 1], sorted(outcome.availabilities['gold']))
        self.assertEqual(0, outcome.preemptions)

    def test_an_evicted_request_comes_back_after_a_while(self):
        # 0 to 40, then 42 to 100, when the other one has ended.
        outcome = self.run_one((0, 'bronze', None), (40, 'gold', 30))
        self.assertEqual(1, outcome.preemptions)
        self.assertEqual((40 + 28) / 100, mean(outcome, 'bronze'))

    def test_a_request_ends_after_its_run_time(self):
        """The time in which it was evicted is added."""
        classes = qos_experiment.published_classes()
        experiment = qos_experiment.Experiment(
            classes, qos_experiment.PriorityPolicy(classes),
            {'h': {'VCPU': 1}},
            [Arrival(0, 'b', 'bronze', {'VCPU': 1}, run_us=30 * SECOND),
             Arrival(10 * SECOND, 'g', 'gold', {'VCPU': 1},
                     run_us=20 * SECOND)],
            1000 * SECOND, overheads_s={2: 1})
        outcome = qos_experiment.run(experiment, 0)
        self.assertEqual({'bronze': [fractions.Fraction(30, 52)],
                          'gold': [1]}, outcome.availabilities)
        self.assertEqual(1, outcome.preemptions)


if __name__ == '__main__':
    unittest.main()
