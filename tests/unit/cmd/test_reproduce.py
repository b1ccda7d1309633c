# SPDX-License-Identifier: Apache-2.0
"""Arguments and output of nova-preempt-reproduce."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

from nova_preempt.cmd import reproduce
from nova_preempt.core.batch import solver_choice
from nova_preempt.pictures import drawing
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers import opie

FOUND = figures.PaperEvaluation(
    'Somebody, 2019', 'half', '', [figures.Figure('one', 2, 3)],
    [drawing.Plot('picture', [drawing.Panel('t', 'x', 'y', [
        drawing.FigureSeries('bars', ['a', 'b'], [1, 2], 'bar')]),
        drawing.Panel('t', 'x', 'y', [
            drawing.FigureSeries(style, [0, 1, 2], [2, 3, 1], style)
            for style in ('line', 'step', 'points')])])])


class TestMain(unittest.TestCase):

    def main(self, *argv, **patched):
        patched.setdefault('return_value', FOUND)
        with mock.patch.object(opie, 'run', **patched) as self.run_paper, (
                contextlib.redirect_stdout(io.StringIO())) as out, (
                contextlib.redirect_stderr(io.StringIO())) as err:
            code = reproduce.main(['opie', *argv])
        return code, out.getvalue(), err.getvalue()

    def test_a_table(self):
        code, out, err = self.main('--scale', '0.5', '--seed', '7')
        self.assertEqual((0, ''), (code, err))
        self.assertIn('one          2     3   +50.00 %', out)
        self.assertEqual((0.5, 7), self.run_paper.call_args.args[:2])

    def test_json(self):
        _, out, _ = self.main('--json')
        self.assertEqual(0.5, json.loads(out)['figures'][0]['deviation'])

    def test_pictures(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'new')
            for format_, begin in (('png', b'\x89PNG'), ('svg', b'<?xml')):
                code, _, err = self.main('--plot', path, '--plot-format',
                                         format_)
                file = os.path.join(path, f'picture.{format_}')
                self.assertEqual(0, code)
                self.assertIn(f'{file} is drawn', err)
                with open(file, 'rb') as stream:
                    self.assertTrue(stream.read().startswith(begin))

    def test_without_matplotlib_nothing_is_run(self):
        with mock.patch.dict(sys.modules, {'matplotlib.figure': None}):
            code, _, err = self.main('--plot', '/nowhere')
        self.assertEqual(1, code)
        self.assertIn('pip install nova-preempt[report]', err)
        self.run_paper.assert_not_called()

    def test_without_solvers_of_batches(self):
        code, _, err = self.main(side_effect=solver_choice.NotInstalled(
            'scipy', 'batch', 'mode exact'))
        self.assertEqual(1, code)
        self.assertIn('install nova-preempt[batch]', err)

    def test_without_numpy(self):
        code, _, err = self.main(side_effect=ModuleNotFoundError(
            'no numpy', name='numpy'))
        self.assertEqual(1, code)
        self.assertIn('numpy is needed: pip install nova-preempt[sim', err)

    def test_a_missing_module_of_ours_is_a_defect(self):
        with self.assertRaises(ModuleNotFoundError):
            self.main(side_effect=ModuleNotFoundError(
                'no such', name='nova_preempt.nothing'))

    def test_scales(self):
        for wrong in ('0', '1.1', 'all', 'nan'):
            with self.assertRaises(SystemExit):
                self.main('--scale', wrong)
