# SPDX-License-Identifier: Apache-2.0
"""The runs that the guide has, once more at full scale."""

import importlib
import time
import unittest

from nova_preempt.cmd import reproduce
from nova_preempt.simulator.papers import figures
from tests.unit.simulator.papers import test_stored


class TestReproduced(unittest.TestCase):

    def test_all_but_times_are_the_same(self):
        for paper in reproduce.PAPERS:
            module = importlib.import_module(
                f'nova_preempt.simulator.papers.{paper}')
            found = module.run(1, 1, time.process_time)
            ours = '\n'.join(figures.lines(found))
            then = test_stored.stored(paper)
            with self.subTest(paper):
                self.assertEqual(then.partition('\n\n')[0],
                                 ours.partition('\n\n')[0])
                self.assertEqual(*(
                    [cells for cells, each in zip(
                        test_stored.rows(text), found.figures, strict=True)
                     if not each.is_time] for text in (then, ours)))
