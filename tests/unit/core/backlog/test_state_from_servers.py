# SPDX-License-Identifier: Apache-2.0
"""Tests of the states of requests, from the states of their servers."""

import dataclasses
import datetime
import unittest

from nova_preempt.core import eviction_status
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import request_servers
from nova_preempt.core.backlog import state_from_servers
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import boot
from tests.unit.core.backlog.base import own
from tests.unit.core.backlog.base import placing
from tests.unit.core.backlog.base import running
from tests.unit.core.backlog.base import sight

OPTIONS = boot_outcome.Options(undecided_s=180, building_s=3600, retry_s=30)
NO_HOST = 'No valid host was found. There are not enough hosts available.'


def judge(request, *sights, now=base.NOW, **victims):
    return state_from_servers.judge(request, sights, victims, now, OPTIONS)


class TestPlacing(unittest.TestCase):

    def test_built(self):
        verdict = judge(placing(backlog_model.BUILDING), sight('s0'))
        self.assertEqual(backlog_model.ACTIVE, verdict.state)
        self.assertEqual([backlog_model.SETTLED], [
            item.state for item in verdict.boots])
        self.assertEqual([('s0', backlog_model.RUNNING)], [
            (item.uuid, item.state) for item in verdict.servers])

    def test_nothing_new(self):
        request = placing(backlog_model.BUILDING)
        verdict = judge(request, sight('s0', 'building'))
        self.assertFalse(verdict.changes(request))

    def test_the_others_of_a_boot_are_found(self):
        request = placing(backlog_model.BUILDING, count=2)
        verdict = judge(request, sight('s0'), sight('x', 'building'))
        self.assertEqual(backlog_model.PLACING, verdict.state)
        self.assertEqual({'s0': backlog_model.RUNNING,
                          'x': backlog_model.BUILDING}, {
                              item.uuid: item.state
                              for item in verdict.servers})
        verdict = judge(boot_outcome.with_verdict(request, verdict),
            sight('s0'),
                        sight('x'))
        self.assertEqual(backlog_model.ACTIVE, verdict.state)

    def test_no_host(self):
        request = placing(backlog_model.BUILDING, tries=2)
        fault = sight('s0', 'error', fault=NO_HOST)
        verdict = judge(request, fault)
        self.assertEqual((backlog_model.WAITING, ('s0',)),
                         (verdict.state, verdict.deletes))
        self.assertEqual(
            {'waits_for': {'code': 'no_valid_host', 'text': NO_HOST},
             'tries': 3, 'reason': '',
             'next_try_at': base.NOW + datetime.timedelta(seconds=120)},
            verdict.values)
        self.assertEqual([backlog_model.IN_VAIN], [
            item.state for item in verdict.boots])
        # Deleted until it is gone, and then forgotten.
        request = boot_outcome.with_verdict(request, verdict)
        self.assertEqual(('s0',), judge(request, fault).deletes)
        self.assertEqual((), judge(request, sight(
            's0', 'error', fault=NO_HOST, task_state='deleting')).deletes)
        verdict = judge(request)
        self.assertEqual((backlog_model.WAITING, ('s0',)),
                         (verdict.state, verdict.forgotten))
        self.assertEqual((),
            boot_outcome.with_verdict(request, verdict).servers)

    def test_temporary_faults(self):
        for fault in (
                ('Exceeded maximum number of retries. Exhausted all hosts '
                 'available for retrying build failures for instance s0.'),
                ('Quota exceeded for instances: Requested 1, but already used '
                 '10 of 10 instances')):
            self.assertEqual(backlog_model.WAITING, judge(
                placing(backlog_model.BUILDING),
                sight('s0', 'error', fault=fault)).state)

    def test_a_server_in_error_without_a_fault_waits(self):
        """Nova reports the failure before its fault, or without it."""
        verdict = judge(placing(backlog_model.BUILDING), sight('s0', 'error'))
        self.assertEqual(
            (backlog_model.WAITING, ('s0',), {
                'code': 'no_valid_host',
                'text': 'Nova did not build it and reported no fault.'}),
            (verdict.state, verdict.deletes, verdict.values['waits_for']))

    def test_ran_before_it_failed(self):
        """It ran unobserved, so that its disk may have data."""
        for fault in ('', NO_HOST):
            verdict = judge(
                placing(backlog_model.BUILDING),
                sight('s0', 'error', fault=fault, launched_at=base.NOW))
            self.assertEqual(
                (backlog_model.FAILED, fault
                 or 'Nova could not build its servers.', ()),
                (verdict.state, verdict.values['reason'], verdict.deletes))

    def test_cannot_be_built(self):
        fault = 'Build of instance s0 aborted: Image i is unacceptable'
        verdict = judge(placing(backlog_model.BUILDING),
                        sight('s0', 'error', fault=fault))
        self.assertEqual((backlog_model.FAILED, fault, ()), (
            verdict.state, verdict.values['reason'], verdict.deletes))

    def test_one_of_two_cannot_be_built(self):
        request = placing(backlog_model.BUILDING, backlog_model.BUILDING,
                          count=2)
        broken = sight('s1', 'error', fault='broken')
        verdict = judge(request, sight('s0'), broken)
        self.assertEqual((backlog_model.PARTLY_ACTIVE, 'broken'),
                         (verdict.state, verdict.values['reason']))
        request = boot_outcome.with_verdict(request, verdict)
        self.assertEqual(0, backlog_model.missing(request))
        # Once its owner has deleted that one all is as it can be.
        self.assertEqual(backlog_model.ACTIVE,
                         judge(request, sight('s0')).state)

    def test_takes_too_long(self):
        for age_s, expected in ((3600, ()), (3601, ('s0',))):
            self.assertEqual(expected, judge(
                placing(backlog_model.BUILDING, age_s=age_s),
                sight('s0', 'building')).deletes)
        never = dataclasses.replace(OPTIONS, building_s=0)
        self.assertEqual((), state_from_servers.judge(
            placing(backlog_model.BUILDING, age_s=10 ** 6),
            [sight('s0', 'building')], {}, base.NOW, never).deletes)

    def test_deleted_by_its_owner_as_it_is_built(self):
        self.assertEqual(backlog_model.DONE,
                         judge(placing(backlog_model.BUILDING)).state)


class TestWithoutAnAnswer(unittest.TestCase):
    """Boots that another engine began, without a known result."""

    def request(self, age_s, count=2):
        return placing(state=backlog_model.ASKING, count=count, age_s=age_s)

    def test_may_still_come(self):
        request = self.request(180)
        self.assertFalse(judge(request).changes(request))

    def test_was_never_asked_for(self):
        request = self.request(181)
        verdict = judge(request)
        self.assertEqual((backlog_model.WAITING, [backlog_model.LOST]), (
            verdict.state, [item.state for item in verdict.boots]))
        self.assertEqual('no_answer', verdict.values['waits_for']['code'])
        self.assertEqual(
            2, backlog_model.missing(
                boot_outcome.with_verdict(request, verdict)))

    def test_all_servers_of_the_boot_are_found(self):
        verdict = judge(self.request(1), sight('a'), sight('b', 'building'))
        self.assertEqual((backlog_model.PLACING, [backlog_model.ASKED]), (
            verdict.state, [item.state for item in verdict.boots]))
        self.assertEqual(backlog_model.ACTIVE, judge(
            self.request(1), sight('a'), sight('b')).state)

    def test_some_servers_of_the_boot_are_found(self):
        request = self.request(100)
        verdict = judge(request, sight('a'))
        self.assertEqual((backlog_model.PLACING, ()),
                         (verdict.state, verdict.boots))
        # No more will come: what lacks is asked for again.
        later = base.NOW + datetime.timedelta(seconds=100)
        request = boot_outcome.with_verdict(request, verdict)
        verdict = judge(request, sight('a'), now=later)
        self.assertEqual(backlog_model.PARTLY_ACTIVE, verdict.state)
        self.assertEqual(
            1, backlog_model.missing(
                boot_outcome.with_verdict(request, verdict)))

    def test_nova_makes_some_and_withdraws_them(self):
        """For example if a server group has no space for the others."""
        for state in (backlog_model.ASKING, backlog_model.REFUSED,
                      backlog_model.LOST):
            request = placing(backlog_model.BUILDING, backlog_model.BUILDING,
                              count=3, state=state)
            verdict = judge(request)
            self.assertEqual(('s0', 's1'), verdict.forgotten)
            self.assertEqual(
                3, backlog_model.missing(
                    boot_outcome.with_verdict(request, verdict)))

    def test_servers_of_an_abandoned_boot_are_deleted(self):
        request = base.request(boots=(
            boot(1, backlog_model.LOST, age_s=500),
            boot(2, backlog_model.REFUSED)))
        verdict = judge(request, sight('late'), sight('x', number=2))
        self.assertEqual((backlog_model.WAITING, ('late', 'x'), ()), (
            verdict.state, verdict.deletes, verdict.servers))

    def test_boots_are_looked_for_while_servers_may_appear(self):
        request = base.request(
            boots=(boot(1, backlog_model.LOST, age_s=86399),
                   boot(2, backlog_model.LOST, age_s=86400),
                   boot(3, backlog_model.SETTLED),
                   boot(4, backlog_model.ASKING),
                   boot(5, backlog_model.ASKED, count=2),
                   boot(6, backlog_model.ASKED)),
            servers=(own('a', number=5), own('b', number=6)))
        self.assertEqual(
            [request_servers.tag('r1', number) for number in (1, 4, 5)],
            request_servers.sought_tags(request, base.NOW))


class TestRunning(unittest.TestCase):

    def test_states_set_by_the_owner_keep_it_active(self):
        request = running(backlog_model.RUNNING)
        for vm_state in ('active', 'stopped', 'shelved_offloaded', 'error',
                         'paused', 'building', 'resized', 'rescued'):
            verdict = judge(request, sight('s0', vm_state))
            self.assertFalse(verdict.changes(request), vm_state)

    def test_deleted(self):
        request = running(backlog_model.RUNNING, backlog_model.RUNNING)
        verdict = judge(request, sight('s0'))
        self.assertEqual(backlog_model.ACTIVE, verdict.state)
        request = boot_outcome.with_verdict(request, verdict)
        self.assertEqual(0, backlog_model.missing(request))
        for gone in ((), (sight('s0', 'soft-delete'),)):
            verdict = judge(request, *gone)
            self.assertEqual((backlog_model.DONE, 'Its servers were deleted.'),
                             (verdict.state, verdict.values['reason']))

    def test_missing_servers_stay_requested(self):
        request = running(backlog_model.RUNNING, count=3)
        self.assertEqual(backlog_model.PARTLY_ACTIVE, judge(
            request, sight('s0')).state)
        verdict = judge(request)
        self.assertEqual(backlog_model.WAITING, verdict.state)
        self.assertEqual(
            2, backlog_model.missing(
                boot_outcome.with_verdict(request, verdict)))


class TestGaveWay(unittest.TestCase):

    def test_kept_servers_make_the_request_evicted(self):
        request = running(backlog_model.RUNNING, backlog_model.RUNNING)
        for vm_state, status in (
                ('shelved_offloaded', eviction_status.SHELVED),
                ('shelved_offloaded', eviction_status.LEFT),
                ('stopped', eviction_status.STOPPED)):
            shelved = sight('s0', vm_state)
            self.assertEqual(backlog_model.PARTLY_ACTIVE, judge(
                request, shelved, sight('s1'), s0=status).state)
            verdict = judge(
                request, shelved, sight('s1', vm_state), s0=status,
                s1=status)
            self.assertEqual(backlog_model.EVICTED, verdict.state)
            request_then = boot_outcome.with_verdict(request, verdict)
            self.assertFalse(boot_outcome.is_startable(
                request_then, base.NOW))
            # It comes back by itself.
            self.assertEqual(backlog_model.ACTIVE, judge(
                request_then, sight('s0'), sight('s1'),
                s0=eviction_status.RESTORED,
                s1=eviction_status.RESTORED).state)

    def test_deleted_and_comes_back(self):
        request = running(backlog_model.RUNNING, comes_back=True,
                          most_returns=2, returns=1, tries=4)
        verdict = judge(request, s0=eviction_status.GONE)
        self.assertEqual(backlog_model.EVICTED, verdict.state)
        self.assertEqual((2, base.NOW, 0), tuple(
            verdict.values[name]
            for name in ('returns', 'waits_since', 'tries')))
        request = boot_outcome.with_verdict(request, verdict)
        self.assertTrue(boot_outcome.is_startable(request, base.NOW))
        # A look later nothing more has happened.
        self.assertFalse(judge(request, s0=eviction_status.GONE).changes(
            request))

    def test_part_of_it_comes_back(self):
        request = running(backlog_model.RUNNING, backlog_model.RUNNING,
                          comes_back=True, not_after=base.ago(60))
        verdict = judge(request, sight('s0'), s1=eviction_status.GONE)
        request = boot_outcome.with_verdict(request, verdict)
        self.assertEqual((backlog_model.PARTLY_ACTIVE, 1),
                         (request.state, backlog_model.missing(request)))
        self.assertTrue(boot_outcome.is_startable(request, base.NOW))

    def test_does_not_come_back(self):
        verdict = judge(
            running(backlog_model.RUNNING), s0=eviction_status.GONE)
        self.assertEqual(
            (backlog_model.DONE,
             'Its servers were evicted, and comes_back is false.'),
            (verdict.state, verdict.values['reason']))

    def test_a_request_returns_at_most_most_returns_times(self):
        verdict = judge(
            running(backlog_model.RUNNING, comes_back=True, most_returns=1,
                    returns=1), s0=eviction_status.GONE)
        self.assertEqual((backlog_model.EXPIRED,
                          'It has waited again 1 times.'),
                         (verdict.state, verdict.values['reason']))

    def test_a_request_returns_until_back_until(self):
        until = base.NOW + datetime.timedelta(seconds=60)
        request = running(backlog_model.RUNNING, comes_back=True,
                          back_until=until)
        request = boot_outcome.with_verdict(
            request, judge(request, s0=eviction_status.GONE))
        self.assertEqual(backlog_model.EVICTED, request.state)
        verdict = judge(request, now=until)
        self.assertEqual(
            (backlog_model.EXPIRED, ('It does not wait again after '
                                     '2026-01-01 12:01:00Z.')),
            (verdict.state, verdict.values['reason']))

    def test_deleted_by_its_owner_after_it_came_back(self):
        self.assertEqual(backlog_model.DONE, judge(
            running(backlog_model.RUNNING, comes_back=True),
            s0=eviction_status.RESTORED).state)

    def test_deleted_by_its_owner_while_it_is_kept(self):
        request = running(backlog_model.AWAY, comes_back=True)
        self.assertEqual(backlog_model.DONE, judge(
            request, s0=eviction_status.SHELVED).state)


    def test_kept_servers_that_come_back(self):
        request = running(backlog_model.AWAY, backlog_model.RUNNING,
                          backlog_model.ENDED,
                          comes_back=True, back_until=base.NOW)
        before = base.ago(1)
        self.assertEqual(
            ['s0'], state_from_servers.coming_back(request, before))
        self.assertEqual([], state_from_servers.coming_back(request, base.NOW))
        self.assertEqual([], state_from_servers.coming_back(
            dataclasses.replace(request, comes_back=False), before))

    def test_notes_are_cleared_outside_of_the_order(self):
        """Positions and reasons of its last pass are outdated."""
        known = {'position': 3, 'estimate_s': 60,
                 'waits_for': {'code': 'room', 'text': 'None.'}}
        kept = sight('s0', 'shelved_offloaded')
        for request, sights, expected in (
                (running(backlog_model.RUNNING), [kept],
                 backlog_model.EVICTED),
                (running(backlog_model.RUNNING, backlog_model.AWAY),
                 [sight('s0'), sight('s1', 'shelved_offloaded')],
                 backlog_model.PARTLY_ACTIVE),
                (running(backlog_model.AWAY), [sight('s0')],
                 backlog_model.ACTIVE),
                (placing(backlog_model.BUILDING), [sight('s0')],
                 backlog_model.ACTIVE)):
            request = dataclasses.replace(request, **known)
            verdict = judge(request, *sights, s0=eviction_status.SHELVED,
                            s1=eviction_status.SHELVED)
            after = boot_outcome.with_verdict(request, verdict)
            self.assertEqual((expected, None, None, {}), (
                after.state, after.position, after.estimate_s,
                after.waits_for))

    def test_a_partly_active_request_is_in_the_order(self):
        request = running(backlog_model.RUNNING, count=2, position=3)
        after = boot_outcome.with_verdict(request, judge(request, sight('s0')))
        self.assertEqual((backlog_model.PARTLY_ACTIVE, 3),
                         (after.state, after.position))


class TestClosing(unittest.TestCase):

    def closing(self, request, *sights):
        return state_from_servers.closing(request, sights, base.NOW, OPTIONS)

    def test_servers_being_built_are_deleted(self):
        request = dataclasses.replace(
            placing(backlog_model.RUNNING, backlog_model.BUILDING, count=2),
            state=backlog_model.CANCELLED)
        verdict, is_clear = self.closing(request, sight('s1', 'building'))
        self.assertEqual((('s1',), False, backlog_model.CANCELLED),
                         (verdict.deletes, is_clear, verdict.state))
        request = boot_outcome.with_verdict(request, verdict)
        verdict, is_clear = self.closing(request)
        self.assertEqual(((), True), (verdict.deletes, is_clear))
        # What runs stays as it was.
        self.assertEqual([('s0', backlog_model.RUNNING)], [
            (item.uuid, item.state)
            for item in boot_outcome.with_verdict(request, verdict).servers])

    def test_all_servers_are_deleted_with_ends_servers(self):
        request = dataclasses.replace(
            running(backlog_model.RUNNING, backlog_model.AWAY,
                    ends_servers=True),
            state=backlog_model.CANCELLED)
        verdict, is_clear = self.closing(
            request, sight('s0'), sight('s1', 'stopped'))
        self.assertEqual((('s0', 's1'), False), (verdict.deletes, is_clear))
        verdict, is_clear = self.closing(
            request, sight('s0', task_state='deleting'))
        self.assertEqual(((), False), (verdict.deletes, is_clear))
        verdict, is_clear = self.closing(
            boot_outcome.with_verdict(request, verdict))
        self.assertTrue(is_clear)
        self.assertEqual([backlog_model.GONE], [
            item.state for item in verdict.servers])

    def test_servers_locked_by_an_administrator_stay(self):
        request = dataclasses.replace(
            running(backlog_model.RUNNING, backlog_model.BUILDING,
                    ends_servers=True),
            state=backlog_model.CANCELLED)
        verdict, is_clear = self.closing(
            request, sight('s0', locked_by='admin'),
            sight('s1', 'building', locked_by='admin'))
        self.assertEqual(((), ('s1', 's0'), True),
                         (verdict.deletes, verdict.locked, is_clear))
        verdict, is_clear = self.closing(
            request, sight('s0', locked_by='admin'), sight('s1'))
        self.assertEqual((('s1',), False), (verdict.deletes, is_clear))

    def test_a_closed_request_waits_for_unknown_boots(self):
        request = placing(state=backlog_model.ASKING, age_s=100)
        request = dataclasses.replace(request, state=backlog_model.CANCELLED)
        self.assertFalse(self.closing(request)[1])
        verdict, is_clear = self.closing(
            request, sight('late', 'building'))
        self.assertEqual((('late',), False), (verdict.deletes, is_clear))
        old = placing(state=backlog_model.ASKING, age_s=181)
        self.assertTrue(self.closing(
            dataclasses.replace(old, state=backlog_model.CANCELLED))[1])
