# SPDX-License-Identifier: Apache-2.0
"""Tests of writing recommendations."""

import datetime
import json
import unittest
from unittest import mock

from nova_preempt import db
from nova_preempt.advice import recommender
from nova_preempt.cloud import nova_api
from nova_preempt.core import eligibility
from nova_preempt.core import headroom_account
from nova_preempt.core.eviction import headroom_controller
from nova_preempt.core.eviction import recommendation_controller
from nova_preempt.core.scheduling import preemption_policy
from tests.unit.core.eviction import test_recommendation_controller as core
from tests.unit.engine import test_server_expiry

NOW = test_server_expiry.NOW
HOUR = datetime.timedelta(hours=1)
RETRY = datetime.timedelta(seconds=recommendation_controller.RETRY_S)


class TestRecommender(unittest.TestCase):

    def setUp(self):
        self.parts = mock.Mock()
        self.process = self.parts.process
        self.process.pauses.why.return_value = ''
        self.process.clock.return_value = NOW
        self.process.decisions.get_decisions.return_value = []
        self.process.decisions.get_victims.return_value = []
        self.parts.known.policy.return_value = preemption_policy.Policy(
            eligibility.Rules(), ('delete',), lambda server, options: 0)
        self.servers = self.parts.known.servers.servers
        self.servers.return_value = [test_server_expiry.server('a')]
        self.nova = self.parts.clients.nova
        self.events = self.parts.handover.events.recommendation
        self.victims = {'a'}
        self.reservations = []
        group = headroom_account.HostGroup(
            'all', headroom_account.parse('VCPU:1'), {})
        self.parts.known.headroom.groups.return_value = [group]
        self.recommender = recommender.Recommender(
            self.parts, self.choose, lambda: self.reservations)

    def choose(self, group):
        """Return the evictions that would restore twice the headroom."""
        self.assertEqual(headroom_account.parse('VCPU:2'), group.wanted)
        return [headroom_controller.Evict(server, 0, {})
                for server in self.servers() if server.uuid in self.victims]

    def wait(self):
        """Let the time pass until what Nova refused is tried again."""
        self.process.clock.return_value += RETRY

    def run_once(self):
        """Run it, and return what is written and deleted."""
        self.nova.reset_mock()
        self.events.reset_mock()
        self.assertEqual(30, self.recommender.run())
        written = []
        for call in self.nova.set_meta.mock_calls:
            uuid, metadata = call.args
            (key, value), = metadata.items()
            self.assertEqual('preemption_recommendation', key)
            written.append((uuid, json.loads(value)))
        for call in self.nova.delete_meta.mock_calls:
            uuid, keys = call.args
            self.assertEqual(['preemption_recommendation'], keys)
            written.append((uuid, None))
        return written

    def test_it_is_written_and_reported_once(self):
        self.assertEqual([('a', {
            'reason': 'headroom', 'until': '2026-01-02T01:00:00Z'})],
            self.run_once())
        self.events.assert_called_once_with(
            self.servers()[0], 'headroom', NOW + HOUR)
        self.assertEqual([], self.run_once())
        self.process.clock.return_value = NOW + HOUR / 2
        self.assertEqual([('a', {
            'reason': 'headroom', 'until': '2026-01-02T01:30:00Z'})],
            self.run_once())
        self.events.assert_not_called()

    def test_another_reason_is_reported(self):
        self.run_once()
        start_at = NOW.replace(tzinfo=None) + HOUR / 2
        self.reservations = [core.reservation(
            int((start_at - datetime.datetime(1970, 1, 1)).total_seconds()),
            'h')]
        self.assertEqual([('a', {
            'reason': 'reservation', 'until': '2026-01-02T00:30:00Z'})],
            self.run_once())
        self.events.assert_called_once()

    def test_a_server_with_notice_loses_it(self):
        self.run_once()
        self.process.decisions.get_decisions.return_value = [
            db.Decision('d', '', victims=(db.Victim('a'),))]
        self.assertEqual([('a', None)], self.run_once())
        self.assertEqual([], self.run_once())

    def test_a_stopped_victim_loses_it(self):
        # Its eviction is over; an administrator has unlocked it.
        self.run_once()
        self.process.decisions.get_victims.return_value = [
            ('d', db.Victim('a'))]
        self.assertEqual([('a', None)], self.run_once())

    def test_a_locked_server_gets_none(self):
        self.servers.return_value = [
            test_server_expiry.server('a', locked_by='admin')]
        self.assertEqual([], self.run_once())

    def test_a_server_that_is_gone(self):
        self.nova.set_meta.return_value = None
        self.run_once()
        self.events.assert_not_called()
        self.servers.return_value = []
        self.assertEqual([('a', None)], self.run_once())

    def test_what_nova_refuses_is_not_tried_again(self):
        """Such as by a quota of metadata items."""
        self.nova.set_meta.side_effect = nova_api.NotAllowed('403')
        self.assertEqual(1, len(self.run_once()))
        self.events.assert_not_called()
        self.assertEqual([], self.run_once())

    def test_what_nova_does_not_answer_is_tried_again(self):
        self.nova.set_meta.side_effect = nova_api.NoAnswer('503')
        for _ in range(2):
            self.assertRaises(nova_api.NoAnswer, self.recommender.run)
            self.wait()
        self.nova.set_meta.side_effect = None
        self.assertEqual(1, len(self.run_once()))
        self.events.assert_called_once()
        self.servers.return_value = []
        self.nova.delete_meta.side_effect = nova_api.NoAnswer('503')
        for _ in range(2):
            self.assertRaises(nova_api.NoAnswer, self.recommender.run)
            self.wait()

    def test_what_may_be_written_is_withdrawn(self):
        """An answer may be lost though Nova has written it."""
        self.nova.set_meta.side_effect = nova_api.NoAnswer('504')
        self.assertRaises(nova_api.NoAnswer, self.recommender.run)
        self.victims = set()
        self.wait()
        self.assertEqual([('a', None)], self.run_once())
        self.assertEqual([], self.run_once())

    def test_what_may_be_withdrawn_is_written(self):
        self.run_once()
        self.process.decisions.get_decisions.return_value = [
            db.Decision('d', '', victims=(db.Victim('a'),))]
        self.nova.delete_meta.side_effect = nova_api.NoAnswer('504')
        self.assertRaises(nova_api.NoAnswer, self.recommender.run)
        self.process.decisions.get_decisions.return_value = []
        self.process.decisions.get_victims.return_value = []
        self.wait()
        self.assertEqual(1, len(self.run_once()))
        self.assertEqual([], self.run_once())

    def test_what_nova_refuses_now_is_tried_again(self):
        """Such as where a cell hangs, or in some states of a server."""
        self.nova.set_meta.side_effect = nova_api.NovaError('409')
        for _ in range(2):
            self.assertEqual(1, len(self.run_once()))
            self.events.assert_not_called()
            self.assertEqual([], self.run_once())
            self.wait()
        self.nova.set_meta.side_effect = None
        self.assertEqual(1, len(self.run_once()))
        self.events.assert_called_once()
        self.assertEqual([], self.run_once())

    def test_a_withdrawal_is_tried_again_until_the_end(self):
        self.run_once()
        self.servers.return_value = []
        self.nova.delete_meta.side_effect = nova_api.NovaError('409')
        for _ in range(2):
            self.assertEqual([('a', None)], self.run_once())
            self.wait()
        self.process.clock.return_value = NOW + HOUR
        self.assertEqual([('a', None)], self.run_once())
        self.assertEqual([], self.run_once())

    def test_few_at_once(self):
        self.servers.return_value = [
            test_server_expiry.server(f'{number}') for number in range(201)]
        self.victims = {server.uuid for server in self.servers()}
        self.assertEqual([200, 1, 0],
                         [len(self.run_once()) for _ in range(3)])

    def test_servers_that_nova_refuses_delay_no_other(self):
        self.run_once()
        self.servers.return_value = [
            test_server_expiry.server(f'{number}') for number in range(201)]
        self.victims = {server.uuid for server in self.servers()}
        self.nova.set_meta.side_effect = nova_api.NovaError('409')
        self.assertEqual(200, len(self.run_once()))
        self.assertCountEqual(['200', 'a'],
                              [uuid for uuid, _told in self.run_once()])
        self.assertEqual([], self.run_once())

    def test_none_while_evictions_are_paused(self):
        self.process.pauses.why.return_value = 'maintenance'
        self.assertEqual([], self.run_once())


if __name__ == '__main__':
    unittest.main()
