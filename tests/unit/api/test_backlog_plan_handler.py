# SPDX-License-Identifier: Apache-2.0
"""Tests of the plan of the next pass over the backlog."""

from unittest import mock

from oslo_utils import timeutils

from tests.unit.api import base

PLAN = '/v1/backlog-plan'
ADMIN = 'admin:z'


class TestPlan(base.AnsweringTestCase):

    microversion = '1.4'

    def test_show(self):
        with mock.patch.object(timeutils, 'utcnow', return_value=base.NOW):
            found = self.get(PLAN, ADMIN)['backlog_plan']
        self.assertEqual(
            ('2026-11-20T12:00:00Z', 'exact', '', 3),
            tuple(found[name] for name in (
                'at', 'mode', 'stopped', 'requests_waiting')))
        self.assertEqual([
            {'request_id': base.make_uuid('r1'), 'name': 'batch',
             'project_id': 'p', 'flavor': 'big', 'count': 3,
             'hosts': [{'name': 'host1', 'count': 2},
                       {'name': 'host2', 'count': 1}]},
            {'request_id': base.make_uuid('r2'), 'name': '',
             'project_id': 'q', 'flavor': 'spot', 'count': 1, 'hosts': []}],
            found['starts'])
        self.assertEqual({'name': 'host1', 'resources': {
            'VCPU': {'capacity': 16, 'used': 1, 'used_after': 9},
            'MEMORY_MB': {'capacity': 0, 'used': 0, 'used_after': 0}}},
            found['hosts'][0])

    def test_why_nova_chooses(self):
        """The reason is shown from 1.6 on, if the engine reports it."""
        self.microversion = '1.6'
        self.assertEqual(['', 'It asks for VGPU.'], self.reasons())
        found = self.backlog.plan({})
        for item in found['starts']:
            del item['reason']
        with mock.patch.object(self.backlog, 'plan', return_value=found):
            self.assertEqual(['', ''], self.reasons())

    def reasons(self):
        return [item['reason'] for item
                in self.get(PLAN, ADMIN)['backlog_plan']['starts']]

    def test_for_administrators(self):
        self.assertIn('preemption:request:plan',
                      self.get(PLAN, code=403)['error']['message'])
        self.assertEqual([], self.backlog.calls)

    def test_not_before_1_4(self):
        self.microversion = '1.3'
        self.get(PLAN, ADMIN, code=404)


class TestNoEngine(base.ApiTestCase):

    microversion = '1.4'
    options = f'{base.ApiTestCase.options}rpc_timeout_s = 1\n'

    def test_no_engine_answers(self):
        self.assertIn('engine', self.get(
            PLAN, ADMIN, code=503)['error']['message'])
