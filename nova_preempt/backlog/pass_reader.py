# SPDX-License-Identifier: Apache-2.0
"""Reads the cloud as a pass over the backlog sees it."""

import datetime
import time

from nova_preempt import exceptions
from nova_preempt import plugins
from nova_preempt.backlog import backlog_policy
from nova_preempt.backlog import capacity_reader
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.backlog import pass_values
from nova_preempt.core.backlog import wait_estimate
from nova_preempt.db import backlog_hosts
from nova_preempt.db import backlog_store

ORDERS = 'nova_preempt.order'

# By what was placed in the last hours it is told how long others wait.
_PACE_S = 6 * 3600


class CloudReader:
    """Reads capacity and what else a pass goes by.

    :param options: [backlog] of the configuration
    :param database: a nova_preempt.db.Database
    :param rooms: a nova_preempt.backlog.capacity_reader.CapacityReader
    :param ranking: returns the core.backlog.queue_order.Order
    :param resident: see nova_preempt.backlog.capacity_reader.known_groups
    :param batch: a nova_preempt.backlog.batch_dispatch.BatchDispatch, or None
    :param places: returns the core.backlog.allowed_hosts.Places of now, or
        None
    :param quotas: a nova_preempt.backlog.user_quotas.UserQuotas
    :param monotonic: returns seconds of a clock that is never set
    """

    def __init__(self, options, database, rooms, ranking, resident,
                 quotas, batch=None, places=lambda: None,
                 monotonic=time.monotonic):
        self._options = options
        self._db = database
        self._rooms = rooms
        self.ranking = ranking
        self._resident = resident
        self._batch = batch
        self._places = places
        self.quotas = quotas
        self._monotonic = monotonic

    def read(self, now, waiting=()):
        """Return a core.backlog.pass_values.Cloud.

        :param waiting: core Requests
        :raises NovaError, PlacementError: how much room there is cannot be
            told
        """
        places = self._places()
        rooms = self._rooms.all(places)
        # One by one hosts are for Nova to choose, whoever is together.
        groups = capacity_reader.known_groups(
            waiting, rooms, self._resident) if self._batch else {}
        rooms = host_capacity.with_members(rooms, groups.values())
        return pass_values.Cloud(
            rooms, groups, places, self._rooms.departures(),
            self._batch and self._batch.planner(groups),
            self._pace(now), backlog_hosts.hosts_of_boots(self._db),
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
        return wait_estimate.Pace.of(
            _PACE_S, backlog_store.placed(self._db, since))


def load_order(options, claims=None):
    """The core.backlog.queue_order.Order that [backlog] names.

    :param claims: what classes of service say, None where there are none
    :raises InvalidConfiguration: there is none, what it needs is not
        installed, or its options make no sense
    """
    order = plugins.load(ORDERS, options.order, '[backlog]order is',
                         '; it comes with nova-preempt[classes]')
    try:
        return order(backlog_policy.order_options(options, claims))
    except ValueError as exc:
        raise exceptions.InvalidConfiguration(str(exc)) from exc
