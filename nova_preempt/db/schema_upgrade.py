# SPDX-License-Identifier: Apache-2.0
"""Creates and upgrades the tables, and checks their revision."""

import os

import alembic.command
import alembic.config
import alembic.migration
import alembic.script

from nova_preempt import exceptions

_MIGRATIONS = os.path.join(os.path.dirname(__file__), 'migrations')


class WrongTables(exceptions.InvalidConfiguration):
    """The tables do not match this version; the text says how to fix it."""


def sync(database):
    """Create or upgrade the tables.

    :raises WrongTables: if the tables cannot be upgraded
    """
    found = get_revision(database)
    if found is not None and not _is_known(found):
        raise WrongTables(_describe(found))
    config = _config()
    with database.engine.begin() as connection:
        config.attributes['connection'] = connection
        alembic.command.upgrade(config, 'head')


def check(database):
    """Check that the tables need no sync().

    :raises WrongTables: if the tables do not match this version
    """
    found = get_revision(database)
    if found != latest_revision():
        raise WrongTables(_describe(found))


def get_revision(database):
    """Return the revision of the tables, None if there are none."""
    if not database.is_there:
        return None
    with database.engine.connect() as connection:
        context = alembic.migration.MigrationContext.configure(connection)
        return context.get_current_revision()


def latest_revision():
    """Return the revision of this version's tables."""
    return _scripts().get_current_head()


def _is_known(revision):
    return any(item.revision == revision
               for item in _scripts().walk_revisions())


def _describe(revision):
    where = 'The database of [preemption_database]connection'
    if revision is None:
        return f'{where} has no tables: run "nova-preempt-manage db sync".'
    if _is_known(revision):
        return (f'{where} is at revision {revision}, not at '
                f'{latest_revision()}: run "nova-preempt-manage db sync".')
    return (f'{where} is at revision {revision}, which this version does not '
            'know: a later version made its tables, or one before the first '
            'release, from which there is no upgrade (drop the tables and '
            'run "nova-preempt-manage db sync").')


def _scripts():
    return alembic.script.ScriptDirectory.from_config(_config())


def _config():
    config = alembic.config.Config(os.path.join(_MIGRATIONS, 'alembic.ini'))
    config.set_main_option('script_location', _MIGRATIONS)
    return config
