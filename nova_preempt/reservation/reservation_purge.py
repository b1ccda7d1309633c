# SPDX-License-Identifier: Apache-2.0
"""Deletes rows that are over for long, so that no table grows for ever."""

import datetime

from oslo_log import log as logging

from nova_preempt.db import record_purge

LOG = logging.getLogger(__name__)

# How often, in seconds.
EVERY_S = 3600


class RecordPurge:
    """Deletes what is over, as [reservation]retention_days says.

    :param database: a db.Database
    :param options: [reservation] of the configuration
    :param clock: returns now, naive and in UTC
    :param delete: called with the database and a time; deletes what was over
        before then, and returns how many they were
    :param what: they are, for the log
    """

    def __init__(self, database, options, clock,
                 delete=record_purge.RESERVATIONS.delete_old,
                 what='reservations'):
        self._db = database
        self._options = options
        self._clock = clock
        self._delete = delete
        self._what = what
        self._done_at = None

    def run(self):
        """Delete what is old enough, now and then."""
        days = self._options.retention_days
        now = self._clock()
        if not days or (self._done_at is not None and (
                now - self._done_at).total_seconds() < EVERY_S):
            return
        self._done_at = now
        count = self._delete(self._db, now - datetime.timedelta(days=days))
        if count:
            LOG.info('%(count)s %(what)s were deleted that were over for more '
                     'than %(days)s days.',
                     {'count': count, 'what': self._what, 'days': days})
