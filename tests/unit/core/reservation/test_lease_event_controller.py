# SPDX-License-Identifier: Apache-2.0

"""Tests of starts and ends."""

import datetime
import unittest

from nova_preempt.core.reservation import lease_event_controller
from nova_preempt.core.reservation import reservation_model

START = datetime.datetime(2026, 11, 20, 12)
END = START + datetime.timedelta(hours=1)
WARNING = END - datetime.timedelta(seconds=600)
SECOND = datetime.timedelta(seconds=1)
Kind = lease_event_controller.Kind


def reservation(*statuses, **values):
    return reservation_model.Reservation(**{
        'uuid': 'r1', 'project_id': 'p', 'quantity': len(statuses),
        'duration_s': 3600, 'window_start': START, 'end_action': 'delete',
        'before_end_s': 600, 'start_at': START, 'end_at': END, 'hosts': tuple(
            reservation_model.Assignment(f'h{number}', START, END, status)
            for number, status in enumerate(statuses)), **values})


def steps(*changes):
    """Return [(events, seconds until the next step)] of steps.

    :param changes: (seconds after START, {uuid: Reservation}) of each step
    """
    told, found = lease_event_controller.Memory(), []
    for after_s, reservations in changes:
        now_us = reservation_model.to_us(START) + after_s * 1_000_000
        step = lease_event_controller.step(tuple(reservations), told, now_us)
        assert step == lease_event_controller.step(tuple(reservations), told,
                                                   now_us)
        told = step.memory
        found.append(([(each.kind, *each.reservations)
                       for each in step.intents], step.wake_at_us and
                      (step.wake_at_us - now_us) / 1_000_000))
    return found


class TestStep(unittest.TestCase):

    def test_next_events(self):
        started = {'ready_at': START}
        for values, expected in (
                ({}, [(0, Kind.START), (3600, Kind.END)]),
                (started, [(3000, Kind.BEFORE_END), (3600, Kind.END)]),
                ({**started, 'noticed_at': WARNING}, [(3600, Kind.END)])):
            with self.subTest(values=values):
                found = [reservation(reservation_model.READY, **values)]
                first_s = expected[0][0]
                self.assertEqual(
                    [([], 1.0), *(([(kind, 'r1')], later_s and later_s - at_s)
                                  for (at_s, kind), (later_s, _) in zip(
                                      expected, (*expected[1:], (None, 0)),
                                      strict=True))],
                    steps((first_s - 1, found), *(
                        (at_s, found) for at_s, _ in expected)))

    def test_missed_steps(self):
        """All events are reported at once, in order, and once."""
        several = [reservation(uuid=f'r{number}', end_at=END + number * SECOND)
                   for number in range(3)]
        self.assertEqual(
            [([(Kind.START, 'r0', 'r1', 'r2'), (Kind.END, 'r0'),
               (Kind.END, 'r1')], 1.0), ([], 1.0)],
            steps((3601, several), (3601, several)))

    def test_ends_come_before_starts(self):
        ends = reservation(uuid='r2', ready_at=START, noticed_at=START,
                           end_at=END)
        starts = reservation(start_at=END, end_at=END + 60 * SECOND)
        self.assertEqual(
            ([(Kind.END, 'r2'), (Kind.START, 'r1')], 60.0),
            steps((3600, [starts, ends]))[0])

    def test_changed_meanwhile(self):
        """Its later events are cancelled."""
        early, late = (reservation(end_at=END + after * SECOND)
                       for after in (0, 60))
        self.assertEqual(
            [([(Kind.START, 'r1')], 3600.0), ([(Kind.START, 'r1')], 60.0),
             ([(Kind.END, 'r1')], None), ([], None)],
            steps((0, [early]), (3600, [late]), (3660, [late]), (3661, [])))

    def test_a_clock_that_is_turned_back(self):
        found = [reservation()]
        self.assertEqual(
            [([(Kind.START, 'r1')], 3590.0), ([], 3620.0),
             ([(Kind.END, 'r1')], None)],
            steps((10, found), (-20, found), (3600, found)))


class TestStart(unittest.TestCase):

    def start(self, *statuses, now=START, enabled=True, **values):
        return lease_event_controller.change(reservation(*statuses, **values),
                                             Kind.START, now, enabled=enabled)

    def test_once_all_hosts_are_empty(self):
        for statuses, expected in (
                ((reservation_model.READY, reservation_model.READY), True),
                ((reservation_model.READY, reservation_model.LOST), True),
                ((reservation_model.READY, reservation_model.EMPTYING), False),
                ((reservation_model.READY, reservation_model.ASSIGNED), False),
                ((reservation_model.LOST,), False), ((), False)):
            with self.subTest(statuses):
                self.assertEqual(
                    {'status': reservation_model.ACTIVE, 'ready_at': START}
                    if expected else {}, self.start(*statuses))

    def test_not_before_its_time(self):
        self.assertEqual({}, self.start(reservation_model.READY,
                                        now=START - SECOND))
        late = START + datetime.timedelta(seconds=2.5)
        self.assertEqual(late.replace(microsecond=0), self.start(
            reservation_model.READY, now=late)['ready_at'])

    def test_a_degraded_one_stays_so(self):
        self.assertEqual(reservation_model.DEGRADED, self.start(
            reservation_model.READY,
            status=reservation_model.DEGRADED)['status'])

    def test_once(self):
        self.assertEqual({},
                         self.start(reservation_model.READY, ready_at=START))

    def test_no_start_while_reservations_are_disabled(self):
        self.assertEqual({},
                         self.start(reservation_model.READY, enabled=False))

    def test_no_start_after_the_end(self):
        for status in (reservation_model.ENDED, reservation_model.CANCELLED,
                       reservation_model.ERROR):
            self.assertEqual({}, self.start(reservation_model.READY,
                                            status=status))


class TestEnd(unittest.TestCase):

    def change(self, kind, now, **values):
        return lease_event_controller.change(
            reservation(reservation_model.READY,
                        **{'ready_at': START, **values}),
            kind, now)

    def test_warning(self):
        self.assertEqual({}, self.change(Kind.BEFORE_END, WARNING - SECOND))
        self.assertEqual({'noticed_at': WARNING},
                         self.change(Kind.BEFORE_END, WARNING))
        self.assertEqual({}, self.change(Kind.BEFORE_END, END,
                                         noticed_at=WARNING))
        self.assertEqual({}, self.change(Kind.BEFORE_END, END,
                                         status=reservation_model.ENDED))

    def test_end(self):
        self.assertEqual({}, self.change(Kind.END, END - SECOND))
        self.assertEqual({'status': reservation_model.ENDED},
                         self.change(Kind.END, END))
        self.assertEqual({}, self.change(Kind.END, END,
                                         status=reservation_model.CANCELLED))

    def test_says_that_it_never_began(self):
        said = 'it ended before its hosts were empty'
        self.assertEqual(
            {'status': reservation_model.ENDED, 'reason': f'{said}: h1 has x',
             'public_reason': said},
            self.change(Kind.END, END, ready_at=None, reason='h1 has x'))
