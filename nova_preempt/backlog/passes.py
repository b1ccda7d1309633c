# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Passes: who of those that wait starts now, and what the others wait for."""

import datetime
import importlib.metadata

import stevedore

from nova_preempt import metrics
from nova_preempt.backlog import options as backlog_options
from nova_preempt.backlog import rooms as backlog_rooms
from nova_preempt.core.backlog import estimate
from nova_preempt.core.backlog import lifecycle
from nova_preempt.core.backlog import passing
from nova_preempt.core.backlog import servers
from nova_preempt.db import backlog as db

ORDERS = 'nova_preempt.order'

# By what was placed in the last hours it is told how long others wait.
_PACE_S = 6 * 3600


class Passes:
    """Decides, has it carried out, and writes down who waits for what.

    :param options: [backlog] of the configuration
    :param database: a nova_preempt.db.Database
    :param rooms: a nova_preempt.backlog.rooms.Rooms
    :param starting: a nova_preempt.backlog.starting.Starting
    :param ranking: returns the core.backlog.order.Order
    :param ladders: a nova_preempt.backlog.ladders.Ladders, or None
    """

    def __init__(self, options, database, rooms, starting, ranking,
                 ladders=None):
        self._options = options
        self._database = database
        self._rooms = rooms
        self._starting = starting
        self.ranking = ranking
        self._ladders = ladders

    def run(self, requests, now):
        """Start what can start of these.

        :param requests: core Requests that are open
        :raises NovaError, PlacementError: how much room there is cannot be
            told
        """
        waiting = lifecycle.startable(requests, now)
        if not waiting:
            return
        by_uuid = {request.uuid: request for request in waiting}
        with metrics.BACKLOG_STEP.labels('decide').time():
            decided = self._decide(requests, waiting, now)
            db.note(self._database, {
                uuid: note for uuid, note in decided.notes.items()
                if _is_news(by_uuid[uuid], note)})
        with metrics.BACKLOG_STEP.labels('start').time():
            self._starting.start(decided.starts, by_uuid)

    def _decide(self, requests, waiting, now):
        rooms = self._rooms.all()
        ranked = self.ranking().rank(
            waiting, now, backlog_rooms.shares(requests, rooms))
        return passing.decide(
            ranked, rooms, now, backlog_options.passes(self._options),
            self._pace(now),
            self._ladders and self._ladders.choosing(rooms, waiting),
            on_their_way=servers.without_room(
                requests, frozenset().union(*(
                    room.consumers for room in rooms))))

    def _pace(self, now):
        since = now - datetime.timedelta(seconds=_PACE_S)
        return estimate.Pace.of(_PACE_S, db.placed(self._database, since))


def _is_news(request, note):
    return (request.position, request.waits_for, request.estimate_s) != (
        note.position, note.waits_for, note.estimate_s)


def load_order(options):
    """The core.backlog.order.Order that [backlog] names.

    :raises ValueError: there is none, or its options make no sense
    """
    known = sorted({item.name for item in importlib.metadata.entry_points(
        group=ORDERS)})
    if options.order not in known:
        raise ValueError(f'[backlog]order is {options.order!r}, not one of '
                         f'{", ".join(known)}')
    try:
        found = stevedore.DriverManager(
            ORDERS, options.order, on_load_failure_callback=_cannot_load)
    except ImportError as exc:
        raise ValueError(
            f'[backlog]order is {options.order}, but {exc.name} is not '
            'installed: it comes with nova-preempt[classes]') from exc
    return found.driver(backlog_options.order(options))


def _cannot_load(_manager, _entry_point, exc):
    raise exc
