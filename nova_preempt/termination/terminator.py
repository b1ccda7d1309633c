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
"""Ending the victims of decisions, and waiting until they are gone."""

import time

from oslo_log import log as logging

from nova_preempt import placement as placement_api
from nova_preempt.db import api as db_api
from nova_preempt.termination import nova_api

LOG = logging.getLogger(__name__)

# How often a sign of life is given, and how often an end that Nova accepted
# but that did not happen is asked for again.
TOUCH_S = 5
ASK_AGAIN_S = 10


class Terminator:
    """Ends servers.

    :param nova: a NovaAPI
    :param placement: a nova_preempt.placement.Placement
    :param db: a nova_preempt.db.Database
    :param owner: the name under which this process owns decisions
    :param options: [preemption] of the configuration
    :param monotonic, sleep: the clock to wait by
    """

    def __init__(self, nova, placement, db, owner, options,
                 monotonic=time.monotonic, sleep=time.sleep):
        self._nova = nova
        self._placement = placement
        self._db = db
        self._owner = owner
        self._options = options
        self._monotonic = monotonic
        self._sleep = sleep

    def end(self, decisions):
        """End all victims of these decisions and wait until they are gone.

        :param decisions: db.Decisions, CLAIMED
        :returns: the uuids of those that are still there after
            [preemption]termination_timeout_s
        """
        pending = {victim.server_uuid: decision.uuid
                   for decision in decisions for victim in decision.victims}
        uuids = [decision.uuid for decision in decisions]
        asked = {}
        start = touched = self._monotonic()
        while True:
            for uuid in list(pending):
                if self._is_gone(uuid, pending[uuid], asked):
                    self._db.update_victim(pending.pop(uuid), uuid,
                                           db_api.GONE)
            now = self._monotonic()
            if not pending or (
                    now - start >= self._options.termination_timeout_s):
                return set(pending)
            if now - touched >= TOUCH_S:
                self._db.touch(uuids, self._owner)
                touched = now
            self._sleep(self._options.poll_interval_s)

    def _is_gone(self, uuid, decision_uuid, asked):
        """Ask for the end of a server where needed; say whether it is gone."""
        try:
            server = self._nova.get(uuid) if uuid in asked else _UNKNOWN
            now = self._monotonic()
            if server is None:
                return self._is_free(uuid, asked.setdefault(uuid, now))
            if uuid not in asked or (not server.ending and
                                     now - asked[uuid] >= ASK_AGAIN_S):
                if uuid not in asked:
                    self._db.update_victim(decision_uuid, uuid, db_api.ENDING)
                asked[uuid] = now
                self._nova.force_delete(uuid)
        except nova_api.NovaError as exc:
            LOG.warning('Cannot end victim %(uuid)s yet: %(exc)s',
                        {'uuid': uuid, 'exc': exc})
        return False


    def _is_free(self, uuid, asked_at):
        """Whether a server that Nova knows no more has given up its space.

        Nova frees it just after. What it forgets, since Placement was away at
        that time, we free.
        """
        try:
            if not self._placement.get_consumer(uuid).allocations:
                return True
            if self._monotonic() - asked_at < ASK_AGAIN_S:
                return False
            self._placement.delete_allocations(uuid)
        except (placement_api.Conflict, placement_api.PlacementError) as exc:
            # It does not live any more; that is what the others wait for.
            LOG.warning('Cannot see whether victim %(uuid)s has freed its '
                        'space: %(exc)s', {'uuid': uuid, 'exc': exc})
        return True


_UNKNOWN = object()
