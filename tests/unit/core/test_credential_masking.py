# SPDX-License-Identifier: Apache-2.0
"""Credentials stay out of messages."""

import unittest

import hypothesis
from hypothesis import strategies

from nova_preempt.core import credential_masking
from tests.unit.core import support

# What an address may have as a password, and more.
PASSWORDS = strategies.text(
    'HUSH%40@:/?#&=', min_size=1).map('Q{}Q'.format)


class TestMasked(unittest.TestCase):

    def test_examples(self):
        for text, expected in (
                ('GET http://me:hush@prom:9090/api: 500',
                 'GET http://***@prom:9090/api: 500'),
                ('mysql+pymysql://me:h@s/h@db/x', 'mysql+pymysql://***@db/x'),
                ('redis://:hush@r1:6379?sentinel=r2',
                 'redis://***@r1:6379?sentinel=r2'),
                ("no 'http://me:hush@a', nor 'http://me:hush@b'",
                 "no 'http://***@a', nor 'http://***@b'"),
                ('redis://r1?db=1&sentinel_password=hush&ssl=true',
                 'redis://r1?db=1&sentinel_password=***&ssl=true'),
                ('http://k?access_token=hush: 401',
                 'http://k?access_token=*** 401'),
                ('http://k/v1 of me@example.org',
                 'http://k/v1 of me@example.org'),
                ('nothing to hide', 'nothing to hide'), ('', '')):
            self.assertEqual(expected, credential_masking.masked(text))

    def test_an_exception(self):
        self.assertEqual('http://***@h', credential_masking.masked(
            ValueError('http://me:hush@h')))

    def test_credentials_are_masked_anywhere_in_a_text(self):
        address = 'redis://me:h%40sh@r1?sentinel_password=still'
        self.assertEqual(
            '*** and *** and ***, r1',
            credential_masking.masked('h@sh and h%40sh and still, r1',
                                      address))
        self.assertEqual('h@sh',
                         credential_masking.masked('h@sh', 'redis://r1'))
        self.assertEqual('me',
                         credential_masking.masked('me', 'redis://me@r1'))

    @support.LAW
    @hypothesis.given(PASSWORDS)
    def test_no_password_is_left(self, password):
        address = f'etcd3+http://me:{password}@host/x'
        for text in (f'GET {address}: refused', f'port {password} is none'):
            self.assertNotIn(password,
                             credential_masking.masked(text, address))
        self.assertNotIn(password, credential_masking.masked(f'at {address}'))
