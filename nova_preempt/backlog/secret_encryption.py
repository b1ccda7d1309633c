# SPDX-License-Identifier: Apache-2.0
"""Encrypts the secrets of waiting requests and of webhooks.

Uses Fernet of the package cryptography: AES in CBC mode with an HMAC. A file
has the keys, one a line: the first encrypts, all decrypt. It is read for each
use, so a new key needs no restart.
"""

import json

from cryptography import fernet

from nova_preempt import exceptions
from nova_preempt.core.backlog import redaction


class NoKey(exceptions.InvalidConfiguration):
    """The operator has set no key file."""


class BadKeys(exceptions.InvalidConfiguration):
    """The key file cannot be used; the message does not quote it."""


class CannotDecrypt(Exception):
    """The secrets of a request cannot be decrypted now.

    :ivar detail: the message for operators, with the path of the key file
    """

    def __init__(self, text, detail=''):
        super().__init__(text)
        self.detail = detail or text


def check(conf):
    """Raise where [backlog]secret_key_file is set and cannot be used.

    Without a key file the backlog refuses requests with secrets.

    :raises BadKeys:
    """
    if conf.backlog.enabled and conf.backlog.secret_key_file:
        SecretCipher(conf.backlog).keys()


class SecretCipher:
    """Encrypts and decrypts the secrets of requests and webhooks.

    :param options: [backlog] of the configuration
    """

    def __init__(self, options):
        self._options = options

    def seal(self, request_uuid, secrets):
        """Return the encrypted secrets of a request or webhook.

        :param request_uuid: or the id of the webhook's project
        :raises NoKey, BadKeys:
        """
        # With the uuid, so that they cannot be put into another request.
        plain = json.dumps({'request': request_uuid, 'secrets': secrets})
        return self.keys()[0].encrypt(plain.encode()).decode()

    def open(self, request, sealed):
        """Return {member of "server": value}, {} if the request has none.

        :param request: a core Request
        :param sealed: called with the uuid if it has secrets; returns what
            seal() did, None if they were deleted
        :raises CannotDecrypt:
        """
        if not redaction.secrets(request.body):
            return {}
        token = sealed(request.uuid)
        if not token:
            raise CannotDecrypt('Its password and user data were deleted.')
        return self.unseal(request.uuid, token)

    def unseal(self, owner, token):
        """Return the secrets that seal() has encrypted for an owner.

        :raises CannotDecrypt: its text is about a request
        """
        try:
            plain = json.loads(
                fernet.MultiFernet(self.keys()).decrypt(token.encode()))
        except fernet.InvalidToken:
            raise CannotDecrypt(
                'Its password and user data cannot be decrypted: the key file '
                'of the service lacks their key. Its operator can add it.'
            ) from None
        except (NoKey, BadKeys) as exc:
            text = 'Its password and user data cannot be decrypted now'
            raise CannotDecrypt(
                f'{text}, as the key file of the service is invalid.',
                f'{text}: {exc}') from None
        if plain['request'] != owner:
            raise CannotDecrypt('Its password and user data belong to '
                                'another request.')
        return plain['secrets']

    def renewed(self, token):
        """Return a token encrypted with the first key.

        It is the same token if it was already.

        :raises CannotDecrypt: no key decrypts it
        :raises NoKey, BadKeys:
        """
        keys = self.keys()
        try:
            keys[0].decrypt(token.encode())
        except fernet.InvalidToken:
            try:
                return fernet.MultiFernet(keys).rotate(token.encode()).decode()
            except fernet.InvalidToken:
                raise CannotDecrypt('No key decrypts it.') from None
        return token

    def keys(self):
        """Return the keys of the file; the first encrypts, all decrypt.

        :raises NoKey, BadKeys:
        """
        path = self._options.secret_key_file
        if not path:
            raise NoKey('[backlog]secret_key_file is not set.')
        try:
            with open(path, encoding='ascii', errors='replace') as file:
                lines = [line.strip() for line in file]
        except OSError as exc:
            raise BadKeys(f'[backlog]secret_key_file {path}: '
                          f'{exc.strerror}.') from None
        keys = []
        for number, line in enumerate(lines, 1):
            if line and not line.startswith('#'):
                try:
                    keys.append(fernet.Fernet(line))
                except ValueError:
                    raise BadKeys(
                        f'[backlog]secret_key_file {path}: line {number} must '
                        'be a key of 32 bytes as URL-safe base64.'
                    ) from None
        if not keys:
            raise BadKeys(f'[backlog]secret_key_file {path} has no key.')
        return keys
