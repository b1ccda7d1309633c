# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Who has changed what is in the log."""

import configparser
import json
import logging
from unittest import mock

from nova_preempt.api import operations
from nova_preempt.db import reservable
from tests.unit.api import base

ADMIN = 'admin:z'
LOG = 'nova_preempt.api.changes'


class TestLog(base.AnsweringTestCase):

    microversion = '1.1'

    def setUp(self):
        super().setUp()
        logging.disable(logging.NOTSET)

    def test_every_change(self):
        server_id = base.make_uuid('p-spot')
        self.inventory.add('host1')
        limits = {'reservation_limits': {'max_hosts': 3}}
        for method, path, body, token, expected in (
                ('POST', 'simulate', {'simulate': {
                    'server_id': server_id, 'reason': 'a "test"'}}, 'u:p',
                 ['simulate: POST /v1/simulate 202 '
                  + base.make_uuid('simulated'), 'user_id=u', 'project_id=p',
                  'roles=member,reader', server_id, r'a \"test\"']),
                ('PATCH', 'hosts/host1', {'host': {'reservable': True}},
                 ADMIN, ['update_host: PATCH /v1/hosts/host1 200',
                         'user_id=admin', 'is_admin=True']),
                ('PUT', 'reservation-limits/q', limits, ADMIN,
                 ['set_reservation_limits', '"max_hosts": 3']),
                ('PUT', 'reservation-limits/q', limits, 'u:p',
                 ['refused, 403 Policy does not allow', 'user_id=u']),
                ('POST', 'simulate', {'simulate': {
                    'server_id': base.make_uuid('q-spot')}}, 'u:p',
                 ['refused, 404 There is no such server']),
                ('DELETE', f'reservations/{server_id}', None, 'u:p',
                 ['failed, ReservationNotFound'])):
            with self.assertLogs(LOG, logging.INFO) as logs:
                if body is None:
                    self.delete(f'/v1/{path}', token, 404)
                else:
                    self.request(f'/v1/{path}', method, token,
                                 content_type='application/json',
                                 body=json.dumps(body).encode())
            line, = logs.output
            self.assertNotIn('\n', line)
            for text in (*expected, 'request_id=req-'):
                self.assertIn(text, line)

    def test_secrets_of_servers_are_left_out(self):
        self.microversion = '1.3'
        for nonsense, code in (({}, 201), ({'nonsense': 1}, 400)):
            body = {'server': {
                'name': 'mine', 'imageRef': self.reading.image_id,
                'networks': 'none', 'flavorRef': 'f1', **nonsense,
                'adminPass': 'secret', 'user_data': 'c2VjcmV0'}}
            with self.assertLogs(LOG, logging.INFO) as logs:
                self.post('/v1/requests', {'request': {'body': body}},
                          code=code)
            line, = logs.output
            self.assertIn('"mine"', line)
            self.assertNotIn('secret', line)
            self.assertNotIn('c2VjcmV0', line)

    def test_questions_are_none(self):
        self.inventory.add('host1')
        with self.assertNoLogs(LOG, logging.INFO):
            self.get('/v1/hosts', ADMIN)
            self.post('/v1/explain', {'explain': {'flavor': 'x'}})
            self.post('/v1/reservations/preview',
                      {'reservation': {'duration': 60}})

    def test_a_crash_is_logged_too(self):
        with mock.patch.object(reservable, 'set_limits',
                               side_effect=RuntimeError('boom')), \
                self.assertLogs(LOG, logging.INFO) as logs:
            self.put('/v1/reservation-limits/q',
                     {'reservation_limits': {}}, ADMIN, 500)
        self.assertIn('failed, RuntimeError: boom', logs.output[0])


class TestAudit(base.AnsweringTestCase):
    """keystonemiddleware's audit, by option."""

    options = (f'{base.AnsweringTestCase.options}audit_map_file = '
               'etc/nova-preempt/preemption_api_audit_map.conf\n'
               '[audit_middleware_notifications]\n'
               'use_oslo_messaging = false\n')

    def test_events(self):
        logging.disable(logging.NOTSET)
        with self.assertLogs('keystonemiddleware', logging.INFO) as logs:
            self.post('/v1/simulate', {'simulate': {
                'server_id': base.make_uuid('p-spot')}}, code=202)
        events = [line for line in logs.output if 'Event type' in line]
        self.assertEqual(2, len(events))
        for line, event in zip(events, ('request', 'response'), strict=True):
            self.assertIn(f'audit.http.{event}', line)
            for text in ("'action': 'disable'", "'project_id': 'p'",
                         "'requestPath': '/v1/simulate'", 'req-'):
                self.assertIn(text, line)

    def test_all_that_is_changed_is_named(self):
        """Else a new request, which has a trust made, is an update."""
        audit_map = configparser.ConfigParser()
        audit_map.read('etc/nova-preempt/preemption_api_audit_map.conf')
        named = {*audit_map['custom_actions'], *audit_map['path_keywords']}
        self.assertEqual(set(), {
            part for operation in operations.OPERATIONS
            if operation.method != 'GET'
            for part in operation.path.split('/')[2:]
            if '{' not in part} - named)
