# SPDX-License-Identifier: Apache-2.0
"""Budgets, with more requests at once."""

from tests.functional import test_budgets


class TestConcurrency(test_budgets.TestConcurrency):

    hosts = 4
    requests = 8
    budget = 3

    def test_headroom(self):
        """Headroom of three hosts."""
        self.requests = 12
        super().test_headroom()
