# SPDX-License-Identifier: Apache-2.0

"""Tests of the engine's RPC endpoint."""

import datetime
import types
import unittest
from unittest import mock

from nova import context as nova_context
import oslo_messaging as messaging
from oslo_utils import uuidutils

from nova_preempt import exceptions
from nova_preempt.core import model
from nova_preempt.db import decisions
from nova_preempt.engine import standalone_evictions

LAUNCHED = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


class TestSimulate(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.servers = {}
        self.others = {}
        servers = mock.Mock(get=self.servers.get, find=self.others.get)
        self.process = mock.Mock(
            options=types.SimpleNamespace(
                actions=['delete'], honored_locks='admin',
                minimum_runtime_s=0, notice_s=0, minimum_notice_s=0,
                maximum_notice_s=0))
        self.evictions = standalone_evictions.Evictions(
            self.process, mock.Mock(), mock.Mock(), mock.Mock(), 1)
        self.addCleanup(self.evictions.close)
        self.requests = standalone_evictions.EvictionEndpoint(servers,
                                                              self.evictions)

    def simulate(self, user='u', project='p', roles=('member',), why='',
                 **values):
        uuid = uuidutils.generate_uuid()
        self.servers[uuid] = model.PreemptibleServer(**{
            'uuid': uuid, 'host': 'h', 'node': 'h', 'cell_uuid': 'c',
            'project_id': 'p', 'user_id': 'u', 'flavor': 'spot',
            'launched_at': LAUNCHED, 'vm_state': 'active', 'task_state': None,
            'minimum_runtime_s': 0,
            'vcpus': 1, 'memory_mb': 1024, 'disk_mb': 1024, **values})
        context = nova_context.RequestContext(
            user, project, roles=roles, is_admin='admin' in roles,
            request_id='req-1')
        try:
            self.requests.simulate(context, uuid, None, why)
        except messaging.ExpectedException as exc:
            raise exc.exc_info[1] from None
        decision, = self.process.decisions.create_decision.call_args.args
        return decision

    def test_the_record_has_the_requester(self):
        decision = self.simulate()
        self.assertEqual({
            'user_id': 'u', 'project_id': 'p', 'request_id': 'req-1',
            'roles': ['member'], 'is_admin': False},
            decision.record['asked_by'])
        self.assertEqual('req-1', decision.request_id)
        self.assertEqual('its owner requested it', decision.reason)
        # It is no side of an administrator's project.
        decision = self.simulate('root', 'ops', ('admin', 'member'))
        self.assertEqual('', decision.project_id)
        self.assertEqual('an administrator requested it', decision.reason)
        self.assertTrue(decision.record['asked_by']['is_admin'])

    def test_the_log_has_the_requester(self):
        with self.assertLogs(
                'nova_preempt.engine.standalone_evictions') as logs:
            self.simulate()
        self.assertIn('asked by user_id=u project_id=p request_id=req-1 '
                      'roles=member', logs.output[0])

    def test_the_reason_is_quoted(self):
        """Otherwise a reason could forge the requester."""
        with self.assertLogs(
                'nova_preempt.engine.standalone_evictions') as logs:
            self.simulate(why='x\n(asked by user_id=root)')
        self.assertIn(r" ends: 'x\n(asked by user_id=root)' (",
                      logs.output[0])

    def test_servers_that_cannot_be_evicted(self):
        for values, why in (
                ({'locked_by': 'admin'}, 'locked by an administrator'),
                ({'task_state': 'rebuilding'}, 'it is rebuilding'),
                # The operator allows nothing after which it comes back.
                ({'class_name': 'gold', 'action': 'shelve'},
                 'it has the class gold')):
            with self.assertRaisesRegex(exceptions.CannotEnd, why):
                self.simulate(**values)
        self.process.decisions.create_decision.assert_not_called()
        self.simulate(locked_by='owner')
        self.process.decisions.create_decision.assert_called_once()

    def test_servers_without_host_or_already_ending(self):
        self.others['shelved'] = mock.Mock(host=None, project_id='p')
        with self.assertRaises(messaging.ExpectedException) as caught:
            self.requests.simulate(None, 'shelved', 'p', '')
        kind, error, _ = caught.exception.exc_info
        self.assertEqual((exceptions.CannotEnd,
                          'Server shelved is not on any host.'),
                         (kind, str(error)))
        self.process.decisions.create_decision.side_effect = (
            decisions.AlreadyEnding({'x'}))
        with self.assertRaises(exceptions.AlreadyEnding):
            self.simulate()
