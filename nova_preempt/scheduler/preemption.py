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
"""What a scheduler that preempts consists of, put together once a process."""

import functools
import time

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.core.scheduling import memo
from nova_preempt.db import outcomes
from nova_preempt.handover import parts
from nova_preempt.scheduler import deadline as deadlines
from nova_preempt.scheduler import records
from nova_preempt.scheduler import releasing
from nova_preempt.scheduler import selection_lock
from nova_preempt.scheduler import waiting_members

LOG = logging.getLogger(__name__)


class Preemption(parts.Parts):
    """The parts, and those that only a scheduler has.

    :param conf: nova.conf.CONF
    :param host: the name of the scheduler's host
    :param get_client: returns Nova's Placement client
    :param get_cells: returns {uuid: CellMapping} to look for servers in
    :param clock: returns now, timezone-aware
    """

    def __init__(self, conf, host, get_client, get_cells, clock):
        self._times = deadlines.make_times(conf)
        self._slots = deadlines.WaitSlots(_get_places(conf), metrics.WAITING)
        notice_limit_s = self._times.notice_limit_s
        super().__init__(conf, host, get_client, get_cells, clock,
                         notice_limit_s)
        self.records = records.Records(self.process.options, notice_limit_s)
        self.selection_lock = selection_lock.SelectionLock()
        self.memo = memo.Memo()
        self.waiting_members = waiting_members.WaitingMembers(
            self.process.decisions.get_decisions, functools.partial(
                outcomes.get_placed, self.process.db,
                waiting_members.BUILD_S))
        self.releasing = releasing.ReleaseWaiter(self.process.decisions,
                                                 self.process.options)

    def deadline(self, monotonic=time.monotonic, waits=True):
        """The Deadline of a request that has come just now.

        :param waits: False for one that only asks how it would be
        """
        return deadlines.Deadline(
            self._times, self._slots if waits else deadlines.WaitSlots(),
            monotonic)

    def note_refusal(self, cycle, server_uuid, reason):
        """Keep the record of a request that preemption could not help."""
        metrics.REFUSALS.inc()
        try:
            self.process.decisions.create_decision(
                self.records.refused(cycle, server_uuid, reason))
        except Exception:
            # The request has its answer; only the record of it is lost.
            LOG.exception('Cannot keep the record of server %s.', server_uuid)


def _get_places(conf):
    """How many requests may wait; each one does in a thread."""
    places = conf.preemption.max_waiting_requests
    threads = deadlines.get_threads(conf)
    if places >= threads:
        LOG.warning(
            '[preemption]max_waiting_requests is %(places)s, not below '
            '[DEFAULT]executor_thread_pool_size, %(threads)s: when so '
            'many requests wait no other one is served, not even one '
            'that has room.',
            {'places': places, 'threads': threads})
    return places
