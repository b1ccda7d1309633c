# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Many random trees against Placement itself."""

import os

from tests.functional import test_nested_placement

#: NESTED_PLACEMENT_CASES changes it.
CASES = int(os.environ.get('NESTED_PLACEMENT_CASES', '1000'))


class TestRandomTrees(test_nested_placement.RandomTrees):
    def test_many(self):
        preempting = 0
        for seed in range(10_000, 10_000 + CASES):
            with self.subTest(seed):
                preempting += self.check(seed)
        self.assertGreater(preempting, CASES // 6)
