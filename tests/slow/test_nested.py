# SPDX-License-Identifier: Apache-2.0

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
