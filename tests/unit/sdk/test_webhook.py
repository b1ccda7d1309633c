# SPDX-License-Identifier: Apache-2.0
"""Webhooks of projects, by openstacksdk."""

from openstack import exceptions

from tests.unit.api import test_webhook_handlers
from tests.unit.api.test_webhook_handlers import SECRET
from tests.unit.api.test_webhook_handlers import URL
from tests.unit.sdk import base


class TestWebhook(test_webhook_handlers.WebhookCase, base.SdkTestCase):

    def test_all(self):
        made = self.member.set_webhook(URL, project='p')
        self.assertEqual(self.secret(), made.secret)
        found = self.member.get_webhook('p')
        self.assertEqual((URL, None, 1), (found.url, found.secret,
                                          found.waiting))
        self.assertIsNone(self.member.set_webhook(URL, SECRET, 'p').secret)
        self.assertEqual(SECRET, self.secret())
        self.member.delete_webhook('p')
        self.member.delete_webhook('p')
        with self.assertRaises(exceptions.NotFoundException):
            self.member.delete_webhook('p', ignore_missing=False)
        # The token has no project here.
        with self.assertRaises(exceptions.InvalidRequest):
            self.member.set_webhook(URL)
