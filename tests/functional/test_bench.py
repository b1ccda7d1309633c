# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
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
