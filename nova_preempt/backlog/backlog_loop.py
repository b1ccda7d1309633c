# SPDX-License-Identifier: Apache-2.0
"""Observes the backlog, steps its controller, and carries out the intents."""

import dataclasses
import traceback

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.backlog import backlog_options_from_conf
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import times
from nova_preempt.core.backlog import backlog_controller as core
from nova_preempt.core.backlog import queue_order
from nova_preempt.core.model import SECOND
from nova_preempt.db import backlog_store
from nova_preempt.db import boot_host_choices

LOG = logging.getLogger(__name__)


class BacklogLoop:
    """Observes the backlog, steps its controller and carries out intents.

    :param options: [backlog] of the configuration
    :param database: a nova_preempt.db.Database
    :param tracker: a nova_preempt.backlog.request_tracker.RequestTracker
    :param cloud: a nova_preempt.backlog.cloud_observer.CloudObserver
    :param launcher: a nova_preempt.backlog.launcher.Launcher
    :ivar trusts_left: number of closed requests whose trust still exists
    :ivar coming_back: the uuids of evicted servers that open requests want
        back
    """

    def __init__(self, options, database, tracker, cloud, launcher):
        self._options = options
        self._db = database
        self._tracker = tracker
        self._cloud = cloud
        self._launcher = launcher
        self.trusts_left = 0
        self.coming_back = frozenset()
        self._memory = core.Memory()
        # {uuid of a request: (type, traceback) of its logged fault}
        self._faults = {}

    def run(self, now, is_paused=False):
        """Track all requests, and start waiting ones that fit.

        :param is_paused: start no request, and only track started ones
        :returns: after how many seconds to repeat it
        :raises NovaError, PlacementError: capacity cannot be read
        """
        with metrics.BACKLOG_STEP.labels('follow').time():
            requests, closed, seen = self._tracker.look(now)
            followed = self._follow(requests, closed, seen, now)
        self.coming_back = followed.coming_back
        with metrics.BACKLOG_STEP.labels('close').time():
            changed = self._tracker.record(requests, followed.records, now)
            self.trusts_left = self._tracker.clear(closed, [
                item for item in followed.clears
                if item.request.uuid not in changed], now)
        with metrics.BACKLOG_STEP.labels('decide').time():
            cloud, error = None, None
            if followed.waiting and not is_paused:
                try:
                    cloud = self._cloud.read(now, followed.waiting)
                except (nova_api.NovaError,
                        placement_api.PlacementError) as exc:
                    error = exc
            turns = boot_host_choices.get_turns(self._db)
            waiting = [] if is_paused else followed.waiting
            step = self._step(followed, waiting, cloud, turns, now)
        self._memory = step.memory
        of = {kind: [item for item in step.intents if isinstance(item, kind)]
              for kind in (core.RecordWaitReason, core.Launch,
                           core.FetchUserQuota, core.LogException)}
        self._log(of[core.LogException])
        backlog_store.note(self._db, {item.request.uuid: item.note
                                      for item in of[core.RecordWaitReason]})
        boot_host_choices.replace_turns(self._db, turns, step.memory.turns)
        with metrics.BACKLOG_STEP.labels('start').time():
            self._launcher.start(of[core.Launch])
        self._cloud.quotas.ask([item.request
                                for item in of[core.FetchUserQuota]])
        if error is not None:
            raise error
        return (step.wake_at_us - times.microseconds(now)) / SECOND

    def preview(self, now):
        """Return what run() would start now, without starting it.

        :returns: ([core.Launch], the dispatch_values.Cloud, [core Request]
            that wait)
        """
        followed = self._follow(self._tracker.open(), (), {}, now)
        cloud = self._cloud.read(now, followed.waiting)
        step = self._step(followed, followed.waiting, cloud,
                          boot_host_choices.get_turns(self._db), now)
        return [item for item in step.intents
                if isinstance(item, core.Launch)], cloud, followed.waiting

    def _follow(self, requests, closed, seen, now):
        return core.follow(
            requests, closed, seen, times.microseconds(now),
            backlog_options_from_conf.boot_options(self._options))

    def _step(self, followed, waiting, cloud, turns, now):
        """Run a pass over waiting requests.

        :param cloud: a core dispatch_values.Cloud, None while capacity is
            unknown
        """
        ranked = waiting
        if cloud is not None:
            ranked = self._cloud.ranking().rank(
                waiting, now,
                queue_order.shares(followed.requests, cloud.rooms))
        options = backlog_options_from_conf.controller_options(self._options)
        return core.step(
            core.Observed(options, ranked, followed.requests, cloud),
            dataclasses.replace(self._memory, turns=turns),
            times.microseconds(now))

    def _log(self, faults):
        """Log each fault once while it lasts.

        Texts may differ by times or addresses, so tracebacks are compared.

        :param faults: [core.LogException]
        """
        found = {uuid: where for uuid, where in self._faults.items()
                 if uuid in self._memory.unseen}
        for item in faults:
            uuid, exc = item.request.uuid, item.exception
            found[uuid] = type(exc), str(
                traceback.extract_tb(exc.__traceback__))
            if self._faults.get(uuid) != found[uuid]:
                LOG.error('Request %(uuid)s cannot be processed: %(exc)r',
                          {'uuid': uuid, 'exc': exc}, exc_info=exc)
        self._faults = found
