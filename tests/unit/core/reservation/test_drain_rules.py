# SPDX-License-Identifier: Apache-2.0
import itertools
import math
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core import model
from nova_preempt.core import notice_period
from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import reservation_model

KINDS = {'o': drain_rules.ServerKind.OWN, 'r': drain_rules.ServerKind.OTHERS,
         'p': drain_rules.ServerKind.PREEMPTIBLE,
         'n': drain_rules.ServerKind.NORMAL}


def make(uuid, lead_s=100, **values):
    """Return a server of the kind that its name begins with."""
    return drain_rules.Server(uuid, kind=KINDS[uuid[0]], lead_s=lead_s,
                              **values)


RESIDENTS = st.lists(st.builds(
    drain_rules.Server, uuid=st.uuids().map(str),
    kind=st.sampled_from(drain_rules.ServerKind), lead_s=st.integers(1, 1000),
    stays_s=st.sampled_from((-5.0, 0.0, 50.0, 2000.0, math.inf)),
    busy=st.booleans(), refused=st.booleans()), max_size=6)


class TestDrain(unittest.TestCase):

    def decide(self, *residents, to_start_s=0, caps=()):
        return drain_rules.decide(residents, to_start_s, caps)

    def test_nothing_there_or_its_own(self):
        self.assertTrue(self.decide().empty)
        self.assertTrue(self.decide(make('o1'), make('o2')).empty)

    def test_each_at_its_time(self):
        residents = (make('p1', 300), make('p2', 100), make('n1', 900))
        for to_start_s, notice, move in (
                (901, (), ()), (900, (), ('n1',)), (301, (), ('n1',)),
                (300, ('p1',), ('n1',)), (100, ('p1', 'p2'), ('n1',)),
                (-50, ('p1', 'p2'), ('n1',))):
            step = self.decide(*residents, to_start_s=to_start_s)
            self.assertEqual((notice, move), (step.notice, step.move))
            self.assertEqual(900, step.lead_s)

    def test_a_busy_server_is_left(self):
        step = self.decide(make('p1', busy=True), make('p2'))
        self.assertEqual((('p2',), ()), (step.notice, step.blocking))

    def test_no_server_is_evicted_in_vain(self):
        for stays_s in (1, math.inf):
            for uuid in ('p1', 'n1'):
                step = self.decide(make(uuid, stays_s=stays_s), make('p2'),
                                   make('n2'))
                self.assertEqual(((), (), (uuid,)), (
                    step.notice, step.move, step.blocking))

    def test_a_minimum_run_time_over_in_time_does_not_block(self):
        early = make('p1', stays_s=400)
        self.assertEqual(('p1',), self.decide(
            early, to_start_s=499).blocking)
        self.assertEqual((), self.decide(early, to_start_s=500).blocking)

    def test_no_notice_after_a_refused_move(self):
        step = self.decide(make('n1', refused=True), make('p1'))
        self.assertEqual(((), ('n1',)), (step.notice, step.move))

    def test_another_reservation(self):
        """Its end is waited for, unless it comes too late."""
        step = self.decide(make('r1', 0, stays_s=60), to_start_s=60)
        self.assertEqual((True, ()), (step.waiting, step.blocking))
        # It is over, and its servers are on their way out.
        step = self.decide(make('r1', 0, stays_s=-30), to_start_s=-30)
        self.assertEqual((True, ()), (step.waiting, step.blocking))
        step = self.decide(make('r1', 0, stays_s=61), to_start_s=60)
        self.assertEqual((False, ('r1',)), (step.waiting, step.blocking))

    def test_budgets(self):
        residents = [make(f'p{number}') for number in range(5)]
        caps = (model.VictimCap(frozenset(('p0', 'p1', 'p2')), 1),
                model.VictimCap(frozenset(('p2', 'p3')), 1))
        step = self.decide(*residents, caps=caps)
        self.assertEqual(('p0', 'p3', 'p4'), step.notice)
        # They take turns, so the first of them begin earlier.
        self.assertEqual(('p0',), self.decide(
            *residents, to_start_s=300, caps=caps).notice)
        self.assertEqual(300, step.lead_s)

    def test_used_up_budgets(self):
        caps = (model.VictimCap(frozenset(('p1',)), 0),)
        self.assertEqual((), self.decide(make('p1'), caps=caps).notice)

    def test_how_long_a_server_stays(self):
        for kept, uptime_s, minimum_s, expected in (
                (False, 10, 0, 0), (False, 10, 70, 60), (False, 70, 70, 0),
                (True, 10, 0, math.inf)):
            self.assertEqual(expected, drain_rules.stays_s(
                kept=kept, uptime_s=uptime_s, minimum_s=minimum_s))

    def test_kinds_of_servers(self):
        start = reservation_model.from_s(0)
        running = {uuid: reservation_model.Reservation(
            uuid, 'p', 1, 60, start, 'delete', 0,
            end_at=reservation_model.from_s(end_s))
            for uuid, end_s in (('r1', 60), ('r2', 90), ('r4', 100))}
        for named, notice_s, expected in (
                ((), None, drain_rules.ServerKind.NORMAL),
                ((), 30, drain_rules.ServerKind.PREEMPTIBLE),
                (('r1',), 30, drain_rules.ServerKind.OWN),
                (('r2', 'r1'), None, drain_rules.ServerKind.OWN),
                (('r2',), 30, drain_rules.ServerKind.OTHERS),
                # That one is over.
                (('r3',), 30, drain_rules.ServerKind.PREEMPTIBLE),
                (('r3',), None, drain_rules.ServerKind.NORMAL)):
            with self.subTest(named=named, notice_s=notice_s):
                self.assertIs(expected, drain_rules.classified(
                    drain_rules.Server('a', named, notice_s), 'r1', running,
                    0).kind)
        self.assertEqual(
            drain_rules.Server('a', ('r2', 'r4'), stays_s=99.5, busy=True,
                               kind=drain_rules.ServerKind.OTHERS),
            drain_rules.classified(
                drain_rules.Server('a', ('r2', 'r4'), None, 900, 0.0, True,
                                   True),
                'r1', running, 500_000))

    def test_when_to_begin(self):
        self.assertEqual([30, 900], [
            drain_rules.move_lead_s(lead_s) for lead_s in (0, 900)])
        self.assertEqual(240, notice_period.lead_s(30, 60, 120))
        self.assertEqual(120, notice_period.lead_s(30, 60))

    def test_how_long_to_wait(self):
        for values, expected in (
                ({'lead_s': 900.0}, 900), ({'lead_s': 0.0}, 30),
                ({'lead_s': 900.0, 'blocking': ('a',)}, 30)):
            self.assertEqual(expected,
                             drain_rules.patience_s(
                                 drain_rules.DrainStep(**values)))

    def test_notices_of_one_length_end_together(self):
        self.assertEqual(
            [('b', 'd'), ('a',)],
            drain_rules.by_notice({'a': 60, 'b': 0, 'c': 60, 'd': 0}, {'c'}))

    @hypothesis.given(RESIDENTS, st.integers(-500, 2000))
    def test_laws(self, residents, to_start_s):
        step = drain_rules.decide(residents, to_start_s)
        known = {item.uuid: item for item in residents}
        for uuid in (*step.notice, *step.move):
            self.assertLessEqual(known[uuid].stays_s, 0)
            self.assertFalse(known[uuid].busy)
        for uuid in step.notice:
            self.assertIs(drain_rules.ServerKind.PREEMPTIBLE, known[uuid].kind)
        for uuid in step.move:
            self.assertIs(drain_rules.ServerKind.NORMAL, known[uuid].kind)
        if step.blocking:
            self.assertEqual(((), ()), (step.notice, step.move))
        for other in itertools.islice(
                itertools.permutations(residents), 10):
            self.assertEqual(step, drain_rules.decide(other, to_start_s))
