# SPDX-License-Identifier: Apache-2.0

import pathlib
import tempfile
import types
import unittest

from cryptography import fernet

from nova_preempt.backlog import secret_encryption
from tests.unit.core.backlog import base

SECRETS = {'adminPass': 'hunter2', 'personality': [{'path': '/a'}]}


def key():
    return fernet.Fernet.generate_key().decode()


class TestSealing(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name) / 'keys'
        self.sealing = secret_encryption.SecretCipher(
            types.SimpleNamespace(secret_key_file=str(self.path)))
        self.request = base.request('a', body={'server': dict.fromkeys(
            SECRETS, '***')})

    def write(self, *lines):
        self.path.write_text(''.join(f'{line}\n' for line in lines))

    def open(self, token, uuid='a'):
        return self.sealing.open(base.request(
            uuid, body=self.request.body), {uuid: token}.get)

    def test_there_and_back(self):
        self.write(key())
        token = self.sealing.seal('a', SECRETS)
        self.assertNotIn('hunter2', token)
        self.assertEqual(SECRETS, self.open(token))
        self.assertEqual({}, self.sealing.open(
            base.request('a', body={'server': {}}), None))

    def test_rotation(self):
        old, new = key(), key()
        self.write('# of 2026', old, '')
        token = self.sealing.seal('a', SECRETS)
        self.write(new, old)
        self.assertEqual(SECRETS, self.open(token))
        newer = self.sealing.seal('a', SECRETS)
        self.write(new)
        self.assertEqual(SECRETS, self.open(newer))
        with self.assertRaisesRegex(secret_encryption.CannotDecrypt,
                                    'lacks their key'):
            self.open(token)

    def test_renewal(self):
        old, new = key(), key()
        self.write(old)
        token = self.sealing.seal('a', SECRETS)
        self.assertEqual(token, self.sealing.renewed(token))
        self.write(new, old)
        newer = self.sealing.renewed(token)
        self.assertNotEqual(token, newer)
        self.write(new)
        self.assertEqual(SECRETS, self.open(newer))
        self.assertEqual(newer, self.sealing.renewed(newer))
        for lost in (token, 'x'):
            self.assertRaises(secret_encryption.CannotDecrypt,
                              self.sealing.renewed, lost)

    def test_invalid_ciphertexts(self):
        self.write(key())
        token = self.sealing.seal('a', SECRETS)
        for broken in (None, '', token[:-1], f'{token}x', 'ä'):
            with self.assertRaises(secret_encryption.CannotDecrypt):
                self.open(broken)
        with self.assertRaisesRegex(secret_encryption.CannotDecrypt,
                                    'another request'):
            self.open(token, 'b')
        self.path.unlink()
        with self.assertRaisesRegex(
                secret_encryption.CannotDecrypt,
                'cannot be decrypted now') as caught:
            self.open(token)
        self.assertNotIn(str(self.path), str(caught.exception))
        self.assertIn(f'{self.path}: No such file', caught.exception.detail)

    def test_bad_files(self):
        for lines, text in (([], 'has no key'), (['# x'], 'has no key'),
                            ([key(), 'hunter2'], 'line 2 must be a key'),
                            (['hünter2'], 'line 1 must be a key'),
                            ([key()[:-4]], 'line 1 must be a key')):
            self.write(*lines)
            with self.assertRaisesRegex(secret_encryption.BadKeys,
                                        text) as caught:
                self.sealing.keys()
            self.assertNotIn('nter2', str(caught.exception))
            self.assertIsNone(caught.exception.__cause__)
        self.path.unlink()
        with self.assertRaisesRegex(secret_encryption.BadKeys, 'No such file'):
            self.sealing.keys()
        self.write(key(), key())
        self.sealing.keys()
        with self.assertRaises(secret_encryption.NoKey):
            secret_encryption.SecretCipher(types.SimpleNamespace(
                secret_key_file='')).keys()


if __name__ == '__main__':
    unittest.main()
