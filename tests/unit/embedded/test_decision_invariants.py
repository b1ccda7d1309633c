# SPDX-License-Identifier: Apache-2.0
"""Violations of the invariants of decisions."""

import testtools

from nova_preempt.embedded import decision_invariants
from tests.unit.embedded import builders as b

NEEDED = {'VCPU': 1}


class TestRules(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.hosts = [
            b.host('h1', 2, b.server('a', cost_min=5),
                   b.server('b', cost_min=2)),
            b.host('h2', 2, b.server('n', 1), b.server('c', cost_min=3))]
        self.h1 = b.choice('h1', 'b', cost_min=2)
        self.h2 = b.choice('h2', 'c', cost_min=3)

    def broken(self, outcome, after=()):
        return decision_invariants.broken(NEEDED, outcome, self.hosts, after)

    def test_cheapest_host_and_victims(self):
        self.assertEqual([], self.broken(b.outcome(self.h1, self.h2),
                                         self.hosts))

    def test_over_capacity(self):
        after = [b.host('h1', 2, b.server('x', 3))]
        self.assertEqual(
            ['h1 is over capacity: 3 of 2 VCPU are used'],
            self.broken(b.outcome(self.h1, self.h2), after))

    def test_normal_victim(self):
        wrong = b.choice('h2', 'n', cost_min=0)
        self.assertEqual(
            ['n was evicted, but is not preemptible',
             'the cheapest victims on h2 are c at 180 s',
             'h2 is not the best host for the request'],
            self.broken(b.outcome(wrong, self.h1)))

    def test_dear_victims(self):
        dear = b.choice('h1', 'a', cost_min=5)
        self.assertEqual(
            ['the cheapest victims on h1 are b at 120 s',
             'h1 is not the best host for the request'],
            self.broken(b.outcome(dear, self.h2)))

    def test_wrong_cost(self):
        wrong = b.choice('h2', 'c', cost_min=4)
        self.assertEqual(
            ['the cheapest victims on h2 are c at 180 s'],
            self.broken(b.outcome(self.h1, wrong)))

    def test_dear_host(self):
        self.assertEqual(['h2 is not the best host for the request'],
                         self.broken(b.outcome(self.h2, self.h1)))

    def test_victims_where_there_is_room(self):
        self.hosts.append(b.host('h3', 1))
        self.assertEqual(
            ['h3 can serve the request',
             'h1 is not the best host for the request'],
            self.broken(b.outcome(self.h1, self.h2)))

    def test_refused_without_need(self):
        self.assertEqual(
            ['h1 can serve the request', 'h2 can serve the request',
             'the request was refused, but can be served'],
            self.broken(b.outcome(None)))

    def test_refused_for_good_reason(self):
        self.hosts = [b.host('h1', 1, b.server('n'))]
        self.assertEqual([], self.broken(b.outcome(None)))

    def test_host_that_cannot_serve(self):
        self.hosts[1] = b.host('h2', 1, b.server('n', 1))
        self.assertEqual(['h2 cannot serve the request'],
                         self.broken(b.outcome(self.h1, self.h2)))

    def test_preemptible_request_preempts(self):
        self.assertEqual(
            ['b was evicted, but is not preemptible',
             'h1 cannot serve the request',
             'h1 is not the best host for the request'],
            self.broken(b.outcome(self.h1, preemptible=True)))

    def test_preemptible_request_refused(self):
        self.assertEqual([], self.broken(b.outcome(None, preemptible=True)))
