# SPDX-License-Identifier: Apache-2.0
"""The example of a receiver gets events as nova-preempt-webhook sends."""

import http.server
import importlib.util
import pathlib
import threading
import time
import unittest

from nova_preempt.core import webhook_delivery
from nova_preempt.core import webhook_targets
from nova_preempt.webhook import http_post

FILE = pathlib.Path(__file__).parents[3] / 'examples/webhook/receiver.py'
SECRET = webhook_delivery.make_secret(b'k' * 32)
BODY = b'{"type": "webhook.test", "timestamp": "t", "data": {}}'
NOW_S = 1795176000


def load():
    """Return the program as a module that is not run."""
    spec = importlib.util.spec_from_file_location('receiver', FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


program = load()


class TestVerify(unittest.TestCase):

    def verify(self, body=BODY, now_s=NOW_S, secret=SECRET, **changed):
        headers = webhook_delivery.headers(SECRET, 'x', BODY, NOW_S)
        headers.update({name.replace('_', '-'): value
                        for name, value in changed.items()})
        return program.verify(secret, headers, body, now_s)

    def test_an_event(self):
        self.assertEqual(('x', {'type': 'webhook.test', 'timestamp': 't',
                                'data': {}}), self.verify())
        # A second signature, as with two secrets.
        right = webhook_delivery.headers(SECRET, 'x', BODY, NOW_S)[
            'webhook-signature']
        self.verify(webhook_signature=f'v1,AAAA {right}')

    def test_all_else(self):
        for changes in (
                {'body': BODY + b' '}, {'now_s': NOW_S + 301},
                {'now_s': NOW_S - 301}, {'webhook_id': 'y'},
                {'webhook_timestamp': str(NOW_S + 1)},
                {'webhook_timestamp': ''}, {'webhook_timestamp': 'x'},
                {'webhook_signature': ''}, {'webhook_signature': 'v1,é'},
                {'webhook_signature': 'v2,AAAA'},
                {'secret': webhook_delivery.make_secret(b'x' * 32)}):
            with self.subTest(changes), self.assertRaises(program.Invalid):
                self.verify(**changes)


class TestHandler(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.events = events = []

        class Handler(program.Handler):
            secret = SECRET
            seen = {}

            def handle_event(self, event):
                events.append(event['type'])

            def log_message(self, *_arguments):
                """Print nothing."""

        server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, args=(0.01,),
                         daemon=True).start()
        self.target = webhook_targets.Target(
            'http', '127.0.0.1', server.server_address[1], '/')

    def post(self, secret=SECRET):
        headers = webhook_delivery.headers(secret, 'x', BODY,
                                           int(time.time()))
        return http_post.post(self.target, '127.0.0.1', headers, BODY, None,
                              http_post.Timeouts())

    def test_duplicates_count_once(self):
        self.assertEqual([204, 204], [self.post(), self.post()])
        self.assertEqual(['webhook.test'], self.events)

    def test_events_of_others(self):
        self.assertEqual(400, self.post(
            webhook_delivery.make_secret(b'x' * 32)))
        self.assertEqual([], self.events)
