# SPDX-License-Identifier: Apache-2.0
"""Reads the cloud as a pass over the backlog sees it."""

import datetime
import time

from nova_preempt import exceptions
from nova_preempt import plugins
from nova_preempt.backlog import options as backlog_options
from nova_preempt.backlog import rooms as read_rooms
from nova_preempt.core.backlog import estimate
from nova_preempt.core.backlog import passes
from nova_preempt.core.backlog import room as core_room
from nova_preempt.db import backlog as db
from nova_preempt.db import chosen_hosts

ORDERS = 'nova_preempt.order'

# By what was placed in the last hours it is told how long others wait.
_PACE_S = 6 * 3600


class CloudReader:
    """Reads capacity and what else a pass goes by.

    :param options: [backlog] of the configuration
    :param database: a nova_preempt.db.Database
    :param rooms: a nova_preempt.backlog.rooms.Rooms
    :param ranking: returns the core.backlog.order.Order
    :param resident: see nova_preempt.backlog.rooms.known_groups
    :param batch: a nova_preempt.backlog.batch.Batch, or None
    :param places: returns the core.backlog.places.Places of now, or None
    :param quotas: a nova_preempt.backlog.limits.Limits
    :param monotonic: returns seconds of a clock that is never set
    """

    def __init__(self, options, database, rooms, ranking, resident,
                 quotas, batch=None, places=lambda: None,
                 monotonic=time.monotonic):
        self._options = options
        self._database = database
        self._rooms = rooms
        self.ranking = ranking
        self._resident = resident
        self._batch = batch
        self._places = places
        self.quotas = quotas
        self._monotonic = monotonic

    def read(self, now, waiting=()):
        """Return a core.backlog.passes.Cloud.

        :param waiting: core Requests
        :raises NovaError, PlacementError: how much room there is cannot be
            told
        """
        places = self._places()
        rooms = self._rooms.all(places)
        # One by one hosts are for Nova to choose, whoever is together.
        groups = read_rooms.known_groups(
            waiting, rooms, self._resident) if self._batch else {}
        rooms = core_room.with_members(rooms, groups.values())
        return passes.Cloud(
            rooms, groups, places, self._rooms.departures(),
            self._batch and self._batch.planner(groups),
            self._pace(now), chosen_hosts.of_boots(self._database),
            self.quotas.known(), is_over=self._alarm())

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


def load_order(options, claims=None):
    """The core.backlog.order.Order that [backlog] names.

    :param claims: what classes of service say, None where there are none
    :raises InvalidConfiguration: there is none, what it needs is not
        installed, or its options make no sense
    """
    order = plugins.load(ORDERS, options.order, '[backlog]order is',
                         '; it comes with nova-preempt[classes]')
    try:
        return order(backlog_options.order(options, claims))
    except ValueError as exc:
        raise exceptions.InvalidConfiguration(str(exc)) from exc
