# SPDX-License-Identifier: Apache-2.0
"""Nova's quotas of users whose requests have waited for long."""

from nova_preempt.backlog import user_sessions
from nova_preempt.cloud import keystone_trusts

# So long an answer is believed, in seconds: Nova refuses anyway what is more
# than the quota by then.
_BELIEVED_S = 300
# So long a user is not asked again whose quotas could not be read, in seconds,
# and nobody is while Keystone or Nova does not answer. Each call may take as
# long as an answer is waited for.
_QUIET_S = 60
# An answer that no pass has asked for in so many seconds is forgotten.
_FORGOTTEN_S = 3600
# Nova counts as not answering after so many projects in a row got no answer:
# that of one may be slow because it has many servers.
_SILENT = 2
# The next pass waits for each answer, so asking has this share of the time, in
# the mean of so many seconds. Each answer counts for so much at least.
_SHARE = 0.2
_MEAN_S = 5
_LEAST_S = 0.1


class UserQuotas:
    """Asks Nova, in the name of the user, and not often.

    :param acting: a nova_preempt.backlog.user_sessions.UserSessions
    :param monotonic: returns seconds of a clock that is never set
    """

    def __init__(self, acting, monotonic):
        self._users = acting
        self._monotonic = monotonic
        self._known = {}         # (project, user): (believed until, limits)
        self._unanswered = set()  # the last projects, in a row
        self._quiet_until = 0
        # When the share will have made up for the time that asking took.
        self._made_up_at = 0

    def known(self):
        """{(project, user): limits} of those for whom ask() was called.

        They are empty where Nova could not be asked.
        """
        return {key: found for key, (_until, found) in self._known.items()}

    def ask(self, requests):
        """Renew what is known of the users of requests.

        An answer that is not believed any more stays until there is another.

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
        """(limits, for how many seconds to believe them)."""
        try:
            found = self._users.limits(request)
        except keystone_trusts.KeystoneError:
            self._be_quiet()
            return {}, _QUIET_S
        except user_sessions.NoAnswer:
            self._unanswered.add(request.project_id)
            if len(self._unanswered) >= _SILENT:
                self._be_quiet()
            return {}, _QUIET_S
        except user_sessions.UserUnavailable:
            return {}, _QUIET_S
        except keystone_trusts.TrustGone:
            return {}, _BELIEVED_S
        self._unanswered.clear()
        return found, _BELIEVED_S

    def _be_quiet(self):
        self._quiet_until = self._monotonic() + _QUIET_S
