# SPDX-License-Identifier: Apache-2.0
"""Changing the key of secrets of requests, and which keys are needed."""

import contextlib
import io
import os
import pathlib
import tempfile
from unittest import mock

from cryptography import fernet

from nova_preempt import db
from nova_preempt.backlog import secret_encryption
from nova_preempt.cmd import manage
from nova_preempt.cmd import rotate_keys
from nova_preempt.core import webhook_delivery
from nova_preempt.core.backlog import backlog_model
from nova_preempt.db import backlog_secrets
from nova_preempt.db import backlog_store
from nova_preempt.db import webhooks
from tests.unit.api import base
from tests.unit.db import test_backlog_store

SECRETS = {'adminPass': 'hunter2'}


def key():
    return fernet.Fernet.generate_key().decode()


class RotateTestCase(base.DatabaseTestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        self.conf.set_override('enabled', True, 'backlog')
        self.conf.set_override('secret_key_file', str(self.folder / 'keys'),
                               'backlog')
        self.sealing = secret_encryption.SecretCipher(self.conf.backlog)
        self.enterContext(mock.patch.object(rotate_keys, 'CONF', self.conf))

    def write(self, *keys):
        (self.folder / 'keys').write_text('\n'.join(keys))

    def leave(self, *uuids):
        for uuid in uuids:
            backlog_store.create(self.db, test_backlog_store.request(
                uuid, body={'server': {'adminPass': '***'}}),
                sealed=self.sealing.seal(uuid, SECRETS))

    def opened(self, uuid):
        return self.sealing.open(
            backlog_store.get(self.db, uuid),
            lambda uuid: backlog_secrets.get(self.db, uuid))

    def rotate(self):
        """Return (exit status, output)."""
        args = manage._parser().parse_args(['backlog', 'rotate-keys'])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = args.run(args)
        return status, out.getvalue()


class TestRotate(RotateTestCase):

    def test_the_old_key_may_go(self):
        old, new = key(), key()
        self.write(old)
        with mock.patch.object(backlog_secrets, '_AT_ONCE', 2):
            self.leave('r1', 'r2', 'r3', 'r4')
            self.write(new, old)
            self.leave('r5')
            backlog_store.change(self.db, 'r2', backlog_model.OPEN,
                                 test_backlog_store.NOW,
                                 state=backlog_model.CANCELLED)
            status, text = self.rotate()
        self.assertEqual(0, status)
        self.assertIn('3 secrets were encrypted again; 1 already', text)
        self.write(new)
        for uuid in ('r1', 'r3', 'r4', 'r5'):
            self.assertEqual(SECRETS, self.opened(uuid))
        self.assertIsNone(backlog_secrets.get(self.db, 'r2'))
        self.assertIn('0 secrets were encrypted again; 4', self.rotate()[1])

    def test_webhooks(self):
        old, new = key(), key()
        self.write(old)
        now = test_backlog_store.NOW
        for project in ('p', 'q'):
            webhooks.put(self.db, webhook_delivery.Webhook(
                project, '', self.sealing.seal(project, 'hunter2'), 'u', now,
                now))
        self.write(new, old)
        self.assertIn('2 secrets were encrypted again', self.rotate()[1])
        self.write(new)
        self.assertEqual('hunter2', self.sealing.unseal(
            'p', webhooks.get(self.db, 'p').sealed))
        with self.assertRaises(secret_encryption.CannotDecrypt):
            self.sealing.unseal('q', webhooks.get(self.db, 'p').sealed)
        self.write(key())
        self.assertIn('decrypts the secret of the webhook of project q.',
                      self.rotate()[1])

    def test_a_request_that_no_key_decrypts(self):
        self.write(key())
        self.leave('r1')
        self.write(key())
        before = backlog_secrets.get(self.db, 'r1')
        status, text = self.rotate()
        self.assertEqual(1, status)
        self.assertIn('No key decrypts the secret of request r1.', text)
        self.assertEqual(before, backlog_secrets.get(self.db, 'r1'))

    def test_a_request_that_is_closed_meanwhile(self):
        old = key()
        self.write(old)
        self.leave('r1')
        self.write(key(), old)
        renewed = secret_encryption.SecretCipher.renewed

        def close(keys, token):
            backlog_store.change(self.db, 'r1', backlog_model.OPEN,
                                 test_backlog_store.NOW,
                                 state=backlog_model.CANCELLED)
            return renewed(keys, token)

        with mock.patch.object(secret_encryption.SecretCipher, 'renewed',
                               close):
            self.rotate()
        self.assertIsNone(backlog_secrets.get(self.db, 'r1'))

    def test_without_keys(self):
        for keys, text in (((), 'has no key'),
                           (('hunter2',), 'line 1 must be a key')):
            self.write(*keys)
            with self.assertRaisesRegex(
                    manage.exceptions.InvalidConfiguration, text):
                self.rotate()


class TestCheck(RotateTestCase):

    def check(self):
        found = rotate_keys.check(self.conf, (OSError,))
        return found.code.name, found.details

    def test_keys_in_use(self):
        old, new = key(), key()
        self.write(old)
        self.leave('r1', 'r2')
        self.assertEqual(('SUCCESS', None), self.check())
        self.write(new, old)
        code, text = self.check()
        self.assertEqual('SUCCESS', code)
        self.assertIn('2 secrets do not use the first key', text)
        before = backlog_secrets.get(self.db, 'r1')
        self.write(new)
        code, text = self.check()
        self.assertEqual('WARNING', code)
        self.assertIn('decrypts 2 secrets', text)
        # It only looks.
        self.assertEqual(before, backlog_secrets.get(self.db, 'r1'))

    def test_without_a_database(self):
        self.write(key())
        path = self.folder / 'none.sqlite'
        self.conf.set_override('connection', f'sqlite:///{path}',
                               'preemption_database')
        self.assertIn('cannot be read', self.check()[1])
        self.assertFalse(os.path.exists(path))
        with mock.patch.object(db, 'Database', side_effect=OSError):
            self.assertEqual('SUCCESS', self.check()[0])
