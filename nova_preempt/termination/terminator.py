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
"""Ending the victims of decisions, and waiting until their space is free.

Each victim first gets notice, where it has a time of notice; then, where its
flavor or the operator asks for it, Nova is asked to move it; then its action
is taken. No step is taken for granted: each is seen in Nova's records, the
last one in Placement too.
"""

import dataclasses
import datetime
import time

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt import placement as placement_api
from nova_preempt.core import eligibility
from nova_preempt.db import api as db_api
from nova_preempt.termination import heartbeat
from nova_preempt.termination import nova_api
from nova_preempt.termination import terms

LOG = logging.getLogger(__name__)

# How often a sign of life is given, and how often an action that Nova
# accepted but that did not happen is asked for again.
TOUCH_S = 5
ASK_AGAIN_S = 10
# After how long a migration that was accepted shows.
_BEGUN_S = 1

_ENDING = frozenset(('deleting', 'soft-deleting'))


@dataclasses.dataclass
class _End:
    """How far the end of one victim is."""

    decision: db_api.Decision
    victim: db_api.Victim
    notice_until: float            # monotonic
    migrate: bool                  # whether that is (still) tried
    last_resort: str               # what else is done
    give_up_at: float = 0.0        # monotonic, set when the notice is over
    acting: bool = False           # whether the notice is over
    asked: str = ''                # what Nova was asked for last, and when
    asked_at: float | None = None
    host: str | None = None        # where it was before it is moved
    gone_at: float | None = None   # when Nova knew it no more

    @property
    def uuid(self):
        return self.victim.server_uuid


class Terminator:
    """Ends servers.

    :param nova: a NovaAPI
    :param watch: a nova_preempt.termination.watch.Watch
    :param placement: a nova_preempt.placement.Placement
    :param db: a nova_preempt.db.Database
    :param owner: the name under which this process owns decisions
    :param options: [preemption] of the configuration
    :param events: a nova_preempt.events.Events
    :param monotonic, sleep: the clock to wait by
    """

    def __init__(self, nova, watch, placement, db, owner, options, events,
                 monotonic=time.monotonic, sleep=time.sleep):
        self._nova = nova
        self._watch = watch
        self._placement = placement
        self._db = db
        self._heartbeat = heartbeat.Heartbeat(db, owner, TOUCH_S, monotonic)
        self._options = options
        self._events = events
        self._monotonic = monotonic
        self._sleep = sleep

    def end(self, decisions, check=None):
        """End all victims of these decisions and wait until that is done.

        :param decisions: db.Decisions, CLAIMED
        :param check: called before each step of a victim; what it raises
            ends all of this, and nobody else ends
        :returns: the uuids of victims whose space is not free
            [preemption]termination_timeout_s after their notice
        :raises LostDecision: somebody has taken one over; nobody else ends
        """
        pending = {victim.server_uuid: self._begin(decision, victim)
                   for decision in decisions for victim in decision.victims}
        owned = [decision.uuid for decision in decisions]
        watched = list(pending)
        stuck = set()
        self._heartbeat.add(owned)
        self._watch.add(watched)
        try:
            while True:
                for end in list(pending.values()):
                    if check is not None:
                        check()
                    if self._step(end):
                        del pending[end.uuid]
                    elif end.acting and self._monotonic() >= end.give_up_at:
                        stuck.add(end.uuid)
                        del pending[end.uuid]
                if not pending:
                    return stuck
                if not self._heartbeat.keeps(owned):
                    raise db_api.LostDecision(', '.join(owned))
                self._sleep(self._options.poll_interval_s)
        finally:
            self._watch.remove(watched)
            self._heartbeat.remove(owned)

    def _begin(self, decision, victim):
        end = _End(decision, victim, self._monotonic() + victim.notice_s,
                   terms.is_migrated_first(victim.action, self._options),
                   terms.last_resort(victim.action, self._options.actions))
        if victim.notice_s:
            self._give_notice(decision, victim)
        return end

    def _give_notice(self, decision, victim):
        """Tell the guest; it ends all the same if that cannot be done."""
        deadline = timeutils.utcnow() + datetime.timedelta(
            seconds=victim.notice_s)
        self._db.update_victim(decision.uuid, victim.server_uuid,
                               db_api.NOTICED, deadline=deadline)
        victim = dataclasses.replace(victim, deadline=deadline,
                                     status=db_api.NOTICED)
        self._events.notice(decision, victim)
        try:
            self._nova.set_notice(
                victim.server_uuid, victim.action,
                terms.last_resort(victim.action, self._options.actions),
                deadline, decision.operation, decision.uuid)
        except nova_api.NovaError as exc:
            LOG.warning('Victim %(uuid)s cannot see its notice: %(exc)s',
                        {'uuid': victim.server_uuid, 'exc': exc})

    # -- one step of one victim; True once its space is free -------------

    def _step(self, end):
        try:
            state = self._watch.get(end.uuid)
            if not end.acting and not self._is_notice_over(end, state):
                return False
            if state is None:
                return self._is_deleted(end)
            return self._act(end, state)
        except nova_api.NovaError as exc:
            LOG.warning('Cannot end victim %(uuid)s yet: %(exc)s',
                        {'uuid': end.uuid, 'exc': exc})
        except (placement_api.Conflict, placement_api.PlacementError) as exc:
            LOG.warning('Cannot see whether victim %(uuid)s has freed its '
                        'space: %(exc)s', {'uuid': end.uuid, 'exc': exc})
        return False

    def _is_notice_over(self, end, state):
        """Whether it is late enough, or the guest needs no more time."""
        now = self._monotonic()
        if (now < end.notice_until and state is not None
                and state.vm_state in eligibility.RUNNING):
            return False
        end.acting = True
        end.give_up_at = now + self._options.termination_timeout_s
        if end.migrate:
            end.give_up_at += self._options.migrate_timeout_s
        self._db.update_victim(end.decision.uuid, end.uuid, db_api.ENDING)
        return True

    def _act(self, end, state):
        if end.migrate:
            if state.vm_state == 'active' or end.host:
                return self._is_migrated(end, state)
            end.migrate = False
        if end.last_resort == 'shelve':
            return self._is_shelved(end, state)
        if end.last_resort == 'stop':
            return self._is_stopped(end, state)
        if state.task_state not in _ENDING:
            self._ask(end, 'force_delete')
        return False

    def _ask(self, end, method):
        """Ask Nova for something, not too often."""
        now = self._monotonic()
        if (end.asked_at is None or end.asked != method
                or now - end.asked_at >= ASK_AGAIN_S):
            end.asked = method
            end.asked_at = now
            getattr(self._nova, method)(end.uuid)

    def _ask_next(self, end, state):
        """Ask for what brings the server nearer to its end.

        Its owner may have brought it into another state during the notice.
        """
        method = eligibility.next_call(end.last_resort, state.vm_state)
        if method:
            self._ask(end, method)

    def _is_deleted(self, end):
        """Nova frees the space of a server just after it knows it no more.

        What it forgets, since Placement was away at that time, we free.
        """
        now = self._monotonic()
        end.gone_at = now if end.gone_at is None else end.gone_at
        try:
            if self._placement.get_consumer(end.uuid).allocations:
                if now - end.gone_at < ASK_AGAIN_S:
                    return False
                self._placement.delete_allocations(end.uuid)
        except placement_api.PlacementError as exc:
            # It does not live any more; that is what the others wait for.
            LOG.warning('Cannot see whether victim %(uuid)s has freed its '
                        'space: %(exc)s', {'uuid': end.uuid, 'exc': exc})
        return self._done(end, db_api.GONE)

    def _is_shelved(self, end, state):
        if state.vm_state == 'shelved_offloaded':
            if state.task_state or self._placement.get_consumer(
                    end.uuid).allocations:
                return False
            return self._done(end, db_api.SHELVED)
        if state.task_state is None:
            self._ask_next(end, state)
        return False

    def _is_stopped(self, end, state):
        if state.vm_state == 'shelved_offloaded':
            return self._is_shelved(end, state)
        if state.task_state is not None:
            return False
        if state.vm_state != 'stopped':
            self._ask_next(end, state)
            return False
        self._nova.lock(end.uuid, 'It has given way; it is to be deleted.')
        consumer = self._placement.get_consumer(end.uuid)
        left = {}
        for uuid, item in consumer.allocations.items():
            disk = item['resources'].get(terms.DISK)
            if disk:
                left[uuid] = {**item, 'resources': {terms.DISK: disk}}
        if left != consumer.allocations:
            self._placement.post_allocations(
                [consumer.with_allocations(left)])
        return self._done(end, db_api.STOPPED)

    def _is_migrated(self, end, state):
        now = self._monotonic()
        if end.host is None:
            end.host = state.host
            if state.task_state == 'migrating':
                # Somebody else has asked, or we before a restart.
                end.asked_at = now
                return False
            try:
                self._nova.live_migrate(end.uuid)
                end.asked_at = self._monotonic()
            except nova_api.NovaError as exc:
                LOG.info('Victim %(uuid)s cannot be migrated: %(exc)s',
                         {'uuid': end.uuid, 'exc': exc})
                self._give_up_migration(end)
            return False
        if state.task_state is None:
            if state.host != end.host:
                self._nova.clear_notice(end.uuid)
                return self._done(end, db_api.MIGRATED)
            # What was read before Nova has shown that it has begun says
            # nothing: who gives up now would end a server on its way.
            if state.read_at - end.asked_at >= _BEGUN_S:
                self._give_up_migration(end)
        elif now - end.asked_at >= self._options.migrate_timeout_s:
            self._nova.abort_migration(end.uuid)
        return False

    @staticmethod
    def _give_up_migration(end):
        end.migrate = False
        end.asked_at = None
        end.host = None

    def _done(self, end, status):
        now = timeutils.utcnow()
        lifetime_s = None
        if end.victim.launched_at is not None:
            lifetime_s = int((now - end.victim.launched_at).total_seconds())
        self._db.update_victim(end.decision.uuid, end.uuid, status,
                               ended_at=now, lifetime_s=lifetime_s)
        self._events.end(end.decision, end.victim, status)
        return True
