# SPDX-License-Identifier: Apache-2.0
"""Reads the state of the cloud for a pass over the backlog."""

import datetime
import time

from nova_preempt import exceptions
from nova_preempt import plugins
from nova_preempt.backlog import backlog_options_from_conf
from nova_preempt.backlog import capacity_reader
from nova_preempt.core.backlog import dispatch_values
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.backlog import wait_estimate
from nova_preempt.db import backlog_store
from nova_preempt.db import boot_host_choices

ORDERS = 'nova_preempt.order'

# Over how many seconds of past placements the wait of requests is estimated.
_PACE_S = 6 * 3600


class CloudObserver:
    """Reads capacity and the other observations of a pass.

    :param options: [backlog] of the configuration
    :param database: a nova_preempt.db.Database
    :param rooms: a nova_preempt.backlog.capacity_reader.CapacityReader
    :param ranking: returns the core.backlog.queue_order.Order
    :param resident: see nova_preempt.backlog.capacity_reader.known_groups
    :param batch: a nova_preempt.backlog.batch_planners.BatchPlannerFactory, or
        None
    :param places: returns the core ReservationRules of now, or
        None
    :param quotas: a nova_preempt.backlog.user_quota_reader.UserQuotaReader
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
        """Return a core.backlog.dispatch_values.Cloud.

        :param waiting: core Requests
        :raises NovaError, PlacementError: capacity cannot be read
        """
        places = self._places()
        rooms = self._rooms.all(places)
        # NOTE: one by one, Nova chooses hosts by the policies of groups.
        groups = capacity_reader.known_groups(
            waiting, rooms, self._resident) if self._batch else {}
        rooms = host_capacity.with_members(rooms, groups.values())
        return dispatch_values.Cloud(
            rooms, groups, places, self._rooms.departures(),
            self._batch and self._batch.planner(groups),
            self._pace(now), boot_host_choices.hosts_of_boots(self._db),
            self.quotas.known(), is_over=self._alarm())

    def _alarm(self):
        """Return a function that tells whether this pass has to end.

        A pass ends when the next one is due, so that the requests of one
        project do not delay the others.
        """
        until = self._monotonic() + self._options.pass_interval_s
        return lambda: self._monotonic() >= until

    def _pace(self, now):
        since = now - datetime.timedelta(seconds=_PACE_S)
        return wait_estimate.PlacementPace.of(
            _PACE_S, backlog_store.placed(self._db, since))


def load_order(options, claims=None):
    """Return the core.backlog.queue_order.Order of [backlog].

    :param claims: the RequestUptimeReader of classes of service, None without
        classes
    :raises InvalidConfiguration: it does not exist, its requirements are not
        installed, or its options are invalid
    """
    order = plugins.load(ORDERS, options.order, '[backlog]order is',
                         '; it comes with nova-preempt[classes]')
    try:
        return order(backlog_options_from_conf.order_options(options, claims))
    except ValueError as exc:
        raise exceptions.InvalidConfiguration(str(exc)) from exc
