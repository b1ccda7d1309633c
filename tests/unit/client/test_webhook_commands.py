# SPDX-License-Identifier: Apache-2.0
"""Webhooks of projects, by openstack."""

from unittest import mock

from tests.unit.api import test_webhook_handlers
from tests.unit.api.test_webhook_handlers import SECRET
from tests.unit.api.test_webhook_handlers import URL
from tests.unit.client import test_preemption_commands


class TestCommands(test_webhook_handlers.WebhookCase,
                   test_preemption_commands.ClientTestCase):

    def webhook(self, *arguments, **values):
        return self.openstack('preemption', 'webhook', *arguments, **values)

    def setUp(self):
        super().setUp()
        # There is no Keystone to ask for the project.
        self.enterContext(mock.patch(
            'nova_preempt.client.name_lookup.project_id',
            side_effect=lambda _command, name: name))

    def test_all(self):
        made = self.webhook('create', URL, '--project', 'p')
        self.assertIn(self.secret(), made)
        shown = self.webhook('show', '--project', 'p')
        self.assertIn(URL, shown)
        self.assertNotIn('whsec_', shown)
        file = self.directory / 'secret'
        file.write_text(f'{SECRET}\n')
        self.webhook('create', URL, '--project', 'p',
                     '--secret-file', str(file))
        self.assertEqual(SECRET, self.secret())
        with self.assertRaises(SystemExit):
            self.webhook('create', URL, '--secret-file', f'{file}.not')
        self.assertEqual('', self.webhook('delete', '--project', 'p'))
        self.assertEqual('The project has no webhook.\n', self.webhook(
            'delete', '--project', 'p', code=1))

    def test_refusals(self):
        self.assertIn(
            "Invalid field 'webhook.url': it must begin with https",
            self.webhook('create', 'ftp://x', '--project', 'p', code=1))
