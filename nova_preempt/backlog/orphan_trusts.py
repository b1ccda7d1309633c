# SPDX-License-Identifier: Apache-2.0
"""Trusts of requests that were never written down: who made them died.

Or Keystone made one, and nobody heard of it.
"""

import datetime
import functools

from oslo_log import log as logging

from nova_preempt.backlog import user_sessions
from nova_preempt.cloud import keystone_trusts
from nova_preempt.db import backlog_store
from nova_preempt.db import backlog_submissions

LOG = logging.getLogger(__name__)

# So long after it was begun nobody is about to write it down.
LATE_S = 600

# Each may take some calls to Keystone.
_AT_ONCE = 50


class OrphanTrusts:
    """Deletes them.

    No other trust is touched: what is looked for has the mark of a request
    that was begun here, see nova_preempt.core.backlog.trust_lifetime.

    :param database: a nova_preempt.db.Database
    :param acting: a nova_preempt.cloud.keystone_trusts.Trusts
    """

    def __init__(self, database, acting):
        self._db = database
        self._trusts = acting
        self._turns = user_sessions.FailureBackoff()

    def clear(self, now):
        """Clear up after those that were begun long ago, some at a time.

        :returns: of how many a trust may still be there
        """
        # From now on none of them is written down any more. All of them: the
        # oldest may be those that fail.
        late, cleared = backlog_submissions.give_up(
            self._db, now - datetime.timedelta(seconds=LATE_S)), []
        # What Keystone lists is long; it is asked once, if at all.
        listed = functools.cache(self._trusts.list)
        self._turns.each(late, lambda begun: cleared.append(
            self._clear(begun, listed())), _AT_ONCE)
        return len(late) - len(cleared)

    def _clear(self, begun, listed):
        found = keystone_trusts.marked(listed, begun.user_id, begun.expires_at)
        used = backlog_store.trusts(self._db) if found else ()
        for trust_id in found:
            if trust_id in used:
                # Of another request, to the same second.
                continue
            with user_sessions.as_user(self._trusts):
                self._trusts.delete(trust_id)
            LOG.info(
                'Trust %(trust)s of user %(user)s was deleted: no request '
                'has it since %(at)sZ.',
                {'trust': trust_id, 'user': begun.user_id,
                 'at': begun.begun_at})
        backlog_submissions.forget(self._db, begun.uuid)
