# SPDX-License-Identifier: Apache-2.0
"""Deletes trusts of submissions that never completed.

The API may have died meanwhile, or Keystone's answer was lost.
"""

import datetime
import functools

from oslo_log import log as logging

from nova_preempt.backlog import user_nova_clients
from nova_preempt.cloud import keystone_trusts
from nova_preempt.db import backlog_store
from nova_preempt.db import backlog_submissions

LOG = logging.getLogger(__name__)

# A submission that began so many seconds ago does not complete any more.
LATE_S = 600

# How many are cleared in a pass: each may take some calls to Keystone.
_AT_ONCE = 50


class OrphanTrusts:
    """Deletes orphaned trusts, and no others.

    It finds them by the mark of a submission that began here, see
    nova_preempt.core.backlog.trust_lifetime.

    :param database: a nova_preempt.db.Database
    :param acting: a nova_preempt.cloud.keystone_trusts.Trusts
    """

    def __init__(self, database, acting):
        self._db = database
        self._trusts = acting
        self._turns = user_nova_clients.FailureBackoff()

    def clear(self, now):
        """Clear submissions that began long ago, some at a time.

        :returns: number of submissions whose trust may still exist
        """
        # NOTE: none of them can complete from now on. All of them, as the
        # oldest may be those that fail.
        late, cleared = backlog_submissions.give_up(
            self._db, now - datetime.timedelta(seconds=LATE_S)), []
        # The list may be long; Keystone is asked once, if at all.
        listed = functools.cache(self._trusts.list)
        self._turns.each(late, lambda begun: cleared.append(
            self._clear(begun, listed())), _AT_ONCE)
        return len(late) - len(cleared)

    def _clear(self, begun, listed):
        found = keystone_trusts.marked(listed, begun.user_id, begun.expires_at)
        used = backlog_store.trusts(self._db) if found else ()
        for trust_id in found:
            if trust_id in used:
                # A request has it that expires in the same second.
                continue
            with user_nova_clients.as_user(self._trusts):
                self._trusts.delete(trust_id)
            LOG.info(
                'Orphaned trust %(trust)s of user %(user)s was deleted; its '
                'submission began at %(at)sZ.',
                {'trust': trust_id, 'user': begun.user_id,
                 'at': begun.begun_at})
        backlog_submissions.forget(self._db, begun.uuid)
