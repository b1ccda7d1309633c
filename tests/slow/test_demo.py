# SPDX-License-Identifier: Apache-2.0
"""The rest of the scenarios, on a cloud each."""

import pathlib

from tests.functional import test_demo

PRINTED = (pathlib.Path(__file__).parents[2] / 'doc' / 'source'
           / 'fgcs-1.txt')


class TestPublished(test_demo.TestPublished):
    """Tables 3 to 6 of Lopez Garcia et al."""

    def test_one_after_the_other_in_one_process(self):
        self.assert_choice(
            'fgcs-1', ('host-B', ['BP1'], 11), ('host-D', ['DP2'], 19),
            ('host-A', ['AP2'], 27), ('host-C', ['CP1'], 30))
        self.assert_choice(
            'fgcs-2', ('host-C', ['CP1'], 1), ('host-A', ['AP1'], 7),
            ('host-D', ['DP1'], 24), ('host-B', ['BP1'], 44))

    def test_the_guide_has_the_output(self):
        status, out, err = self.run_demo('--scenario', 'fgcs-1')
        self.assertEqual((0, PRINTED.read_text().rstrip()),
                         (status, out.rstrip()), err)

    def test_different_sizes(self):
        super().test_different_sizes()
        self.assert_choice(
            'fgcs-4', ('host-B', ['BP3'], 20), ('host-D', ['DP3'], 24),
            ('host-A', ['AP1'], 52))


class TestOthers(test_demo.DemoTestCase):

    def test_saturation(self):
        results = self.play('saturation')
        self.assertEqual(
            [('spot-1', 'placed'), ('spot-2', 'placed'),
             ('spot-3', 'no_valid_host'), ('normal-1', 'placed'),
             ('normal-2', 'placed'), ('normal-3', 'placed'),
             ('normal-4', 'placed'), ('normal-5', 'placed'),
             ('normal-6', 'no_valid_host')],
            [(result['name'], result['outcome']) for result in results])
        self.assertEqual({'spot-1', 'spot-2'}, {
            name for result in results[3:5] for name in result['victims']})
        for result in (results[2], results[8]):
            self.assertEqual((None, [], None, []), (
                result['host'], result['victims'], result['cost_s'],
                result['considered']))
