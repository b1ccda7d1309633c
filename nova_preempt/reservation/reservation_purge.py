# SPDX-License-Identifier: Apache-2.0
"""Purges rows of reservations and requests that ended long ago."""

import datetime

from oslo_log import log as logging

from nova_preempt.db import record_purge

LOG = logging.getLogger(__name__)

# How often, in seconds.
EVERY_S = 3600


class RecordPurge:
    """Purges old rows, as [reservation]retention_days says.

    :param database: a db.Database
    :param options: [reservation] of the configuration
    :param clock: returns now, naive and in UTC
    :param delete: takes the database and a time; deletes what ended before it
        and returns the number of deleted records
    :param what: the plural of the records, for the log
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
        """Purge rows once in EVERY_S."""
        days = self._options.retention_days
        now = self._clock()
        if not days or (self._done_at is not None and (
                now - self._done_at).total_seconds() < EVERY_S):
            return
        self._done_at = now
        count = self._delete(self._db, now - datetime.timedelta(days=days))
        if count:
            LOG.info('%(count)s %(what)s were purged that ended more than '
                     '%(days)s days ago.',
                     {'count': count, 'what': self._what, 'days': days})
