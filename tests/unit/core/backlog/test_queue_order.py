# SPDX-License-Identifier: Apache-2.0
"""Tests of the order of requests."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core.backlog import queue_order
from tests.unit.core.backlog import base

NOBODY = queue_order.ProjectUsage({}, {'VCPU': 9})


def uuids(requests):
    return [request.uuid for request in requests]


class TestFIFO(unittest.TestCase):

    def test_first_come_first_served(self):
        requests = [base.request('b'), base.request('a'),
                    base.request('c', created_at=base.ago(1))]
        self.assertEqual(['c', 'a', 'b'], uuids(queue_order.FIFO().rank(
            requests, base.NOW, NOBODY)))

    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2),
                              st.integers(0, 99)),
                    unique_by=lambda item: item[2]))
    def test_by_time_number_and_uuid(self, items):
        """In any order of input, with equal times."""
        requests = [base.request(f'{number:02}', serial=serial,
                                 created_at=base.ago(age_s))
                    for age_s, serial, number in items]
        self.assertEqual(
            sorted(requests, key=lambda item: (
                item.created_at, item.serial, item.uuid)),
            queue_order.FIFO().rank(requests, base.NOW, NOBODY))

    def test_nothing(self):
        self.assertEqual([], queue_order.FIFO().rank([], base.NOW, NOBODY))


if __name__ == '__main__':
    unittest.main()
