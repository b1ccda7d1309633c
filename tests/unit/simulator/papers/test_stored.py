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
"""The runs that the guide has are those of this code."""

import fractions
import pathlib
import re
import time
import unittest
from unittest import mock

from nova_preempt.cmd import reproduce
from nova_preempt.simulator import availability
from nova_preempt.simulator.papers import climate
from nova_preempt.simulator.papers import ecsched
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers import opie
from nova_preempt.simulator.papers import qos
from nova_preempt.simulator.papers import qos_comparison
from nova_preempt.simulator.papers import sla

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
        for paper, run, scale in (('opie', opie.run, 0.05),
                                  ('climate', climate.run, 0.15),
                                  ('ecsched', ecsched.run, 0.012)):
            with self.subTest(paper):
                self.check(paper, run(scale, 1, time.process_time).figures)

    def test_sla(self):
        """All of it, since it is quick."""
        found = sla.run(1, 1, time.process_time)
        self.check('sla', found.figures)
        self.assertEqual(stored('sla').splitlines(),
                         list(figures.lines(found)))

    def test_qos(self):
        """Of fewer requests; the validations would take too long."""
        outcome = availability.Outcome({
            name: [fractions.Fraction(each) for each in ('1', '1/2', '0')]
            for name in ('gold', 'silver', 'bronze')}, 0, 1)
        with mock.patch.object(qos, '_validations', return_value=[outcome]), (
                mock.patch.object(qos_comparison.Workload, 'requests', 20)):
            self.check('qos', qos.run(0.1, 1, None).figures)

    def test_all_are_in_the_guide(self):
        guide = (DIRECTORY.parent / 'reproducing.rst').read_text(
            encoding='utf-8')
        self.assertEqual(
            [f'reproduced/{paper}.txt' for paper in reproduce.PAPERS],
            re.findall('literalinclude:: (.*)', guide))
        self.assertEqual({f'{paper}.txt' for paper in reproduce.PAPERS},
                         {path.name for path in DIRECTORY.iterdir()})
