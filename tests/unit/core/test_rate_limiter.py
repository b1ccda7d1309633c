# SPDX-License-Identifier: Apache-2.0

import unittest

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core import rate_limiter

TERMS = rate_limiter.RateLimit(
    at_once_s=30, share=0.1, most_running=2)


class TestAllowance(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.accounts = rate_limiter.RateLimiter(TERMS)

    def ask(self, now_s, for_s, client='p'):
        """Return the seconds until the call is allowed; 0 if it is."""
        wait_s = self.accounts.begin(client, now_s)
        if not wait_s:
            self.accounts.end(client, now_s, now_s + for_s)
        return wait_s

    def test_at_once_and_after_that(self):
        self.assertEqual(0, self.ask(0, 29))
        self.assertEqual(0, self.ask(29, 5))
        # It has 30 - 29 + 0.5 - 5.
        self.assertAlmostEqual(35, self.ask(34, 1))
        self.assertEqual(0, self.ask(34, 29, 'other'))
        self.assertEqual(0, self.ask(70, 1))

    def test_an_overdrawn_allowance_is_paid_off(self):
        self.assertEqual(0, self.ask(0, 1000))
        self.assertAlmostEqual(9700, self.ask(1000, 1))
        self.assertEqual(0, self.ask(10701, 1))

    def test_two_at_a_time_have_no_more(self):
        busy_s = now_s = 0
        while now_s < 100_000:
            running = 0
            while not self.accounts.begin('p', now_s):
                running += 1
            for _number in range(running):
                self.accounts.end('p', now_s, now_s + 60)
            busy_s += 60 * running
            now_s += 60
        self.assertLess(busy_s, 10_000 + 30 + 2 * 60)

    def test_at_the_same_time(self):
        for expected in (0, 0, 1):
            self.assertEqual(expected, self.accounts.begin('p', 0))
        self.accounts.end('p', 0, 1)
        self.assertEqual(0, self.accounts.begin('p', 1))

    def test_a_clock_that_goes_back(self):
        self.assertEqual(0, self.accounts.begin('p', 100))
        self.accounts.end('p', 100, 50)
        self.assertEqual(0, self.ask(50, 1))

    def test_idle_clients_are_forgotten(self):
        for number in range(9):
            self.ask(0, 1, str(number))
        self.ask(1000, 1)
        self.assertEqual(['p'], list(self.accounts._accounts))

    @given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 100)),
                    max_size=50))
    def test_no_more_than_its_share(self, questions):
        accounts = rate_limiter.RateLimiter(TERMS)
        now_s = busy_s = 0
        for pause_s, for_s in questions:
            now_s += pause_s
            if not accounts.begin('p', now_s):
                accounts.end('p', now_s, now_s + for_s)
                now_s += for_s
                busy_s += for_s
                # The last one may go into debt.
                self.assertLessEqual(busy_s, 30 + 0.1 * now_s + 100.001)


if __name__ == '__main__':
    unittest.main()
