# SPDX-License-Identifier: Apache-2.0
"""Reads whether an operator has paused preemption or other actions."""

import threading
import time

from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.db import pauses as db

LOG = logging.getLogger(__name__)

# About as long as an operator takes to check that a pause works.
_MAX_AGE_S = 1.0

_NAMES = {db.PREEMPTION: 'Preemption', db.RESERVATIONS: 'Reservations',
          db.POWER: 'Power control', db.BACKLOG: 'The backlog'}


class PauseReader:
    """The pauses, at most a second old.

    :param database: a nova_preempt.db.Database
    :param monotonic: the clock that ages the data
    """

    def __init__(self, database, monotonic=time.monotonic):
        self._db = database
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._read_at = None
        self._found = {}

    def why(self, what):
        """Return why this is paused, as a sentence; '' if it is not.

        Where the database cannot be read, the last answer holds: an eviction
        has to be written to the database first.

        :param what: one of nova_preempt.db.pauses.ALL
        """
        pause = self._read().get(what)
        return f'{_are(what)} paused: {pause.reason}' if pause else ''

    def check(self, what):
        """Raise Paused while this is paused.

        :raises Paused: it is
        """
        reason = self.why(what)
        if reason:
            raise exceptions.Paused(reason)

    def _read(self):
        with self._lock:
            now = self._monotonic()
            if self._read_at is None or now - self._read_at >= _MAX_AGE_S:
                try:
                    found = db.get(self._db)
                except db_exc.DBError as exc:
                    LOG.warning('Cannot read the pauses: %s', exc)
                else:
                    self._tell(found)
                    self._found = found
                    self._read_at = now
            return self._found

    def _tell(self, found):
        for what in db.ALL:
            metrics.PAUSED.labels(what).set(what in found)
            if what in found and what not in self._found:
                LOG.warning('%s paused by user %s: %s', _are(what),
                            found[what].user_id or 'unknown',
                            found[what].reason)
            elif what in self._found and what not in found:
                LOG.warning('%s no longer paused.', _are(what))


def of_operation(operation):
    """Return which pause stops evictions for this operation.

    :param operation: of a db.Decision
    """
    return db.RESERVATIONS if operation == 'reservation' else db.PREEMPTION


def _are(what):
    verb = 'are' if what == db.RESERVATIONS else 'is'
    return f'{_NAMES[what]} {verb}'
