# SPDX-License-Identifier: Apache-2.0
"""Benchmarks that start a cloud still run."""

import unittest

from tests import benches


class TestBench(unittest.TestCase):

    def test_each_runs(self):
        found = benches.run(*benches.WITH_CLOUD)
        self.assertEqual(benches.names(benches.WITH_CLOUD), found.keys())
        for name, printed in found.items():
            self.assertEqual('', benches.fault(printed), name)
        for ranking in ('efficiency', 'marginal'):
            self.assertIn(f'{ranking}, hosts weighed: 2', found['energy'])
        for case, target in (('when_full', '1.05'), ('always', '1.05'),
                             ('always', '1.15'), ('preempting', '0.47')):
            self.assertRegex(
                found['schedule'],
                rf'ours, {case} / stock: .*, target <= {target}')
        self.assertIn('ours, preempting / retry', found['schedule'])
        self.assertIn('first load of 5 servers', found['servers'])
        self.assertIn('requests wait for a notice', found['notice'])
