# SPDX-License-Identifier: Apache-2.0
"""Tells whether an operator has paused this process's actions."""

import threading
import time

from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.db import pauses as db

LOG = logging.getLogger(__name__)

# As long as it takes an operator to look whether it has worked.
_MAX_AGE_S = 1.0

_NAMES = {db.PREEMPTION: 'Preemption', db.RESERVATIONS: 'Reservations',
          db.POWER: 'Power control', db.BACKLOG: 'The backlog'}


class Pauses:
    """What is paused, as it was a second ago at most.

    :param database: a nova_preempt.db.Database
    :param monotonic: the clock by which a reading is recent
    """

    def __init__(self, database, monotonic=time.monotonic):
        self._db = database
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._read_at = None
        self._found = {}

    def why(self, what):
        """Why this is paused, with a word for people; '' if it is not.

        Where the database cannot be read what was so before still holds; who
        wants to end a server has to write to it first.

        :param what: one of nova_preempt.db.pauses.ALL
        """
        pause = self._read().get(what)
        return f'{_are(what)} paused: {pause.reason}' if pause else ''

    def check(self, what):
        """Refuse while this is paused.

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
                    LOG.warning('Cannot read what is paused: %s', exc)
                else:
                    self._tell(found)
                    self._found = found
                    self._read_at = now
            return self._found

    def _tell(self, found):
        for what in db.ALL:
            metrics.PAUSED.labels(what).set(what in found)
            if what in found and what not in self._found:
                LOG.warning('%(what)s paused by user %(user)s: %(reason)s',
                            {'what': _are(what),
                             'user': found[what].user_id or 'unknown',
                             'reason': found[what].reason})
            elif what in self._found and what not in found:
                LOG.warning('%s no longer paused.', _are(what))


def of_operation(operation):
    """Which of the pauses stops the ends that are for this.

    :param operation: of a db.Decision
    """
    return db.RESERVATIONS if operation == 'reservation' else db.PREEMPTION


def _are(what):
    verb = 'are' if what == db.RESERVATIONS else 'is'
    return f'{_NAMES[what]} {verb}'
