# SPDX-License-Identifier: Apache-2.0
"""Tests of one POST request, also to receivers that misbehave."""

import os
import ssl
import threading
import time
import unittest
from unittest import mock

from nova_preempt.core import webhook_targets
from nova_preempt.webhook import http_post
from tests.unit.webhook import receivers

FAST = http_post.Timeouts(connect_s=2, read_s=0.5, total_s=1)


class PostTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        # The handler of a receiver that waits.
        self.over = threading.Event()
        self.addCleanup(self.over.set)

    def receiver(self, *arguments, **values):
        found = receivers.Receiver(*arguments, **values)
        self.addCleanup(found.close)
        return found

    def post(self, receiver, tls=None, timeouts=FAST, **changed):
        return self.post_to(receiver.port, receiver.scheme, tls, timeouts,
                            **changed)

    def post_to(self, port, scheme='http', tls=None, timeouts=FAST,
                host=receivers.NAME):
        return http_post.post(
            webhook_targets.Target(scheme, host, port, '/hook?a=b'),
            '127.0.0.1', {'webhook-id': 'x'}, b'{"a": 1}',
            tls or receivers.trusting(), timeouts)

    def failed(self, *arguments, **values):
        began = time.monotonic()
        with self.assertRaises(http_post.Failed) as caught:
            self.post(*arguments, **values)
        self.assertLess(time.monotonic() - began, 10)
        return str(caught.exception)


class TestPost(PostTestCase):

    def test_https_and_http(self):
        for name in (receivers.NAME, None):
            receiver = self.receiver(name)
            self.assertEqual(200, self.post(receiver))
            (path, headers, body), = receiver.calls
            self.assertEqual(('/hook?a=b', b'{"a": 1}'), (path, body))
            self.assertEqual(
                {'Host': f'{receivers.NAME}:{receiver.port}',
                 'Content-Type': 'application/json', 'webhook-id': 'x'},
                {name: headers[name] for name in (
                    'Host', 'Content-Type', 'webhook-id')})

    def test_redirects_are_not_followed(self):
        other = self.receiver()
        for code in (301, 302, 303, 307, 308):
            for url in ('http://169.254.169.254/latest/', other.url):
                receiver = self.receiver(answer=receivers.status(
                    code, Location=url))
                self.assertEqual(code, self.post(receiver))
                self.assertEqual(1, len(receiver.calls))
        self.assertEqual([], other.calls)

    def test_proxies_and_password_files_are_not_used(self):
        receiver, proxy = self.receiver(None), self.receiver(None)
        with mock.patch.dict(os.environ, dict.fromkeys(
                ('http_proxy', 'https_proxy', 'ALL_PROXY'),
                f'http://127.0.0.1:{proxy.port}')):
            self.assertEqual(200, self.post(receiver))
        self.assertEqual([], proxy.calls)
        self.assertNotIn('Authorization', receiver.calls[0][1])

    def test_a_huge_answer_is_not_read(self):
        sent = []

        def answer(handler):
            handler.send_response(200)
            handler.send_header('Content-Length', str(10 * 1024 ** 3))
            handler.end_headers()
            for _ in range(10 * 1024):
                handler.wfile.write(bytes(1024 ** 2))
                sent.append(1)

        self.assertEqual(200, self.post(self.receiver(None, answer)))
        # What the sockets of both sides can hold.
        self.assertLess(len(sent), 64)

    def test_endless_headers(self):
        def answer(handler):
            while True:
                handler.wfile.write(b'HTTP/1.1 100 Continue\r\na: b\r\n\r\n')

        self.failed(self.receiver(None, answer))

        def long(handler):
            handler.wfile.write(b'HTTP/1.1 200 OK\r\n')
            while True:
                handler.wfile.write(b'a: b\r\n')

        self.assertEqual('its answer is not HTTP',
                         self.failed(self.receiver(None, long)))

    def test_a_receiver_that_hangs(self):
        receiver = self.receiver(answer=lambda _handler: self.over.wait(20))
        self.assertEqual('it did not answer in time', self.failed(receiver))

    def test_a_receiver_that_sends_a_byte_now_and_then(self):
        def answer(handler):
            for byte in b'HTTP/1.1 200 OK' * 100:
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
                if self.over.wait(0.1):
                    return

        for name in (receivers.NAME, None):
            self.assertEqual('it did not answer in time',
                             self.failed(self.receiver(name, answer)))

    def test_a_body_that_comes_slowly(self):
        def answer(handler):
            handler.send_response(202)
            handler.send_header('Content-Length', '1000')
            handler.end_headers()
            while not self.over.wait(0.1):
                handler.wfile.write(b'x')

        self.assertEqual(202, self.post(self.receiver(None, answer)))

    def test_a_handshake_without_answer(self):
        with receivers.silent() as port:
            with self.assertRaisesRegex(http_post.Failed, 'in time'):
                self.post_to(port, 'https')
            with self.assertRaisesRegex(http_post.Failed, 'in time'):
                self.post_to(port, 'http')

    def test_certificates(self):
        receiver = self.receiver()
        # The system's authorities do not know it.
        self.assertIn('certificate is not valid: self-signed', self.failed(
            receiver, ssl.create_default_context()))
        other = self.receiver('other.example')
        self.assertIn('certificate is not valid: Hostname mismatch',
                      self.failed(other, receivers.trusting('other.example')))
        self.assertEqual([], receiver.calls + other.calls)
        # That of an address.
        self.assertEqual(200, self.post(receiver, host='127.0.0.1'))

    def test_https_to_http(self):
        receiver = self.receiver(None)
        receiver.scheme = 'https'
        self.assertRegex(self.failed(receiver), 'TLS failed|connection failed')

    def test_answers_that_are_not_http(self):
        for text in (b'', b'\r\n\r\n', b'SSH-2.0-OpenSSH_9\r\n',
                     b'HTTP/1.1 banana\r\n\r\n', b'HTTP/1.1 99999 x\r\n\r\n'):
            receiver = self.receiver(None, lambda handler, text=text: (
                handler.wfile.write(text),
                setattr(handler, 'close_connection', True)))
            with self.subTest(text=text):
                self.assertRegex(self.failed(receiver),
                                 'not HTTP|connection failed')

    def test_no_server(self):
        with receivers.silent() as port:
            pass
        with self.assertRaisesRegex(http_post.Failed, 'connection failed'):
            self.post_to(port)

    def test_connections_are_closed(self):
        before = threading.active_count()
        receiver = self.receiver(None)
        for _ in range(3):
            self.post(receiver)
        receiver.close()
        for _ in range(100):
            if threading.active_count() <= before + 1:
                break
            time.sleep(0.02)
        self.assertLessEqual(threading.active_count(), before + 1)
