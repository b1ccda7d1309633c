# SPDX-License-Identifier: Apache-2.0
"""Trusts where there is no Keystone: tokens are "user:project" here."""

import uuid

from keystoneauth1 import session as ks_session
from keystoneauth1 import token_endpoint

from nova_preempt.cloud import keystone_trusts


class EmbeddedTrusts:
    """The same as nova_preempt.cloud.keystone_trusts.Trusts.

    :param endpoint: returns the address of nova-api
    :ivar made: {trust id: token} of those that there are
    :ivar refused: why no trust can be made, '' if it can
    :ivar away: why Keystone cannot be asked, '' if it can
    :ivar gone: {token: why it may nothing any more}
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
            raise keystone_trusts.KeystoneError(self.away)
