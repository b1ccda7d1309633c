# SPDX-License-Identifier: Apache-2.0

"""Tests of the rules for the fields of a backlog request.

tests.unit.api.test_backlog_handlers has what users see of it.
"""

import datetime
import unittest

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import request_checks
from nova_preempt.core.backlog import reservation_rules
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import vcpus

NOW = datetime.datetime(2026, 1, 1, 12)
DAY = datetime.timedelta(days=1)
LATER = NOW + datetime.timedelta(hours=1)


class TestCounts(unittest.TestCase):

    def test_counts_from_all_fields(self):
        for count, least, server, expected in (
                (None, None, {}, (1, 1)),
                (4, None, {}, (4, 4)),
                (4, 2, {}, (4, 2)),
                (None, 3, {}, (3, 3)),
                (None, None, {'min_count': 2}, (2, 2)),
                (None, None, {'max_count': 5}, (5, 1)),
                (None, None, {'min_count': '2', 'max_count': '5'}, (5, 2)),
                (4, None, {'min_count': 2, 'max_count': 5}, (4, 2)),
                (4, 1, {'min_count': 2, 'max_count': 5}, (4, 1))):
            found = request_checks.counts(count, least, server, 5)
            self.assertEqual(expected, (found.most, found.least))

    def test_refused(self):
        for field, count, least, server in (
                ('count', 6, None, {}),
                ('body.server.max_count', None, None, {'max_count': 6}),
                ('body.server.max_count', None, None, {'max_count': []}),
                ('body.server.min_count', None, None, {'min_count': 'two'}),
                ('body.server.min_count', None, None, {'min_count': '-1'}),
                *(('body.server.max_count', None, None, {'max_count': value})
                  for value in (float('inf'), float('nan'), 1.5, True, ' 2',
                                '+2', '1_0', '\u0662', '9' * 5000, {})),
                ('least_count', 2, 3, {}),
                ('body.server.min_count', 2, None, {'min_count': 3})):
            with self.assertRaises(request_checks.InvalidRequest) as caught:
                request_checks.counts(count, least, server, 5)
            self.assertEqual(field, caught.exception.field)


class TestFlavors(unittest.TestCase):

    def test_in_order_of_preference(self):
        self.assertEqual(('b', 'a'), request_checks.flavors(['b', 'a'], {}))
        self.assertEqual(('7',),
                         request_checks.flavors(None, {'flavorRef': 7}))
        self.assertEqual(('b', 'a'),
                         request_checks.flavors(['b', 'a'],
                                                {'flavorRef': 'a'}))
        request_checks.flavors(None, {'flavorRef': 'a' * 255})

    def test_refused(self):
        for wanted, server in ((None, {}), ([], {}), (['a', 'a'], {}),
                               (['a'], {'flavorRef': 'b'}),
                               (None, {'flavorRef': 'a' * 256})):
            with self.assertRaises(request_checks.InvalidRequest):
                request_checks.flavors(wanted, server)


class TestServer(unittest.TestCase):

    def test_fields_that_several_servers_cannot_share(self):
        for server in ({'hostname': 'a'}, {'networks': [{'port': 'a'}]},
                       {'networks': [{'uuid': 'n'}, {'fixed_ip': 'a'}]}):
            request_checks.check_server(server, 1)
            with self.assertRaises(request_checks.InvalidRequest):
                request_checks.check_server(server, 2)
        for server in ({}, {'networks': 'auto'}, {'networks': ['nonsense']},
                       {'networks': [{'uuid': 'n'}]}):
            request_checks.check_server(server, 2)

    def test_a_boot_from_image_or_volume(self):
        for expected, server in (
                (True, {}), (True, {'imageRef': ''}),
                (False, {'imageRef': 'i'}),
                (True, {'imageRef': 'i', 'block_device_mapping_v2': [
                    {'boot_index': '0', 'destination_type': 'volume'}]}),
                (False, {'imageRef': 'i', 'block_device_mapping_v2': [
                    {'boot_index': 0, 'destination_type': 'local'},
                    {'boot_index': 1, 'destination_type': 'volume'}]})):
            self.assertEqual(expected,
                             request_checks.starts_from_volume(server))


class TestReservations(unittest.TestCase):

    def test_an_invalid_reservation_hint(self):
        for name in reservation_rules.HINTS:
            with self.assertRaises(request_checks.InvalidRequest) as caught:
                request_checks.check_reservations({
                    'server': {}, name: {'reservation': [5]}})
            self.assertEqual(f'body.{name}.reservation',
                             caught.exception.field)
        request_checks.check_reservations({'server': {}, name: {
            'reservation': ['r1', 'r2'], 'group': 'g'}})


class TestWishes(unittest.TestCase):

    def refused(self, values, changed=None):
        try:
            request_checks.check_constraints(values, NOW, ('gold',), changed)
        except request_checks.InvalidRequest as exc:
            return exc.field
        return None

    def test_refused(self):
        for field, values in (
                (None, {}),
                (None, {'class_name': 'gold', 'comes_back': True,
                        'back_until': LATER, 'most_returns': 1,
                        'not_before': NOW, 'not_after': LATER}),
                # It may start at once.
                (None, {'not_before': NOW - datetime.timedelta(days=1)}),
                ('class', {'class_name': 'silver'}),
                ('not_after', {'not_after': NOW}),
                ('not_after', {'not_before': LATER, 'not_after': LATER}),
                ('back_until', {'comes_back': True, 'back_until': NOW}),
                ('back_until', {'back_until': LATER}),
                ('most_returns', {'most_returns': 1, 'comes_back': False})):
            self.assertEqual(field, self.refused(values))

    def test_the_longest_wait_must_reach_the_window(self):
        opens_s = int((LATER - NOW).total_seconds())
        for longest_s, field in ((opens_s, 'longest_wait_s'),
                                 (opens_s + 1, None)):
            values = {'not_before': LATER, 'longest_wait_s': longest_s}
            self.assertEqual(field, self.refused(values))
            # From when it was made, whenever it is changed.
            made = {**values, 'created_at': NOW - datetime.timedelta(
                seconds=1)}
            self.assertEqual('longest_wait_s', self.refused(
                made, ('not_before',)))
            self.assertIsNone(self.refused(made, ('name',)))

    def test_unchanged_values_are_not_checked_again(self):
        old = {'class_name': 'silver', 'not_after': NOW}
        self.assertIsNone(self.refused(old, ('name',)))
        self.assertEqual('not_after', self.refused(old, ('not_after',)))

    def test_classes_of_flavors(self):
        def flavor(class_name='', preemptible=True):
            return backlog_model.Alternative(f'a{class_name}',
                                             f'a{class_name}', {},
                                             preemptible,
                                             class_name=class_name)

        known = ('gold', 'silver')
        for name, flavors, expected in (
                ('', (), ''), ('', (flavor(),), ''),
                ('', (flavor('gold'), flavor('gold')), 'gold'),
                ('gold', (flavor(), flavor('gold')), 'gold'),
                # There is no such class any more.
                ('', (flavor('bronze'), flavor()), ''),
                ('gold', (flavor('bronze'),), 'gold'),
                ('', (flavor(preemptible=False),), '')):
            self.assertEqual(expected,
                             request_checks.class_of(name, flavors, known))
        for name, flavors, text in (
                ('gold', (flavor(), flavor(preemptible=False)),
                 ("class: class 'gold' requires preemptible flavors, which "
                  'a is not')),
                ('gold', (flavor('silver'),),
                 "class: flavor asilver has the class 'silver'"),
                ('', (flavor('gold'), flavor()),
                 'flavors: they have different classes: none, gold'),
                ('', (flavor('gold'), flavor('silver')),
                 'flavors: they have different classes: gold, silver')):
            with self.subTest(text), self.assertRaises(
                    request_checks.InvalidRequest) as caught:
                request_checks.class_of(name, flavors, known)
            self.assertEqual(text, str(caught.exception))

    def test_a_class_without_classes(self):
        with self.assertRaises(request_checks.InvalidRequest) as caught:
            request_checks.check_constraints({'class_name': 'gold'}, NOW, ())
        self.assertIn('nor is any other', str(caught.exception))


class TestLimit(unittest.TestCase):

    def test_limit(self):
        for refused, used, allowed in ((False, 1, 2), (True, 2, 2),
                                       (True, 3, 2), (False, 9, -1),
                                       (True, 0, 0)):
            why = request_checks.check_limits(
                {'open': (0, -1), 'a_day': (used, allowed)})
            self.assertEqual(refused, 'limit a_day' in why)
            self.assertEqual(refused, bool(why))


LIMITS = {'maxTotalInstances': 10, 'totalInstancesUsed': 9,
          'maxTotalCores': 20, 'totalCoresUsed': 16,
          'maxTotalRAMSize': -1, 'totalRAMUsed': 10 ** 6}


class TestWhyNot(unittest.TestCase):

    def test_servers_that_start_together_count(self):
        self.assertEqual('',
            request_checks.why_over_quota(base.request(), LIMITS))
        self.assertIn('has 1 servers left, but it needs 2',
            request_checks.why_over_quota(
            base.request(count=2), LIMITS))
        self.assertEqual('', request_checks.why_over_quota(
            base.request(count=2, least_count=1), LIMITS))

    def test_pinned_cores_are_cores(self):
        for wanted, left in (
                (base.alternative(PCPU=5), 'has 4 vCPUs left'),
                (base.alternative(PCPU=2, VCPU=3), 'it needs 5'),
                (base.alternative(PCPU=2, VCPU=2), '')):
            self.assertIn(left, request_checks.why_over_quota(
                base.request('a', wanted), LIMITS) or '-' * (not left))

    def test_one_flavor_within_the_quota_suffices(self):
        self.assertIn('has 4 vCPUs left', request_checks.why_over_quota(
            base.request('a', vcpus(5)), LIMITS))
        self.assertEqual('', request_checks.why_over_quota(
            base.request('a', vcpus(5), vcpus(4)), LIMITS))

    def test_resources_without_a_limit(self):
        wanted = base.alternative(MEMORY_MB=10 ** 9)
        self.assertEqual('', request_checks.why_over_quota(
            base.request('a', wanted), LIMITS))
        self.assertEqual('', request_checks.why_over_quota(
            base.request('a', vcpus(99), count=99), {}))

    def test_usage_above_the_quota(self):
        self.assertIn('has 0 servers left', request_checks.why_over_quota(
            base.request(), {'maxTotalInstances': 1,
                             'totalInstancesUsed': 3}))


if __name__ == '__main__':
    unittest.main()
