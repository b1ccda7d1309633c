# SPDX-License-Identifier: Apache-2.0
"""Tests of the file of figures."""

import pathlib

import fixtures
import testtools

from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.power import efficiency_cache
from nova_preempt.power import power_errors


class TestFigures(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'figures.yaml')

    def load(self, text):
        self.path.write_text(text)
        return efficiency_cache.load_file(str(self.path))

    def assert_wrong(self, expected, text):
        exc = self.assertRaises(power_errors.HostsFileError, self.load, text)
        self.assertEqual(f'{self.path}: {expected}', str(exc))

    def test_load(self):
        found = self.load('''
            node1: {flops: 1.2e12, watts: 350, idle_watts: 110.5}
            node2: {flops: 1.5e+12, watts: 16}
            node3: {idle_watts: 0}
            node4: {}
            ''')
        self.assertEqual({
            'node1': efficiency_ranking.Figures(1.2e12, 350.0, 110.5),
            'node2': efficiency_ranking.Figures(1.5e12, 16.0),
            'node3': efficiency_ranking.Figures(idle_watts=0.0),
            'node4': efficiency_ranking.Figures()}, found)

    def test_an_empty_file(self):
        self.assertEqual({}, self.load(''))

    def test_invalid_numbers(self):
        for text, expected in (
                ('watts: 350W', "watts: '350W' is not a number"),
                ('watts: .nan', 'watts: nan is not a number'),
                ('flops: .inf', 'flops: inf is not a number'),
                ('flops: -.inf', 'flops: -inf is not a number'),
                ('flops: true', 'flops: True is not a number'),
                ('flops: [1]', 'flops: [1] is not a number'),
                ('flops:', 'flops: None is not a number'),
                ('flops: 0', 'flops: 0 must be above 0'),
                ('watts: -1.5', 'watts: -1.5 must be above 0'),
                ('idle_watts: -1', 'idle_watts: -1 must be 0 or more'),
                ('watts: 1e7',
                 'watts: 10000000.0 must be at most 50000')):
            self.assert_wrong(f'host a: {expected}', f'a:\n  {text}')
        self.assert_wrong(
            'host a: idle_watts: 90 must be at most watts, 80',
            'a: {watts: 80, idle_watts: 90}')
        self.assert_wrong('host a: flops: ' + '9' * 400 + ' is not a number',
                          'a: {flops: ' + '9' * 400 + '}')

    def test_all_that_is_wrong_at_once(self):
        self.assert_wrong(
            'host a: watts: 0 must be above 0; '
            "host b: flops: 'many' is not a number",
            'b: {flops: many}\na: {watts: 0}')

    def test_invalid_formats(self):
        for text in ('[a, b]', 'a: 7', 'a: {wats: 7}', 'a: [', '7: {}'):
            exc = self.assertRaises(power_errors.HostsFileError, self.load,
                                    text)
            self.assertIn(str(self.path), str(exc))
        self.assert_wrong(
            'host a: it has an unknown key; the known keys are flops, '
            'idle_watts, watts', 'a: {wats: 7}')

    def test_without_a_file(self):
        exc = self.assertRaises(power_errors.HostsFileError,
                                efficiency_cache.load_file, str(self.path))
        self.assertIn(str(self.path), str(exc))
