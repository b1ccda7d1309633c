# SPDX-License-Identifier: Apache-2.0
"""The metadata service of Nova as a guest sees it, over HTTP."""

import hashlib
import hmac
import json
import threading
import urllib.request
from wsgiref import simple_server

import fixtures
from nova.api import wsgi
from nova.tests import fixtures as nova_fixtures

from nova_preempt.cloud import nova_api

_SECRET = 'between Neutron and Nova'
_ADDRESS = '192.168.1.3'


class Guest(fixtures.Fixture):
    """The metadata service, as a server sees it.

    It is the application of nova-metadata, on a socket. In front of it is what
    Neutron's proxy does: it tells, with its signature, which server asks.

    :ivar url: in place of http://169.254.169.254
    """

    def __init__(self, server_id, project_id):
        super().__init__()
        self._headers = {
            'HTTP_X_INSTANCE_ID': server_id,
            'HTTP_X_TENANT_ID': project_id,
            'HTTP_X_FORWARDED_FOR': _ADDRESS,
            'HTTP_X_INSTANCE_ID_SIGNATURE': hmac.new(
                _SECRET.encode(), server_id.encode(),
                hashlib.sha256).hexdigest()}

    def _setUp(self):
        self.useFixture(nova_fixtures.ConfPatcher(
            group='neutron', service_metadata_proxy=True,
            metadata_proxy_shared_secret=_SECRET))
        # See using.rst: by default Nova keeps what it read for 15 seconds.
        self.useFixture(nova_fixtures.ConfPatcher(
            group='api', metadata_cache_expiration=0))
        self._app = wsgi.Loader().load_app('metadata')
        server = simple_server.make_server('127.0.0.1', 0, self._forward,
                                           handler_class=_QuietHandler)
        self.url = f'http://127.0.0.1:{server.server_port}'
        thread = threading.Thread(target=server.serve_forever,
                                  kwargs={'poll_interval': 0.05})
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)

    def _forward(self, environ, start_response):
        return self._app({**environ, **self._headers}, start_response)

    def read(self):
        """The content of meta_data.json."""
        with urllib.request.urlopen(
                f'{self.url}/openstack/latest/meta_data.json',
                timeout=60) as answer:
            return json.load(answer)

    def read_notice(self):
        """The notice, None if there is none."""
        # Without any metadata of its own a server has no such key.
        value = self.read().get('meta', {}).get(nova_api.NOTICE_KEY)
        return value and json.loads(value)


class _QuietHandler(simple_server.WSGIRequestHandler):

    def log_message(self, *args):
        """Do not write to the output of tests."""
