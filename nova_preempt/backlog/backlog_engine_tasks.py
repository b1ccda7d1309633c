# SPDX-License-Identifier: Apache-2.0
"""Assembles the backlog's part of nova-preempt-engine."""

import functools
import time

import oslo_messaging as messaging

from nova_preempt import metrics
from nova_preempt import rpc
from nova_preempt.backlog import backlog_loop
from nova_preempt.backlog import batch_planners
from nova_preempt.backlog import capacity_reader
from nova_preempt.backlog import cloud_observer
from nova_preempt.backlog import launcher
from nova_preempt.backlog import orphan_trusts
from nova_preempt.backlog import request_tracker
from nova_preempt.backlog import server_reader
from nova_preempt.backlog import transition_recorder
from nova_preempt.backlog import user_nova_clients
from nova_preempt.backlog import user_quota_reader
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_as_user
from nova_preempt.conf import backlog as conf_backlog
from nova_preempt.core.backlog import batch_plans
from nova_preempt.db import boot_host_choices
from nova_preempt.db import pauses
from nova_preempt.db import record_purge
from nova_preempt.reservation import reservation_purge


class BacklogEndpoint:
    """RPC endpoint of the backlog, see rpc.EngineClient; in every engine.

    :param backlog: a BacklogEngineTasks
    """

    target = messaging.Target(namespace=rpc.BACKLOG, version='1.0')

    def __init__(self, backlog):
        self._backlog = backlog

    def plan(self, context):
        return self._backlog.plan()


class BacklogEngineTasks:
    """Assembles the tasks and the endpoint of the backlog.

    :param conf: nova.conf.CONF
    :param process: a nova_preempt.handover.service_context.ProcessContext
    :param known: a nova_preempt.handover.service_context.CloudCaches
    :param inventory: a nova_preempt.reservation.host_inventory.HostInventory
    :param trusts: Keystone's by default
    :param make_nova: see user_nova_clients.UserNovaClients
    :param nova: a nova_preempt.cloud.nova_api.NovaAPI
    :param classes: see nova_preempt.handover.eviction_policy.load_classes()
    :ivar works: [(name, function)], see nova_preempt.engine.periodic_tasks
    :ivar endpoints: RPC endpoints
    :raises InvalidConfiguration: the order is unknown, or its requirements are
        not installed
    """

    def __init__(self, conf, process, known, inventory, trusts=None,
                 make_nova=nova_as_user.UserNova, classes=None, nova=None):
        self._options = options = conf[conf_backlog.GROUP]
        self._pauses = process.pauses
        self._clock = process.clock
        self._known = known
        tell = transition_recorder.RequestNotifications(conf, conf.host)
        self.close = tell.close
        written = transition_recorder.TransitionRecorder(
            process.db, tell.changed)
        trusts = trusts or keystone_trusts.Trusts(conf)
        acting = user_nova_clients.UserNovaClients(conf, trusts, make_nova,
                                                   nova)
        self._orphans = orphan_trusts.OrphanTrusts(process.db, trusts)
        self._db = process.db
        cloud = cloud_observer.CloudObserver(
            options, process.db,
            capacity_reader.CapacityReader(process.options, inventory, known,
                                  process.clock, process.pauses,
                                  lambda: conf.energy.demand_wakes),
            functools.cache(lambda: cloud_observer.load_order(
                options, classes and classes.claims(process.db))),
            inventory.occupancy.get,
            user_quota_reader.UserQuotaReader(acting, time.monotonic),
            batch_planners.load(options), capacity_reader.load_places(conf))
        self._loop = backlog_loop.BacklogLoop(
            options, process.db, request_tracker.RequestTracker(
                process.db, server_reader.ServerReader(process.decisions),
                acting, written), cloud,
            launcher.Launcher(options, acting, written, self._now))
        if options.enabled:
            # NOTE: loads the order, so that a wrong option fails at the start.
            cloud.ranking()
        self._retention = reservation_purge.RecordPurge(
            process.db, conf.reservation, self._now,
            record_purge.REQUESTS.delete_old, 'requests')
        self.works = [('backlog', self._run)]
        self.endpoints = [BacklogEndpoint(self)]

    def _now(self):
        """Return now, naive in UTC in whole seconds, as the database has it.
        """
        return self._clock().replace(tzinfo=None, microsecond=0)

    def coming_back(self):
        """Return the uuids of shelved servers that requests want back."""
        return self._loop.coming_back

    def _run(self):
        self._retention.run()
        if self._options.enabled:
            return self.step()
        return self._options.pass_interval_s

    def step(self):
        """Run a pass over all requests.

        :returns: after how many seconds to repeat it
        """
        now = self._now()
        orphans = self._orphans.clear(now)
        # NOTE: also after batches were switched off.
        boot_host_choices.forget_choices(self._db, now)
        try:
            return self._loop.run(
                now, is_paused=bool(self._pauses.why(pauses.BACKLOG)))
        finally:
            metrics.BACKLOG_TRUSTS.set(orphans + self._loop.trusts_left)

    def plan(self):
        """Return what a pass would start now, see rpc.EngineClient."""
        self._known.servers.refresh()
        launches, cloud, waiting = self._loop.preview(self._now())
        return {'mode': self._options.batch_mode,
            'stopped': self._why_stopped(), 'waiting': len(waiting),
            'starts': [_start(item.start, item.request) for item in launches],
            'hosts': batch_plans.host_usage(cloud.rooms, [
            item.start for item in launches], {
            item.request.uuid: item.request for item in launches})}

    def _why_stopped(self):
        if not self._options.enabled:
            return '[backlog]enabled is false'
        why = self._pauses.why(pauses.BACKLOG)
        return f'the backlog is paused: {why}' if why else ''


def _start(start, request):
    names = {item.flavor_id: item.name for item in request.alternatives}
    return {'request': request.uuid, 'name': request.name,
            'project_id': request.project_id,
            'flavor': names[start.flavor_id], 'count': start.count,
            'hosts': dict(start.hosts), 'reason': start.reason}
