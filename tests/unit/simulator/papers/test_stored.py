# SPDX-License-Identifier: Apache-2.0
"""The results in the guide match the code."""

import html
import itertools
import pathlib
import re
import time
import unittest

from nova_preempt.cmd import reproduce
from nova_preempt.pictures import drawing
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers import sla
from tests.unit.simulator.papers import small

DIRECTORY = pathlib.Path(__file__).parents[4] / 'doc/source/reproduced'


def stored(paper):
    return (DIRECTORY / f'{paper}.txt').read_text(encoding='utf-8')


def rows(text):
    """[cells] of the figures in a report."""
    _, _, table = text.partition('\n\n')
    return [re.split(r' {2,}', line) for line in table.splitlines()[1:]
            if not line.startswith(' ')]


class TestStored(unittest.TestCase):

    maxDiff = None

    def check(self, paper, found):
        """A stored run has the same figures, from the same sources."""
        text = stored(paper)
        self.assertEqual(
            [(each.name, figures.text(each.published)) for each in found],
            [tuple(cells[:2]) for cells in rows(text)],
            'run "make reproduced"')
        plain = ' '.join(text.split())
        for each, cells in zip(found, rows(text), strict=True):
            self.assertEqual(each.published is not None, bool(each.source),
                             each.name)
            if each.source:
                self.assertEqual(each.source, cells[-1], each.name)
            self.assertIn(each.reason, plain)

    def test_in_small(self):
        stored_rows = small.stored()
        self.assertEqual({*small.RUNS, 'sla'}, set(reproduce.PAPERS))
        for paper, run in small.RUNS.items():
            found = run()
            with self.subTest(paper):
                self.check(paper, found.figures)
                self.assertEqual(stored_rows[paper], small.rows(found),
                                 'run "make reproduced"')

    def test_pictures(self):
        """Each stored picture is drawn, with its names and published values.
        """
        stored_plots = small.stored_pictures()
        self.assertEqual(set(reproduce.PAPERS), set(stored_plots))
        for plot in itertools.chain.from_iterable(stored_plots.values()):
            with self.subTest(plot.name):
                self.assertTrue(plot.title)
                self.assertLessEqual(len(plot.panels), drawing.MOST_PANELS)
                text = html.unescape(drawing.svg(plot).decode())
                for panel in plot.panels:
                    self.assertIn(f'<!-- {panel.title} -->', text)
                    self.assertIn(f'<!-- {panel.y_label} -->', text)
                    for series in panel.series:
                        self.assertIn(series.label, text)
                self.assertIn('published', text)

    def test_sla(self):
        """The whole evaluation, since it is quick."""
        found = sla.run(1, 1, time.process_time)
        self.check('sla', found.figures)
        self.assertEqual(stored('sla').splitlines(),
                         list(figures.lines(found)))

    def test_all_are_in_the_guide(self):
        guide = (DIRECTORY.parent / 'reproducing.rst').read_text(
            encoding='utf-8')
        self.assertEqual(
            [f'reproduced/{paper}.txt' for paper in reproduce.PAPERS],
            re.findall('literalinclude:: (.*)', guide))
        self.assertEqual({f'{paper}.txt' for paper in reproduce.PAPERS},
                         {path.name for path in DIRECTORY.iterdir()})
