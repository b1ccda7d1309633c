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
"""The service around the tasks: who acts, how often, and what if it fails."""

import threading
import time

from oslo_log import log as logging
from tooz import coordination

from nova_preempt.engine import ends
from nova_preempt.engine import headroom
from nova_preempt.engine import janitor
from nova_preempt.engine import lifetimes
from nova_preempt.engine import returns
from nova_preempt.termination import audit

LOG = logging.getLogger(__name__)

_LOCK = b'nova-preempt-engine'


class Leadership:
    """Which of several engines acts: the one that holds a lock.

    :param backend_url: of a tooz backend
    :param member: the name of this engine
    """

    def __init__(self, backend_url, member):
        self._url = backend_url
        self._member = member.encode()
        self._coordinator = None
        self._lock = None

    def holds(self):
        """Whether it is this one, now.

        False where the backend cannot be reached: nobody acts rather than
        two.
        """
        try:
            if self._coordinator is None:
                self._connect()
            self._coordinator.heartbeat()
            if not self._lock.acquired:
                if not self._lock.acquire(blocking=False):
                    return False
                LOG.info('Engine %s acts from now on.', self._member.decode())
            return True
        except coordination.ToozError as exc:
            LOG.warning('Cannot tell which engine acts: %s', exc)
            self.close()
            return False

    def _connect(self):
        coordinator = coordination.get_coordinator(self._url, self._member)
        coordinator.start(start_heart=True)
        self._lock = coordinator.get_lock(_LOCK)
        self._coordinator = coordinator

    def close(self):
        """Let another one act."""
        coordinator, self._coordinator = self._coordinator, None
        if coordinator is None:
            return
        try:
            if self._lock.acquired:
                self._lock.release()
            coordinator.stop()
        except coordination.ToozError as exc:
            LOG.debug('While leaving: %s', exc)


class Engine:
    """Runs every task at its time.

    :param preemption: a nova_preempt.scheduler.preemption.Preemption
    :param options: [preemption_engine] of the configuration
    :param leadership: a Leadership
    :param power: a nova_preempt.power.service.Power
    """

    def __init__(self, preemption, options, leadership,
                 monotonic=time.monotonic, power=None):
        self.preemption = preemption
        self._options = options
        self._leadership = leadership
        self._monotonic = monotonic
        self._stop = threading.Event()
        self.ends = ends.Ends(preemption, options.threads)
        self.power = power
        old = lifetimes.Lifetimes(preemption, self.ends)
        cleaner = janitor.Janitor(preemption, self.ends, audit.Audit(
            preemption.placement, preemption.view, preemption.db,
            preemption.get_cells, preemption.conf.intent_timeout_s))
        # Those with a pause of their own have it here, in seconds.
        self._tasks = (
            (cleaner.repair_decisions, preemption.conf.recovery_interval_s),
            (cleaner.clean, options.audit_interval_s),
            (preemption.refresh, 0),
            (old.end_old_servers, 0),
            (old.delete_stopped, 0),
            (headroom.Headroom(preemption, self.ends).keep, 0),
            (returns.Returns(preemption, options).restore, 0),
            *(power.tasks if power else ()),
        )
        self._done_at = {}

    def run(self):
        """Until stop() is called."""
        while not self._stop.is_set():
            self.run_once()
            self._stop.wait(self._options.interval_s)
        self._leadership.close()
        self.ends.close()
        if self.power:
            self.power.close()

    def run_once(self):
        """Every task whose time has come, if it is this engine's turn.

        What fails, since a service is away, does not keep the others from
        their work, and is tried again the next time.
        """
        if not self._leadership.holds():
            return
        now = self._monotonic()
        for task, pause_s in self._tasks:
            done_at = self._done_at.get(task)
            if done_at is not None and now - done_at < pause_s:
                continue
            self._done_at[task] = now
            try:
                task()
            except Exception:
                LOG.exception('%s failed; it is tried again.',
                              task.__qualname__)

    def stop(self):
        self._stop.set()
