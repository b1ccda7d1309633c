# SPDX-License-Identifier: Apache-2.0

import datetime
import unittest

from nova_preempt_dashboard import periods

UTC = datetime.timezone.utc
START = datetime.datetime(2026, 1, 1, tzinfo=UTC)


class TestTexts(unittest.TestCase):

    def test_times(self):
        self.assertEqual(START, periods.parse('2026-01-01T00:00:00Z'))
        self.assertEqual(START, periods.parse('2026-01-01T00:00:00'))
        self.assertIsNone(periods.parse(None))
        local = START.astimezone(datetime.timezone(
            datetime.timedelta(hours=2)))
        self.assertEqual('2026-01-01T00:00:00Z', periods.to_text(local))

    def test_durations(self):
        for seconds, text in (
                (0, '0 s'), (59, '59 s'), (60, '1 min'), (61, '1 min 1 s'),
                (3600, '1 h'), (3661, '1 h 1 min'), (86400, '1 d'),
                (90000, '1 d 1 h'), (86460, '1 d'), (-61, '-1 min 1 s'),
                (None, '')):
            with self.subTest(seconds=seconds):
                self.assertEqual(text, periods.duration(seconds))


class TestFreeSlots(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.slots = periods.slots(START, 3600, 8)
        self.calls = 0

    def free(self, taken, most_calls=100):
        def is_free(since, until):
            self.calls += 1
            first, last = ((moment - START).total_seconds() / 3600
                           for moment in (since, until))
            return not any(first <= hour < last for hour in taken)
        return periods.free_slots(self.slots, is_free, most_calls)

    def test_slots(self):
        self.assertEqual(START, self.slots[0][0])
        self.assertEqual(self.slots[0][1], self.slots[1][0])
        self.assertEqual(START + datetime.timedelta(hours=8),
                         self.slots[-1][1])

    def test_all_free_is_one_call(self):
        self.assertEqual([True] * 8, self.free([]))
        self.assertEqual(1, self.calls)

    def test_each_slot_is_right(self):
        for taken in ([0], [7], [3, 4], [0, 2, 4, 6], range(8)):
            with self.subTest(taken=taken):
                self.assertEqual([hour not in taken for hour in range(8)],
                                 self.free(taken))

    def test_bounded_calls(self):
        answers = self.free([0], most_calls=3)
        self.assertEqual(3, self.calls)
        self.assertEqual([None] * 4 + [True] * 4, answers)

    def test_no_slots(self):
        self.assertEqual([], periods.free_slots([], None, 5))

    def test_stretches(self):
        answers = [True, True, False, None, True, False, True, True]
        self.assertEqual(
            [(self.slots[0][0], self.slots[1][1]), self.slots[4],
             (self.slots[6][0], self.slots[7][1])],
            periods.stretches(self.slots, answers))
