# SPDX-License-Identifier: Apache-2.0
"""Many random trees against Placement itself."""

import os

from tests.functional import test_nested_placement

#: NESTED_PLACEMENT_CASES changes it.
CASES = int(os.environ.get('NESTED_PLACEMENT_CASES', '1000'))


class TestRandomTrees(test_nested_placement.RandomTrees):
    def test_many_random_trees(self):
        preempting = 0
        for seed in range(10_000, 10_000 + CASES):
            with self.subTest(seed):
                preempting += self.check(seed)
        self.assertGreater(preempting, CASES // 6)
