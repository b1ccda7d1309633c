# SPDX-License-Identifier: Apache-2.0
"""URLs of webhooks, and the addresses that name servers give."""

import socket
import threading
import unittest
from unittest import mock

from nova_preempt.core import webhook_targets
from nova_preempt.webhook import target_check

RULES = webhook_targets.parse_rules(['https:443'])


class TestFind(unittest.TestCase):

    def find(self, addresses, url='https://example.com/'):
        resolve = mock.Mock(side_effect=[addresses])
        return target_check.find(url, RULES, resolve)

    def test_addresses(self):
        target, addresses = self.find(['8.8.8.8', '2a00:1450::1'])
        self.assertEqual('example.com', target.host)
        self.assertEqual(['8.8.8.8', '2a00:1450::1'], addresses)

    def test_one_that_is_not_public(self):
        for address in ('10.0.0.1', '169.254.169.254', '::1',
                        'fe80::1%eth0'):
            with self.assertRaisesRegex(webhook_targets.Refused,
                                        'not public'):
                self.find(['8.8.8.8', address])

    def test_names_without_address(self):
        for error in (OSError(), UnicodeError()):
            with self.assertRaisesRegex(webhook_targets.Refused,
                                        'cannot be resolved'):
                self.find(error)

    def test_name_servers_that_do_not_answer(self):
        over = threading.Event()
        self.addCleanup(over.set)
        with (mock.patch.object(target_check, 'RESOLVE_S', 0.01),
              mock.patch.object(socket, 'getaddrinfo',
                                lambda *_args, **_values: over.wait(20)),
              self.assertRaisesRegex(webhook_targets.Refused,
                                     'cannot be resolved in 0.01 s')):
            target_check.find('https://example.com/', RULES)

    def test_urls_that_are_refused_are_not_resolved(self):
        resolve = mock.Mock()
        with self.assertRaises(webhook_targets.Refused):
            target_check.find('https://u@example.com/', RULES, resolve)
        resolve.assert_not_called()

    def test_real_names(self):
        self.assertEqual(['127.0.0.1'],
                         target_check.resolve('127.0.0.1', 443))
        # Resolvers read these as addresses, which parse_url() refuses.
        self.assertEqual(['127.0.0.1'],
                         target_check.resolve('2130706433', 443))
        for address in target_check.resolve('localhost', 443):
            with self.assertRaises(webhook_targets.Refused):
                webhook_targets.check_address(address, RULES)
