# SPDX-License-Identifier: Apache-2.0
"""Pictures in the one style."""

import datetime
import math
import pathlib
import re
import tempfile
import unittest

from nova_preempt.pictures import drawing
from nova_preempt.pictures.drawing import FigureSeries
from nova_preempt.pictures.drawing import Panel
from nova_preempt.pictures.drawing import Plot

DAY = datetime.datetime(2026, 3, 5, tzinfo=datetime.UTC)


def picture(*series, title='It rains', top=0):
    return Plot('rain', [Panel('Rain', 'time (h)', 'mm', series, top)], title)


def texts(plot):
    """Return the texts of a picture, in order."""
    return re.findall('<!-- (.*?) -->', drawing.svg(plot).decode())


def axes(plot):
    return drawing._figure(plot).axes


class TestDraw(unittest.TestCase):

    def test_titles_units_and_names(self):
        found = texts(picture(
            FigureSeries('London', [0, 1, 2], [1, 2], 'step'),
            FigureSeries('Bergen', [0, 1], [5, 6]),
            FigureSeries('Lima', [0, 1], [0, 0], 'points')))
        for text in ('It rains', 'Rain', 'time (h)', 'mm', 'London', 'Bergen',
                     'Lima'):
            self.assertIn(text, found)

    def test_a_unit_stays_with_its_value(self):
        found = drawing._figure(picture(
            FigureSeries('a', [0, 1], [1, 2]), title=f'{"x" * 76} 1 %'))
        self.assertEqual(f'{"x" * 76}\n1\N{NO-BREAK SPACE}%',
                         found.get_suptitle())

    def test_bars_have_their_name_and_value(self):
        found = texts(picture(
            FigureSeries('ours', ['a', 'b'], [1.234, math.nan], 'bar'),
            FigureSeries('published', ['a', 'b'], [2, 3], 'bar',
                         is_published=True)))
        for text in ('1.23  ours', '2  published', '3  published', 'a', 'b'):
            self.assertIn(text, found)
        self.assertFalse([each for each in found if 'nan' in each])
        self.assertIn('12,346', texts(picture(
            FigureSeries('', ['a'], [12345.6], 'bar'))))
        # A single series needs no name.
        self.assertIn('1', texts(picture(
            FigureSeries('ours', ['a'], [1], 'bar'))))

    def test_published_values_are_hollow_and_black(self):
        (found,) = axes(picture(FigureSeries(
            'published', [1], [2], 'points', is_published=True)))
        self.assertEqual(('none', '#000000'), (
            found.lines[0].get_markerfacecolor(), found.lines[0].get_color()))

    def test_the_same_picture_is_the_same_file(self):
        plot = picture(FigureSeries('a', [0, 1], [1, 2]))
        self.assertEqual(drawing.svg(plot), drawing.svg(plot))

    def test_names_of_users_are_text(self):
        text = drawing.svg(picture(FigureSeries(
            '<script>$x^$</script>', [0, 1], [1, 2]), title='a\0b & "c"'))
        self.assertNotIn(b'<script', text)
        self.assertNotIn(b'\0', text)
        self.assertIn('x' * 39 + '…', texts(picture(FigureSeries(
            'x' * 41, [0, 1], [1, 2]))))

    def test_values_without_end_or_beginning(self):
        for values in ([math.nan, 1, math.nan], [math.nan] * 3, [0, 0, 0]):
            self.assertTrue(texts(picture(
                FigureSeries('a', [0, 1, 2], values))))

    def test_the_axis_of_values(self):
        for top, value, found in ((100, 5, 100), (0, 5, 5.25)):
            (each,) = axes(picture(FigureSeries('a', [0, 1], [0, value]),
                                   top=top))
            self.assertEqual((0, found), each.get_ylim())

    def test_dates_and_hosts(self):
        self.assertIn('2026-Mar-05', texts(picture(FigureSeries(
            'a', [DAY + datetime.timedelta(minutes=each)
                  for each in range(90)], range(90), 'step'))))
        found = texts(picture(FigureSeries('a', ['h1', 'h2'], [1, 2], 'area')))
        self.assertLess({'h1', 'h2', 'a'}, {*found})

    def test_a_file(self):
        plot = picture(FigureSeries('a', [0, 1], [1, 2]))
        with tempfile.TemporaryDirectory() as directory:
            for format_, begin in (('png', b'\x89PNG'), ('svg', b'<?xml')):
                file = drawing.draw(plot, f'{directory}/new', format_)
                self.assertEqual(f'{directory}/new/rain.{format_}', file)
                self.assertTrue(
                    pathlib.Path(file).read_bytes().startswith(begin))


class TestStyle(unittest.TestCase):

    def test_colours_differ_also_in_lightness_or_dash(self):
        """No two neighbours have the same colour and dash."""
        lines = [FigureSeries(f'{nth}', [0, 1], [nth, nth], colour=nth % 7,
                              dash=nth // 7) for nth in range(28)]
        (found,) = axes(picture(*lines))
        self.assertEqual(28, len({(line.get_color(), line.get_linestyle(),
                                   str(line._dash_pattern))
                                  for line in found.lines}))

    def test_labels_do_not_overlap(self):
        for places, gap, expected in (
                ([], 0.1, []), ([0.5], 0.1, [0.5]),
                ([0.2, 0.8], 0.1, [0.2, 0.8]),
                ([0, 0, 0], 0.1, [0, 0.1, 0.2]),
                ([1, 1, 1], 0.1, [0.8, 0.9, 1]),
                ([1, 1, 1], 0.9, [0, 0.5, 1])):
            found = drawing.spread(places, gap)
            self.assertEqual(len(expected), len(found))
            for one, other in zip(found, expected, strict=True):
                self.assertAlmostEqual(one, other)

    def test_one_line(self):
        self.assertEqual('Use: 1 % (a), 2 (b)', drawing.one_line(
            'Use', [('a', '1 %'), ('b', '2')]))
        self.assertEqual('Use: 1', drawing.one_line('Use', [('a', '1')]))
