# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-manage backlog rotate-keys: re-encrypts stored secrets."""

import dataclasses

import nova.conf
from oslo_upgradecheck import upgradecheck

from nova_preempt import db
from nova_preempt.backlog import secret_encryption
from nova_preempt.cmd import arguments
from nova_preempt.db import backlog_secrets
from nova_preempt.db import schema_upgrade
from nova_preempt.db import webhook_secrets

CONF = nova.conf.CONF

COMMAND = 'nova-preempt-manage backlog rotate-keys'


@dataclasses.dataclass
class KeyUse:
    """Secrets of requests and webhooks, by the key of the encryption.

    :ivar current: number of secrets with the first key
    :ivar older: number of secrets with another key of the file
    :ivar lost: the requests and webhooks whose secret no key opens
    """

    current: int = 0
    older: int = 0
    lost: list = dataclasses.field(default_factory=list)


def count_keys(database, keys, renews=False):
    """Count secrets by key; optionally re-encrypt with the first key.

    :param keys: a secret_encryption.SecretCipher
    :raises NoKey, BadKeys:
    """
    found = KeyUse()
    for kind, store in (('request', backlog_secrets),
                        ('the webhook of project', webhook_secrets)):
        for owner, token in store.each(database):
            try:
                newer = keys.renewed(token)
            except secret_encryption.CannotDecrypt:
                found.lost.append(f'{kind} {owner}')
                continue
            if newer == token:
                found.current += 1
                continue
            found.older += 1
            if renews:
                store.replace(database, owner, token, newer)
    return found


def add_parsers(groups):
    """Add "backlog rotate-keys"."""
    commands = arguments.add_group(groups, 'backlog', 'waiting requests')
    commands.add_parser(
        'rotate-keys', help='encrypt secrets of requests and webhooks with '
        'the first key of [backlog]secret_key_file, to let you remove the '
        'others'
    ).set_defaults(run=_rotate)


def _rotate(_args):
    keys = secret_encryption.SecretCipher(CONF.backlog)
    keys.keys()
    found = count_keys(db.Database(CONF), keys, renews=True)
    print(f'{found.older} secrets were encrypted again; {found.current} '
          'already had the first key.')
    for owner in found.lost:
        print(f'No key decrypts the secret of {owner}.')
    return 1 if found.lost else 0


def check(conf, away):
    """Return the upgradecheck.Result of the keys.

    :param away: exceptions of an unavailable database
    """
    code = upgradecheck.Code
    if not (conf.backlog.enabled or conf.preemption_api.webhook_targets):
        return upgradecheck.Result(code.SUCCESS)
    keys = secret_encryption.SecretCipher(conf.backlog)
    try:
        keys.keys()
        database = db.Database(conf)
        schema_upgrade.check(database)
        found = count_keys(database, keys)
    except secret_encryption.NoKey as exc:
        return upgradecheck.Result(
            code.WARNING, f'{exc} Webhooks, and requests for servers with '
            'user data or a password, are refused.')
    except secret_encryption.BadKeys:
        return upgradecheck.Result(code.SUCCESS, 'See "Options".')
    except (schema_upgrade.WrongTables, *away):
        return upgradecheck.Result(
            code.SUCCESS, 'The keys in use cannot be read. See '
            '"Database".')
    if found.lost:
        return upgradecheck.Result(
            code.WARNING, f'No key in [backlog]secret_key_file decrypts '
            f'{len(found.lost)} secrets of requests or webhooks, which are '
            'of no use until you have appended their keys to the file.')
    if found.older:
        return upgradecheck.Result(
            code.SUCCESS, f'{found.older} secrets do not use the first key: '
            f'run "{COMMAND}" before you remove other keys.')
    return upgradecheck.Result(code.SUCCESS)
