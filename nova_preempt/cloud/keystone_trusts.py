# SPDX-License-Identifier: Apache-2.0

"""Keystone trusts, by which the engine acts as a user.

As in Heat, a trust is made with the user's token. The trustee is the user in
[preemption], who gets tokens of the trustor with the roles and project of the
original token. Such a token cannot be used to make another trust.
"""

import contextlib

from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading as ks_loading
from keystoneauth1 import plugin as ks_plugin
from oslo_log import log as logging

from nova_preempt.conf import preemption
from nova_preempt.core import credential_masking

LOG = logging.getLogger(__name__)

# Options of [preemption] that a trust replaces: it determines the project.
_SCOPE = ('project_id', 'project_name', 'project_domain_id',
          'project_domain_name', 'domain_id', 'domain_name', 'system_scope')
_ENDPOINT = {'service_type': 'identity', 'version': '3',
             'interface': ks_plugin.AUTH_INTERFACE}
# Keystone's refusals of users without permission, or that are gone.
_NO = (ks_exc.Unauthorized, ks_exc.Forbidden, ks_exc.NotFound)


class KeystoneUnavailable(Exception):
    """Keystone does not answer, or does not accept our credentials."""


class TrustRefused(Exception):
    """A token cannot make a trust; the text says why, and what helps."""


class TrustGone(Exception):
    """The user, project, role or trust is gone; has Keystone's words."""


class Trusts:
    """Makes, uses and deletes trusts.

    :param conf: a ConfigOpts with [preemption], whose auth_type must use a
        password: no other credentials can use a trust
    """

    def __init__(self, conf):
        self._conf = conf
        self._service = None

    def create(self, auth_token, project_id, user_id, roles, expires_at=None):
        """Create a user's trust for the user in [preemption]; return its id.

        :param auth_token: the user's token of the project
        :param roles: names of the token's roles
        :param expires_at: naive, in UTC and in whole seconds
        :raises TrustRefused: the token cannot make a trust
        :raises KeystoneUnavailable: it is unknown whether a trust was made
        """
        with _errors('The service user cannot log in'):
            session = self._own()
            trust = {'trustor_user_id': user_id,
                     'trustee_user_id': session.get_user_id(),
                     'project_id': project_id, 'impersonation': True,
                     'allow_redelegation': False,
                     'roles': [{'name': name} for name in sorted(set(roles))]}
            if expires_at is not None:
                trust['expires_at'] = f'{_iso(expires_at)}.000000Z'
        with _errors('A trust cannot be made'):
            try:
                answer = session.post(
                    '/OS-TRUST/trusts', json={'trust': trust},
                    endpoint_filter=_ENDPOINT, authenticated=False,
                    headers={'X-Auth-Token': auth_token})
            except (*_NO, ks_exc.BadRequest) as exc:
                raise TrustRefused(_no_trust(exc)) from exc
        return answer.json()['trust']['id']

    def session(self, trust_id):
        """Return a keystoneauth1 Session as the user, in the user's project.

        :raises TrustGone: the trust cannot be used any more
        :raises KeystoneUnavailable: Keystone does not answer
        """
        session = self._session(trust_id=trust_id, **dict.fromkeys(_SCOPE))
        with _errors('The trust cannot be used'):
            try:
                session.get_token()
            except _NO as exc:
                self.check()
                # Keystone does not tell which of the two cases it is.
                raise TrustGone(
                    'Keystone no longer accepts the trust of the user: a role '
                    'of the user in the project was revoked, or the user, the '
                    f'project or the trust is gone. {_words(exc)}') from exc
        return session

    def delete(self, trust_id):
        """Delete a trust as the user, if it exists.

        :raises KeystoneUnavailable: it may still exist
        """
        try:
            session = self.session(trust_id)
        except TrustGone as exc:
            # It would work again with the user's role, so a trust that we may
            # not delete is not forgotten.
            LOG.info('Trust %(trust)s cannot be used any more: %(exc)s',
                     {'trust': trust_id, 'exc': exc})
            session = self._own()
        with (_errors(f'Trust {trust_id} cannot be deleted'),
              contextlib.suppress(ks_exc.NotFound)):
            session.delete(f'/OS-TRUST/trusts/{trust_id}',
                           endpoint_filter=_ENDPOINT)

    def list(self):
        """Return all trusts of which we are the trustee, as Keystone's dicts.

        There may be very many.

        :raises KeystoneUnavailable: Keystone does not answer
        """
        with _errors('Trusts cannot be listed'):
            session = self._own()
            return session.get('/OS-TRUST/trusts', params={
                'trustee_user_id': session.get_user_id()},
                endpoint_filter=_ENDPOINT).json()['trusts']

    def _own(self):
        """Return a session of the service user."""
        if self._service is None:
            self._service = self._session()
        return self._service

    def check(self):
        """Log in as the service user.

        :raises KeystoneUnavailable: it refuses the user, or does not answer
        """
        with _errors('The service user cannot log in'):
            self._own().invalidate()
            self._own().get_token()

    def _session(self, **values):
        with _errors('[preemption]auth_type does not support trusts'):
            try:
                auth = ks_loading.load_auth_from_conf_options(
                    self._conf, preemption.GROUP, **values)
            except TypeError as exc:
                # Some kinds of credentials do not support trusts.
                raise ks_exc.ClientException(str(exc)) from exc
            return ks_loading.load_session_from_conf_options(
                self._conf, preemption.GROUP, auth=auth)


def marked(listed, user_id, expires_at):
    """Return the ids of a user's trusts that expire at this second.

    :param listed: the result of Trusts.list()
    :param expires_at: as for Trusts.create()
    """
    return [item['id'] for item in listed if item['trustor_user_id'] == user_id
            and (item.get('expires_at') or '')[:19] == _iso(expires_at)]


def _iso(time):
    return time.isoformat(timespec='seconds')


def _no_trust(exc):
    return (
        'This token cannot create the trust that starts your servers later: '
        f'Keystone says "{_words(exc)}" Log in with your password and a role '
        'in the project; tokens of application credentials and of trusts '
        'cannot create trusts.')


def _words(exc):
    return credential_masking.masked(exc.message or str(exc))


@contextlib.contextmanager
def _errors(what):
    """Raise KeystoneUnavailable when keystoneauth fails."""
    try:
        yield
    except ks_exc.ClientException as exc:
        raise KeystoneUnavailable(f'{what}: {_words(exc)}') from exc
