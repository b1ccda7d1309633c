# SPDX-License-Identifier: Apache-2.0
"""The API on a real socket, for clients of it."""

import json
import os
import threading
from unittest import mock
from wsgiref import simple_server

from keystoneauth1 import fixture as ks_fixture

from nova_preempt.cmd import api as cmd_api
from tests.unit.api import base


class _Handler(simple_server.WSGIRequestHandler):

    def log_message(self, *args):
        """Say nothing."""


class ListeningTestCase(base.AnsweringTestCase):

    def setUp(self):
        super().setUp()
        self.url = self.listen(self.app)
        # Neither clouds.yaml nor the environment of whoever runs this.
        patch = mock.patch.dict(os.environ, {
            'HOME': str(self.directory),
            'OS_CLIENT_CONFIG_FILE': str(self.directory / 'clouds.yaml')})
        patch.start()
        self.addCleanup(patch.stop)
        for name in list(os.environ):
            if name.startswith('OS_') and name != 'OS_CLIENT_CONFIG_FILE':
                del os.environ[name]

    def listen(self, app):
        """The URL at which it serves from now on."""
        server = cmd_api.make_server('127.0.0.1', 0, app, _Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f'http://127.0.0.1:{server.server_port}'

    def keystone(self, url):
        """The URL of a Keystone whose catalog has this URL."""
        token = ks_fixture.V3Token(user_id='u', project_id='p')
        if url:
            token.add_service('preemption').add_standard_endpoints(
                public=url, region='here')

        def app(environ, start_response):
            if environ['REQUEST_METHOD'] == 'POST':
                body = token
                headers = [('X-Subject-Token', 'u:p')]
            else:
                body = {'version': ks_fixture.V3Discovery(
                    f'http://{environ["HTTP_HOST"]}/v3')}
                headers = []
            start_response('200 OK', [
                ('Content-Type', 'application/json'), *headers])
            return [json.dumps(body).encode()]

        return f'{self.listen(app)}/v3'
