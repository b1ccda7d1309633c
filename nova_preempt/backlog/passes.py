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
import time

from oslo_log import log as logging
import stevedore

from nova_preempt import metrics
from nova_preempt.backlog import open_requests
from nova_preempt.backlog import options as backlog_options
from nova_preempt.backlog import rooms as backlog_rooms
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import estimate
from nova_preempt.core.backlog import faults
from nova_preempt.core.backlog import preview
from nova_preempt.core.backlog import room as core_room
from nova_preempt.core.backlog import servers
from nova_preempt.core.backlog import startable
from nova_preempt.core.backlog import unseen
from nova_preempt.db import backlog as db
from nova_preempt.db import backlog_turns

LOG = logging.getLogger(__name__)

ORDERS = 'nova_preempt.order'

# By what was placed in the last hours it is told how long others wait.
_PACE_S = 6 * 3600


class Passes:
    """Decides, has it carried out, and writes down who waits for what.

    :param options: [backlog] of the configuration
    :param database: a nova_preempt.db.Database
    :param rooms: a nova_preempt.backlog.rooms.Rooms
    :param starting: a nova_preempt.backlog.launcher.Launcher
    :param ranking: returns the core.backlog.order.Order
    :param choices: a nova_preempt.backlog.choices.Choices
    :param ladders: a nova_preempt.backlog.ladders.Ladders, or None
    :param batch: a nova_preempt.backlog.batch.Batch, or None
    :param groups: a nova_preempt.backlog.groups.Groups
    :param places: returns the core.backlog.places.Places of now, or None
    :param why_not: returns why a request cannot start whatever room there is
    :param monotonic: returns seconds of a clock that is never set
    """

    def __init__(self, options, database, rooms, starting, ranking,
                 choices, groups, ladders=None, batch=None,
                 places=lambda: None, why_not=lambda request: '',
                 monotonic=time.monotonic):
        self._options = options
        self._database = database
        self._rooms = rooms
        self._starting = starting
        self.ranking = ranking
        self._choices = choices
        self._groups = groups
        self._ladders = ladders
        self._batch = batch
        self._places = places
        self._why_not = why_not
        self._monotonic = monotonic
        # Those that the last pass did not get to.
        self._unseen = frozenset()
        self._faults = faults.News()

    def run(self, requests, now):
        """Start what can start of these.

        :param requests: core Requests that are open
        :raises NovaError, PlacementError: how much room there is cannot be
            told
        """
        waiting = startable.among(requests, now)
        if not waiting:
            return
        by_uuid = {request.uuid: request for request in waiting}
        with metrics.BACKLOG_STEP.labels('decide').time():
            try:
                turns = backlog_turns.get(self._database)
                decided, _rooms = self._decide(requests, waiting, now, turns)
            except (nova_api.NovaError, placement.PlacementError):
                self._note(unseen.notes(waiting, now), by_uuid)
                raise
            for uuid, exc in self._faults.of(
                    decided.faults, decided.unseen).items():
                LOG.error('Request %(uuid)s cannot be looked at: %(exc)r',
                          {'uuid': uuid, 'exc': exc}, exc_info=exc)
            self._note({**decided.notes, **decided.chosen}, by_uuid)
            backlog_turns.replace(self._database, turns, decided.turns)
            self._unseen = decided.unseen
        with metrics.BACKLOG_STEP.labels('start').time():
            self._starting.start(decided.starts, by_uuid)

    def _note(self, notes, requests):
        db.note(self._database, {
            uuid: note for uuid, note in notes.items()
            if _is_news(requests[uuid], note)})

    def preview(self, now):
        """What run() would do now; nothing is done.

        :returns: (core Pass, [core preview.Use], {uuid: core Request} of
            those that wait)
        """
        requests = open_requests.OpenRequests(self._database).read()
        waiting = {item.uuid: item
                   for item in startable.among(requests, now)}
        decided, rooms = self._decide(
            requests, waiting.values(), now, backlog_turns.get(self._database))
        return decided, preview.uses(rooms, decided.starts, waiting), waiting

    def _decide(self, requests, waiting, now, turns):
        places = self._places()
        rooms = self._rooms.all(places)
        waiting = list(waiting)
        # One by one hosts are for Nova to choose, whoever is together.
        groups = self._groups.known(waiting, rooms) if self._batch else {}
        rooms = core_room.with_members(rooms, groups.values())
        ranked = self.ranking().rank(
            waiting, now, backlog_rooms.shares(requests, rooms))
        return dispatch.decide(
            ranked, rooms, now, backlog_options.passes(self._options),
            self._pace(now),
            self._ladders and self._ladders.choosing(
                rooms, waiting,
                **({'lead_s': places.lead_s} if places else {})),
            self._batch and self._batch.planner(groups),
            servers.without_room(
                requests, {uuid: room.host for room in rooms
                           for uuid in room.consumers},
                self._choices.of_boots()),
            places, groups, self._rooms.stays(), self._why_not,
            self._unseen, self._alarm(), turns), rooms

    def _alarm(self):
        """Tells whether a pass that begins now has taken for long enough.

        That is the time from one pass to the next, so that one project's
        requests do not keep the others waiting.
        """
        until = self._monotonic() + self._options.pass_interval_s
        return lambda: self._monotonic() >= until

    def _pace(self, now):
        since = now - datetime.timedelta(seconds=_PACE_S)
        return estimate.Pace.of(_PACE_S, db.placed(self._database, since))


def _is_news(request, note):
    return (request.position, request.waits_for, request.estimate_s) != (
        note.position, note.waits_for, note.estimate_s)


def load_order(options, claims=None):
    """The core.backlog.order.Order that [backlog] names.

    :param claims: what classes of service say, None where there are none
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
    return found.driver(backlog_options.order(options, claims))


def _cannot_load(_manager, _entry_point, exc):
    raise exc
