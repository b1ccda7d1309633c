# SPDX-License-Identifier: Apache-2.0
"""Arguments of commands."""

import argparse
import pathlib
import tempfile
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.client import argtypes

_UNITS = (('d', 86400), ('h', 3600), ('m', 60), ('s', 1))


class ValuesTestCase(unittest.TestCase):

    def refused(self, function, text):
        with self.assertRaises(argparse.ArgumentTypeError) as caught:
            function(text)
        return str(caught.exception)


class TestDurations(ValuesTestCase):

    def test_examples(self):
        for text, seconds in (('5400', 5400), ('90m', 5400), ('4h', 14400),
                              ('2d', 172800), ('1h30m', 5400), ('45s', 45),
                              ('0', 0), ('1d2h3m4s', 93784)):
            self.assertEqual(seconds, argtypes.duration_s(text), text)

    def test_invalid_durations(self):
        for text in ('', 'h', '4 h', '-1', '1.5h', '4H', '1w', '٣h', '٣',
                     '1h30', 'P1D', '4h\n'):
            self.assertIn('90m', self.refused(argtypes.duration_s, text), text)

    @hypothesis.given(st.lists(st.tuples(
        st.integers(0, 10 ** 6), st.sampled_from(_UNITS)), min_size=1))
    def test_the_parts_are_added(self, parts):
        self.assertEqual(
            sum(number * unit[1] for number, unit in parts),
            argtypes.duration_s(''.join(f'{number}{unit[0]}'
                                        for number, unit in parts)))

    def test_limits(self):
        self.assertEqual((-1, 172800), (argtypes.limit_s('-1'),
                                        argtypes.limit_s('2d')))
        self.refused(argtypes.limit_s, '-2')
        self.assertEqual((-1, 0, 7), tuple(map(argtypes.limit,
                                               ('-1', '0', '7'))))
        for text in ('-2', 'x', '', '1.0', '9' * 10):
            self.refused(argtypes.limit, text)


class TestQuantities(ValuesTestCase):

    def test_quantity(self):
        self.assertEqual(12, argtypes.quantity('12'))
        for text in ('0', '-1', '', 'two', '1.0', '1' * 11):
            self.refused(argtypes.quantity, text)


class TestHostProperties(ValuesTestCase):

    def test_text(self):
        self.assertEqual(['>=', '$vcpus', 8],
                         argtypes.host_properties('[">=", "$vcpus", 8]'))
        self.assertEqual([], argtypes.host_properties('[]'))

    def test_file(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / 'filter.json'
            path.write_text('["=", "$rack",\n "r1"]\n')
            self.assertEqual(['=', '$rack', 'r1'],
                             argtypes.host_properties(f'@{path}'))
            self.assertIn('cannot be read', self.refused(
                argtypes.host_properties, f'@{path}.none'))
            path.write_bytes(b'\xff')
            self.assertIn('cannot be read', self.refused(
                argtypes.host_properties, f'@{path}'))

    def test_messages(self):
        for text, message in (
                ('[">=", $vcpus, 8]',
                 'is not valid JSON: Expecting value: line 1 column 8'),
                ('', 'not valid JSON'), ('{}', 'must be a list'),
                ('"$vcpus"', 'must be a list'),
                ('[' * 100000, 'is not valid JSON')):
            self.assertIn(message,
                          self.refused(argtypes.host_properties, text))


class TestHostProperty(ValuesTestCase):

    def test_values(self):
        for text, pair in (('rack=r1', ('rack', 'r1')),
                           ('a=', ('a', '')), ('a=b=c', ('a', 'b=c')),
                           ('a=["x", 2]', ('a', ['x', 2]))):
            self.assertEqual(pair, argtypes.host_property(text))
        for text in ('rack', '=r1', 'a=[x'):
            self.refused(argtypes.host_property, text)
