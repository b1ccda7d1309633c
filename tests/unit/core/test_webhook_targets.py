# SPDX-License-Identifier: Apache-2.0
"""URLs and addresses to which webhooks may be sent."""

import ipaddress
import unittest

import hypothesis
from hypothesis import strategies

from nova_preempt.core import webhook_targets

RULES = webhook_targets.parse_rules(['https:443', 'https:8443'])


class TestRules(unittest.TestCase):

    def test_entries(self):
        rules = webhook_targets.parse_rules(
            ['https:443', 'http:80', '-9.9.9.0/24', '+10.1.0.0/16',
             '-2a00::/16'])
        self.assertEqual({('https', 443), ('http', 80)}, rules.ports)
        self.assertEqual(['9.9.9.0/24', '2a00::/16'],
                         [str(network) for network in rules.refused])
        self.assertEqual(['10.1.0.0/16'],
                         [str(network) for network in rules.allowed])
        self.assertEqual(webhook_targets.Rules(),
                         webhook_targets.parse_rules([]))

    def test_entries_that_are_none(self):
        for entry in ('', 'https', 'https:', 'https:0', 'https:65536',
                      'ftp:21', 'https:443/tcp', '10.0.0.0/8', '-10.0.0.1/8',
                      '+x', '-', 'https:²'):
            with self.subTest(entry=entry), self.assertRaises(ValueError):
                webhook_targets.parse_rules([entry])


class TestUrls(unittest.TestCase):

    def refused(self, url, rules=RULES):
        with self.assertRaises(webhook_targets.Refused) as caught:
            webhook_targets.parse_url(url, rules)
        return str(caught.exception)

    def test_parts(self):
        for url, authority, parts in (
                ('https://example.com', 'example.com',
                 ('https', 'example.com', 443, '/')),
                ('https://EXAMPLE.com:8443/a/b?c=d&e', 'example.com:8443',
                 ('https', 'example.com', 8443, '/a/b?c=d&e')),
                ('https://xn--bcher-kva.example/', 'xn--bcher-kva.example',
                 ('https', 'xn--bcher-kva.example', 443, '/')),
                ('https://8.8.8.8/', '8.8.8.8',
                 ('https', '8.8.8.8', 443, '/')),
                ('https://[2a00:1450::1]:8443/', '[2a00:1450::1]:8443',
                 ('https', '2a00:1450::1', 8443, '/'))):
            with self.subTest(url=url):
                found = webhook_targets.parse_url(url, RULES)
                self.assertEqual(webhook_targets.Target(*parts), found)
                self.assertEqual(authority, found.authority)

    def test_refused(self):
        for url, why in (
                ('https://user:password@example.com/', 'no user'),
                ('https://@example.com/', 'no user'),
                ('https://example.com\\@evil.example/', 'backslashes'),
                ('https://example.com/\r\nX: y', 'ASCII'),
                ('https://exam ple.com/', 'ASCII'),
                ('https://bücher.example/', 'xn--'),
                ('https://ⓔxample.com/', 'xn--'),
                ('https://example.com/#a', 'fragment'),
                ('http://example.com/', 'https at port 443'),
                ('https://example.com:22/', 'https at port 443'),
                ('https://example.com:99999/', 'not a valid URL'),
                ('https://example.com:x/', 'not a valid URL'),
                ('https://example.com:0/', 'https at port 443'),
                ('ftp://example.com/', 'begin with https'),
                ('file:///etc/passwd', 'begin with https'),
                ('example.com', 'begin with https'),
                ('https://', 'its host must be'),
                ('https:///path', 'its host must be'),
                ('https://example.com.', 'its host must be'),
                ('https://example.com//a', 'one slash'),
                # Spellings of 127.0.0.1 and 169.254.169.254.
                ('https://2130706433/', 'its host must be'),
                ('https://0x7f.1/', 'its host must be'),
                ('https://0x7f000001/', 'its host must be'),
                ('https://0177.0.0.1/', 'its host must be'),
                ('https://127.1/', 'its host must be'),
                ('https://[::1%25lo]/', 'its host must be'),
                ('https://[2a00:1450::1%eth0]/', 'its host must be'),
                ('https://[example.com]/', ''),
                ('https://127.0.0.1/', 'not public'),
                ('https://169.254.169.254/latest/', 'not public'),
                ('https://[::ffff:169.254.169.254]/', 'not public')):
            with self.subTest(url=url):
                self.assertIn(why, self.refused(url))

    def test_off(self):
        self.assertIn('no webhooks', self.refused(
            'https://example.com/', webhook_targets.Rules()))

    def test_refusals_do_not_quote_the_url(self):
        for url in ('ftp://hunter2/', 'https://hunter2@example.com/',
                    'https://10.0.0.1/hunter2', 'https://a/#hunter2'):
            self.assertNotIn('hunter2', self.refused(url))

    def test_origin(self):
        for url, origin in (
                ('https://example.com/hooks/secret', 'https://example.com'),
                ('https://user:secret@example.com/x', 'example.com'),
                ('nothing', 'nothing')):
            self.assertEqual(origin, webhook_targets.origin(url))

    @hypothesis.given(strategies.text())
    def test_any_text(self, text):
        """Each text is refused, or its parts make the same URL."""
        for url in (text, f'https://{text}'):
            try:
                found = webhook_targets.parse_url(url, RULES)
            except webhook_targets.Refused:
                continue
            self.assertTrue(url.lower().startswith(
                f'https://{found.host}'.replace('https://', 'https://[')
                if ':' in found.host else f'https://{found.host}'))


class TestAddresses(unittest.TestCase):

    def is_refused(self, address, rules=RULES):
        try:
            webhook_targets.check_address(address, rules)
        except webhook_targets.Refused:
            return True
        return False

    def test_addresses_that_are_not_public(self):
        for address in (
                '0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1',
                '127.255.255.255', '169.254.169.254', '172.16.0.1',
                '172.31.255.255', '192.0.0.8', '192.0.2.1', '192.88.99.1',
                '192.168.1.1', '198.18.0.1', '198.51.100.1', '203.0.113.1',
                '224.0.0.1', '239.1.1.1', '240.0.0.1', '255.255.255.255',
                '::', '::1', '::ffff:8.8.8.8', '::8.8.8.8', 'fe80::1',
                'fe80::1%eth0', 'fc00::1', 'fd00:ec2::254', 'ff02::1',
                '64:ff9b::a9fe:a9fe', '64:ff9b:1::a00:1', '100::1',
                '2001::1', '2001:db8::1', '2002:a9fe:a9fe::1', '3fff::1',
                'fec0::1', '4000::1'):
            with self.subTest(address=address):
                self.assertTrue(self.is_refused(address))

    def test_public_addresses(self):
        for address in ('8.8.8.8', '1.1.1.1', '223.255.255.255', '172.32.0.1',
                        '2606:4700:4700::1111', '2a00:1450:4001:830::200e'):
            with self.subTest(address=address):
                self.assertFalse(self.is_refused(address))

    def test_networks_of_the_operator(self):
        rules = webhook_targets.parse_rules(
            ['-8.8.0.0/16', '+10.1.0.0/16', '-10.1.7.0/24'])
        for address, refused in (
                ('8.8.8.8', True), ('8.9.8.8', False), ('10.1.2.3', False),
                ('10.1.7.1', True), ('10.2.0.1', True)):
            with self.subTest(address=address):
                self.assertEqual(refused, self.is_refused(address, rules))

    @hypothesis.given(strategies.ip_addresses())
    def test_whatever_python_knows_as_not_global(self, address):
        if not address.is_global or address.is_multicast or (
                address.is_reserved):
            self.assertTrue(self.is_refused(str(address)))

    def test_special_networks(self):
        """The first and last addresses of each are refused."""
        for network in webhook_targets._NOT_PUBLIC:
            for address in (network[0], network[-1]):
                self.assertTrue(self.is_refused(str(address)))
        self.assertFalse(ipaddress.ip_address('2000::1') not in
                         webhook_targets._PUBLIC_V6)
