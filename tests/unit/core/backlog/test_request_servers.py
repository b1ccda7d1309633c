# SPDX-License-Identifier: Apache-2.0
"""Servers of a request, and the capacity they still need."""

import dataclasses
import unittest

from nova_preempt.core import eviction_status
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import request_servers
from nova_preempt.core.observed_server import ObservedServer
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import boot


def request(state=backlog_model.ASKED, known=(), count=3):
    return base.request(
        count=count,
        boots=(backlog_model.SentBoot(1, 'tag', 'small', count, base.NOW,
                                      state),),
        servers=base.servers(*known))


class TestServerState(unittest.TestCase):

    def test_a_stopped_victim_is_deleted_by_the_engine(self):
        """Its owner cannot delete it, since it is locked."""
        stopped = ObservedServer('s0', 'stopped')
        self.assertEqual(backlog_model.AWAY, request_servers.server_state(
            backlog_model.RUNNING, stopped, eviction_status.STOPPED))
        for status in (eviction_status.STOPPED, eviction_status.GONE):
            self.assertEqual(backlog_model.ENDED, request_servers.server_state(
                backlog_model.AWAY, None, status))
        # An administrator has started it, and its owner may delete it.
        self.assertEqual(backlog_model.GONE, request_servers.server_state(
            backlog_model.RUNNING, None, eviction_status.STOPPED))


class TestTags(unittest.TestCase):

    def test_untag_is_the_inverse_of_tag(self):
        self.assertEqual(('r1', 12),
                         request_servers.untag(request_servers.tag('r1', 12)))

    def test_foreign_tags(self):
        for text in ('', 'backlog', 'backlog:r1', 'backlog:r1:x', 'x:r1:1',
                     'backlog::1', 'backlog:1'):
            self.assertIsNone(request_servers.untag(text), text)

    def test_the_boot_of_a_server_is_found(self):
        request = base.request(
            servers=(backlog_model.OwnServer('a', 7, backlog_model.RUNNING,
                                             base.NOW),))
        for number, uuid, tags in (
                (7, 'a', ()),     # its owner has taken the tag away
                (7, 'a', ('backlog:r1:2',)),
                (2, 'b', ('mine', 'backlog:r2:3', 'backlog:r1:2')),
                (0, 'b', ('backlog:r2:3',))):
            self.assertEqual(number, request_servers.boot_of(
                request, ObservedServer(uuid, 'active', tags=tags)))

    def test_numbers_are_not_reused(self):
        request = base.request(boots=(boot(3), boot(7)))
        self.assertEqual(8, request_servers.next_boot(
            request, 'small', 2, base.NOW).number)


class TestForgottenBoots(unittest.TestCase):

    def numbers(self, *boots, **values):
        """:param boots: (state, how long ago, in seconds)"""
        return request_servers.forgotten_boots(base.request(boots=tuple(
            backlog_model.SentBoot(number, 'tag', 'small', 1, base.ago(age_s),
                                   state)
            for number, (state, age_s) in enumerate(boots, 1)), **values),
            base.NOW)

    def test_failed_boots_are_forgotten_after_a_day(self):
        day = request_servers.LATE_S
        self.assertEqual([1, 2, 3], self.numbers(
            (backlog_model.LOST, day), (backlog_model.REFUSED, day),
            (backlog_model.IN_VAIN, day),
            (backlog_model.LOST, day - 1), (backlog_model.LOST, 0)))

    def test_the_last_boot_and_boots_with_servers_stay(self):
        old = 9 * request_servers.LATE_S
        self.assertEqual([], self.numbers((backlog_model.LOST, old)))
        self.assertEqual([2], self.numbers(
            (backlog_model.IN_VAIN, old), (backlog_model.IN_VAIN, old),
            (backlog_model.LOST, old),
            servers=base.servers(backlog_model.UNPLACED)))

    def test_settled_boots_are_forgotten_after_a_day(self):
        self.assertEqual([1], self.numbers(
            (backlog_model.SETTLED, request_servers.LATE_S),
            (backlog_model.SETTLED, request_servers.LATE_S - 1),
            (backlog_model.SETTLED, 0)))

    def test_open_boots_stay(self):
        old = 9 * request_servers.LATE_S
        self.assertEqual([], self.numbers(
            (backlog_model.ASKED, old), (backlog_model.ASKING, old),
            (backlog_model.LOST, 0)))

    def test_no_boot_is_forgotten_while_it_is_looked_for(self):
        found = base.request(boots=tuple(
            backlog_model.SentBoot(number, str(number), 'small', 1,
                                   base.ago(request_servers.LATE_S + offset),
                                   backlog_model.LOST)
            for number, offset in enumerate((1, 0, -1, -2))))
        self.assertEqual(['2', '3'],
                         request_servers.sought_tags(found, base.NOW))
        self.assertEqual([0, 1],
                         request_servers.forgotten_boots(found, base.NOW))


class TestWithoutRoom(unittest.TestCase):

    def count(self, consumers=(), **values):
        return sum(number for _, number, *_ in request_servers.unallocated(
            [request(**values)], dict.fromkeys(consumers, 'h')))

    def test_all_servers_of_an_unanswered_boot_are_unallocated(self):
        for state in (backlog_model.ASKING, backlog_model.ASKED):
            self.assertEqual(3, self.count(state=state))

    def test_servers_without_allocations_are_counted(self):
        known = (backlog_model.BUILDING, backlog_model.BUILDING)
        self.assertEqual(3, self.count(known=known))
        self.assertEqual(2, self.count(['s0'], known=known))
        self.assertEqual(1, self.count(['s0', 's1', 'other'], known=known))

    def test_servers_that_run_or_are_gone_do_not_count(self):
        self.assertEqual(0, self.count(
            known=(backlog_model.RUNNING, backlog_model.GONE,
                   backlog_model.ERROR)))
        for state in (backlog_model.SETTLED, backlog_model.REFUSED,
                      backlog_model.LOST):
            self.assertEqual(0, self.count(state=state))

    def test_the_flavor_of_unallocated_servers(self):
        self.assertEqual([(base.alternative(), 3, {}, '')],
                         request_servers.unallocated([request()], ()))
        self.assertEqual([], request_servers.unallocated(
            [base.request(boots=(backlog_model.SentBoot(
                1, 'tag', 'gone', 1, base.NOW, backlog_model.ASKED),))], ()))

    def test_the_group_of_unallocated_servers(self):
        hinted = {'server': {}, 'os:scheduler_hints': {'group': 'g'}}
        for values, key in (({'body': hinted}, 'g'),
                            ({'body': hinted, 'apart': True}, 'r1')):
            self.assertEqual(key, request_servers.unallocated(
                [dataclasses.replace(request(), **values)], ())[0][3])

    def test_chosen_hosts_of_unallocated_servers(self):
        self.assertEqual(
            [(base.alternative(), 3, {'h': 3}, '')],
            request_servers.unallocated([request()], (), {
                ('r1', 1): {'h': 3}, ('r1', 2): {'i': 3},
                ('r2', 1): {'i': 3}}))

    def test_servers_on_their_chosen_host_are_not_expected(self):
        known = (backlog_model.BUILDING, backlog_model.BUILDING)
        for placed, hosts in (({'s0': 'h'}, {'h': 1, 'i': 1}),
                              ({'s0': 'i', 's1': 'h'}, {'h': 1}),
                              ({'s0': 'other'}, {'h': 2, 'i': 1})):
            self.assertEqual(hosts, request_servers.unallocated(
                [request(known=known)], placed,
                {('r1', 1): {'h': 2, 'i': 1}})[0][2])


if __name__ == '__main__':
    unittest.main()
