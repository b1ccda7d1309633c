# SPDX-License-Identifier: Apache-2.0
"""Requests that wait, where hosts are reserved."""

import dataclasses
import unittest

from nova_preempt.core import eligibility
from nova_preempt.core import notice_period
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import ladder_choice
from nova_preempt.core.backlog import reservation_rules
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from nova_preempt.core.reservation import leases
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import codes
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import starts
from tests.unit.core.backlog.base import vcpus
from tests.unit.reservation import support

GUARD = leases.GuardTime(
    60, notice_period.NoticeRule(120), eligibility.Rules(minimum_runtime_s=0),
    30, 0)


def known(*found, now_s=0, fresh=True):
    return reservation_rules.ReservationRules(leases.LeaseView(
        leases.Leases(found), fresh, False, now_s), GUARD)


def decide(requests, rooms, of, **values):
    return base.decide(
        requests, [dataclasses.replace(item, free_s=of.free_s(item.host))
                   for item in rooms],
        base.NOW, dispatch.Options(), places=of, **values)


def hinted(uuid, *ids, name='os:scheduler_hints', wanted=None, **values):
    return base.request(
        uuid, *([wanted] if wanted else []), body={'server': {}, name: {
            'reservation': list(ids)}}, **values)


class TestReservedHosts(unittest.TestCase):

    def test_an_invalid_hint_does_not_stop_others(self):
        """Hosts would be kept for it."""
        bad = hinted('bad', 5, waits_since=base.ago(10**6))
        found = decide([bad, base.request('b')], [host('A', 1)], known())
        self.assertEqual(['b'], [item[0] for item in starts(found)])
        self.assertEqual({'bad': 'fault'}, codes(found))

    def test_are_for_others(self):
        """Now, and from so long before as a server has to have its host."""
        for start_s, expected in ((0, []), (60, []), (61, ['a'])):
            found = decide([base.request('a')], [host('A', 1)], known(
                support.lease('r1', start_s, 1000, 'A')))
            self.assertEqual(expected,
                             [item[0] for item in starts(found)], start_s)
        found = decide([base.request('a')], [host('A', 1), host('B', 0)],
                       known(support.lease('r1', 0, 1000, 'A')))
        self.assertEqual({'a': 'room'}, codes(found))
        waits_for = found.notes['a'].waits_for
        self.assertEqual(({'VCPU': 1}, {'VCPU': 1}), (
            waits_for['lacks'], waits_for['hosts']))
        self.assertIn('Some hosts are reserved by others.',
                      waits_for['text'])
        self.assertEqual(1, waits_for['reserved'])

    def test_a_preemptible_one_stays_until_its_notice(self):
        spot = base.alternative(preemptible=True)
        lead_s = 120 + 30 + notice_period.MARGIN_S
        for changes, longest_s in (
                ({}, lead_s), ({'notice_s': 300}, lead_s + 180),
                ({'minimum_run_s': 1000}, lead_s + 1000)):
            request = base.request(
                'a', dataclasses.replace(spot, **changes))
            for start_s, number in ((longest_s, 0), (longest_s + 1, 1)):
                self.assertEqual(number, len(decide(
                    [request], [host('A', 1)], known(support.lease(
                        'r1', start_s, 9999, 'A'))).starts), changes)

    def test_unknown_leases(self):
        """Unreadable leases admit no request, as in the scheduler."""
        view = leases.LeaseView(None, False, False, 0)
        self.assertEqual((), decide(
            [base.request('a')], [host('A', 1)],
            reservation_rules.ReservationRules(view, GUARD)).starts)

    def test_is_not_held_for_others(self):
        """The host that is kept for request a is not the reserved one."""
        first = base.request('a', vcpus(4), waits_since=base.ago(9999))
        found = decide([first, base.request('b', vcpus(2))],
                       [host('A', 2, capacity=4), host('B', 2, capacity=4)],
                       known(support.lease('r1', 0, 1000, 'A')))
        self.assertEqual((('a',), []), (found.held, starts(found)))

    def test_has_no_idle_cores(self):
        """The flavor of a ladder depends on the other requests."""
        rungs = tuple(base.alternative(str(number), VCPU=number)
                      for number in (5, 3))
        request = base.request(
            'a', *rungs, ladder='web',
            priorities=backlog_model.SlaPriorities(cores=2))
        rooms = [host('A', 8), host('B', 2)]
        for lease_s, expected in ((1000, '5'), (0, '3')):
            of = known(support.lease('r1', lease_s, 2000, 'A'))
            found = ladder_choice.LadderFlavorChooser(
                [dataclasses.replace(item, free_s=of.free_s(item.host))
                 for item in rooms], [request], of.lead_s)
            self.assertEqual([expected], [
                item.name for item in found.alternatives(request)])


class TestNamed(unittest.TestCase):

    ROOMS = (host('A', 1), host('B', 1))

    def test_goes_to_its_hosts_alone(self):
        of = known(support.lease('r1', 0, 1000, 'B', project='p1',
                                 status=leases.ACTIVE))
        for name in reservation_rules.HINTS:
            found = decide([hinted('a', 'r1', name=name),
                            hinted('b', 'r1', name=name),
                            base.request('c')], self.ROOMS, of)
            self.assertEqual(['a', 'c'], [item[0] for item in starts(found)])
            self.assertEqual({'b': 'room'}, codes(found))

    def test_hosts_that_are_not_ready_are_not_used(self):
        lease = dataclasses.replace(
            support.lease('r1', 0, 1000, 'A', 'B', project='p1',
                          status=leases.ACTIVE), unready=frozenset('B'))
        found = decide([hinted('a', 'r1'), hinted('b', 'r1')], self.ROOMS,
                       known(lease))
        self.assertEqual(['a'], [item[0] for item in starts(found)])

    def test_only_reserved_hosts_count(self):
        lease = support.lease('r1', 0, 1000, 'A', project='p1',
                              status=leases.ACTIVE)
        rooms = (host('A', 0, capacity=1), host('B', 0), host('C', 0))
        for hosts, unready, code in (
                ('A', '', 'too_large'), ('AB', '', 'room'),
                ('AB', 'B', 'room'), ('D', '', 'no_host')):
            found = decide(
                [hinted('a', 'r1', wanted=vcpus(2))], rooms,
                known(dataclasses.replace(
                    lease, hosts=frozenset(hosts),
                    unready=frozenset(unready))))
            self.assertEqual({'a': code}, codes(found))
            text = found.notes['a'].waits_for['text']
            self.assertNotIn('Reserved for others', text)
            self.assertIn('only use hosts of its reservation', text)

    def test_so_does_it_for_as_many_as_start_together(self):
        of = known(support.lease('r1', 0, 1000, 'A', project='p1',
                                 status=leases.ACTIVE))
        request = hinted('a', 'r1', wanted=vcpus(8), count=2)
        found = decide([request], (host('A', 0), host('B', 0)), of)
        self.assertEqual({'a': 'too_large'}, codes(found))

    def test_says_why_it_waits(self):
        later = support.lease('r1', 500, 1000, 'A', project='p1')
        theirs = support.lease('r2', 0, 1000, 'B', project='p2',
                               status=leases.ACTIVE)
        found = decide(
            [hinted('a', 'r1'), hinted('b', 'r2'), hinted('c', 'r3')],
            self.ROOMS, known(later, theirs))
        self.assertEqual(dict.fromkeys('abc', 'reservation'), codes(found))
        self.assertIn('is not active yet',
                      found.notes['a'].waits_for['text'])
        for uuid, lease_id in (('b', 'r2'), ('c', 'r3')):
            self.assertEqual(
                f'There is no reservation {lease_id!r} of this project.',
                found.notes[uuid].waits_for['text'])

    def test_without_the_filter_it_is_a_hint_for_others(self):
        self.assertEqual(1, len(base.decide(
            [hinted('a', 'r1')], self.ROOMS, base.NOW,
            dispatch.Options()).starts))


class TestPlanned(unittest.TestCase):

    def test_only_where_each_of_them_may_be(self):
        """The others are looked for one by one."""
        normal, spot = vcpus(1), vcpus(1, preemptible=True)
        of = known(support.lease('r1', 100, 1000, 'A'))
        tracker = CapacityTracker(
            [dataclasses.replace(item, free_s=of.free_s(item.host))
             for item in (host('A', 1), host('B', 1))], of.lead_s)
        self.assertEqual(['A', 'B'], [
            item.host for item in tracker.left([normal])])
        self.assertEqual(['B'], [
            item.host for item in tracker.left([normal, spot])])
