# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-webhook, from its start to its end."""

import os
import signal
import threading
import time

from nova_preempt import exceptions
from nova_preempt.cmd import webhook
from tests import processes
from tests.unit.webhook import base


def run_for_s(seconds, path):
    """Run the service until a signal ends it; return its exit status."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM)).start()
    return processes._main('nova_preempt.cmd.webhook',
                           ('--config-file', path))


class TestService(base.WebhookTestCase):

    def write(self):
        path = self.directory / 'service.conf'
        path.write_text(
            '[DEFAULT]\ntransport_url = fake:/\n'
            f'state_path = {self.directory}\n'
            f'[preemption_database]\nconnection = {self.database()}\n'
            f'[backlog]\nsecret_key_file = {self.keys}\n'
            '[preemption_api]\nwebhook_targets = {}\n'.format(','.join(
                self.conf.preemption_api.webhook_targets)))
        return str(path)

    def test_from_start_to_end(self):
        receiver = self.receiver(None)
        self.hook(f'http://127.0.0.1:{receiver.port}/')
        self.add('a', expires_s=10 ** 9)
        status, _out, err = processes.run(run_for_s, 5, self.write())
        self.assertEqual(0, status, err)
        self.assertEqual([{'name': 'a'}], receiver.events())
        self.assertEqual(0, self.waiting())

    def test_idle_by_default(self):
        """It neither ends nor works, though neither bus nor database is."""
        path = self.directory / 'service.conf'
        path.write_text(
            f'[DEFAULT]\nstate_path = {self.directory}\n'
            'transport_url = rabbit://127.0.0.1:9\n'
            '[preemption_database]\n'
            'connection = mysql+pymysql://u:p@127.0.0.1:9/none\n')
        started_at = time.monotonic()
        status, out, err = processes.run(run_for_s, 5, str(path))
        self.assertEqual(0, status, err)
        self.assertGreaterEqual(time.monotonic() - started_at, 5)
        self.assertEqual(1, out.count('\n'), out)
        self.assertIn('[preemption_api]webhook_targets allows no port', out)

    def test_bad_targets(self):
        self.conf.set_override('webhook_targets', ['443'], 'preemption_api')
        status, _out, err = processes.run_main(
            'nova_preempt.cmd.webhook', '--config-file', self.write())
        self.assertEqual(1, status)
        self.assertRegex(err, r'^nova-preempt-webhook: \[preemption_api\]'
                         'webhook_targets: .* neither like')

    def test_what_it_needs(self):
        self.conf.set_override('webhook_targets', ['https:443'],
                               'preemption_api')
        webhook.check(self.conf)
        for group, option, value, text in (
                ('preemption_api', 'webhook_targets', ['443'], 'neither like'),
                ('backlog', 'secret_key_file', '', 'is not set'),
                ('backlog', 'secret_key_file', '/nowhere', 'No such file'),
                ('preemption_database', 'connection',
                 f'sqlite:///{self.directory}/none', 'db sync')):
            kept = self.conf[group][option]
            self.conf.set_override(option, value, group)
            with self.subTest(option=option), self.assertRaisesRegex(
                    exceptions.InvalidConfiguration, text):
                webhook.check(self.conf)
            self.conf.set_override(option, kept, group)
