# SPDX-License-Identifier: Apache-2.0
"""Hosts that the backlog has chosen for boots, and turns of projects.

Chosen hosts are stored under a digest of their secret, so that a reader of
the database learns no secret that still works.
"""

import hashlib

import sqlalchemy as sa

from nova_preempt.core.backlog import boot_host_choice
from nova_preempt.core.backlog import kept_host_turns
from nova_preempt.db import backlog_models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

_CHOSEN = backlog_models.BacklogChosenHosts
_TURN = backlog_models.BacklogTurn


@transaction_retries.retried_upsert
def keep_choice(database, secret, choice):
    """Store the hosts that were chosen for a boot, under a secret.

    :param choice: a core.backlog.boot_host_choice.ChosenHosts
    """
    with database.writer() as session:
        row_schemas.upsert(session, _CHOSEN, {'digest': _digest(secret)},
                           row_schemas.values(choice))


def get_choice(database, secret):
    """Return the ChosenHosts stored under a secret, None if there is none."""
    return next(iter(_choices(database, _CHOSEN.digest == _digest(secret))),
                None)


@transaction_retries.retried
def use_choice(database, secret):
    """Mark a choice as used; return whether it was unused."""
    return database.write(sa.update(_CHOSEN).where(
        _CHOSEN.digest == _digest(secret),
        _CHOSEN.used == sa.false()).values(used=True)) == 1


def hosts_of_boots(database):
    """Return {(request uuid, boot number): {host: number of servers}}."""
    return {(item.request_uuid, item.number): item.hosts
            for item in _choices(database)}


@transaction_retries.retried
def forget_choices(database, before):
    """Delete choices that expired before then."""
    database.write(sa.delete(_CHOSEN).where(_CHOSEN.expires_at < before))


def _digest(secret):
    # JSON may have lone surrogates, which UTF-8 lacks; no secret has them.
    return hashlib.sha256(secret.encode(errors='surrogatepass')).hexdigest()


def _choices(database, *conditions):
    cls = boot_host_choice.ChosenHosts
    return [cls(*row) for row in database.read(
        row_schemas.select(_CHOSEN, cls).where(*conditions))]


def get_turns(database):
    """Return {project_id: core.backlog.kept_host_turns.ProjectTurn}."""
    turn = kept_host_turns.ProjectTurn
    return {project: turn(*values) for project, *values in database.read(
        row_schemas.select(_TURN, turn, 'project_id'))}


@transaction_retries.retried_upsert
def replace_turns(database, before, after):
    """Write the turns that a pass has changed.

    :param before: what get_turns() returned
    :param after: the same after the pass
    """
    changed = {project: turn for project, turn in sorted(after.items())
               if turn != before.get(project)}
    gone = sorted(before.keys() - after.keys())
    if not changed and not gone:
        return
    with database.writer() as session:
        for project in gone:
            session.execute(sa.delete(_TURN).where(
                _TURN.project_id == project))
        for project, turn in changed.items():
            row_schemas.upsert(session, _TURN, {'project_id': project},
                               row_schemas.values(turn))
