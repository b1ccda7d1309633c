# SPDX-License-Identifier: Apache-2.0

import datetime
import itertools
import unittest

from nova_preempt_dashboard import timeline

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
END = START + datetime.timedelta(hours=10)
SCALE = (timeline.WIDTH - timeline.LABEL_WIDTH) / 10


def bar(start_h, end_h, **values):
    return timeline.Bar(START + datetime.timedelta(hours=start_h),
                        START + datetime.timedelta(hours=end_h), 'free',
                        **values)


class TestDraw(unittest.TestCase):

    def draw(self, *bars, now=None):
        return timeline.draw([timeline.Row('a', bars)], START, END, now)

    def test_position(self):
        drawn, = self.draw(bar(2, 5)).rows[0].bars
        self.assertEqual(timeline.LABEL_WIDTH + 2 * SCALE, drawn.x)
        self.assertEqual(3 * SCALE, drawn.width)

    def test_bars_are_cut_at_both_ends(self):
        drawn, = self.draw(bar(-3, 20)).rows[0].bars
        self.assertEqual(timeline.LABEL_WIDTH, drawn.x)
        self.assertEqual(timeline.WIDTH, drawn.x + drawn.width)

    def test_bars_outside_are_left_out(self):
        self.assertEqual((), self.draw(bar(-3, 0), bar(10, 12)).rows[0].bars)

    def test_a_short_bar_can_be_hit(self):
        drawn, = self.draw(bar(9.9999, 12)).rows[0].bars
        self.assertEqual(3, drawn.width)
        self.assertLessEqual(drawn.x + drawn.width, timeline.WIDTH)

    def test_text_only_where_it_fits(self):
        drawn = self.draw(bar(0, 1, text='abc'), bar(1, 2, text='a' * 30),
                          bar(2, 3, text='abc', share=0.2)).rows[0].bars
        self.assertEqual(['abc', '', ''], [each.text for each in drawn])

    def test_parts_of_a_row(self):
        parts = ((0, 0.25), (0.25, 0.5))
        first, second = self.draw(*(
            bar(0, 5, offset=offset, share=share)
            for offset, share in parts)).rows[0].bars
        self.assertAlmostEqual(first.y + first.height, second.y, places=1)
        self.assertAlmostEqual(2 * first.height, second.height, places=1)

    def test_now(self):
        half = START + datetime.timedelta(hours=5)
        self.assertEqual(timeline.LABEL_WIDTH + 5 * SCALE,
                         self.draw(now=half).now_x)
        self.assertIsNone(self.draw(
            now=END + datetime.timedelta(hours=1)).now_x)

    def test_ticks(self):
        for days, hours in ((1, 3), (7, 24), (28, 96)):
            with self.subTest(days=days):
                start = START + datetime.timedelta(hours=7)
                drawn = timeline.draw(
                    [], start, start + datetime.timedelta(days=days))
                ticks = [tick for _x, tick in drawn.ticks]
                self.assertGreater(len(ticks), 4)
                self.assertLess(len(ticks), 10)
                self.assertEqual({hours}, {
                    (after - before).total_seconds() / 3600
                    for before, after in itertools.pairwise(ticks)})

    def test_height(self):
        drawn = timeline.draw([timeline.Row('a'), timeline.Row('b')],
                              START, END)
        self.assertEqual(timeline.TOP + 2 * timeline.ROW_HEIGHT, drawn.height)


class TestChart(unittest.TestCase):

    def chart(self, *values):
        return timeline.chart(
            [(START + datetime.timedelta(hours=hour), value)
             for hour, value in enumerate(values)], START, END)

    def test_line(self):
        drawn = self.chart(0, 100)
        line, = drawn.lines
        (x_0, y_0), (x_1, y_1) = (
            map(float, point.split(',')) for point in line.split())
        self.assertLess(x_0, x_1)
        self.assertGreater(y_0, y_1)
        self.assertEqual([(y_0, 0), (y_1, 100)],
                         [drawn.levels[0], drawn.levels[2]])

    def test_unknown_values_break_the_line(self):
        self.assertEqual(2, len(self.chart(1, None, 1, 1).lines))

    def test_nothing_known(self):
        self.assertEqual((), self.chart(None, None).lines)
        self.assertEqual((), self.chart().lines)
