# SPDX-License-Identifier: Apache-2.0
"""Reads Nova's quotas of users whose requests wait for long."""

from oslo_log import log as logging

from nova_preempt.backlog import user_nova_clients
from nova_preempt.cloud import keystone_trusts

LOG = logging.getLogger(__name__)

# For how many seconds quotas are cached. Nova enforces them in any case.
_BELIEVED_S = 300
# After how many seconds reading the quotas of a user is retried, and those of
# all users while Keystone or Nova is down. Each call may take up to a timeout.
_QUIET_S = 60
# Quotas that no pass needed for so many seconds are dropped.
_FORGOTTEN_S = 3600
# Nova counts as down after so many projects in a row without an answer: a
# single project may be slow because it has many servers.
_SILENT = 2
# The next pass waits for the calls, so they may take this share of the time in
# the mean of so many seconds. A call counts as at least so long.
_SHARE = 0.2
_MEAN_S = 5
_LEAST_S = 0.1


class UserQuotaReader:
    """Reads quotas in the names of users, at a bounded rate.

    :param acting: a nova_preempt.backlog.user_nova_clients.UserNovaClients
    :param monotonic: returns seconds of a clock that is never set
    """

    def __init__(self, acting, monotonic):
        self._users = acting
        self._monotonic = monotonic
        self._known = {}         # (project, user): (cached until, limits)
        self._unanswered = set()  # the last projects, in a row
        self._quiet_until = 0
        # When the calls so far are within their share of the time.
        self._made_up_at = 0

    def known(self):
        """Return {(project, user): limits} of users given to ask().

        Limits are empty where they could not be read.
        """
        return {key: found for key, (_until, found) in self._known.items()}

    def ask(self, requests):
        """Refresh the quotas of the users of requests.

        Outdated quotas are kept until they are read again.

        :param requests: core Requests, the most urgent first
        """
        now = self._monotonic()
        self._known = {key: item for key, item in self._known.items()
                       if now < item[0] + _FORGOTTEN_S}
        for request in requests:
            key, now = (request.project_id, request.user_id), self._monotonic()
            until, found = self._known.get(key, (now, {}))
            if now >= until and now >= self._quiet_until and (
                    self._made_up_at < now + _MEAN_S):
                found, believed_s = self._ask(request)
                took_s = max(_LEAST_S, self._monotonic() - now)
                self._made_up_at = (
                    max(self._made_up_at, now) + took_s / _SHARE)
                until = now + believed_s
            self._known[key] = until, found

    def _ask(self, request):
        """Return (limits, for how many seconds to cache them)."""
        try:
            found = self._users.limits(request)
        except keystone_trusts.TrustGone:
            return {}, _BELIEVED_S
        except keystone_trusts.KeystoneUnavailable:
            self._be_quiet()
        except user_nova_clients.NoAnswer:
            self._unanswered.add(request.project_id)
            if len(self._unanswered) >= _SILENT:
                self._be_quiet()
        except user_nova_clients.UserUnavailable:
            pass
        except Exception:
            LOG.warning('The quotas of user %s cannot be read.',
                        request.user_id, exc_info=True)
        else:
            self._unanswered.clear()
            return found, _BELIEVED_S
        return {}, _QUIET_S

    def _be_quiet(self):
        self._quiet_until = self._monotonic() + _QUIET_S
