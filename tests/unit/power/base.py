# SPDX-License-Identifier: Apache-2.0
"""Options, files and HTTP servers for the tests of power."""

import datetime
import json
import pathlib
import threading
from wsgiref import simple_server

import fixtures
from oslo_config import cfg
import testtools
import webob
from webob import dec
import yaml

from nova_preempt.cmd import api as cmd_api
import nova_preempt.conf
from nova_preempt.power import power_errors

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.timezone.utc)
NOW_S = NOW.timestamp()


def clock():
    return NOW


class _Handler(simple_server.WSGIRequestHandler):

    def log_message(self, *args):
        """Say nothing."""


class Site:
    """A WSGI application with given answers; records requests.

    :ivar answers: {(method, path): a JSON value, or (status, bytes), or a
        function from the request to one of them}
    """

    def __init__(self, **headers):
        self.answers = {}
        self.requests = []
        self.hangs = False
        self.over = threading.Event()

    @dec.wsgify
    def __call__(self, request):
        # Read it now: its connection will be closed.
        request.make_body_seekable()
        self.requests.append(request)
        if self.hangs:
            self.over.wait(30)
        answer = self.answers.get((request.method, request.path), (404, b''))
        if callable(answer):
            answer = answer(request)
        status = 200
        if isinstance(answer, tuple):
            status, answer = answer
        if not isinstance(answer, bytes):
            answer = json.dumps(answer).encode()
        return webob.Response(answer, status=status, content_type='text/html'
                              if status >= 400 else 'application/json')


class PowerTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.logger = self.useFixture(fixtures.FakeLogger())
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self.configure()

    def configure(self, text=''):
        """Options as this nova.conf has them."""
        self.config_file = self.directory / 'nova.conf'
        self.config_file.write_text(text)
        self.conf = cfg.ConfigOpts()
        nova_preempt.conf.register_opts(self.conf)
        self.conf(['--config-file', str(self.config_file)])

    def mutate(self, text):
        """Change the file, as an operator does, and send a SIGHUP."""
        self.config_file.write_text(text)
        self.conf.mutate_config_files()

    def set(self, **options):
        """Set options of [energy]."""
        for name, value in options.items():
            self.conf.set_override(name, value, 'energy')

    def write(self, name, content):
        """The path of a YAML file."""
        path = self.directory / name
        path.write_text(content if isinstance(content, str)
                        else yaml.safe_dump(content))
        return str(path)

    def set_hosts(self, **hosts):
        """Write [energy]hosts_file."""
        self.set(hosts_file=self.write('hosts.yaml', hosts))

    def serve(self, site):
        """The URL at which it serves from now on."""
        server = cmd_api.make_server('127.0.0.1', 0, site, _Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        if isinstance(site, Site):
            self.addCleanup(site.over.set)
        return f'http://127.0.0.1:{server.server_port}'

    def nobody(self):
        """Return a URL on which no server listens."""
        server = cmd_api.make_server('127.0.0.1', 0, None, _Handler)
        server.server_close()
        return f'http://127.0.0.1:{server.server_port}'


def power_off(driver, host):
    """Power off a host as the engine does, hard if necessary."""
    try:
        driver.shut_down(host)
    except power_errors.PowerError as exc:
        if not driver.is_on(host):
            raise AssertionError('it is off') from exc
        driver.switch_off(host)


class Waiting:
    """A clock that only passes by sleeping."""

    def __init__(self):
        self.now_s = 1000.0
        self.at = {}

    def clock(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds
        for time_s in sorted(self.at):
            if time_s <= self.now_s:
                self.at.pop(time_s)()
