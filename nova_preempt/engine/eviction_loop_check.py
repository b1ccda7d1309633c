# SPDX-License-Identifier: Apache-2.0
"""Looks whether servers or projects take each other's place in turns."""

import datetime

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.core import eviction_loops
from nova_preempt.db import queries

LOG = logging.getLogger(__name__)

# Twice may be chance.
LEAST = 3

#: Within how many seconds turns are counted: nobody gains from coming back so
#: often within an hour.
WINDOW_S = 3600

_TEXTS = {
    eviction_loops.SERVER: (
        'Server %(ids)s has given way %(turns)s times within %(window)s s.'),
    eviction_loops.PROJECTS: (
        'Projects %(ids)s end each other\'s preemptible servers in turns, '
        '%(turns)s within %(window)s s.'),
}


class Cycles:
    """Warns of what comes round again and again, and does nothing else.

    :param database: a nova_preempt.db.Database
    :param clock: returns now, naive and UTC
    """

    def __init__(self, database, clock=timeutils.utcnow):
        self._db = database
        self._clock = clock
        self._known = {}          # (kind, ids): turns, as it was said last

    def look(self):
        since = self._clock() - datetime.timedelta(seconds=WINDOW_S)
        found = eviction_loops.find(queries.get_turns(self._db, since), LEAST)
        for kind in _TEXTS:
            metrics.CYCLES.labels(kind).set(
                sum(cycle.kind == kind for cycle in found))
        known, self._known = self._known, {
            (cycle.kind, cycle.ids): cycle.turns for cycle in found}
        for cycle in found:
            if cycle.turns > known.get((cycle.kind, cycle.ids), 0):
                LOG.warning(_TEXTS[cycle.kind], {
                    'ids': ' and '.join(cycle.ids), 'turns': cycle.turns,
                    'window': WINDOW_S})
