# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-manage backlog rotate-keys: re-encrypts secrets of requests."""

import dataclasses

import nova.conf
from oslo_upgradecheck import upgradecheck

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt.backlog import secret_encryption
from nova_preempt.cmd import arguments
from nova_preempt.db import backlog_secrets
from nova_preempt.db import schema_upgrade

CONF = nova.conf.CONF

COMMAND = 'nova-preempt-manage backlog rotate-keys'


@dataclasses.dataclass
class KeyUse:
    """Requests with secrets, by the key of the encryption.

    :ivar current: number of requests with the first key
    :ivar older: number of requests with another key of the file
    :ivar lost: uuids of requests that no key opens
    """

    current: int = 0
    older: int = 0
    lost: list = dataclasses.field(default_factory=list)


def count_keys(database, keys, renews=False):
    """Count requests by key; optionally re-encrypt with the first key.

    :param keys: a secret_encryption.SecretCipher
    :raises NoKey, BadKeys:
    """
    found = KeyUse()
    for uuid, token in backlog_secrets.each(database):
        try:
            newer = keys.renewed(token)
        except secret_encryption.CannotDecrypt:
            found.lost.append(uuid)
            continue
        if newer == token:
            found.current += 1
            continue
        found.older += 1
        if renews:
            backlog_secrets.replace(database, uuid, token, newer)
    return found


def add_parsers(groups):
    """Add "backlog rotate-keys"."""
    commands = arguments.add_group(groups, 'backlog', 'waiting requests')
    commands.add_parser(
        'rotate-keys', help='encrypt secrets of requests with the first key '
        'of [backlog]secret_key_file, to let you remove the others'
    ).set_defaults(run=_rotate)


def _rotate(_args):
    keys = secret_encryption.SecretCipher(CONF.backlog)
    try:
        keys.keys()
        found = count_keys(db.Database(CONF), keys, renews=True)
    except (secret_encryption.NoKey, secret_encryption.BadKeys) as exc:
        raise exceptions.InvalidConfiguration(str(exc)) from exc
    print(f'{found.older} requests were encrypted again; {found.current} '
          'already had the first key.')
    for uuid in found.lost:
        print(f'No key decrypts request {uuid}.')
    return 1 if found.lost else 0


def check(conf, away):
    """Return the upgradecheck.Result of the keys.

    :param away: exceptions of an unavailable database
    """
    code = upgradecheck.Code
    if not conf.backlog.enabled:
        return upgradecheck.Result(code.SUCCESS)
    keys = secret_encryption.SecretCipher(conf.backlog)
    try:
        keys.keys()
        database = db.Database(conf)
        schema_upgrade.check(database)
        found = count_keys(database, keys)
    except secret_encryption.NoKey as exc:
        return upgradecheck.Result(
            code.WARNING, f'{exc} Requests for servers with user data or a '
            'password are refused.')
    except secret_encryption.BadKeys:
        return upgradecheck.Result(code.SUCCESS, 'See "Options".')
    except (schema_upgrade.WrongTables, *away):
        return upgradecheck.Result(
            code.SUCCESS, 'The keys in use cannot be read. See '
            '"Database".')
    if found.lost:
        return upgradecheck.Result(
            code.WARNING, f'No key in [backlog]secret_key_file decrypts '
            f'{len(found.lost)} requests; they start only after you have '
            'appended their keys to the file.')
    if found.older:
        return upgradecheck.Result(
            code.SUCCESS, f'{found.older} requests do not use the first key: '
            f'run "{COMMAND}" before you remove other keys.')
    return upgradecheck.Result(code.SUCCESS)
