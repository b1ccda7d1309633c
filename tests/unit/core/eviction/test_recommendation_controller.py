# SPDX-License-Identifier: Apache-2.0
"""Tests of recommendations to leave."""

import unittest

from nova_preempt.core import headroom_account
from nova_preempt.core import model
from nova_preempt.core.eviction import recommendation_controller
from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import reservation_model
from tests.unit.engine import test_server_expiry

NOW_S = 1_800_000_000
HOUR_S = 3600
A = test_server_expiry.server('a', node='h1')
B = test_server_expiry.server('b', node='h2')


def reservation(start_s, *hosts):
    start_at = reservation_model.from_s(start_s)
    end_at = reservation_model.from_s(start_s + HOUR_S)
    return reservation_model.Reservation(
        f'from {start_s}', 'p', len(hosts), HOUR_S, start_at, 'delete', 0,
        start_at=start_at, end_at=end_at, hosts=tuple(
            reservation_model.Assignment(host, start_at, end_at)
            for host in hosts))


def by_headroom(until_s):
    return recommendation_controller.Recommendation('headroom',
                                                    until_s * SECOND)


def by_reservation(until_s):
    return recommendation_controller.Recommendation('reservation',
                                                    until_s * SECOND)


class TestController(unittest.TestCase):

    def step(self, *reservations, next_victims=(), memory=None, now_s=NOW_S,
             able=(A, B)):
        """Return ({uuid: what is given}, what is withdrawn), and check memory.
        """
        found = recommendation_controller.step(
            recommendation_controller.Observed(
                [A, B], reservations, next_victims, able.__contains__),
            memory or {}, now_s * SECOND)
        self.memory = found.memory
        given = {each.server.uuid: each.recommendation
                 for each in found.intents
                 if isinstance(each, recommendation_controller.Recommend)}
        withdrawn = {each.server_uuid for each in found.intents
                     if isinstance(each, recommendation_controller.Withdraw)}
        self.assertEqual(found.memory, {
            uuid: what for uuid, what in ((memory or {}) | given).items()
            if uuid not in withdrawn})
        return given, withdrawn

    def test_a_reservation_nears(self):
        for ahead_s, is_given in ((3601, False), (3600, True), (1, True),
                                  (0, False), (-1, False)):
            with self.subTest(ahead_s=ahead_s):
                start_s = NOW_S + ahead_s
                self.assertEqual(
                    ({'a': by_reservation(start_s)} if is_given else {},
                     set()), self.step(reservation(start_s, 'h1', 'h3')))

    def test_the_first_of_several_reservations_counts(self):
        near, far = NOW_S + 60, NOW_S + 120
        for order in ((near, far), (far, near)):
            self.assertEqual(({'a': by_reservation(near)}, set()), self.step(
                *(reservation(start_s, 'h1') for start_s in order)))

    def test_a_cancelled_reservation(self):
        self.step(reservation(NOW_S + 60, 'h1'))
        self.assertEqual(({}, {'a'}), self.step(memory=self.memory))

    def test_a_reservation_that_starts_at_another_time(self):
        self.step(reservation(NOW_S + 60, 'h1'))
        self.assertEqual(
            ({'a': by_reservation(NOW_S + 90)}, set()), self.step(
                reservation(NOW_S + 90, 'h1'), memory=self.memory))

    def test_it_is_given_once(self):
        self.step(reservation(NOW_S + 60, 'h1'), next_victims='b')
        self.assertEqual(({}, set()), self.step(
            reservation(NOW_S + 60, 'h1'), next_victims='b',
            memory=self.memory, now_s=NOW_S + 30))

    def test_headroom(self):
        self.assertEqual(({'b': by_headroom(NOW_S + HOUR_S)}, set()),
                         self.step(next_victims='b'))

    def test_headroom_is_renewed(self):
        given = {'b': by_headroom(NOW_S + HOUR_S)}
        for later_s, until_s in ((1799, None), (1800, 1800 + HOUR_S)):
            with self.subTest(later_s=later_s):
                self.assertEqual(
                    ({'b': by_headroom(NOW_S + until_s)} if until_s else {},
                     set()), self.step(next_victims='b', memory=given,
                                       now_s=NOW_S + later_s))

    def test_it_holds_for_an_hour_though_capacity_is_free_again(self):
        given = {'b': by_headroom(NOW_S + HOUR_S)}
        for later_s, withdrawn in ((HOUR_S - 1, set()), (HOUR_S, {'b'})):
            with self.subTest(later_s=later_s):
                self.assertEqual(({}, withdrawn), self.step(
                    memory=given, now_s=NOW_S + later_s))

    def test_a_reservation_comes_before_headroom(self):
        self.assertEqual(
            ({'a': by_reservation(NOW_S + 60)}, set()), self.step(
                reservation(NOW_S + 60, 'h1'), next_victims='a',
                memory={'a': by_headroom(NOW_S + HOUR_S)}))

    def test_a_server_that_cannot_be_evicted_or_has_notice(self):
        self.assertEqual(({}, set()), self.step(
            reservation(NOW_S + 60, 'h1'), next_victims='b', able=()))
        self.assertEqual(({}, {'a'}), self.step(
            reservation(NOW_S + 60, 'h1'),
            memory={'a': by_reservation(NOW_S + 60)}, able=()))

    def test_a_server_that_is_gone(self):
        self.assertEqual(({}, {'c'}), self.step(
            memory={'c': by_headroom(NOW_S + HOUR_S)}))

    def test_one_that_nova_has_refused_waits(self):
        refused = by_headroom(NOW_S + HOUR_S).unanswered(NOW_S * SECOND)
        for victims, expected in (
                ('b', ({'b': by_headroom(NOW_S + 300 + HOUR_S)}, set())),
                ('', ({}, {'b'}))):
            self.assertEqual(({}, set()), self.step(
                next_victims=victims, memory={'b': refused},
                now_s=NOW_S + 299))
            self.assertEqual(expected, self.step(
                next_victims=victims, memory={'b': refused},
                now_s=NOW_S + 300))

    def test_a_clock_that_is_set_back(self):
        """It is given for an hour from now on."""
        self.assertEqual(({}, set()), self.step(
            next_victims='b', memory={'b': by_headroom(NOW_S + 2 * HOUR_S)}))


class TestLowHeadroom(unittest.TestCase):

    def test_a_multiple_of_amounts_and_of_percentages(self):
        group = headroom_account.HostGroup(
            'all', headroom_account.parse('VCPU:10%,MEMORY_MB:512'),
            {'h': model.Provider('uuid', 1, {
                'VCPU': model.Inventory(20),
                'MEMORY_MB': model.Inventory(4096)}, {})})
        self.assertEqual({'VCPU': 18, 'MEMORY_MB': 3584}, group.spare())
        self.assertEqual({'VCPU': 16, 'MEMORY_MB': 3072},
                         group.scaled(2).spare())
        # Not more than there is.
        self.assertEqual({'VCPU': 0, 'MEMORY_MB': 0},
                         group.scaled(20).spare())


if __name__ == '__main__':
    unittest.main()
