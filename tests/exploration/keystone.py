# SPDX-License-Identifier: Apache-2.0
"""Keystone in memory: trusts, and sessions of users and of the service user.

A session stands for one of keystoneauth1. Its token is of the trust, or of the
service user, and is checked by Keystone and Nova at each call. A token that
users send is 'token of USER'.
"""

import datetime
import uuid as uuids

from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import session as ks_session
from oslo_utils import timeutils

from tests.exploration import placement

SERVICE_USER = 'service'


class MemoryKeystone:
    """Trusts, and users who may lose their roles.

    :ivar trusts: {id: as Keystone shows it}
    :ivar without_role: users whose trusts cannot be used now
    """

    def __init__(self):
        self.trusts = {}
        self.without_role = set()

    def create(self, trust, token):
        """Create a trust; returns it.

        :raises Forbidden: the token is not of its trustor, or without a role
        """
        user = trust['trustor_user_id']
        if token != f'token of {user}' or user in self.without_role:
            raise ks_exc.Forbidden('explored: no role', http_status=403)
        found = {**trust, 'id': uuids.uuid4().hex, 'deleted_at': None}
        self.trusts[found['id']] = found
        return found

    def check(self, trust_id):
        """Return the trust if its token can be had.

        :raises NotFound, Unauthorized: as Keystone refuses it
        """
        trust = self.trusts.get(trust_id)
        if trust is None or self._is_over(trust):
            raise ks_exc.NotFound('explored: no such trust', http_status=404)
        if trust['trustor_user_id'] in self.without_role:
            raise ks_exc.Unauthorized('explored: no role', http_status=401)
        return trust

    @staticmethod
    def _is_over(trust):
        until = trust.get('expires_at')
        return bool(until) and timeutils.utcnow() >= (
            datetime.datetime.fromisoformat(until.rstrip('Z')))

    def delete(self, trust_id):
        if self.trusts.pop(trust_id, None) is None:
            raise ks_exc.NotFound('explored: no such trust', http_status=404)


class Session(ks_session.Session):
    """A session of the service user, or of the user of a trust.

    :param world: a world.World
    :param trust_id: None for the service user
    """

    def __init__(self, world, trust_id=None):
        self.auth = self._session = None
        self._world = world
        self._trust_id = trust_id

    def _keystone(self, what, function):
        return self._world.call('keystone', what, function)

    # -- Keystone --------------------------------------------------------

    def get_user_id(self, auth=None):
        return SERVICE_USER

    def get_token(self, auth=None):
        def read():
            if self._trust_id is not None:
                self._world.keystone.check(self._trust_id)
            return 'token'
        return self._keystone('token', read)

    def invalidate(self, auth=None):
        return True

    def post(self, url, json=None, headers=None, **kwargs):
        return placement.Response(201, {'trust': self._keystone(
            'create trust', lambda: self._world.keystone.create(
                json['trust'], headers['X-Auth-Token']))})

    def get(self, url, params=None, **kwargs):
        return placement.Response(200, {'trusts': self._keystone(
            'list trusts',
            lambda: list(self._world.keystone.trusts.values()))})

    def delete(self, url, **kwargs):
        trust_id = url.rpartition('/')[2]
        self._keystone(f'delete trust {trust_id[:8]}',
                       lambda: self._world.keystone.delete(trust_id))

    # -- Nova ------------------------------------------------------------

    def get_endpoint(self, auth=None, **kwargs):
        return 'http://nova'

    def request(self, url, method, json=None, raise_exc=True, params=None,
                headers=None, **kwargs):
        """Call Nova's API as the user."""
        def call():
            user = SERVICE_USER
            if self._trust_id is not None:
                user = self._world.keystone.check(
                    self._trust_id)['trustor_user_id']
            return self._world.user_api.call(user, method, url, json)

        try:
            answer = self._world.call('nova api', f'{method} {url}', call)
        except ks_exc.ServiceUnavailable:
            answer = placement.Response(503)
        if answer.status_code >= 400 and raise_exc:
            raise ks_exc.from_response(answer, method, url)
        return answer
