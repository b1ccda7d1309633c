# SPDX-License-Identifier: Apache-2.0
"""Placement fails: requests use other hosts or evict nobody."""

from unittest import mock

from nova_preempt.cloud import placement_api
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.db import decisions
from tests.functional import base


class TestOneHost(base.PreemptionTestCase):
    """It fails when the cheapest host is claimed; each host has one server."""

    def setUp(self):
        super().setUp()
        for number in range(4):
            self.add_host(f'host{number}', 1, 1024, 10)
        self.cheap, *_ = [
            self.boot_spot(f'spot{number}', f'host{number}', 100 + number)
            for number in range(4)]
        self.asked = self.scheduler.preemption.clients.placement

    def boot_on(self, host, **faults):
        """Boot a server, with these for methods of Placement."""
        with mock.patch.multiple(self.asked, **faults):
            server = self.boot_normal(f'on {host}')
        self.assertEqual(host, server['OS-EXT-SRV-ATTR:host'])
        self.wait_consistent()
        self.assertIn(self.cheap, self.alive())

    def statuses(self):
        return [decision.status for decision in self.decisions.get_decisions()]

    def test_the_next_host_is_taken(self):
        self.before_the_claim()
        self.instead_of_the_claim()
        self.after_the_claim()

    def before_the_claim(self):
        """Only this host was evaluated; a new decision excludes it."""
        get_consumer, failed = self.asked.get_consumer, []

        def fail(uuid):
            if uuid == self.cheap:
                failed.append(uuid)
                raise placement_api.PlacementError('500')
            return get_consumer(uuid)

        with mock.patch.object(preemption_policy, 'FIRST_BATCH', 1):
            self.boot_on('host1', get_consumer=fail)
        self.assertEqual([decisions.DONE], self.statuses())
        self.assertEqual([self.cheap], failed)

    def instead_of_the_claim(self):
        post, failed = self.asked.post_allocations, []

        def fail(consumers):
            if not failed:
                failed.append(consumers)
                raise placement_api.PlacementError('500')
            return post(consumers)

        self.boot_on('host2', post_allocations=fail)
        self.assertEqual([decisions.ROLLED_BACK, decisions.DONE],
                         self.statuses()[1:])

    def after_the_claim(self):
        """The answer to the claim is lost."""
        post, failed = self.asked.post_allocations, []
        get_consumer = self.asked.get_consumer

        def fail(consumers):
            post(consumers)
            if not failed:
                failed.append('post')
                raise placement_api.PlacementError('500')

        def fail_once(uuid):
            if failed == ['post']:
                failed.append('get')
                raise placement_api.PlacementError('500')
            return get_consumer(uuid)

        self.boot_on('host3', post_allocations=fail, get_consumer=fail_once)
        self.assertEqual(['post', 'get'], failed)
        self.assertEqual([decisions.ROLLED_BACK, decisions.DONE],
                         self.statuses()[3:])


class TestPlacementAway(base.PreemptionTestCase):

    def test_stock_answer(self):
        self.add_hosts('host1')
        spot = self.boot_spot('a', 'host1')
        self.boot_spot('b', 'host1')
        with mock.patch.object(
                self.scheduler.preemption.clients.placement, 'list_providers',
                side_effect=placement_api.PlacementError('timeout')):
            server = self.boot('normal', self.small)
            self.wait_failed(server)
        self.assertEqual('ACTIVE', self.api.get_server(spot)['status'])
        self.assert_consistent()
