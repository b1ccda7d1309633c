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

"""Ends the victims of decisions, each on its terms, all at once.

Each victim first gets notice, where it has a time of notice; then, where its
flavor or the operator asks for it, Nova is asked to move it; then its action
is taken. Which step is next is asked of nova_preempt.core.ending before each
act, with what Nova's records show then; no step is taken for granted.
"""

import dataclasses
import datetime
import time

from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import parallel
from nova_preempt.cloud import placement as placement_api
from nova_preempt.core import ending
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import claim
from nova_preempt.handover import ends
from nova_preempt.handover import stopped
from nova_preempt.handover import wanted

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Ended:
    """What became of the victims.

    :ivar stuck: the uuids of victims whose space is not free
        [preemption]termination_timeout_s after their notice
    :ivar unwanted: the uuids of decisions whose server nobody wants any more;
        of their victims no more were asked to end
    """

    stuck: set
    unwanted: set


class Terminator:
    """Ends servers.

    :param clients: a nova_preempt.cloud.clients.Clients
    :param watch: a nova_preempt.cloud.instance_poller.InstancePoller
    :param requests: a nova_preempt.handover.request_poller.RequestPoller
    :param decisions: a nova_preempt.db.Decisions
    :param owner: the nova_preempt.handover.owner.Owner of this process
    :param options: [preemption] of the configuration
    :param events: a nova_preempt.handover.notifications.Notifications
    :param monotonic, sleep: the clock to wait by
    :param halt: given an operation, raises where nobody may end for it now;
        asked for as long as nobody has been asked to end
    """

    def __init__(self, clients, watch, requests, decisions, owner, options,
                 events, monotonic=time.monotonic, sleep=time.sleep,
                 halt=lambda operation: None):
        self.clients = clients
        self.watch = watch
        self.requests = requests
        self.decisions = decisions
        self.owner = owner
        self.halt = halt
        self.options = options
        self.events = events
        self.monotonic = monotonic
        self._sleep = sleep

    def end(self, decisions, check=None):
        """End all victims of these decisions and wait until that is done.

        :param decisions: db.Decisions, CLAIMED
        :param check: called before each step of a victim; what it raises
            ends all of this, and nobody else ends
        :returns: an Ended
        :raises LostDecision: somebody has taken one over; nobody else ends
        """
        work = self.begin(decisions, check)
        try:
            while not work.step():
                self._sleep(work.pause_s())
            return work.ended
        finally:
            work.close()

    def begin(self, decisions, check=None):
        """Give notice to all victims of these decisions.

        :returns: a Work, whose step() is called until it returns True, and
            then close()
        """
        return Work(self, decisions, check or (lambda: None))


class Work:
    """The victims of some decisions, on their way out."""

    def __init__(self, terminator, decisions, check):
        self._terminator = terminator
        self._monotonic = terminator.monotonic
        self._check = check
        self._decisions = tuple(decisions)
        self._watched = [victim.server_uuid for decision in decisions
                         for victim in decision.victims]
        self._acted_at = self._monotonic()
        self.ended = Ended(set(), set())
        self._pending = {}
        self._ends = []           # also those that are done
        self._wanted = wanted.Wanted(terminator.requests, decisions)
        terminator.watch.add(self._watched)
        try:
            for decision in decisions:
                for victim in decision.victims:
                    end = ends.begin(decision, victim, terminator.options,
                                     self._acted_at)
                    self._pending[victim.server_uuid] = end
                    self._ends.append(end)
            self._give_notice()
        except BaseException:
            self.close()
            raise

    def close(self):
        """Wait for nobody any more."""
        self._wanted.close()
        self._terminator.watch.remove(self._watched)

    def step(self):
        """Do what can be done now.

        :returns: whether that was all
        :raises LostDecision: somebody has taken a decision over
        """
        self._drop_unwanted()
        for end in list(self._pending.values()):
            self._check()
            self._check_ours()
            if self._step(end):
                del self._pending[end.uuid]
        return not self._pending

    def _check_ours(self):
        """Nobody ends for what others may have taken over, or is halted.

        What has begun is finished: those who were asked to end would have
        ended in vain.
        """
        if not self._terminator.owner.keeps(self._decisions):
            raise db_decisions.LostDecision(', '.join(
                decision.uuid for decision in self._decisions))
        if not any(end.progress.asked for end in self._ends):
            self._terminator.halt(self._decisions[0].operation)

    def pause_s(self):
        """How long to wait until the next step()."""
        now = self._monotonic()
        pause_s = self._age_s(now)
        for end in self._pending.values():
            if end.progress.acting_since is None:
                pause_s = min(pause_s, max(
                    0.0, end.progress.notice_until - now))
        return pause_s

    def _age_s(self, now):
        return ending.pause_s(now - self._acted_at,
                              self._terminator.options.poll_interval_s)

    # -- notice ------------------------------------------------------------

    def _give_notice(self):
        """Tell those that have a time of notice, all at once."""
        told = [end for end in self._ends if end.victim.notice_s]
        deadlines = [self._note_notice(end) for end in told]
        parallel.call(lambda item: self._tell(*item),
                      list(zip(told, deadlines, strict=True)))

    def _note_notice(self, end):
        decision, victim = end.decision, end.victim
        deadline = timeutils.utcnow() + datetime.timedelta(
            seconds=victim.notice_s)
        # The others are written down first: no guest ends before the time
        # that it is told.
        end.note(notice_until=self._monotonic() + victim.notice_s)
        self._terminator.decisions.update_victim(
            decision.uuid, victim.server_uuid, db_decisions.NOTICED,
            deadline=deadline)
        self._terminator.events.notice(decision, dataclasses.replace(
            victim, deadline=deadline, status=db_decisions.NOTICED))
        return deadline

    def _tell(self, end, deadline):
        """Tell the guest; it ends all the same if that cannot be done."""
        try:
            self._terminator.clients.nova.set_notice(
                end.uuid, end.victim.action, end.resort, deadline,
                end.decision.operation, end.decision.uuid)
        except nova_api.NovaError as exc:
            LOG.warning('Victim %(uuid)s cannot see its notice: %(exc)s',
                        {'uuid': end.uuid, 'exc': exc})

    # -- whether it is wanted ----------------------------------------------

    def _drop_unwanted(self):
        """Leave the victims alone of whom nobody needs the space any more."""
        gone = self._wanted.look()
        for end in list(self._pending.values()):
            decision = end.decision
            if decision.server_uuid in gone:
                if decision.uuid not in self.ended.unwanted:
                    LOG.info('Server %(server)s is not wanted any more: the '
                             'victims of preemption %(uuid)s stay.',
                             {'server': decision.server_uuid,
                              'uuid': decision.uuid})
                    self.ended.unwanted.add(decision.uuid)
                del self._pending[end.uuid]

    # -- one step of one victim; True once nothing more is to be done ------

    def _step(self, end):
        known, seen = self._look(end)
        now = self._monotonic()
        if end.progress.acting_since is None and ending.notice_is_over(
                end.progress, seen, known, now):
            end.note(acting_since=now)
        if known:
            _note_since(end, 'gone_at', seen is None, now)
            _note_since(end, 'offloaded_at',
                        seen is not None and ending.is_held(seen), now)
        try:
            step = ending.next_step(seen, end.terms, end.progress, now,
                                    known=known)
            if step.what is ending.What.LOOK:
                step = ending.next_step(
                    seen, end.terms, end.progress, now, known=known,
                    holds=self._holds(end, seen))
            return _ACTS[step.what](self, end, step.detail)
        except nova_api.NovaError as exc:
            LOG.warning('Cannot end victim %(uuid)s yet: %(exc)s',
                        {'uuid': end.uuid, 'exc': exc})
        except (placement_api.Conflict, placement_api.PlacementError) as exc:
            LOG.warning('Cannot see whether victim %(uuid)s has freed its '
                        'space: %(exc)s', {'uuid': end.uuid, 'exc': exc})
        except db_exc.DBError as exc:
            LOG.warning('Cannot record the end of victim %(uuid)s yet: '
                        '%(exc)s', {'uuid': end.uuid, 'exc': exc})
        return False

    def _look(self, end):
        """(whether that is known, the ending.Seen of a victim)."""
        try:
            return True, self._terminator.watch.get(
                end.uuid, self._age_s(self._monotonic()))
        except nova_api.NovaError as exc:
            LOG.warning('Cannot see how victim %(uuid)s is: %(exc)s',
                        {'uuid': end.uuid, 'exc': exc})
            return False, None

    def _holds(self, end, seen):
        """Whether a victim that has left has anything on its host still."""
        try:
            allocations = self._terminator.clients.placement.get_consumer(
                end.uuid).allocations
        except placement_api.PlacementError as exc:
            if seen is not None:
                raise
            # It does not live any more; that is what the others wait for.
            LOG.warning('Cannot see whether victim %(uuid)s has freed its '
                        'space: %(exc)s', {'uuid': end.uuid, 'exc': exc})
            return False
        if seen is None or (ending.is_offloaded(seen)
                            and seen.task_state is None):
            return bool(allocations)
        return end.decision.provider_uuid in allocations

    def _wait(self, end, detail):
        return False

    def _ask(self, end, method):
        """Ask Nova for something."""
        if not self._wanted.is_certain(end.decision):
            return False
        now = self._monotonic()
        if end.progress.asked != method and (
                not end.progress.asked or method == 'stop'):
            self._terminator.decisions.update_victim(
                end.decision.uuid, end.uuid, db_decisions.ENDING, asked=method)
        end.note(asked=method, asked_at=now)
        self._acted_at = now
        try:
            getattr(self._terminator.clients.nova, method)(end.uuid)
        except nova_api.NovaError as exc:
            if method != 'live_migrate':
                raise
            LOG.info('Victim %(uuid)s cannot be migrated: %(exc)s',
                     {'uuid': end.uuid, 'exc': exc})
            return self._next(end, '')
        if method == 'live_migrate':
            # Nova answers when it knows where to.
            end.note(asked_at=self._monotonic())
        return False

    def _next(self, end, detail):
        """It cannot be moved."""
        end.note(migration_over=True, asked='', asked_at=0.0)
        self._acted_at = self._monotonic()
        return self._step(end)

    def _free(self, end, status):
        self._terminator.clients.placement.delete_allocations(end.uuid)
        return self._done(end, status)

    def _lock(self, end, detail):
        if self._wanted.is_certain(end.decision):
            self._terminator.clients.nova.lock(end.uuid, stopped.LOCKED)
            self._acted_at = self._monotonic()
            end.note(locked_at=self._acted_at)
        return False

    def _leave_stopped(self, end, status):
        if not self._wanted.is_certain(end.decision):
            return False
        stopped.leave(self._terminator.clients.placement, end.uuid)
        return self._done(end, status)

    def _give_up(self, end, detail):
        self.ended.stuck.add(end.uuid)
        return True

    def _done(self, end, status):
        if status == db_decisions.MIGRATED:
            if end.progress.locked_at is not None:
                self._terminator.clients.nova.unlock(end.uuid)
            if end.victim.notice_s:
                self._terminator.clients.nova.clear_notice(end.uuid)
        stand_in = claim.stand_ins(end.decision).get(end.uuid)
        if stand_in is not None:
            self._terminator.clients.placement.delete_allocations(stand_in)
        now = timeutils.utcnow()
        lifetime_s = None
        if end.victim.launched_at is not None:
            lifetime_s = int((now - end.victim.launched_at).total_seconds())
        self._terminator.decisions.update_victim(
            end.decision.uuid, end.uuid, status, ended_at=now,
            lifetime_s=lifetime_s)
        self._terminator.events.end(end.decision, end.victim, status)
        return True


_ACTS = {
    ending.What.WAIT: Work._wait,
    ending.What.ASK: Work._ask,
    ending.What.NEXT: Work._next,
    ending.What.FREE: Work._free,
    ending.What.LOCK: Work._lock,
    ending.What.LEAVE_STOPPED: Work._leave_stopped,
    ending.What.DONE: Work._done,
    ending.What.GIVE_UP: Work._give_up,
}


def _note_since(end, name, is_so, now):
    """Remember since when something is so."""
    since = getattr(end.progress, name)
    if is_so != (since is not None):
        end.note(**{name: now if is_so else None})
