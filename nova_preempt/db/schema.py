# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""The tables: made, upgraded, and which revision they are at."""

import os

import alembic.command
import alembic.config
import alembic.migration
import alembic.script

_MIGRATIONS = os.path.join(os.path.dirname(__file__), 'migrations')


def sync(database, revision='head'):
    """Make or upgrade the tables."""
    config = _config()
    with _engine(database).begin() as connection:
        config.attributes['connection'] = connection
        alembic.command.upgrade(config, revision)


def get_revision(database):
    """The revision of the tables, None if there are none."""
    with _engine(database).connect() as connection:
        context = alembic.migration.MigrationContext.configure(connection)
        return context.get_current_revision()


def latest_revision():
    """The revision of this version's tables."""
    script = alembic.script.ScriptDirectory.from_config(_config())
    return script.get_current_head()


def _engine(database):
    return database.engine


def _config():
    config = alembic.config.Config(os.path.join(_MIGRATIONS, 'alembic.ini'))
    config.set_main_option('script_location', _MIGRATIONS)
    return config
