# SPDX-License-Identifier: Apache-2.0

"""Tests of the log of changes."""

import configparser
import json
import logging
from unittest import mock

from nova_preempt.api import operation_table
from nova_preempt.db import reservable_hosts
from tests.unit.api import base

ADMIN = 'admin:z'
LOG = 'nova_preempt.api.audit_log'


class TestLog(base.AnsweringTestCase):

    microversion = '1.1'

    def setUp(self):
        super().setUp()
        logging.disable(logging.NOTSET)

    def line(self, logs):
        """The only line, as JSON."""
        record, = logs.records
        self.assertNotIn('\n', record.getMessage())
        self.assertTrue(record.getMessage().isascii())
        return json.loads(record.getMessage())

    def test_every_change(self):
        server_id = base.make_uuid('p-spot')
        self.inventory.add('host1')
        limits = {'reservation_limits': {'max_hosts': 3}}
        simulated = {'simulate': {'server_id': server_id, 'reason': 'a "te"'}}
        others = {'simulate': {'server_id': base.make_uuid('q-spot')}}
        reservable_host = {'host': {'reservable': True}}
        for method, path, body, token, operation, outcome in (
                ('POST', 'simulate', simulated, 'u:p', 'simulate',
                 {'status': 202, 'id': base.make_uuid('simulated')}),
                ('PATCH', 'hosts/host1', reservable_host, ADMIN,
                 'update_host', {'status': 200}),
                ('PUT', 'reservation-limits/q', limits, ADMIN,
                 'set_reservation_limits', {'status': 200}),
                ('PUT', 'reservation-limits/q', limits, 'u:p',
                 'set_reservation_limits', {
                     'status': 403, 'refused':
                     'Policy does not allow '
                     'preemption:reservation_limits:update'
                 }),
                ('POST', 'simulate', others, 'u:p', 'simulate',
                 {'status': 404, 'refused': 'There is no server'}),
                ('DELETE', f'reservations/{server_id}', None, 'u:p',
                 'delete_reservation', {
                     'status': 404, 'refused':
                     'There is no reservation'})):
            with self.assertLogs(LOG, logging.INFO) as logs:
                if body is None:
                    self.delete(f'/v1/{path}', token, 404)
                else:
                    self.request(f'/v1/{path}', method, token,
                                 content_type='application/json',
                                 body=json.dumps(body).encode())
            found = self.line(logs)
            asked_by = found.pop('asked_by')
            user, project = token.split(':')
            self.assertEqual((user, project, user == 'admin'), (
                asked_by['user_id'], asked_by['project_id'],
                asked_by['is_admin']))
            self.assertIn('req-', asked_by['request_id'])
            self.assertEqual(body, found.pop('body', None))
            self.assertIn(outcome.pop('refused', ''),
                          found.pop('refused', ''))
            self.assertEqual({'operation': operation, 'method': method,
                              'path': f'/v1/{path}', **outcome}, found)

    def test_no_line_can_be_forged(self):
        forged = ('x\n2026-11-20 INFO nova_preempt.api.audit_log pause: PUT '
                  '/v1/pauses/preemption 200; is_admin=True\r\u2028\x1b[1A')
        self.microversion = '1.3'
        server = {'name': 'a', 'imageRef': self.reading.image_id,
                  'networks': 'none', 'flavorRef': forged}
        for values in (
                {}, {'flavorRef': 'f1', forged: forged},
                {'flavorRef': 'f1', 'metadata': {forged: 'x' * 300}},
                {'flavorRef': 'f1', 'key_name': forged}):
            with self.assertLogs(LOG, logging.INFO) as logs:
                self.post('/v1/requests', {'request': {'body': {
                    'server': {**server, **values}}}}, code=400)
            self.assertFalse(self.line(logs)['asked_by']['is_admin'])

    def test_secrets_of_servers_are_left_out(self):
        self.microversion = '1.3'
        for server, code, field in (
                ({'adminPass': 'hunter2', 'user_data': 'aHVudGVyMg=='}, 201,
                 None),
                ({'user_data': 'hunter2!'}, 400, 'user_data'),
                ({'user_data': ['hunter2']}, 400, 'user_data'),
                ({'adminPass': {'a': 'hunter2'}}, 400, 'adminPass'),
                ({'min_count': 'hunter2'}, 400, 'min_count'),
                ({'metadata': {'password': 'hunter2' * 99}}, 400,
                 'metadata.password'),
                ({'personality': [{'path': '/a', 'contents': 'hunter2'}]},
                 400, None)):
            body = {'server': {
                'name': 'mine', 'imageRef': self.reading.image_id,
                'networks': 'none', 'flavorRef': 'f1', **server}}
            with self.assertLogs(None, logging.DEBUG) as logs:
                self.post('/v1/requests', {'request': {'body': body}},
                          code=code)
            record, = (item for item in logs.records if item.name == LOG)
            found = json.loads(record.getMessage())
            self.assertEqual('mine', found['body']['request']['body'][
                'server']['name'])
            if field:
                self.assertEqual(f'request.body.server.{field}',
                                 found['invalid_field'])
            for text in ('hunter2', 'aHVudGVyMg'):
                self.assertNotIn(text, '\n'.join(logs.output))

    def test_a_database_that_fails_prints_no_body(self):
        self.microversion = '1.3'
        body = {'server': {
            'name': 'mine', 'imageRef': self.reading.image_id,
            'networks': 'none', 'flavorRef': 'f1', 'adminPass': 'hunter2'}}
        with self.db.engine.begin() as connection:
            connection.exec_driver_sql('DROP TABLE backlog_changes')
            connection.exec_driver_sql(
                'CREATE TRIGGER t BEFORE INSERT ON backlog_requests '
                "BEGIN SELECT RAISE(ABORT, 'no'); END")
        with self.assertLogs(None, logging.DEBUG) as logs:
            self.post('/v1/requests', {'request': {'body': body}}, code=500)
        self.assertIn('INSERT INTO backlog_requests', '\n'.join(logs.output))
        self.assertNotIn('hunter2', '\n'.join(logs.output))

    def test_questions_are_none(self):
        self.inventory.add('host1')
        with self.assertNoLogs(LOG, logging.INFO):
            self.get('/v1/hosts', ADMIN)
            self.post('/v1/explain', {'explain': {'flavor': 'x'}})
            self.post('/v1/reservations/preview',
                      {'reservation': {'duration': 60}})

    def test_a_crash_is_logged_too(self):
        with mock.patch.object(reservable_hosts, 'set_limits',
                               side_effect=RuntimeError('boom')), \
                self.assertLogs(LOG, logging.INFO) as logs:
            self.put('/v1/reservation-limits/q',
                     {'reservation_limits': {}}, ADMIN, 500)
        found = self.line(logs)
        self.assertEqual((500, 'RuntimeError'),
                         (found['status'], found['failed']))


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
            part for operation in operation_table.OPERATIONS
            if operation.method != 'GET'
            for part in operation.path.split('/')[2:]
            if '{' not in part} - named)
