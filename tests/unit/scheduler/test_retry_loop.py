# SPDX-License-Identifier: Apache-2.0
"""Tests of the retries of a request."""

import types
import unittest
from unittest import mock

from nova import exception
from sqlalchemy import exc as sqla_exc

from nova_preempt.cloud import placement_api
from nova_preempt.core import poll_timing
from nova_preempt.core import refusal_texts
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.handover import handover
from nova_preempt.scheduler import release_waiter
from nova_preempt.scheduler import request_context
from nova_preempt.scheduler import request_deadline
from nova_preempt.scheduler import retry_loop
from nova_preempt.scheduler import scheduling_pass

TIMES = poll_timing.TimeBudget(whole_s=100, end_s=20)


class Cycle:
    """Context that can be entered and has no state."""

    refusal = ''
    decision = types.SimpleNamespace(why=refusal_texts.Reason.REQUEST)
    has_begun = False
    unanswered = ''
    resources = {'VCPU': 3}

    def __init__(self):
        self.made = scheduling_pass.ClaimsMade()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        pass


class RetryLoopTestCase(unittest.TestCase):

    def setUp(self):
        self.now = 0
        self.passes = []
        self.outcomes = []
        self.preemption = mock.Mock(
            process=mock.Mock(options=types.SimpleNamespace()))
        self.preemption.handover.claims.active = set()
        self.find_room = self.preemption.known.providers.find_room
        self.find_room.return_value = False
        self.retry_loop = retry_loop.RetryLoop(self.preemption)
        self.cycle = Cycle()
        self.enterContext(mock.patch.object(
            scheduling_pass, 'SchedulingPass', self.make_cycle))

    def make_cycle(self, preemption, asked):
        self.cycle.asked = asked
        return self.cycle

    def select(self, asked):
        """A pass of 30 s that ends as the next of self.outcomes."""
        self.passes.append(self.now)
        self.now += 30
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def place(self, *outcomes):
        self.outcomes = list(outcomes)
        self.deadline = request_deadline.Deadline(
            TIMES, None, lambda: self.now)
        return self.retry_loop.place(request_context.RequestContext(
            None, {}, ('s',), deadline=self.deadline), self.select)


class TestTrials(RetryLoopTestCase):

    def test_stuck_victims(self):
        stuck = handover.VictimsStuck(['v'])
        self.assertEqual('there', self.place(stuck, stuck, 'there'))
        self.assertEqual([0, 30, 60], self.passes)

    def test_no_retry_after_the_deadline(self):
        stuck = handover.VictimsStuck(['v'])
        self.assertRaises(exception.NoValidHost, self.place,
                          *5 * [stuck], 'there')
        self.assertEqual([0, 30, 60, 90], self.passes)

    def test_lost_races_take_time_too(self):
        self.cycle.made.conflicts = 1
        self.assertRaises(exception.NoValidHost, self.place,
                          *5 * [exception.NoValidHost(reason='')], 'there')
        self.assertEqual([0, 30, 60, 90], self.passes)

    def test_time_is_up_is_final(self):
        self.assertRaises(exception.NoValidHost, self.place,
                          request_deadline.TimeIsUp(), 'there')
        self.assertEqual([0], self.passes)

    def test_waits_with_the_time_of_the_request(self):
        coming = release_waiter.CapacityReleasing(mock.Mock(joins=('d',)),
                                                  {})
        self.assertEqual('there', self.place(coming, 'there'))
        self.preemption.releasing.wait.assert_called_once_with(
            coming, self.deadline)
        self.assertEqual({'d'}, self.deadline.waited)


class TestWhatTheUserReads(RetryLoopTestCase):
    """The message of the fault, and the note for operators."""

    def refused(self, exc, **cycle):
        for name, value in cycle.items():
            setattr(self.cycle, name, value)
        with mock.patch.object(preemption_policy, 'MAX_ATTEMPTS',
                               1), mock.patch.object(
                                       retry_loop.decision_records,
                                       'keep_refusal') as keep, (
                                       self.assertRaises(
                                           exception.NoValidHost)) as caught:
            self.place(exc)
        notes = keep.call_args_list
        return str(caught.exception), notes[-1].args[2] if notes else None

    def test_no_search_for_victims(self):
        self.assertEqual(
            (('No valid host was found. There are not enough hosts '
             'available.'), None),
            self.refused(exception.NoValidHost(
                reason='There are not enough hosts available.')))

    def test_hosts_that_have_more_room_than_was_known(self):
        self.cycle.has_begun = True
        self.find_room.side_effect = [True, False]
        self.assertEqual('there', self.place(
            exception.NoValidHost(reason=''), 'there'))
        self.assertEqual([0, 30], self.passes)
        self.find_room.assert_called_once_with(
            {'VCPU': 3}, 1000, retry_loop.ROOM_AGE_S)
        self.assertRaises(exception.NoValidHost, self.place,
                          exception.NoValidHost(reason=''))

    def test_placement_that_fails_then_changes_nothing(self):
        self.find_room.side_effect = placement_api.PlacementError('503')
        self.assertIn('no host can run the server', self.refused(
            exception.NoValidHost(reason=''), has_begun=True)[0])

    def test_no_host(self):
        text, note = self.refused(
            exception.NoValidHost(reason='There are not enough hosts '
                                  'available.'), has_begun=True)
        self.assertEqual(
            'No valid host was found. There are not enough hosts available. '
            'Preemption could not help: no host can run the server, '
            'even without the preemptible servers that may be evicted now.',
            text)
        self.assertIn('passes the filters', note)

    def test_reasons_for_operators_only(self):
        text, note = self.refused(exception.NoValidHost(reason=''),
                                  refusal='it asks for PCI devices')
        self.assertEqual('No valid host was found. Preemption could not '
                         'help: it asks for PCI devices.', text)
        self.assertEqual('it asks for PCI devices', note)

    def test_nothing_of_others(self):
        for exc, words in (
                (handover.VictimsStuck(['secret']), 'not freed in time'),
                (placement_api.PlacementError('http://secret'), 'a service'),
                (sqla_exc.TimeoutError('secret'), 'a service'),
                (request_deadline.TimeIsUp(), 'too little time')):
            text, note = self.refused(exc)
            self.assertIn(words, text)
            self.assertNotIn('secret', text)
            self.assertEqual(str(exc), note)

    def test_an_error_of_a_service_while_it_looked(self):
        text, note = self.refused(
            exception.NoValidHost(reason=''), refusal='http://secret: 503',
            decision=types.SimpleNamespace(why=refusal_texts.Reason.SERVICE))
        self.assertNotIn('secret', text)
        self.assertEqual('http://secret: 503', note)

    def test_a_host_that_could_not_be_read(self):
        text, note = self.refused(
            exception.NoValidHost(reason=''), has_begun=True,
            unanswered='http://secret: 500')
        self.assertIn('a service failed or did not answer', text)
        self.assertNotIn('secret', text)
        self.assertEqual('http://secret: 500', note)

    def test_placement_cannot_be_reached(self):
        text, _note = self.refused(exception.NoValidHost(reason=''),
                                   unanswered='Placement cannot be reached')
        self.assertIn('a service failed or did not answer', text)

    def test_a_preemptible_server(self):
        with self.assertRaises(exception.NoValidHost) as caught:
            retry_loop.place_free(None, mock.Mock(
                side_effect=exception.NoValidHost(reason='')))
        self.assertEqual(
            'No valid host was found. Preemption could not help: a '
            'preemptible server can only use free capacity.',
            str(caught.exception))

    def test_no_preemptible_server_is_left(self):
        """The reason is that of Nova without victims."""
        for had_any, text in (
                (False, 'No valid host was found. '),
                (True, ('No valid host was found. Preemption could not help: '
                        'there is no preemptible server that may be '
                        'evicted.'))):
            self.preemption.known.servers = mock.MagicMock(
                had_any=had_any, **{'__bool__.return_value': False})
            self.assertEqual(text, self.refused(
                exception.NoValidHost(reason=''), has_begun=True)[0])

    def test_races(self):
        text, _note = self.refused(exception.NoValidHost(reason=''),
                                   has_begun=True,
                                   made=scheduling_pass.ClaimsMade(
                                       conflicts=1))
        self.assertIn('others', text.replace('other requests', 'others'))
        self.assertIn('try again', text)

    def test_too_many_wait(self):
        def select(asked):
            asked.deadline.is_refused = True
            raise exception.NoValidHost(reason='')

        self.select = select
        text, note = self.refused(None, has_begun=True)
        self.assertIn('too many requests wait', text)
        self.assertIn('max_waiting_requests', note)
