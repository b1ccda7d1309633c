# SPDX-License-Identifier: Apache-2.0
"""Webhooks of projects, by the API."""

import json
import socket
from unittest import mock

from nova_preempt.api import audit_log
from nova_preempt.backlog import secret_encryption
from nova_preempt.core import webhook_delivery
from nova_preempt.db import webhooks
from tests.unit.api import base

URL = 'https://hooks.example.com/hunter2'
SECRET = webhook_delivery.make_secret(b'k' * 32)


class WebhookCase:
    """The operator allows webhooks, and a name server knows hosts."""

    addresses = ('8.8.8.8',)

    def setUp(self):
        super().setUp()
        self.allow('https:443')
        self.enterContext(mock.patch.object(
            socket, 'getaddrinfo', self.find_addresses(socket.getaddrinfo)))

    def allow(self, *entries):
        self.conf.set_override('webhook_targets', list(entries),
                               'preemption_api')

    def find_addresses(self, known):
        def found(host, port, *arguments, **values):
            if not str(host).endswith('example.com'):
                return known(host, port, *arguments, **values)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, '',
                     (address, port)) for address in self.addresses]
        return found

    def secret(self, project_id='p'):
        return secret_encryption.SecretCipher(self.conf.backlog).unseal(
            project_id, webhooks.get(self.db, project_id).sealed)

    def events(self, project_id='p'):
        found = webhooks.due(self.db, base.NOW.replace(year=2100), 100, 100)
        return [json.loads(event.body) for event, webhook in found
                if webhook.project_id == project_id]


class TestApi(WebhookCase, base.ApiTestCase):

    microversion = '1.9'

    def set(self, url=URL, token='u:p', code=200, project_id='p', **values):
        answer = self.put(f'/v1/webhooks/{project_id}', {
            'webhook': {'url': url, **values}}, token, code)
        return answer['webhook'] if code == 200 else answer['error'][
            'message']

    def show(self, token='u:p', code=200, project_id='p'):
        return self.get(f'/v1/webhooks/{project_id}', token, code)

    def test_a_secret_is_made_and_shown_once(self):
        made = self.set()
        self.assertEqual(self.secret(), made.pop('secret'))
        self.assertEqual(32, len(webhook_delivery.key_of(self.secret())))
        self.assertEqual(made, self.show()['webhook'])
        self.assertEqual({
            'project_id': 'p', 'url': URL, 'user_id': 'u',
            'updated_at': made['updated_at'], 'delivered_at': None,
            'failures': 0, 'last_error': '', 'waiting': 1, 'dropped': 0},
            made)

    def test_a_secret_of_the_user(self):
        self.assertNotIn('secret', self.set(secret=SECRET))
        self.assertEqual(SECRET, self.secret())
        # It is kept with another URL.
        self.assertNotIn('secret', self.set(f'{URL}/2'))
        self.assertEqual(SECRET, self.secret())
        self.assertIn("Invalid field 'webhook.secret': it must be whsec_",
                      self.set(secret='hunter2', code=400))

    def test_secrets_are_stored_encrypted(self):
        self.set(secret=SECRET)
        stored = (self.directory / 'test.sqlite').read_bytes()
        self.assertNotIn(SECRET.encode(), stored)
        self.assertNotIn(SECRET.removeprefix('whsec_').encode(), stored)

    def test_without_key_file(self):
        self.conf.set_override('secret_key_file', '', 'backlog')
        self.assertIn('[backlog]secret_key_file', self.set(code=503))
        self.assertIsNone(webhooks.get(self.db, 'p'))

    def test_a_test_event_is_sent(self):
        self.set()
        event, = self.events()
        self.assertEqual(('webhook.test', {}), (event['type'], event['data']))

    def test_failures_are_forgotten(self):
        self.set()
        known = webhooks.get(self.db, 'p')
        (event, _webhook), *_ = webhooks.due(
            self.db, base.NOW.replace(year=2100), 1, 1)
        webhooks.failed(self.db, event, known, 'it answered 500', base.NOW,
                        lambda _failures: 300)
        self.assertEqual((1, 'it answered 500'), tuple(
            self.show()['webhook'][name]
            for name in ('failures', 'last_error')))
        self.assertEqual(0, self.set()['failures'])

    def test_delete(self):
        self.set()
        self.delete('/v1/webhooks/p')
        self.assertEqual((None, 0), (
            webhooks.get(self.db, 'p'),
            webhooks.count_waiting(self.db, 'p')))
        for method in ('GET', 'DELETE'):
            self.assertEqual(404, self.request(
                '/v1/webhooks/p', method).status_int)

    def test_urls_that_are_refused(self):
        for url, why in (
                ('http://hooks.example.com/', 'https at port 443'),
                ('https://u:hunter2@hooks.example.com/', 'no user'),
                ('https://10.0.0.1/', 'not public'),
                ('https://[::1]/', 'not public'),
                ('https://2130706433/', 'its host must be')):
            with self.subTest(url=url):
                found = self.set(url, code=400)
                self.assertIn("Invalid field 'webhook.url': ", found)
                self.assertIn(why, found)
                self.assertNotIn('hunter2', found)
        self.assertIsNone(webhooks.get(self.db, 'p'))

    def test_names_of_addresses_that_are_not_public(self):
        self.addresses = ('8.8.8.8', '169.254.169.254')
        self.assertIn('not public', self.set(code=400))
        self.allow('https:443', '+169.254.0.0/16')
        self.set()

    def test_off_by_default(self):
        self.set()
        self.conf.clear_override('webhook_targets', 'preemption_api')
        self.assertEqual('The operator allows no webhooks.',
                         self.set(code=403))
        # What is there can be seen and deleted.
        self.show()
        self.delete('/v1/webhooks/p')

    def test_of_other_projects(self):
        self.set()
        self.show('u:q', 403)
        self.set(token='u:q', code=403)
        self.delete('/v1/webhooks/p', 'u:q', 403)
        # As of a project that was deleted.
        self.show('admin:z')
        self.set(token='admin:z')
        self.delete('/v1/webhooks/p', 'admin:z')

    def test_older_microversions(self):
        self.microversion = '1.8'
        self.show(code=404)

    def test_the_audit_log_has_neither_secret_nor_path(self):
        with mock.patch.object(audit_log, 'LOG') as log:
            self.set(secret=SECRET)
            self.set(secret='hunter2', code=400)
            self.set('https://u:hunter2@hooks.example.com/', code=400)
        lines = [str(call) for call in log.info.mock_calls]
        self.assertEqual(3, len(lines))
        self.assertIn('https://hooks.example.com', lines[0])
        for line in lines:
            self.assertNotIn('hunter2', line)
            self.assertNotIn(SECRET, line)
