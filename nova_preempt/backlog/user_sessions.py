# SPDX-License-Identifier: Apache-2.0
"""Acting as the users who have left requests."""

import collections
import contextlib

from oslo_log import log as logging

from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import nova_as_user
from nova_preempt.core.backlog import backlog_model

LOG = logging.getLogger(__name__)

# Each may take as long as an answer is waited for.
_MOST_FAILURES = 5
# So long a user's quotas are waited for, in seconds: a pass waits meanwhile.
_LIMITS_TIMEOUT_S = 5
# Who fails again and again has a turn at each so many looks, at last.
_LONGEST = 64


class UserUnavailable(Exception):
    """In the name of this user nobody can be asked; others may be."""


class NoAnswer(UserUnavailable):
    """Nova did not answer, for this user alone or for all."""


class NotDeleted(UserUnavailable):
    """The user may do nothing any more, nor does Nova let us delete servers.

    :ivar is_final: whether Nova's policy does not allow it
    """

    def __init__(self, text, is_final):
        super().__init__(text)
        self.is_final = is_final


@contextlib.contextmanager
def as_user(trusts):
    """Tell who is concerned where something fails.

    :raises UserUnavailable: this user only
    :raises KeystoneError: all, for not even we can log in
    """
    try:
        yield
    except (keystone_trusts.KeystoneError, nova_api.NovaError) as exc:
        trusts.check()
        if isinstance(exc, nova_api.NoAnswer):
            raise NoAnswer(str(exc)) from exc
        raise UserUnavailable(str(exc)) from exc


class FailureBackoff:
    """Goes through what is deleted in the names of many users.

    Whoever fails is behind others the next time, and is left alone for longer
    each time; after some who do the rest is left for then.
    """

    def __init__(self):
        # {uuid: how often it failed}
        self._failures = collections.Counter()
        self._look = 0
        self._alone = {}          # uuid: until which look

    def each(self, items, call, most=None):
        """Call with one after the other.

        :param items: with a uuid each
        :param call: may raise UserUnavailable or KeystoneError, which is
            logged
        :param most: how many of them have a turn this time, None for all
        """
        uuids = {item.uuid for item in items}
        self._failures = collections.Counter({
            uuid: times for uuid, times in self._failures.items()
            if uuid in uuids})
        self._look += 1
        self._alone = {uuid: until for uuid, until in self._alone.items()
                       if uuid in uuids and until > self._look}
        turns = sorted((item for item in items
                        if item.uuid not in self._alone),
                       key=lambda item: self._failures[item.uuid])
        left = _MOST_FAILURES
        for item in turns[:most]:
            try:
                call(item)
            except (UserUnavailable, keystone_trusts.KeystoneError) as exc:
                LOG.warning(
                    'What is left of request %(uuid)s cannot be deleted yet: '
                    '%(exc)s', {'uuid': item.uuid, 'exc': exc})
                self._failures[item.uuid] += 1
                if isinstance(exc, keystone_trusts.KeystoneError):
                    return
                self._alone[item.uuid] = self._look + min(
                    2 ** (self._failures[item.uuid] - 1), _LONGEST)
                left -= 1
                if not left:
                    return


class UserSessions:
    """Gives out Nova's API as a user.

    :param conf: with [preemption] and [backlog]
    :param trusts: a nova_preempt.cloud.keystone_trusts.Trusts
    :param admin: a nova_preempt.cloud.nova_api.NovaAPI, the service user's
    """

    def __init__(self, conf, trusts, make_nova=nova_as_user.UserNova,
                 admin=None):
        self._admin = admin
        self._conf = conf
        self._trusts = trusts
        self._make_nova = make_nova

    def nova(self, request, timeout_s=None):
        """A nova_as_user.UserNova of who has left the request.

        :param timeout_s: how long an answer is waited for; None: ask_timeout_s
        :raises TrustGone: the user may not do that any more
        :raises UserUnavailable: nobody can be asked in the name of this user
        :raises KeystoneError: nor in that of any other
        """
        with as_user(self._trusts):
            found = self._make_nova(
                self._trusts.session(request.trust_id), self._conf,
                timeout_s or self._conf.backlog.ask_timeout_s)
            found.check()
        return found

    def limits(self, request):
        """The user's quotas and how much of them is used, as Nova has them.

        :raises TrustGone, UserUnavailable, KeystoneError: as nova() does
        """
        nova = self.nova(request, min(
            _LIMITS_TIMEOUT_S, self._conf.backlog.ask_timeout_s))
        with as_user(self._trusts):
            return nova.limits()

    def delete(self, request, uuids):
        """Delete servers that nobody needs.

        As their user, and where that may do nothing any more as ours.

        :raises NotDeleted:
        :raises UserUnavailable, KeystoneError: as nova() does
        """
        if not uuids:
            return
        try:
            nova = self.nova(request)
            with as_user(self._trusts):
                for uuid in uuids:
                    nova.delete(uuid)
        except keystone_trusts.TrustGone as exc:
            LOG.info(
                'Servers %(servers)s of request %(uuid)s are deleted by the '
                'service user, as user %(user)s may not any more: %(exc)s',
                {'servers': ', '.join(uuids), 'uuid': request.uuid,
                 'user': request.user_id, 'exc': exc})
            self._delete_as_ours(uuids)

    def _delete_as_ours(self, uuids):
        try:
            for uuid in uuids:
                self._admin.delete(uuid)
        except nova_api.NovaError as exc:
            raise NotDeleted(
                str(exc), isinstance(exc, nova_api.NotAllowed)) from exc

    def forget(self, request):
        """Delete the trust of a request, and a server group without servers.

        :raises UserUnavailable, KeystoneError: as nova() does
        """
        self._delete_group(request)
        with as_user(self._trusts):
            self._trusts.delete(request.trust_id)

    def _delete_group(self, request):
        if not backlog_model.has_group(request) or any(
                server.state != backlog_model.GONE
                for server in request.servers):
            return
        try:
            nova = self.nova(request)
            with as_user(self._trusts):
                nova.delete_group(backlog_model.group_name(request))
        except keystone_trusts.TrustGone as exc:
            LOG.info('The server group of request %(uuid)s stays: %(exc)s',
                     {'uuid': request.uuid, 'exc': exc})
