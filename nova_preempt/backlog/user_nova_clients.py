# SPDX-License-Identifier: Apache-2.0
"""Calls Nova in the names of users who have submitted requests."""

import collections
import contextlib

from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import nova_as_user
from nova_preempt.core.backlog import backlog_model

LOG = logging.getLogger(__name__)

# After so many failures in a pass the rest waits: each takes up to a timeout.
_MOST_FAILURES = 5
# Timeout of reading a user's quotas, in seconds: a pass waits for it.
_LIMITS_TIMEOUT_S = 5
# The most passes between two tries of a request that fails repeatedly.
_LONGEST = 64


class UserUnavailable(Exception):
    """Nova cannot be called in the name of this user; others may work."""


class NoAnswer(UserUnavailable):
    """Nova did not answer, for this user or for all."""


class ServersNotDeleted(UserUnavailable):
    """Neither the user nor the service user can delete the servers.

    :ivar is_final: whether Nova's policy forbids it
    """

    def __init__(self, text, is_final):
        super().__init__(text)
        self.is_final = is_final


_EXPECTED = UserUnavailable, keystone_trusts.KeystoneUnavailable


@contextlib.contextmanager
def as_user(trusts):
    """Tell failures of one user from failures of all.

    :raises UserUnavailable: calls of this user fail
    :raises KeystoneUnavailable: not even the service user can authenticate
    """
    try:
        yield
    except (keystone_trusts.KeystoneUnavailable, nova_api.NovaError) as exc:
        trusts.check()
        if isinstance(exc, nova_api.NoAnswer):
            raise NoAnswer(str(exc)) from exc
        raise UserUnavailable(str(exc)) from exc


class FailureBackoff:
    """Calls for many requests, and backs off from those that fail.

    A request that fails goes last the next time, and is skipped for longer
    after each failure. After _MOST_FAILURES the remaining requests wait.
    """

    def __init__(self):
        # {uuid: number of failures}
        self._failures = collections.Counter()
        self._look = 0
        self._alone = {}          # uuid: skipped until which pass

    def each(self, items, call, most=None):
        """Call for each item.

        :param items: with a uuid each
        :param call: whatever it raises is logged, unless the database is down
        :param most: the most items to call for, None for all
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
            except db_exc.DBError:
                raise
            except Exception as exc:
                LOG.warning('Request %s cannot be cleaned up yet: %s',
                            item.uuid, exc,
                            exc_info=not isinstance(exc, _EXPECTED))
                self._failures[item.uuid] += 1
                if isinstance(exc, keystone_trusts.KeystoneUnavailable):
                    return
                self._alone[item.uuid] = self._look + min(
                    2 ** (self._failures[item.uuid] - 1), _LONGEST)
                left -= 1
                if not left:
                    return


class UserNovaClients:
    """Makes clients of Nova's API that act as a user.

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
        """Return a nova_as_user.UserNova of the user of a request.

        :param timeout_s: of each call; None: ask_timeout_s
        :raises TrustGone: the trust is no longer valid
        :raises UserUnavailable: Nova cannot be called as this user
        :raises KeystoneUnavailable: nor as any user
        """
        with as_user(self._trusts):
            found = self._make_nova(
                self._trusts.session(request.trust_id), self._conf,
                timeout_s or self._conf.backlog.ask_timeout_s)
            found.check()
        return found

    def limits(self, request):
        """Return the user's quotas and their use, as Nova reports them.

        :raises TrustGone, UserUnavailable, KeystoneUnavailable: as nova() does
        """
        nova = self.nova(request, min(
            _LIMITS_TIMEOUT_S, self._conf.backlog.ask_timeout_s))
        with as_user(self._trusts):
            return nova.limits()

    def delete(self, request, uuids):
        """Delete servers as their user, or as the service user.

        The service user deletes them where the trust is no longer valid.

        :raises ServersNotDeleted:
        :raises UserUnavailable, KeystoneUnavailable: as nova() does
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
                'service user, as the trust of user %(user)s is gone: %(exc)s',
                {'servers': ', '.join(uuids), 'uuid': request.uuid,
                 'user': request.user_id, 'exc': exc})
            self._delete_as_ours(uuids)

    def _delete_as_ours(self, uuids):
        try:
            for uuid in uuids:
                self._admin.delete(uuid)
        except nova_api.NovaError as exc:
            raise ServersNotDeleted(
                str(exc), isinstance(exc, nova_api.NotAllowed)) from exc

    def forget(self, request):
        """Delete the trust of a request, and its group without servers.

        :raises UserUnavailable, KeystoneUnavailable: as nova() does
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
            LOG.info('The server group of request %(uuid)s is kept: %(exc)s',
                     {'uuid': request.uuid, 'exc': exc})
