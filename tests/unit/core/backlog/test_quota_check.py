# SPDX-License-Identifier: Apache-2.0
"""Nova's quotas, and what a request asks for."""

import unittest

from nova_preempt.core.backlog import quota_check
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import vcpus

LIMITS = {'maxTotalInstances': 10, 'totalInstancesUsed': 9,
          'maxTotalCores': 20, 'totalCoresUsed': 16,
          'maxTotalRAMSize': -1, 'totalRAMUsed': 10 ** 6}


class TestWhyNot(unittest.TestCase):

    def test_servers_that_start_together_count(self):
        self.assertEqual('', quota_check.why_not(base.request(), LIMITS))
        self.assertIn('leaves 1 servers, and it needs 2', quota_check.why_not(
            base.request(count=2), LIMITS))
        self.assertEqual('', quota_check.why_not(
            base.request(count=2, least_count=1), LIMITS))

    def test_pinned_cores_are_cores(self):
        for wanted, left in (
                (base.alternative(PCPU=5), 'leaves 4 vCPUs'),
                (base.alternative(PCPU=2, VCPU=3), 'it needs 5'),
                (base.alternative(PCPU=2, VCPU=2), '')):
            self.assertIn(left, quota_check.why_not(
                base.request('a', wanted), LIMITS) or '-' * (not left))

    def test_one_flavor_that_fits_is_enough(self):
        self.assertIn('leaves 4 vCPUs', quota_check.why_not(
            base.request('a', vcpus(5)), LIMITS))
        self.assertEqual('', quota_check.why_not(
            base.request('a', vcpus(5), vcpus(4)), LIMITS))

    def test_what_has_no_limit(self):
        wanted = base.alternative(MEMORY_MB=10 ** 9)
        self.assertEqual('', quota_check.why_not(
            base.request('a', wanted), LIMITS))
        self.assertEqual('', quota_check.why_not(
            base.request('a', vcpus(99), count=99), {}))

    def test_more_is_used_than_there_is(self):
        self.assertIn('leaves 0 servers', quota_check.why_not(
            base.request(), {'maxTotalInstances': 1,
                             'totalInstancesUsed': 3}))


if __name__ == '__main__':
    unittest.main()
