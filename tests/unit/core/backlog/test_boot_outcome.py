# SPDX-License-Identifier: Apache-2.0
"""Tests of the effects of Nova's answers and of time."""

import datetime
import unittest

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import request_servers
from tests.unit.core.backlog import base

OPTIONS = boot_outcome.Options(retry_s=30)
Taken = boot_outcome.BootAnswer


class TestTaken(unittest.TestCase):

    def test_answers(self):
        for status, kind, text, expected in (
                (202, '', '', Taken.ACCEPTED),
                (None, '', 'timed out', Taken.UNKNOWN),
                (500, 'computeFault', 'Unexpected API Error', Taken.UNKNOWN),
                (503, '', '503 Service Unavailable', Taken.UNKNOWN),
                (403, 'forbidden', ('Quota exceeded for cores: Requested 2, '
                 'but already used 2 of 2 cores'), Taken.QUOTA),
                (403, 'forbidden', ('Resource servers is over limit of 10 due '
                 'to current usage 10 and delta 1'), Taken.QUOTA),
                (403, 'forbidden', 'Maximum number of ports exceeded',
                 Taken.QUOTA),
                (403, 'forbidden', "Policy doesn't allow it", Taken.NO),
                (400, 'badRequest', 'Image i could not be found', Taken.NO),
                (404, 'itemNotFound', 'no such version', Taken.NO),
                # Somebody between Nova and us.
                (404, '', '404 Not Found', Taken.LATER),
                (403, '', '403 Forbidden', Taken.LATER),
                (401, '', '401 Unauthorized', Taken.LATER),
                (429, '', '429 Too Many Requests', Taken.LATER),
                (409, 'conflictingRequest', 'Port p is still in use',
                 Taken.LATER)):
            self.assertIs(expected,
                boot_outcome.classify_answer(status, kind, text),
                          (status, text))

    def test_conflicts_that_do_not_end(self):
        for tries, expected in ((4, Taken.LATER), (5, Taken.NO)):
            self.assertIs(expected, boot_outcome.classify_answer(
                409, 'conflictingRequest', 'Multiple possible networks',
                tries))


class TestAnswered(unittest.TestCase):

    def answered(self, how, request=None, text='', server=''):
        request = request or base.request()
        boot = request_servers.next_boot(request, 'small', 1, base.NOW)
        return boot_outcome.judge_answer(
            request, boot, how, text, server, base.NOW, OPTIONS)

    def test_accepted(self):
        verdict = self.answered(Taken.ACCEPTED, server='s1')
        self.assertEqual(
            (backlog_model.PLACING, [backlog_model.ASKED],
             [('s1', backlog_model.BUILDING)]),
            (verdict.state, [item.state for item in verdict.boots],
             [(item.uuid, item.state) for item in verdict.servers]))

    def test_unknown(self):
        verdict = self.answered(Taken.UNKNOWN)
        self.assertEqual((backlog_model.PLACING, ()),
                         (verdict.state, verdict.boots))

    def test_no_quota(self):
        verdict = self.answered(Taken.QUOTA, text='Quota exceeded')
        self.assertEqual((backlog_model.WAITING, [backlog_model.REFUSED]), (
            verdict.state, [item.state for item in verdict.boots]))
        self.assertEqual(
            {'waits_for': {'code': 'quota', 'text': 'Quota exceeded'},
             'tries': 1,
             'next_try_at': base.NOW + datetime.timedelta(seconds=30)},
            verdict.values)

    def test_no(self):
        verdict = self.answered(Taken.NO, text='no such image')
        self.assertEqual(
            (backlog_model.FAILED, 'no such image', [backlog_model.REFUSED]),
            (verdict.state, verdict.values['reason'],
             [item.state for item in verdict.boots]))

    def test_no_more_of_it(self):
        """Running servers stay."""
        request = base.request(state=backlog_model.PARTLY_ACTIVE, count=2,
                               servers=base.servers(backlog_model.RUNNING))
        verdict = self.answered(Taken.NO, request, 'no such image')
        self.assertEqual((backlog_model.PARTLY_ACTIVE, 'no such image', 1), (
            verdict.state, verdict.values['reason'],
            verdict.values['tries']))


class TestTime(unittest.TestCase):

    def test_pauses_grow(self):
        self.assertEqual(
            [30, 60, 120, 240, 480, 600, 600],
            [(values['next_try_at'] - base.NOW).total_seconds() for values in (
                boot_outcome.retry_values(base.request(tries=tries), '', '',
                                     base.NOW, OPTIONS)
                for tries in range(7))])

    def test_the_last_moment(self):
        for values, age_s, reason in (
                ({'longest_wait_s': 60}, 59, None),
                ({'longest_wait_s': 60}, 60,
                 'It has waited for 60 s, longest_wait_s.'),
                ({'not_after': base.ago(-1)}, 0, None),
                ({'not_after': base.NOW}, 0,
                 'It was not started before 2026-01-01 12:00:00Z, not_after.'),
                ({}, 10 ** 8, None)):
            request = base.request(created_at=base.ago(age_s), **values)
            verdict = boot_outcome.expire(request, base.NOW)
            self.assertEqual(
                reason and (backlog_model.EXPIRED, reason),
                verdict and (verdict.state, verdict.values['reason']),
                values)

    def test_a_started_request_does_not_expire(self):
        for state in backlog_model.STATES:
            if state != backlog_model.WAITING:
                self.assertIsNone(boot_outcome.expire(
                    base.request(state=state, longest_wait_s=0), base.NOW))


class TestWithoutFlavor(unittest.TestCase):

    def test_other_flavors_remain(self):
        small, large = (base.alternative(name) for name in ('s', 'l'))
        boot = backlog_model.SentBoot(1, 'tag', 's', 1, base.NOW)
        verdict = boot_outcome.without_flavor(
            base.request('r1', small, large), boot)
        self.assertEqual(
            (backlog_model.WAITING, {'alternatives': (large,)},
             backlog_model.REFUSED),
            (verdict.state, verdict.values, verdict.boots[0].state))
        self.assertIsNone(boot_outcome.without_flavor(
            base.request('r1', small), boot))
