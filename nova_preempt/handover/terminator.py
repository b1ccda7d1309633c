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

import time

from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt.cloud import host_services
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement as placement_api
from nova_preempt.core import ending
from nova_preempt.core import ending_times
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import ends
from nova_preempt.handover import given_way
from nova_preempt.handover import held
from nova_preempt.handover import hosts
from nova_preempt.handover import notices
from nova_preempt.handover import offloaded
from nova_preempt.handover import stopped
from nova_preempt.handover import wanted

LOG = logging.getLogger(__name__)


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
    :param host_is_up: see nova_preempt.cloud.host_services
    """

    def __init__(self, clients, watch, requests, decisions, owner, options,
                 events, monotonic=time.monotonic, sleep=time.sleep,
                 halt=lambda operation: None,
                 host_is_up=host_services.host_is_up):
        self.clients = clients
        self.watch = watch
        self.requests = requests
        self.decisions = decisions
        self.owner = owner
        self.halt = halt
        self.host_is_up = host_is_up
        self.options = options
        self.events = events
        self.monotonic = monotonic
        self._sleep = sleep

    def end(self, decisions, check=None, chosen_at=None):
        """End all victims of these decisions and wait until that is done.

        :param decisions: db.Decisions, CLAIMED
        :param check: called before each step of a victim; what it raises
            ends all of this, and nobody else ends
        :param chosen_at: when their hosts were seen up, or before
        :returns: an ends.Ended
        :raises LostDecision: somebody has taken one over; nobody else ends
        """
        work = self.begin(decisions, check, chosen_at)
        try:
            while not work.step():
                self._sleep(work.pause_s())
            return work.ended
        finally:
            work.close()

    def begin(self, decisions, check=None, chosen_at=None):
        """Give notice to all victims of these decisions.

        :returns: a Work, whose step() is called until it returns True, and
            then close()
        """
        return Work(self, decisions, check or (lambda: None), chosen_at)


class Work:
    """The victims of some decisions, on their way out."""

    def __init__(self, terminator, decisions, check, chosen_at):
        self._terminator = terminator
        self._monotonic = terminator.monotonic
        self._check = check
        self._decisions = tuple(decisions)
        self._watched = [victim.server_uuid for decision in decisions
                         for victim in decision.victims]
        self._acted_at = self._monotonic()
        self.ended = ends.Ended()
        self._pending = {}
        self._ends = []           # also those that are done
        self._hosts = hosts.Hosts(
            terminator.host_is_up, self._monotonic,
            [each.host for each in decisions if each.server_uuid], chosen_at)
        self._wanted = wanted.Wanted(terminator.requests, decisions)
        terminator.watch.add(self._watched)
        try:
            for decision in decisions:
                for victim in decision.victims:
                    end = ends.begin(decision, victim, terminator.options,
                                     self._acted_at)
                    self._pending[victim.server_uuid] = end
                    self._ends.append(end)
            # These get no notice, so they stay though the host comes back.
            self._unwarned = {end.uuid for end in self._ends
                              if self._hosts.is_in_vain(end)}
            # The claim, and the look at hosts, may have taken long.
            self._check_all()
            notices.give(
                [end for end in self._ends if end.uuid not in self._unwarned],
                terminator.clients.nova, terminator.decisions,
                terminator.events, self._monotonic)
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
        if self._is_notice_over():
            # Whoever must not end spares all of them, so all are looked at
            # once more before the first is asked.
            self._step_all()
            for end in self._pending.values():
                end.note(acting_since=self._acted_at)
        if not self.ended.refusals:
            self._step_all()
        if not self._pending and not self.ended.refusals:
            self._look_at_hosts()
        return not self._pending or bool(self.ended.refusals)

    def _step_all(self):
        for end in list(self._pending.values()):
            self._check_all()
            if self._step(end):
                del self._pending[end.uuid]
            if self.ended.refusals:
                return

    def _check_all(self):
        """Nobody ends for what others may have taken over, or is halted.

        Nor too late. What has begun is finished: those who were asked to end
        would have ended in vain.
        """
        self._check()
        if not self._terminator.owner.keeps(self._decisions):
            raise db_decisions.LostDecision(', '.join(
                decision.uuid for decision in self._decisions))
        if not self._has_begun():
            self._terminator.halt(self._decisions[0].operation)

    def _has_begun(self):
        return any(end.progress.has_begun for end in self._ends)

    def pause_s(self):
        """How long to wait until the next step()."""
        now = self._monotonic()
        pause_s = self._age_s(now)
        notices_until = [end.progress.notice_until
                         for end in self._pending.values()
                         if end.progress.acting_since is None]
        if notices_until:
            pause_s = min(pause_s, max(
                0.0, ending_times.begin_at(notices_until) - now))
        return pause_s

    def _age_s(self, now):
        return ending_times.pause_s(now - self._acted_at,
                              self._terminator.options.poll_interval_s)

    def _is_notice_over(self):
        """Whether all of them may be asked to end from now on."""
        waiting = [end for end in self._pending.values()
                   if end.progress.acting_since is None]
        if not waiting or not ending_times.may_begin(
                [(end.progress, *self._look(end)) for end in waiting],
                self._monotonic()):
            return False
        for end in waiting:
            self._hosts.is_in_vain(end)  # the next step knows it, then
        self._acted_at = self._monotonic()
        return True

    def _look_at_hosts(self):
        """All victims have ended: see whether that was of any use."""
        for decision in self._decisions:
            if decision.uuid not in self.ended.unwanted and (
                    self._hosts.is_lost(decision)):
                self.ended.refusals[decision.uuid] = ending.host_is_down(
                    decision.host)

    # -- whether it is wanted ----------------------------------------------

    def _drop_unwanted(self):
        """Leave the victims alone of whom nobody needs the space any more."""
        gone = self._wanted.look()
        for end in list(self._pending.values()):
            uuid = end.decision.uuid
            if uuid in gone:
                if uuid not in self.ended.unwanted:
                    LOG.info('The victims of preemption %(uuid)s stay: '
                             '%(why)s.', {'uuid': uuid, 'why': gone[uuid]})
                    self.ended.unwanted[uuid] = gone[uuid]
                del self._pending[end.uuid]

    # -- one step of one victim; True once nothing more is to be done ------

    def _step(self, end):
        end.seen, known = self._look(end)
        now = self._monotonic()
        if known:
            end.note_seen(now)
        facts = {'known': known,
                 'host_up': end.uuid not in self._unwarned
                 and self._hosts.known(end.terms.host)}
        try:
            step = self._next_step(end, now, facts)
            if step.what is ending.What.LOOK:
                facts['holds'] = offloaded.holds(
                    self._terminator.clients.placement, end)
                step = self._next_step(end, now, facts)
            elif step.what is ending.What.LOOK_AT_HOST:
                facts['host_up'] = self._hosts.look(end.terms.host, end.uuid)
                step = self._next_step(end, now, facts)
            if step.what in _ON_SERVERS and not self._is_needed(end):
                return False
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

    @staticmethod
    def _next_step(end, now, facts):
        return ending.next_step(end.seen, end.terms, end.progress, now,
                                **facts)

    def _look(self, end):
        """(the ending.Seen of a victim, whether that is known)."""
        try:
            return self._terminator.watch.get(
                end.uuid, self._age_s(self._monotonic())), True
        except nova_api.NovaError as exc:
            LOG.warning('Cannot see how victim %(uuid)s is: %(exc)s',
                        {'uuid': end.uuid, 'exc': exc})
            return None, False

    def _is_needed(self, end):
        """Whether somebody needs the space of a victim, and will have it.

        :raises ClaimLost: somebody else has it; seen before the first ends,
            so that nobody does in vain
        """
        return self._wanted.is_certain(end.decision) and (
            self._has_begun() or held.is_certain(
                self._terminator.clients.placement,
                [decision for decision in self._decisions
                 if decision.uuid not in self.ended.unwanted]))

    def _may_act(self, end):
        """Whether something may be done to a victim; asked just before.

        Whatever comes in between may have taken long: by then the request may
        have been given up, or the victim be another's, or elsewhere. What
        asks others comes first, for that may take long, too.

        :raises TimeIsUp, LostDecision, Paused: nobody ends any more
        """
        is_wanted = self._wanted.is_certain(end.decision)
        self._check_all()
        now = self._monotonic()
        if not is_wanted or not ending_times.is_fresh(end.seen.read_at, now):
            return False
        self._acted_at = now
        return True

    def _ask(self, end, method):
        """Ask Nova for something."""
        if end.progress.asked != method and (
                not end.progress.asked or method == 'stop'):
            self._terminator.decisions.update_victim(
                end.decision.uuid, end.uuid, db_decisions.ENDING, asked=method)
        if not self._may_act(end):
            return False
        end.note(asked=method, asked_at=self._acted_at)
        try:
            getattr(self._terminator.clients.nova, method)(end.uuid)
        except nova_api.NovaError as exc:
            if method != 'live_migrate':
                raise
            # Perhaps only the answer is lost: what Nova shows tells.
            LOG.info('Cannot ask Nova to migrate victim %(uuid)s: %(exc)s',
                     {'uuid': end.uuid, 'exc': exc})
        if method == 'live_migrate':
            # It may have taken long: what was read before says nothing.
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
        if self._may_act(end):
            # Before: the answer may be lost, and our lock not count.
            end.note(asked=ending.LOCK)
            self._terminator.clients.nova.lock(end.uuid, stopped.LOCKED)
            self._acted_at = self._monotonic()
            end.note(locked_at=self._acted_at)
        return False

    def _leave_stopped(self, end, status):
        if not self._may_act(end):
            return False
        stopped.leave(self._terminator.clients.placement, end.uuid)
        return self._done(end, status)

    def _give_up(self, end, detail):
        self.ended.stuck.add(end.uuid)
        return True

    def _keep(self, end, why):
        LOG.info('Victim %(uuid)s of preemption %(decision)s must not end: '
                 '%(why)s.', {'uuid': end.uuid,
                              'decision': end.decision.uuid, 'why': why})
        self.ended.refusals[end.uuid] = why
        return True

    def _done(self, end, status):
        terminator = self._terminator
        given_way.close(end, status, terminator.clients, terminator.decisions,
                        terminator.events)
        return True


_ON_SERVERS = (ending.What.ASK, ending.What.LOCK, ending.What.LEAVE_STOPPED)
_ACTS = {
    ending.What.WAIT: lambda work, end, detail: False,
    ending.What.ASK: Work._ask,
    ending.What.NEXT: Work._next,
    ending.What.FREE: Work._free,
    ending.What.LOCK: Work._lock,
    ending.What.LEAVE_STOPPED: Work._leave_stopped,
    ending.What.DONE: Work._done,
    ending.What.GIVE_UP: Work._give_up,
    ending.What.KEEP: Work._keep,
    ending.What.LOOK_AT_HOST: lambda work, end, detail: False,
}
