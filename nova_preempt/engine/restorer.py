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
import math
import time

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt.cloud import nova_api
from nova_preempt.core import capacity
from nova_preempt.core import returns as core
from nova_preempt.db import decisions

LOG = logging.getLogger(__name__)


class Restorer:
    """Unshelves what was shelved to give way, once there is room.

    Several at once, the one that ended first before all others. An unshelved
    server is a preemptible request like any other: it takes what is free and
    never preempts. One that takes longer to come than until its next try
    keeps nobody waiting.

    Those of a class of service come before all others, for as long as it
    takes; the scheduler may end others of a class for them.

    :param decisions: a nova_preempt.db.Decisions
    :param clients: a nova_preempt.cloud.clients.Clients
    :param headroom: a nova_preempt.headroom.Headroom
    :param events: a nova_preempt.handover.notifications.Notifications
    :param options: [preemption_engine] of the configuration
    :param returning: a nova_preempt.classes.returning.Returning, None where
        there are no classes
    :param wanted: returns the uuids of servers that come back whatever their
        flavors say
    """

    def __init__(self, decisions, clients, headroom, events, options,
                 monotonic=time.monotonic, returning=None,
                 wanted=frozenset):
        self._wanted = wanted
        self._returning = returning
        self._promised = set()    # uuids of those of a class
        self._decisions = decisions
        self._nova = clients.nova
        self._placement = clients.placement
        self._headroom = headroom
        self._events = events
        self._options = options
        self._monotonic = monotonic
        self._looked_at = {}      # server uuid: when
        self._held_since = {}     # server uuid: when; see core.is_held()

    def restore(self):
        """Look after those that come back; ask for the next ones."""
        now, wanted = timeutils.utcnow(), self._wanted()
        victims = {
            victim.server_uuid: (decision_uuid, victim)
            for decision_uuid, victim in self._decisions.get_victims(
                decisions.SHELVED)
            if self._comes_back(decision_uuid, victim)
            or victim.server_uuid in wanted}
        self._looked_at = {uuid: when for uuid, when
                           in self._looked_at.items() if uuid in victims}
        self._held_since = {uuid: since for uuid, since
                            in self._held_since.items() if uuid in victims}
        if self._returning is not None:
            self._promised = self._returning.of_class(victims)
        coming, waiting = [], []
        for decision_uuid, victim in victims.values():
            turn = core.turn(
                victim.tries, self._to_next_s(victim, now),
                (now - victim.ended_at).total_seconds(),
                math.inf if victim.server_uuid in self._promised
                else self._options.restore_timeout_s)
            if turn is core.Turn.NOW:
                waiting.append(victim)
            elif turn is core.Turn.TOO_LATE:
                self._leave(decision_uuid, victim)
            elif self._is_coming(decision_uuid, victim, now):
                coming.append(victim)
        waiting = self._ask_promised(waiting, coming, victims, now)
        room, waiting = self._find_room(waiting, victims)
        if waiting:
            self._ask(waiting, coming, room, victims, now)

    def _comes_back(self, decision_uuid, victim):
        """Whether one is to come back, by its terms."""
        comes_back = core.comes_back(victim.restore, victim.asked)
        if victim.restore and not comes_back:
            LOG.info('Server %s is left to its owner: it was not shelved to '
                     'give way.', victim.server_uuid)
            self._decisions.update_victim(
                decision_uuid, victim.server_uuid, decisions.SHELVED,
                restore=False)
        return comes_back

    # -- how far each is ---------------------------------------------------

    def _to_next_s(self, victim, now):
        if victim.next_try_at is None:
            return 0
        return core.to_next_s((victim.next_try_at - now).total_seconds(),
                              self._pause_s(victim, max(0, victim.tries - 1)))

    def _is_coming(self, decision_uuid, victim, now):
        """Whether one that was asked not long ago is on its way."""
        if not core.is_just_asked(
                self._pause_s(victim, victim.tries - 1),
                self._to_next_s(victim, now)) and (
                not self._is_to_look(victim)):
            return False
        return self._look(decision_uuid, victim) is core.Sight.COMING

    def _leave(self, decision_uuid, victim):
        if self._look(decision_uuid, victim) is core.Sight.SHELVED:
            LOG.info('Server %s is left shelved: there was no room for too '
                     'long.', victim.server_uuid)
            self._close(decision_uuid, victim, decisions.LEFT)

    def _is_to_look(self, victim):
        looked_at = self._looked_at.get(victim.server_uuid)
        return (looked_at is None
                or self._monotonic() - looked_at >= core.LOOK_S)

    def _look(self, decision_uuid, victim):
        """What Nova shows of the server, a core Sight; None if nothing."""
        self._looked_at[victim.server_uuid] = self._monotonic()
        try:
            server = self._nova.get(victim.server_uuid)
        except nova_api.NovaError as exc:
            LOG.warning('Cannot tell whether server %(uuid)s comes back: '
                        '%(exc)s', {'uuid': victim.server_uuid, 'exc': exc})
            return None
        seen = self._sight(victim, server)
        if seen is core.Sight.GONE:
            self._close(decision_uuid, victim, decisions.GONE)
        elif seen is core.Sight.BACK:
            self._is_back(decision_uuid, victim)
        return seen

    def _sight(self, victim, server):
        if server is None:
            return core.seen(None, None, None, 0)
        uuid = victim.server_uuid
        shown = server.status, server.task_state, server.host
        held_s = 0
        if core.is_held(*shown):
            now = self._monotonic()
            held_s = now - self._held_since.setdefault(uuid, now)
        else:
            self._held_since.pop(uuid, None)
        return core.seen(*shown, held_s, has_run=core.has_run_since(
            server.launched_at, victim.launched_at, victim.ended_at))

    def _pause_s(self, victim, tries):
        """How long after a try the next one is."""
        if victim.server_uuid in self._promised:
            return self._returning.period_s
        return core.pause_s(self._options.restore_interval_s, tries)

    # -- whom to ask -------------------------------------------------------

    def _ask_promised(self, waiting, coming, victims, now):
        """Ask those of a class; they are among those that come then.

        :returns: the others that wait
        """
        ours = {victim.server_uuid: victim for victim in waiting
                if victim.server_uuid in self._promised}
        if not ours:
            return waiting
        chosen = self._returning.choose(
            {uuid: _needs(victim) for uuid, victim in ours.items()},
            self._options.restore_at_once - len(coming))
        for uuid in chosen:
            decision_uuid, victim = victims[uuid]
            if self._look(decision_uuid, victim) is core.Sight.SHELVED:
                self._unshelve(decision_uuid, victim, now)
                coming.append(victim)
        for uuid, victim in ours.items():
            if uuid not in chosen and self._is_to_look(victim):
                self._look(*victims[uuid])
        return [victim for victim in waiting
                if victim.server_uuid not in ours]

    def _find_room(self, waiting, victims):
        """({host: what is free there}, those that it may be enough for)."""
        rooms = {}
        fitting = []
        for victim in waiting:
            needs = tuple(sorted(_needs(victim).items()))
            if needs not in rooms:
                rooms[needs] = self._get_room(dict(needs))
            if rooms[needs]:
                fitting.append(victim)
            elif self._is_to_look(victim):
                self._look(*victims[victim.server_uuid])
        return {host: free for found in rooms.values()
                for host, free in found.items()}, fitting

    def _ask(self, waiting, coming, room, victims, now):
        """Ask as many as may come; others for those that turn out not to."""
        get_consumer = self._placement.get_consumer
        coming = [
            core.Shelved(victim.server_uuid,
                         {} if get_consumer(victim.server_uuid).allocations
                         else _needs(victim)) for victim in coming]
        waiting = {victim.server_uuid: core.Shelved(
            victim.server_uuid, _needs(victim)) for victim in waiting}
        while chosen := core.choose(waiting.values(), coming, room,
                                    self._options.restore_at_once):
            for uuid in chosen:
                item = waiting.pop(uuid)
                decision_uuid, victim = victims[uuid]
                if self._look(decision_uuid, victim) is core.Sight.SHELVED:
                    self._unshelve(decision_uuid, victim, now)
                    coming.append(item)

    def _get_room(self, resources):
        """What is free on hosts with room for this; the scheduler has the
        last word.

        Of one that had no allocations nobody knows what it needs.
        """
        if not resources:
            return {'': {}}
        room = self._placement.get_room(resources)
        if not room:
            return room
        self._headroom.refresh()
        return room if self._headroom.has_room(resources) else {}

    def _unshelve(self, decision_uuid, victim, now):
        # Before it is asked for, so that no failure makes it come at once.
        self._decisions.update_victim(
            decision_uuid, victim.server_uuid, decisions.SHELVED,
            tries=victim.tries + 1,
            next_try_at=now + datetime.timedelta(
                seconds=self._pause_s(victim, victim.tries)))
        LOG.info('There may be room for server %s: unshelving it.',
                 victim.server_uuid)
        try:
            self._nova.unshelve(victim.server_uuid)
        except nova_api.NovaError as exc:
            LOG.warning('Server %(uuid)s cannot come back yet: %(exc)s',
                        {'uuid': victim.server_uuid, 'exc': exc})

    def _is_back(self, decision_uuid, victim):
        LOG.info('Server %s is back.', victim.server_uuid)
        self._nova.clear_notice(victim.server_uuid)
        self._close(decision_uuid, victim, decisions.RESTORED)
        decision = self._decisions.get_decision(decision_uuid)
        self._events.restored(decision, victim)

    def _close(self, decision_uuid, victim, status):
        self._decisions.update_victim(decision_uuid, victim.server_uuid,
                                          status)


def _needs(victim):
    """{class: amount} of what it had, wherever it had it."""
    return capacity.total(item['resources']
                          for item in victim.allocations.values())
