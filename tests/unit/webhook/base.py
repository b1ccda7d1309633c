# SPDX-License-Identifier: Apache-2.0
"""Webhooks in a database, a clock that is set, and receivers."""

import datetime
import json

from cryptography import fernet

from nova_preempt.backlog import secret_encryption
from nova_preempt.core import webhook_delivery
from nova_preempt.db import webhooks
from nova_preempt.webhook import http_post
from nova_preempt.webhook import sender
from tests.unit.api import base
from tests.unit.webhook import receivers

NOW = base.NOW
SECRET = webhook_delivery.make_secret(b'k' * 32)


def after(seconds):
    return NOW + datetime.timedelta(seconds=seconds)


class WebhookTestCase(base.DatabaseTestCase):

    def setUp(self):
        super().setUp()
        self.now = NOW
        self.senders = []
        self.keys = self.directory / 'keys'
        self.keys.write_bytes(fernet.Fernet.generate_key())
        self.conf.set_override('secret_key_file', str(self.keys), 'backlog')
        self.cipher = secret_encryption.SecretCipher(self.conf.backlog)

    def receiver(self, *arguments, **values):
        found = receivers.Receiver(*arguments, **values)
        self.addCleanup(found.close)
        self.allow(found)
        return found

    def allow(self, *allowed, more=('+127.0.0.0/8',)):
        """Let webhooks call the ports of the receivers of a test."""
        known = self.conf.preemption_api.webhook_targets
        self.conf.set_override('webhook_targets', sorted({
            *known, *more, *(f'{item.scheme}:{item.port}'
                             for item in allowed)}), 'preemption_api')

    def hook(self, url, project_id='p', **values):
        """Set the webhook of a project."""
        found = webhook_delivery.Webhook(
            project_id, getattr(url, 'url', url),
            self.cipher.seal(project_id, SECRET), 'u', self.now, self.now,
            **values)
        webhooks.put(self.db, found)
        return found

    def add(self, *names, project_id='p', expires_s=3600):
        """Store events."""
        for name in names:
            webhooks.add(self.db, webhook_delivery.Delivery(
                base.make_uuid(f'{project_id}-{name}'), project_id,
                json.dumps({'name': name}),
                self.now + datetime.timedelta(seconds=expires_s), self.now))

    def sender(self, addresses=('127.0.0.1',), **values):
        """Return a Sender to whom all names have these addresses."""
        values = {'resolve': lambda _host, _port: list(addresses),
                  'spread': lambda: 0, 'tls': receivers.trusting(),
                  'timeouts': http_post.Timeouts(2, 2, 3), **values}
        found = sender.Sender(self.conf, self.db, lambda: self.now, **values)
        self.senders.append(found)
        self.addCleanup(found._pool.shutdown)
        return found

    def send(self, found=None):
        """Start what is due, and wait until it was sent; return its number."""
        started = (found or self.sender()).start_due()
        for each in started:
            each.result(20)
        return len(started)

    def stored(self, project_id='p'):
        return webhooks.get(self.db, project_id)

    def waiting(self, project_id='p'):
        return webhooks.count_waiting(self.db, project_id)

    def pass_s(self, seconds):
        self.now += datetime.timedelta(seconds=seconds)
