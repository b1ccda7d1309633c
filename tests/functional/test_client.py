# SPDX-License-Identifier: Apache-2.0
"""The commands of openstackclient against the embedded cloud."""

import json
import os
import subprocess
import sys
import threading
from unittest import mock

from nova_preempt.advice import eviction_sampler
from nova_preempt.api import status_handler
from nova_preempt.cmd import api as cmd_api
from tests.functional import test_api

UNKNOWN = '9ad2f2b3-54b6-4f4e-9a5e-3b1a8f2a4b5c'

#: The client takes seconds to import, and so runs one command after another.
SERVE = '''
import contextlib, io, json, sys
from openstackclient import shell
answers = sys.stdout
for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = shell.main(json.loads(line))
    print(json.dumps([code, out.getvalue(), err.getvalue()]), file=answers,
          flush=True)
'''


class QuietHandler(cmd_api.simple_server.WSGIRequestHandler):

    def log_message(self, *args):
        pass


class CommandsTestCase(test_api.ApiTestCase):

    def setUp(self):
        super().setUp()
        server = cmd_api.make_server('127.0.0.1', 0, self.app, QuietHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.endpoint = f'http://127.0.0.1:{server.server_port}'
        self.client = self.start_client()

    def start_client(self):
        """A process that runs the client's commands, one after the other."""
        client = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-c', SERVE], text=True,
            env=self.environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        self.addCleanup(client.wait, timeout=60)
        self.addCleanup(client.stdout.close)
        self.addCleanup(client.stdin.close)
        return client

    def environment(self):
        return {name: value for name, value in os.environ.items()
                if not name.startswith('OS_')}

    def arguments(self, *arguments):
        return [
            '--os-auth-type', 'admin_token', '--os-endpoint', self.endpoint,
            '--os-token', f'admin:{self.project}',
            '--os-preemption-endpoint', self.endpoint,
            'preemption', *arguments]

    def run_client(self, *arguments):
        """Return the output of "openstack preemption ..."."""
        self.client.stdin.write(
            json.dumps(self.arguments(*arguments)) + '\n')
        self.client.stdin.flush()
        code, out, err = json.loads(self.client.stdout.readline())
        self.assertEqual(0, code, err)
        return out

    def ask_client(self, *arguments):
        return json.loads(self.run_client(*arguments, '-f', 'json'))


class TestCommands(CommandsTestCase):

    def test_the_same_commands_as_on_a_real_cloud(self):
        cheap = self.boot_spot('a', 'host1', 100)
        kept = self.boot_spot('b', 'host1', 1000)
        answer = self.ask_client('explain', self.small)
        self.assertEqual(
            ('preempts', 'host1', cheap),
            (answer['outcome'], answer['host'],
             answer['victims'][0]['server_id']))
        chances = self.ask_client('capacity', 'list', self.small)
        self.assertEqual(self.small, chances[0]['Flavor'])
        normal = self.boot_normal()['id']
        listed, = self.ask_client('list')
        self.assertEqual((normal, [cheap]),
                         (listed['Server'], listed['Victims']))
        shown = self.ask_client('show', listed['ID'])
        self.assertEqual('done', shown['status'])
        self.assertIn(listed['ID'], self.run_client('list'))
        number = self.ask_client('statistics', 'list')[0]
        self.assertEqual(1, number['Victims'])
        self.assertIn('1 server was evicted for a server of flavor',
                      self.run_client('show', listed['ID']))
        eviction_sampler.EvictionSampler(
            self.engine.parts, self.engine.inventory).run()
        rates = {item['Flavor']: item['Evictions'] for item in self.ask_client(
            'rate', 'list', '--long')}
        # There was no sample before the eviction.
        self.assertEqual([0], list(rates.values()))
        # As long as it takes here, whatever else the machine does.
        with mock.patch.object(status_handler, '_ROOM_S', 60):
            status = self.ask_client('status')
        self.assertEqual((1, ''), (status['victims_today'],
                                   status['room_reason']))
        self.ask_client('simulate', kept)
        self.wait_gone(kept)
        self.assertEqual(2, len(self.ask_client('list')))
        # The engine records the end when it looks the next time.
        self.wait_for(lambda: not self.decisions.get_open_decisions(),
                      'the end to be recorded')
        self.assert_consistent()
        self.assert_one_line_and_a_status()

    def assert_one_line_and_a_status(self):
        """Run the program itself."""
        found = subprocess.run(
            [os.path.join(os.path.dirname(sys.executable), 'openstack'),
             *self.arguments('simulate', UNKNOWN)],
            env=self.environment(), capture_output=True, text=True,
            timeout=120, check=False)
        self.assertEqual(1, found.returncode)
        self.assertIn('There is no server', found.stderr)
        self.assertEqual(1, len(found.stderr.strip().splitlines()),
                         found.stderr)
