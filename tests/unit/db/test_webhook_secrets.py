# SPDX-License-Identifier: Apache-2.0
"""Secrets of webhooks that are encrypted with another key."""

from nova_preempt.db import webhook_secrets
from tests.unit.webhook import base


class TestSecrets(base.WebhookTestCase):

    def test_replace(self):
        self.hook('https://example.com/')
        self.hook('https://example.com/', 'q')
        (project, old), other = webhook_secrets.each(self.db)
        webhook_secrets.replace(self.db, project, 'changed', 'x')
        self.assertEqual([(project, old), other],
                         webhook_secrets.each(self.db))
        webhook_secrets.replace(self.db, project, old, 'new')
        self.assertEqual([('p', 'new'), other],
                         webhook_secrets.each(self.db))
