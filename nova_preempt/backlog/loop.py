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
"""Observes the backlog, steps its controller, and carries out the intents."""

import dataclasses
import functools

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.backlog import options as backlog_options
from nova_preempt.core import times
from nova_preempt.core.backlog import controller
from nova_preempt.core.model import SECOND
from nova_preempt.db import backlog as db
from nova_preempt.db import backlog_turns

LOG = logging.getLogger(__name__)


class Loop:
    """Lets the controller of the backlog work.

    :param options: [backlog] of the configuration
    :param database: a nova_preempt.db.Database
    :param tracker: a nova_preempt.backlog.tracker.Tracker
    :param cloud: a nova_preempt.backlog.passes.CloudReader
    :param launcher: a nova_preempt.backlog.launcher.Launcher
    :ivar trusts_left: of how many closed requests the trust is still there
    :ivar memory: the core.backlog.controller.Memory of the last step
    """

    def __init__(self, options, database, tracker, cloud, launcher):
        self._options = options
        self._database = database
        self._tracker = tracker
        self._cloud = cloud
        self._launcher = launcher
        self.trusts_left = 0
        self.memory = controller.Memory()

    def run(self, now, is_paused=False):
        """Look at all requests, and start what can start.

        :param is_paused: nothing starts, and what was started is followed
        :returns: in how many seconds to do so again
        :raises NovaError, PlacementError: how much room there is cannot be
            told
        """
        with metrics.BACKLOG_STEP.labels('follow').time():
            requests, closed, seen = self._tracker.look(now)
        turns = backlog_turns.get(self._database)
        now_us = times.microseconds(now)
        with metrics.BACKLOG_STEP.labels('decide').time():
            step = controller.step(controller.Observed(
                backlog_options.controlling(self._options), requests, seen,
                None if is_paused else functools.partial(
                    self._cloud.read, now), closed),
                dataclasses.replace(self.memory, turns=turns), now_us)
        self.memory = step.memory
        of = {kind: [item for item in step.intents if isinstance(item, kind)]
              for kind in (controller.Record, controller.Clear,
                           controller.Note, controller.Launch,
                           controller.Report)}
        _log(of[controller.Report])
        with metrics.BACKLOG_STEP.labels('close').time():
            changed = self._tracker.record(
                requests, of[controller.Record], now)
            self.trusts_left = self._tracker.clear(closed, [
                item for item in of[controller.Clear]
                if item.request.uuid not in changed], now)
        db.note(self._database, {item.request.uuid: item.note
                                 for item in of[controller.Note]})
        backlog_turns.replace(self._database, turns, step.memory.turns)
        with metrics.BACKLOG_STEP.labels('start').time():
            self._launcher.start(of[controller.Launch])
        _raise(step)
        return (step.wake_at_us - now_us) / SECOND

    def preview(self, now):
        """Return what run() would start now; nothing is done.

        :returns: ([core controller.Launch], the core passes.Cloud,
            [core Request] of those that wait)
        """
        found, waiting = [], []

        def read(some):
            waiting.extend(some)
            found.append(self._cloud.read(now, some))
            return found[0]

        step = controller.step(controller.Observed(
            backlog_options.controlling(self._options),
            self._tracker.open(), {}, read), dataclasses.replace(
                self.memory, turns=backlog_turns.get(self._database)),
            times.microseconds(now))
        _raise(step)
        return [item for item in step.intents
                if isinstance(item, controller.Launch)], (
                    found[0] if found else self._cloud.read(now)), waiting


def _log(reports):
    """Log the faults of requests.

    :param reports: [core controller.Report]
    """
    for item in reports:
        if item.request is not None:
            LOG.error('Request %(uuid)s cannot be looked at: %(exc)r',
                      {'uuid': item.request.uuid, 'exc': item.fault},
                      exc_info=item.fault)


def _raise(step):
    """Raise what a pass failed with, if it did."""
    for item in step.intents:
        if isinstance(item, controller.Report) and item.request is None:
            raise item.fault.__cause__ if isinstance(
                item.fault, controller.CapacityUnknown) else item.fault
