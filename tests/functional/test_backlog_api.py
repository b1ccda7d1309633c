# SPDX-License-Identifier: Apache-2.0

"""Waiting requests, from the API to Nova."""

import base64
import dataclasses
import pathlib

from cryptography import fernet
import fixtures
import webob

from nova_preempt.api import middleware_pipeline
from nova_preempt.backlog import request_intake
from nova_preempt.cloud import nova_as_user
from nova_preempt.cmd import engine as cmd_engine
from nova_preempt.core.backlog import backlog_model
from nova_preempt.embedded import embedded_cloud
from tests.functional import test_backlog
from tests.functional.test_backlog import PROJECT
from tests.functional.test_backlog import USER

UNKNOWN = '9ad2f2b3-54b6-4f4e-9a5e-3b1a8f2a4b5c'
TOKEN = f'{USER}:{PROJECT}'


class TestApi(test_backlog.BacklogTestCase):

    def setUp(self):
        super().setUp()
        self.flags(auth_strategy='noauth', group='preemption_api')
        keys = self.useFixture(fixtures.TempDir()).join('keys')
        pathlib.Path(keys).write_bytes(fernet.Fernet.generate_key())
        self.flags(secret_key_file=keys, group='backlog')
        conf = cmd_engine.CONF
        services = middleware_pipeline.make_services(conf)
        self.app = middleware_pipeline.make_app(conf, dataclasses.replace(
            services, submissions=request_intake.RequestIntake(
                conf, services.database, self.trusts,
                nova_as_user.ResourceLookup(conf), clock=self.at)))

    def ask(self, method, path='', code=200, **values):
        request = webob.Request.blank(f'/v1/requests{path}', method=method)
        request.headers['OpenStack-API-Version'] = 'preemption latest'
        request.headers['X-Auth-Token'] = TOKEN
        if values:
            request.content_type = 'application/json'
            request.json = {'request': values}
        response = request.get_response(self.app)
        self.assertEqual(code, response.status_int, response.text)
        return response.json if response.body else None

    def submit(self, code=201, server=None, **values):
        answer = self.ask('POST', code=code, **{
            'flavors': [self.small], **values, 'body': {'server': {
                'name': 'batch', 'imageRef': embedded_cloud.IMAGE,
                'networks': 'none', **(server or {})}}})
        return answer.get('request') or answer['error']['message']

    def test_a_request_starts_and_ends(self):
        secret = base64.b64encode(b'hunter2').decode()
        made = self.submit(count=2, server={'user_data': secret})
        self.assertEqual('***', made['body']['server']['user_data'])
        self.step_until(made['id'], backlog_model.ACTIVE)
        shown = self.ask('GET', f'/{made["id"]}')['request']
        servers = {server['id'] for server in shown['servers']}
        self.assertEqual({server['id'] for server in
                          self.servers_of(made['id'])}, servers)
        self.assertEqual(2, len(servers))
        for server in servers:
            self.assertEqual(secret, self.with_tags(server)[
                'OS-EXT-SRV-ATTR:user_data'])
        self.assertEqual(['waiting', 'placing', 'active'], [
            change['status'] for change in shown['history']])
        self.ask('DELETE', f'/{made["id"]}?servers=true', 204)
        self.wait_for(lambda: self.step() or not self.trusts.made,
                      'the trust to be gone')
        for server in servers:
            self.wait_gone(server)
        self.assertEqual('cancelled', self.ask(
            'GET', f'/{made["id"]}')['request']['status'])
        # 90 days are kept.
        self.pass_time(91 * 86400)
        self.engine.backlog.works[0][1]()
        self.ask('GET', f'/{made["id"]}', 404)

    def test_flavors_are_checked_with_nova(self):
        special = self.create_flavor(
            'special', 2, 1024, 10, preemptible=True, **{
                'resources:CUSTOM_LICENCE': '1', 'resources:DISK_GB': '0'})
        pinned = self.create_flavor('pinned', 2, 1024, 10,
                                    **{'hw:cpu_policy': 'dedicated'})
        made = self.submit(flavors=[special, pinned, self.small])
        self.assertEqual([
            {'id': special, 'name': 'special', 'preemptible': True,
             'resources': {'VCPU': 2, 'MEMORY_MB': 1024,
                           'CUSTOM_LICENCE': 1}},
            {'id': pinned, 'name': 'pinned', 'preemptible': False,
             'resources': {'PCPU': 2, 'MEMORY_MB': 1024, 'DISK_GB': 10}},
        ], made['flavors'][:2])
        self.assert_refused_in_time()
        self.assert_from_a_volume()

    def assert_from_a_volume(self):
        made = self.submit(server={
            'imageRef': '', 'block_device_mapping_v2': [{
                'boot_index': 0, 'uuid': UNKNOWN, 'source_type': 'volume',
                'destination_type': 'volume'}]})
        self.assertNotIn('DISK_GB', made['flavors'][0]['resources'])

    def assert_refused_in_time(self):
        before = dict(self.trusts.made)
        for field, values in (
                ('flavors', {'flavors': ['unknown']}),
                ('flavors', {'flavors': ['detail']}),
                ('flavors', {'flavors': ['..']}),
                ('flavors', {'flavors': ['.']}),
                ('flavors', {'flavors': ['../images/detail?a=b#c']}),
                ('body.server.key_name', {'server': {'key_name': '..'}}),
                ('body.server.imageRef', {'server': {'imageRef': UNKNOWN}}),
                ('body.server.key_name', {'server': {'key_name': 'other'}}),
                ('body.server.networks', {'server': {'networks': None}})):
            self.assertIn(f"'request.{field}'", self.submit(400, **values))
        self.assertEqual(before, self.trusts.made)
