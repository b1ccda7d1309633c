# SPDX-License-Identifier: Apache-2.0
"""Configuration and fakes of the embedded cloud."""

import uuid

import fixtures
from keystoneauth1 import session as ks_session
from keystoneauth1 import token_endpoint
from nova import context as nova_context
from nova.tests import fixtures as nova_fixtures

from nova_preempt.cloud import keystone_trusts

OPTIONS = {
    None: {
        'cpu_allocation_ratio': 1.0,
        'ram_allocation_ratio': 1.0,
        'disk_allocation_ratio': 1.0,
        'reserved_host_cpus': 0,
        'reserved_host_memory_mb': 0,
        'reserved_host_disk_mb': 0,
    },
    'quota': {'instances': -1, 'cores': -1, 'ram': -1},
    'filter_scheduler': {
        'available_filters': [
            'nova.scheduler.filters.all_filters',
            'nova_preempt.scheduler.filters.all_filters'],
        'weight_classes': [
            'nova.scheduler.weights.all_weighers',
            'nova_preempt.scheduler.weights.all_weighers'],
    },
    'preemption': {
        'auth_type': 'admin_token',
        # No guest uses a notice.
        'notice_s': 0,
    },
}

#: {constant of the services: its value here}.
CONSTANTS = {
    # No periodic task refreshes the caches here.
    'nova_preempt.core.scheduling.cloud_view.MAX_AGE_S': 0.0,
    'nova_preempt.core.scheduling.cloud_view.LIST_MAX_AGE_S': 0.0,
    'nova_preempt.cloud.awaited_servers.POLL_INTERVAL_S': 0.02,
}


class CellDatabases(nova_fixtures.CellDatabases):
    """Cells' databases for concurrent services.

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
    """Make Nova's fixtures use the CellDatabases above."""

    def _setUp(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova.tests.fixtures.CellDatabases', CellDatabases))


class TokenAuth(fixtures.Fixture):
    """Accept "user:project" as a token, as Nova's noauth did.

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


class EmbeddedTrusts:
    """Fake of nova_preempt.cloud.keystone_trusts.Trusts.

    :param endpoint: returns the address of nova-api
    :ivar made: {trust id: token} of the existing trusts
    :ivar refused: why Keystone refuses new trusts, '' if it does not
    :ivar away: why Keystone is unavailable, '' if it is available
    :ivar gone: {token: why its trust is no longer valid}
    """

    def __init__(self, endpoint):
        self._endpoint = endpoint
        self.made = {}
        self._expiries = {}
        self.refused = ''
        self.away = ''
        self.gone = {}

    def create(self, auth_token, project_id, user_id, roles, expires_at=None):
        self.check()
        if self.refused:
            raise keystone_trusts.TrustRefused(self.refused)
        trust_id = uuid.uuid4().hex
        self.made[trust_id] = f'{user_id}:{project_id}'
        self._expiries[trust_id] = expires_at
        return trust_id

    def list(self):
        self.check()
        found = []
        for trust_id, token in self.made.items():
            expires_at = self._expiries.get(trust_id)
            found.append({
                'id': trust_id, 'trustor_user_id': token.split(':')[0],
                'expires_at': expires_at and expires_at.isoformat() + 'Z'})
        return found

    def session(self, trust_id):
        self.check()
        token = self.made.get(trust_id)
        if token is None:
            raise keystone_trusts.TrustGone(
                f'Could not find trust: {trust_id}.')
        if token in self.gone:
            raise keystone_trusts.TrustGone(self.gone[token])
        return ks_session.Session(
            token_endpoint.Token(self._endpoint(), token))

    def delete(self, trust_id):
        self.check()
        self.made.pop(trust_id, None)

    def check(self):
        if self.away:
            raise keystone_trusts.KeystoneUnavailable(self.away)
