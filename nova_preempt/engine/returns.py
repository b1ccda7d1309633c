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
"""The return of shelved victims."""

import datetime

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt.db import api as db_api

LOG = logging.getLogger(__name__)

# The longest pause between two tries.
LONGEST_S = 3600


class Returns:
    """Unshelves what was shelved to give way, once there is room.

    One at a time, the one that ended first before all others: so each finds
    the room that was seen for it. An unshelved server is a preemptible
    request like any other: it takes what is free and never preempts.

    :param preemption: a nova_preempt.scheduler.preemption.Preemption
    :param options: [preemption_engine] of the configuration
    """

    def __init__(self, preemption, options):
        self._preemption = preemption
        self._options = options

    def restore(self):
        """Look after those that come back; ask for the next one."""
        for decision_uuid, victim in self._preemption.db.get_victims(
                db_api.SHELVED):
            if victim.restore and self._is_coming(decision_uuid, victim):
                return

    def _is_coming(self, decision_uuid, victim):
        """Whether this one is on its way back; the others wait for it."""
        server = self._preemption.nova.get(victim.server_uuid)
        if server is None:
            self._close(decision_uuid, victim, db_api.GONE)
            return False
        if server.task_state is not None:
            return server.task_state in ('unshelving', 'spawning')
        if server.status != 'SHELVED_OFFLOADED':
            self._is_back(decision_uuid, victim)
            return False
        now = timeutils.utcnow()
        if now - victim.ended_at >= datetime.timedelta(
                seconds=self._options.restore_timeout_s):
            LOG.info('Server %s is left shelved: there was no room for too '
                     'long.', victim.server_uuid)
            self._close(decision_uuid, victim, db_api.LEFT)
            return False
        if victim.next_try_at and now < victim.next_try_at:
            return False
        if not self._has_room(victim):
            return False
        self._unshelve(decision_uuid, victim, now)
        return True

    def _has_room(self, victim):
        """Whether it may fit somewhere; the scheduler has the last word."""
        resources = {}
        for item in victim.allocations.values():
            for name, amount in item['resources'].items():
                resources[name] = resources.get(name, 0) + amount
        if not self._preemption.placement.has_room(resources):
            return False
        headroom = self._preemption.headroom
        headroom.refresh()
        return headroom.has_room(resources)

    def _unshelve(self, decision_uuid, victim, now):
        pause_s = min(LONGEST_S,
                      self._options.restore_interval_s * 2 ** victim.tries)
        # Before it is asked for, so that no failure makes it come at once.
        self._preemption.db.update_victim(
            decision_uuid, victim.server_uuid, db_api.SHELVED,
            tries=victim.tries + 1,
            next_try_at=now + datetime.timedelta(seconds=pause_s))
        LOG.info('There may be room for server %s: unshelving it.',
                 victim.server_uuid)
        self._preemption.nova.unshelve(victim.server_uuid)

    def _is_back(self, decision_uuid, victim):
        LOG.info('Server %s is back.', victim.server_uuid)
        self._preemption.nova.clear_notice(victim.server_uuid)
        self._close(decision_uuid, victim, db_api.RESTORED)
        decision = self._preemption.db.get_decision(decision_uuid)
        self._preemption.events.restored(decision, victim)

    def _close(self, decision_uuid, victim, status):
        self._preemption.db.update_victim(decision_uuid, victim.server_uuid,
                                          status)
