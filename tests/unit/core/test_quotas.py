# SPDX-License-Identifier: Apache-2.0
"""Quotas of a project: usage, claims and exceeded limits."""

import unittest

from nova_preempt.core import quotas

FREE = dict.fromkeys(quotas.LIMITS, -1)


def size(vcpus=1, memory_mb=1024, preemptible=True):
    return quotas.ServerSize(preemptible, vcpus, memory_mb)


def normal(vcpus=1, memory_mb=1024):
    return size(vcpus, memory_mb, preemptible=False)


def server(*sizes, busy=False):
    return quotas.CountedServer(sizes or (size(),), busy)


def claim(number, uuid, amounts=None):
    amounts = amounts or size()
    return quotas.QuotaClaim(number, uuid, amounts.preemptible, amounts.vcpus,
                             amounts.memory_mb)


class TestUsage(unittest.TestCase):

    def check(self, used, requested, wanted, uuids, servers=None, requests=(),
              claims=()):
        """Check a quota; used, requested: (servers, vcpus, memory_mb)."""
        found, adds = quotas.ProjectServers(
            servers or {}, requests, claims).usage(wanted, list(uuids))
        self.assertEqual(used, tuple(found[name] for name in quotas.NAMES))
        self.assertEqual({name: amount for name, amount
                          in zip(quotas.NAMES, requested, strict=True)
                          if amount}, adds)

    def test_no_servers(self):
        self.check((0, 0, 0), (1, 2, 512), size(2, 512), 'a')

    def test_several_servers_of_a_request(self):
        self.check((1, 1, 1024), (3, 6, 3), size(2, 1), 'bcd',
                   {'a': server()})

    def test_kinds_count_apart(self):
        servers = {'a': server(size(2)), 'n': server(normal(9), normal(7))}
        self.check((1, 2, 1024), (1, 1, 1024), size(), 'x', servers)
        self.check((1, 9, 1024), (1, 1, 1024), normal(), 'x', servers)

    def test_a_move_adds_nothing(self):
        self.check((2, 6, 2048), (0, 0, 0), size(2), 'a',
                   {'a': server(size(2)), 'b': server(size(4))})

    def test_a_smaller_size_adds_nothing(self):
        self.check((1, 2, 1024), (0, 0, 0), size(1), 'a',
                   {'a': server(size(2))})

    def test_a_larger_size_adds_the_difference(self):
        self.check((2, 3, 2048), (0, 4, 0), size(5), 'a',
                   {'a': server(), 'b': server(size(2))})

    def test_one_amount_grows_and_another_shrinks(self):
        self.check((1, 2, 1024), (0, 1, 0), size(3, 512), 'a',
                   {'a': server(size(2, 1024))})

    def test_a_change_of_kind_counts_as_a_new_server(self):
        servers = {'a': server(), 'n': server(normal())}
        self.check((1, 1, 1024), (1, 1, 1024), size(), 'n', servers)
        self.check((1, 1, 1024), (1, 1, 1024), normal(), 'a', servers)

    def test_the_larger_size_of_a_resize_counts(self):
        """Each amount is the larger one of both flavors."""
        resized = {'a': server(size(1, 4096), size(4, 1024), normal(9))}
        self.check((1, 4, 4096), (1, 2, 1024), size(2), 'b', resized)
        self.check((1, 9, 1024), (1, 1, 1024), normal(), 'b', resized)

    def test_an_admitted_request_counts_until_it_is_in_a_cell(self):
        self.check((1, 3, 1024), (1, 1, 1024), size(), 'b',
                   requests={'a'}, claims=[claim(1, 'a', size(3))])

    def test_an_admitted_server_in_a_cell_counts_once(self):
        self.check((1, 2, 1024), (1, 1, 1024), size(), 'b',
                   {'a': server(size(2), busy=True)}, {'a'},
                   [claim(1, 'a', size(2))])

    def test_a_resize_counts_until_its_record_has_the_flavor(self):
        claims = [claim(1, 'a', size(4))]
        self.check((1, 4, 1024), (1, 1, 1024), size(), 'b',
                   {'a': server(busy=True)}, claims=claims)
        # It is over, whatever became of it.
        self.check((1, 1, 1024), (1, 1, 1024), size(), 'b',
                   {'a': server()}, claims=claims)

    def test_a_request_without_a_claim_was_not_admitted(self):
        self.check((0, 0, 0), (1, 1, 1024), size(), 'b', requests={'a'})

    def test_claims_of_the_other_kind(self):
        self.check((0, 0, 0), (1, 1, 1024), size(), 'b', requests={'n'},
                   claims=[claim(1, 'n', normal())])

    def test_settled(self):
        records = quotas.ProjectServers(
            {'quiet': server(), 'busy': server(busy=True)}, {'waiting'},
            [claim(1, 'quiet'), claim(2, 'busy'), claim(3, 'waiting'),
             claim(4, 'deleted')])
        self.assertEqual([1, 4], records.settled())


class TestLimits(unittest.TestCase):

    def test_limits_of_each_kind(self):
        of_all = FREE | {'servers': 1, 'normal_vcpus': 2}
        self.assertEqual({'servers': 1, 'vcpus': -1, 'memory_mb': -1},
                         quotas.limits_of(of_all, {}, True))
        self.assertEqual({'servers': -1, 'vcpus': 2, 'memory_mb': -1},
                         quotas.limits_of(of_all, {}, False))

    def test_limits_of_a_project(self):
        """Missing limits are those of all projects; -1 is no limit."""
        of_all = FREE | {'servers': 1, 'vcpus': 2, 'normal_vcpus': 0}
        of_project = {'servers': 3, 'normal_vcpus': -1}
        self.assertEqual({'servers': 3, 'vcpus': 2, 'memory_mb': -1},
                         quotas.limits_of(of_all, of_project, True))
        self.assertFalse(quotas.is_bounded(
            quotas.limits_of(of_all, of_project, False)))

    def test_is_bounded(self):
        self.assertFalse(quotas.is_bounded({'servers': -1, 'vcpus': -1}))
        self.assertTrue(quotas.is_bounded({'servers': -1, 'vcpus': 0}))

    def test_exceeded(self):
        for limit, used, requested, expected in (
                (3, 2, 1, False), (3, 2, 2, True), (0, 0, 1, True),
                (-1, 99, 99, False), (2, 5, 1, True)):
            with self.subTest(limit=limit, used=used, requested=requested):
                self.assertEqual(
                    [quotas.ExceededLimit('vcpus', limit, used, requested)]
                    if expected else [],
                    quotas.exceeded({'servers': 0, 'vcpus': limit},
                                    {'servers': 9, 'vcpus': used},
                                    {'vcpus': requested}))

    def test_message_of_exceeded_limits(self):
        over = [quotas.ExceededLimit('servers', 2, 1, 3),
                quotas.ExceededLimit('vcpus', 3, 2, 6)]
        self.assertEqual(
            'Quota of normal servers exceeded for project p: servers: limit '
            '2, used 1, requested 3; vcpus: limit 3, used 2, requested 6.',
            quotas.message('p', False, over))
        self.assertIn('of preemptible servers', quotas.message('p', True,
                                                               over))


class TestZeroed(unittest.TestCase):

    def zeroed(self, preemptible=True, classes=('VCPU', 'MEMORY_MB'),
               **amounts):
        return quotas.zeroed(
            {f'resources:{name}': amount for name, amount in amounts.items()},
            classes, preemptible)

    def test_resources_requested_as_zero(self):
        self.assertEqual({'resources:VCPU'}, self.zeroed(
            VCPU='0', MEMORY_MB='1', DISK_GB='0'))

    def test_left_alone(self):
        self.assertEqual(set(), self.zeroed(preemptible=False, VCPU='0'))
        self.assertEqual(set(), self.zeroed(classes=(), VCPU='0'))
