# SPDX-License-Identifier: Apache-2.0

import datetime
import types
import unittest
from unittest import mock

from keystoneauth1 import exceptions as auth_exceptions
from openstack import exceptions

from nova_preempt_dashboard import api
from nova_preempt_dashboard import paging


def items(*names):
    return [types.SimpleNamespace(id=name) for name in names]


class TestEnergyHosts(unittest.TestCase):

    def test_pages(self):
        hosts = [types.SimpleNamespace(id=name, name=name)
                 for name in ('a', 'b', 'c')]
        found = api.Api(mock.Mock(), mock.Mock())
        found.ours.energy_hosts.side_effect = lambda: iter(hosts)
        page = found.energy_host_page(2)
        self.assertEqual(hosts[:2], page.items)
        last = found.energy_host_page(2, page.next_trail)
        self.assertEqual((hosts[2:], '', ''), (
            last.items, last.next_trail, last.previous_trail))


class TestEnergy(unittest.TestCase):

    def setUp(self):
        self.api = api.Api(mock.Mock(), mock.Mock())
        self.now = datetime.datetime(2026, 5, 2, tzinfo=datetime.timezone.utc)

    def ask(self, *answers):
        """Return the times since which samples were read, None for any."""
        self.api.ours.get_energy.side_effect = [
            types.SimpleNamespace(sampled_at=each) for each in answers]
        self.assertEqual(answers[-1], self.api.energy(self.now).sampled_at)
        return [call.kwargs.get('since') for call
                in self.api.ours.get_energy.mock_calls]

    def test_of_a_day(self):
        self.assertEqual(['2026-05-01T00:00:00Z'], self.ask('now'))

    def test_older(self):
        self.assertEqual(['2026-05-01T00:00:00Z', None],
                         self.ask(None, 'last week'))


class TestErrors(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.conn = mock.Mock()
        self.api = api.Api(self.conn, lambda conn: conn)

    def fail(self, exc):
        self.conn.preemption.get_reservation.side_effect = exc
        with self.assertRaises((api.RequestFailed, api.SignedOut)) as caught:
            self.api.reservation('a')
        return caught.exception

    def test_refused(self):
        exc = exceptions.ConflictException(
            'Conflict for url: http://api/v1', http_status=409,
            details='not enough hosts are free')
        failure = self.fail(exc)
        self.assertEqual('not enough hosts are free', str(failure))
        self.assertEqual(409, failure.status)

    def test_signed_out(self):
        failure = self.fail(exceptions.HttpException('no', http_status=401))
        self.assertIsInstance(failure, api.SignedOut)

    def test_no_answer(self):
        for exc in (auth_exceptions.ConnectFailure('refused'),
                    exceptions.SDKException('refused')):
            with self.subTest(exc=exc):
                failure = self.fail(exc)
                self.assertIsNone(failure.status)
                self.assertIn('does not answer', str(failure))
                self.assertIn('refused', str(failure))

    def test_no_answer_about_the_version(self):
        found = api.Api(mock.Mock(), mock.Mock(
            side_effect=auth_exceptions.ConnectFailure('refused')))
        self.assertRaises(api.RequestFailed, found.reservations, 5)
        self.assertRaises(api.RequestFailed, found.hosts)
        self.assertRaises(api.RequestFailed, found.placement_chances, ['a'])

    def test_failure_within_a_list(self):
        def listing(**_query):
            yield from items('a')
            raise auth_exceptions.ConnectFailure('refused')

        self.conn.preemption.reservations = listing
        self.assertRaises(api.RequestFailed, self.api.reservations, 5)


class TestPages(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.conn = mock.Mock()
        self.all = items('a', 'b', 'c', 'd', 'e')
        self.conn.preemption.reservations.side_effect = self.listing
        self.api = api.Api(self.conn, lambda conn: conn)

    def listing(self, marker, limit, max_items, **query):
        self.assertEqual(limit, max_items)
        names = [item.id for item in self.all]
        first = names.index(marker) + 1 if marker else 0
        return iter(self.all[first:first + limit])

    def read(self, trail=''):
        page = self.api.reservations(2, trail)
        return ''.join(item.id for item in page.items), page

    def test_forward_and_back(self):
        names, first = self.read()
        self.assertEqual(('ab', None), (names, first.previous_trail))
        names, second = self.read(first.next_trail)
        self.assertEqual(('cd', ''), (names, second.previous_trail))
        names, third = self.read(second.next_trail)
        self.assertEqual(('e', ''), (names, third.next_trail))
        self.assertEqual('cd', self.read(third.previous_trail)[0])
        self.assertEqual('ab', self.read(second.previous_trail)[0])

    def test_exactly_one_page(self):
        self.all = items('a', 'b')
        names, page = self.read()
        self.assertEqual(('ab', ''), (names, page.next_trail))

    def test_marker(self):
        self.assertEqual('', paging.marker(''))
        self.assertEqual('b', paging.marker('a,b'))


class TestChances(unittest.TestCase):

    def test_bounded_number_of_flavors(self):
        conn = mock.Mock()
        conn.preemption.placement_chances.return_value = ['chance']
        found = api.Api(conn, lambda conn: conn).placement_chances(
            str(n) for n in range(99))
        self.assertEqual(['chance'], found)
        asked, = conn.preemption.placement_chances.call_args.args
        self.assertEqual(api.MOST_FLAVORS, len(asked))

    def test_no_flavors(self):
        conn = mock.Mock()
        self.assertEqual([], api.Api(
            conn, lambda conn: conn).placement_chances([]))
        conn.preemption.placement_chances.assert_not_called()

    def test_rates_by_flavor_zone_and_period(self):
        conn = mock.Mock()
        rate = mock.Mock(flavor='spot', availability_zone='nova', hours=24)
        conn.preemption.eviction_rates.return_value = [rate]
        rates = api.Api(conn, lambda conn: conn).eviction_rates
        self.assertEqual({('spot', 'nova', 24): rate}, rates(['spot']))
        # Only administrators may name none.
        self.assertEqual({}, rates([]))
        conn.preemption.eviction_rates.assert_called_once_with(['spot'])
