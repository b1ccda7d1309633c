# SPDX-License-Identifier: Apache-2.0
"""Variants of Nova's own test fixtures."""

import fixtures
from nova import context as nova_context
from nova.tests import fixtures as nova_fixtures


class CellDatabases(nova_fixtures.CellDatabases):
    """Cells' databases for services that really run at the same time.

    The parent points all of the process to the database of the cell that was
    targeted last, behind a lock that a thread holds while it works on the
    cell. Two boots at a time deadlock on it: one holds the lock and waits for
    a transaction to end, in which another waits for the lock. A context knows
    its cell, as in production; what comes without one is of the first cell.
    """

    def _wrap_target_cell(self, context, cell_mapping):
        return self._real_target_cell(context, cell_mapping)

    def _wrap_get_context_manager(self, context):
        connection = getattr(context, 'db_connection', None)
        return connection or self._default_ctxt_mgr


class ConcurrentCells(fixtures.Fixture):
    """Have Nova's tests use the databases above."""

    def _setUp(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova.tests.fixtures.CellDatabases', CellDatabases))


class TokenAuth(fixtures.Fixture):
    """Take "user:project" for a token, as Nova's noauth did.

    Nova's fixture only understands headers that its own test client sends;
    the client of our scheduler sends a token, as clients do. The user "admin"
    is one.
    """

    def _setUp(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova.api.auth.NovaKeystoneContext._create_context',
            self._create_context))

    @staticmethod
    def _create_context(env, **kwargs):
        user, _, project = env.get('HTTP_X_AUTH_TOKEN', '').partition(':')
        user = env.get('HTTP_X_AUTH_USER', user)
        project = env.get('HTTP_X_AUTH_PROJECT_ID', project)
        roles = env.get('HTTP_X_ROLES', 'reader,member,admin').split(',')
        if user != 'admin' and 'HTTP_X_ROLES' not in env:
            roles.remove('admin')
        return nova_context.RequestContext(
            user, project, is_admin=user == 'admin', roles=roles, **kwargs)
