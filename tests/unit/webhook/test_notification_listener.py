# SPDX-License-Identifier: Apache-2.0
"""Notifications of the bus become events of webhooks."""

import json
import threading
from unittest import mock

from oslo_db import exception as db_exc
import oslo_messaging as messaging
from oslo_messaging import conffixture

from nova_preempt.db import webhooks
from nova_preempt.handover import preemption_notifications
from nova_preempt.webhook import notification_listener
from tests.unit.core import test_webhook_delivery
from tests.unit.webhook import base

HANDLED = messaging.NotificationResult.HANDLED
PROJECT = '6f70656e737461636b20342065766572'


class ListenerTestCase(base.WebhookTestCase):

    def setUp(self):
        super().setUp()
        self.now = test_webhook_delivery.NOW
        self.woken = threading.Event()
        self.slept = []
        self.endpoint = notification_listener.Endpoint(
            self.db, self.woken.set, lambda: self.now, self.slept.append)

    def notify(self, name='preemption-notice', message_id='m1'):
        event, payload = test_webhook_delivery.sample(name)
        return self.endpoint.info({}, 'nova-preempt:h', event, payload,
                                  {'message_id': message_id})

    def bodies(self):
        return [json.loads(event.body) for event, _webhook in webhooks.due(
            self.db, self.now, 100, 100)]


class TestEndpoint(ListenerTestCase):

    def test_a_notice(self):
        self.hook('https://example.com/', PROJECT)
        self.assertEqual(HANDLED, self.notify())
        body, = self.bodies()
        self.assertEqual(
            ('preemption.notice', '2026-11-21T20:59:20Z',
             'f7614c58-2283-4512-9a74-e53867fd4136'),
            (body['type'], body['timestamp'], body['data']['server_id']))
        self.assertTrue(self.woken.is_set())
        # Its deadline.
        self.pass_s(120)
        webhooks.delete_expired(self.db, self.now)
        self.assertEqual(0, self.waiting(PROJECT))

    def test_a_notification_that_comes_twice(self):
        self.hook('https://example.com/', PROJECT)
        self.notify()
        self.notify()
        self.assertEqual(1, self.waiting(PROJECT))

    def test_projects_without_webhook(self):
        self.hook('https://example.com/', 'other')
        self.notify()
        self.assertEqual(0, self.waiting(PROJECT))
        self.assertFalse(self.woken.is_set())

    def test_notifications_that_concern_no_project(self):
        self.hook('https://example.com/', PROJECT)
        self.assertEqual(HANDLED, self.notify('preemption-start'))
        self.assertEqual(0, self.waiting(PROJECT))

    def test_a_database_that_is_away(self):
        self.hook('https://example.com/', PROJECT)
        with mock.patch.object(webhooks, 'add', side_effect=db_exc.DBError):
            self.assertEqual(messaging.NotificationResult.REQUEUE,
                             self.notify())
        self.assertEqual([1], self.slept)
        self.assertEqual(HANDLED, self.notify())
        self.assertEqual(1, self.waiting(PROJECT))

    def test_notifications_that_cannot_be_read(self):
        """Else the bus returns them for ever."""
        self.hook('https://example.com/', PROJECT)
        for payload in ({}, {'victim': {}}, {'victim': 'x'}, 'x',
                        {'victim': {'project_id': PROJECT, 'uuid': 'u'}}):
            self.assertEqual(HANDLED, self.endpoint.info(
                {}, 'nova-preempt:h', 'preemption.notice', payload,
                {'message_id': 'm'}))
        self.assertEqual((0, []), (self.waiting(PROJECT), self.slept))


class TestBus(ListenerTestCase):

    options = ('[oslo_messaging_notifications]\ndriver = messagingv2\n')

    def test_from_a_notifier_to_the_database(self):
        bus = conffixture.ConfFixture(self.conf)
        bus.setUp()
        self.addCleanup(bus.cleanUp)
        self.hook('https://example.com/', PROJECT)
        transport = messaging.get_notification_transport(self.conf)
        listener = notification_listener.make_listener(
            self.conf, transport, self.endpoint)
        listener.start()
        self.addCleanup(listener.wait)
        self.addCleanup(listener.stop)
        notifier = preemption_notifications.Notifier(self.conf, 'h')
        self.addCleanup(notifier.close)
        for name in ('preemption-start', 'backlog-failed', 'preemption-error',
                     'preemption-notice'):
            event, payload = test_webhook_delivery.sample(name)
            notifier.send(event, {**payload, 'version': '1'},
                          name.endswith('error'))
        for _ in range(1000):
            if self.waiting(PROJECT) == 2:
                break
            self.woken.wait(0.01)
        self.assertEqual(
            {'preemption.notice', 'preemption.error'},
            {body['type'] for body in self.bodies()})
