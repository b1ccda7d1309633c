# SPDX-License-Identifier: Apache-2.0
import unittest

from nova_preempt.core.energy import host_classification
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import host_replacement
from nova_preempt.core.reservation import observed_hosts
from nova_preempt.core.reservation import reservation_model


class TestReturns(unittest.TestCase):

    def check(self, quantity, held, former, *expected) -> None:
        self.assertEqual(
            tuple(host_replacement.ReturnHost(*item) for item in expected),
            host_replacement.returns(quantity, held, former))

    def test_a_host_without_servers_is_not_returned(self) -> None:
        self.check(2, {'a': 1}, {'b': 0})

    def test_a_lost_host_replaces_a_missing_one(self) -> None:
        self.check(2, {'a': 0}, {'b': 1}, ('b',))

    def test_a_lost_host_replaces_an_unused_one(self) -> None:
        self.check(2, {'a': 1, 'b': 0}, {'c': 2}, ('c', 'b'))

    def test_a_lost_host_is_added_if_all_are_used(self) -> None:
        self.check(1, {'a': 1}, {'b': 1}, ('b', None))

    def test_hosts_with_most_servers_return_first(self) -> None:
        self.check(3, {'a': 0, 'b': 0}, {'c': 1, 'd': 3, 'e': 1},
                   ('d',), ('c', 'a'), ('e', 'b'))


UP = observed_hosts.Host('x')
OFF = observed_hosts.Host('x', state='down')
DISABLED = observed_hosts.Host('x', status='disabled')
DARK = observed_hosts.Host('x', state='down', dark=True)


class TestDown(unittest.TestCase):

    def find(self, held, partial=False, **hosts):
        found = host_replacement.find_down(held, hosts, partial=partial)
        return ''.join(sorted(found.held)), found.number, found.of

    def test_down_hosts_are_found(self) -> None:
        self.assertEqual(('b', 2, 4), self.find(
            'ab', a=UP, b=OFF, c=UP, d=OFF))

    def test_a_disabled_host_counts_only_if_it_is_reserved(
            self) -> None:
        self.assertEqual(('b', 1, 2), self.find(
            'ab', a=UP, b=DISABLED, c=DISABLED))

    def test_a_deleted_host_is_down(self) -> None:
        self.assertEqual(('x', 1, 2), self.find('ax', a=UP))

    def test_an_unreadable_host_is_not_down(self) -> None:
        self.assertEqual(('', 0, 1), self.find('ax', a=UP, partial=True))
        self.assertEqual(('', 0, 2), self.find('ab', a=UP, b=DARK,
                                               partial=True))


def reservation(*hosts, quantity=2, **values):
    start_at, end_at = reservation_model.from_s(
        1000), reservation_model.from_s(2000)
    return reservation_model.Reservation(**{
        'uuid': 'r1', 'project_id': 'p', 'quantity': quantity,
        'duration_s': 1000, 'window_start': start_at, 'end_action': 'delete',
        'before_end_s': 0, 'start_at': start_at, 'end_at': end_at,
        'hosts': tuple(reservation_model.Assignment(name, start_at, end_at,
                                                    status)
                       for name, status in hosts), **values})


class TestCandidates(unittest.TestCase):

    def find(self, hosts, now_s=0, ranking=calendar.name, vacant='abcdef',
             held=(), down='', lead_s=900, busy=(), servers=(),
             query=()):
        return ''.join(host_replacement.candidates(
            reservation(*held, host_properties=query), hosts, dict(busy),
            now_s=now_s, lead_s=lead_s, ranking=ranking, down=down,
            is_vacant=vacant.__contains__, servers=dict(servers)))

    def test_candidates_are_ranked(self) -> None:
        hosts = [observed_hosts.Host(name, flops_per_watt=watts)
                 for name, watts in (('a', None), ('b', 1.0), ('c', 2.0))]
        self.assertEqual('abc', self.find(hosts))
        self.assertEqual('cba', self.find(hosts, ranking=calendar.energy))

    def test_unsuitable_hosts_are_no_candidates(self) -> None:
        self.assertEqual('f', self.find(
            [observed_hosts.Host('a', reservable=False),
             observed_hosts.Host('b', state='down'),
             observed_hosts.Host('c', properties={'vcpus': 2}),
             *(observed_hosts.Host(name, properties={'vcpus': 4})
               for name in 'defgh')],
            held=(('d', reservation_model.READY),), down='g',
            busy={'e': ((1999, 3000),), 'h': ((0, 1001),)},
            query=['=', '$vcpus', 4]))

    def test_a_candidate_is_free_from_now_or_the_start(self) -> None:
        """A host that is free from now on is enough after the start."""
        busy = {'a': ((1000, 1500),)}
        hosts = [observed_hosts.Host('a')]
        self.assertEqual('', self.find(hosts, 1499, lead_s=0, busy=busy))
        self.assertEqual('a', self.find(hosts, 1500, lead_s=0, busy=busy))

    def test_hosts_that_will_not_be_on_are_no_candidates(self) -> None:
        off, late = host_classification.OffHost(), host_classification.OffHost(
            'power is paused')
        hosts = [observed_hosts.Host('a', asleep=late),
                 observed_hosts.Host('b', asleep=off),
                 *map(observed_hosts.Host, 'cd')]
        self.assertEqual('cbd', self.find(hosts, 100, servers={'d': 1}))
        self.assertEqual('abcd', self.find(hosts, 99, servers={'d': 1}))

    def test_lost_hosts_come_last(self) -> None:
        self.assertEqual('bca', self.find(
            map(observed_hosts.Host, 'abc'),
            held=(('a', reservation_model.LOST),)))

    def test_vacant_hosts_come_first_near_the_start(self) -> None:
        hosts = list(map(observed_hosts.Host, 'abc'))
        servers = {'a': 2, 'b': 1}
        for now_s, lead_s in ((100, 900), (1500, 0)):
            self.assertEqual('ba', self.find(
                hosts, now_s, vacant='ab', lead_s=lead_s, servers=servers))
        self.assertEqual('abc', self.find(hosts, 99, vacant='',
                                          servers=servers))

    def test_lost_hosts_that_are_free_again_are_found(self) -> None:
        hosts = {'a': UP, 'b': UP, 'c': OFF, 'e': UP}
        self.assertEqual(['b'], host_replacement.free_lost_hosts(
            reservation(('a', reservation_model.READY),
                        ('b', reservation_model.LOST),
                        ('c', reservation_model.LOST),
                        ('d', reservation_model.LOST),
                        ('e', reservation_model.LOST)),
            hosts.get, {'e': ((1999, 3000),), 'b': ((0, 100),)}, 100))


class TestStanding(unittest.TestCase):

    def standing(self, *args, **values):
        return tuple(host_replacement.status_after(reservation(
            ('a', reservation_model.READY), ('b', reservation_model.LOST),
            **values), *args).values())

    def test_missing_hosts_degrade_a_reservation(self) -> None:
        said = '1 of 2 hosts are missing'
        self.assertEqual(
            (reservation_model.DEGRADED, f'{said}: b is down', said),
            self.standing('b is down', None, status=reservation_model.ACTIVE))
        self.assertEqual(
            (reservation_model.DEGRADED, said, f'{said}: a host is down'),
            self.standing('', 'a host is down'))

    def test_a_complete_reservation_is_not_degraded(self) -> None:
        for ready_at, status in ((None, reservation_model.PENDING),
                                 (reservation_model.from_s(1000),
                                  reservation_model.ACTIVE)):
            self.assertEqual((status, '', ''), self.standing(
                'x', 'y', quantity=1, status=reservation_model.DEGRADED,
                reason='z', ready_at=ready_at))

    def test_an_unchanged_reservation_keeps_its_reasons(self) -> None:
        self.assertEqual((reservation_model.ACTIVE, 'z', 'w'), self.standing(
            'x', 'y', quantity=1, status=reservation_model.ACTIVE, reason='z',
            public_reason='w'))
