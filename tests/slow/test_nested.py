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

"""Many random trees against everything tried."""

import os
import unittest

from tests.unit.core.nested import test_oracle

#: NESTED_ORACLE_CASES changes it.
CASES = int(os.environ.get("NESTED_ORACLE_CASES", "1000"))


class OracleTest(unittest.TestCase):
    def test_random_trees(self) -> None:
        preempting = sum(
            [test_oracle.check(self, 10_000 + seed) for seed in range(CASES)]
        )
        self.assertGreater(preempting, CASES // 6)
