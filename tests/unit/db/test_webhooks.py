# SPDX-License-Identifier: Apache-2.0
"""Events that wait for webhooks."""

from nova_preempt.db import webhooks
from tests.unit.webhook import base


class TestDue(base.WebhookTestCase):

    def due(self, most=4, limit=100):
        return [(event.project_id, event.body) for event, _webhook in
                webhooks.due(self.db, self.now, most, limit)]

    def setUp(self):
        super().setUp()
        for project in 'pqr':
            self.hook('https://example.com/', project)

    def test_projects_take_turns(self):
        self.add('a', 'b', 'c')
        self.pass_s(1)
        self.add('a', 'b', project_id='q')
        self.add('a', project_id='r')
        found = [project for project, _body in self.due()]
        self.assertEqual(['p', 'q', 'r'], [found[0], *sorted(found[1:3])])
        self.assertEqual(['p', 'q', 'p'], found[3:])
        self.assertEqual(5, len(self.due(most=2)))
        self.assertEqual(2, len(self.due(limit=2)))

    def test_the_oldest_first(self):
        for name in 'cab':
            self.add(name)
            self.pass_s(1)
        self.assertEqual(
            ['{"name": "c"}', '{"name": "a"}', '{"name": "b"}'],
            [body for _project, body in self.due()])

    def test_webhooks_that_have_to_wait(self):
        self.add('a')
        self.add('a', project_id='q')
        (event, webhook), _other = webhooks.due(self.db, self.now, 4, 4)
        webhooks.failed(self.db, event, webhook, 'x', self.now,
                        lambda failures: 60 * failures)
        self.assertEqual(1, len(self.due()))
        self.pass_s(60)
        self.assertEqual(2, len(self.due()))

    def test_claimed_events(self):
        self.add('a')
        (event, _webhook), = webhooks.due(self.db, self.now, 4, 4)
        webhooks.claim(self.db, event, base.after(120))
        self.assertEqual([], self.due())
        self.pass_s(120)
        self.assertEqual(1, len(self.due()))


class TestAdd(base.WebhookTestCase):

    def test_twice(self):
        self.hook('https://example.com/')
        self.add('a', 'a')
        self.assertEqual((1, 0), (self.waiting(), self.stored().dropped))


class TestPut(base.WebhookTestCase):

    def test_replaces(self):
        self.hook('https://example.com/', failures=3, last_error='x',
                  dropped=2)
        self.hook('https://example.org/')
        self.assertEqual(('https://example.org/', 0, '', 0), tuple(
            getattr(self.stored(), name)
            for name in ('url', 'failures', 'last_error', 'dropped')))
        self.assertIsNone(self.stored('q'))
