# SPDX-License-Identifier: Apache-2.0
"""Unshelves victims as core.eviction.return_controller decides."""

import collections
import dataclasses
import math
import time

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt.cloud import nova_api
from nova_preempt.core import capacity
from nova_preempt.core import times
from nova_preempt.core.eviction import return_controller
from nova_preempt.db import decisions

LOG = logging.getLogger(__name__)

# How often a restore() chooses other victims for those that cannot return.
_STEPS = 10

_CLOSED = {return_controller.ShelvedState.GONE: decisions.GONE,
           return_controller.ShelvedState.BACK: decisions.RESTORED}


class ShelvedServerReader:
    """Reads shelved servers from Nova, and remembers when.

    :param nova: a nova_preempt.cloud.nova_api.NovaAPI
    """

    def __init__(self, nova, monotonic=time.monotonic):
        self._nova = nova
        self._monotonic = monotonic
        self._looked_at = {}      # server uuid: when, monotonic
        self._held_since = {}     # the same; see return_controller.is_held()
        self._failed = {}         # the same, when Nova failed to show it

    def keep(self, uuids):
        """Forget all servers but these."""
        for known in self._looked_at, self._held_since, self._failed:
            for uuid in known.keys() - uuids:
                del known[uuid]

    def failed(self):
        """Return the servers that Nova failed to show within LOOK_S."""
        now = self._monotonic()
        return {uuid for uuid, when in self._failed.items()
                if now - when < return_controller.LOOK_S}

    def unseen(self, uuids):
        """Return which of these servers were not read for LOOK_S.

        The server that was read the longest ago comes first.
        """
        now = self._monotonic()
        return sorted(
            (uuid for uuid in uuids if uuid not in self._looked_at
             or now - self._looked_at[uuid] >= return_controller.LOOK_S),
            key=lambda uuid: (self._looked_at.get(uuid, -math.inf), uuid))

    def look(self, victim):
        """Return the core Sight of a victim, None if Nova fails to show it.

        :raises NoAnswer: Nova cannot be reached
        """
        uuid, now = victim.server_uuid, self._monotonic()
        self._looked_at[uuid] = now
        try:
            server = self._nova.get(uuid)
        except nova_api.NoAnswer:
            raise
        except nova_api.NovaError as exc:
            self._failed[uuid] = now
            LOG.warning('Cannot read whether server %(uuid)s was unshelved: '
                        '%(exc)s', {'uuid': uuid, 'exc': exc})
            return None
        self._failed.pop(uuid, None)
        if server is None:
            return return_controller.classify(None, None, None, 0)
        shown = server.status, server.task_state, server.host
        held_s = 0
        if return_controller.is_held(*shown):
            held_s = now - self._held_since.setdefault(uuid, now)
        else:
            self._held_since.pop(uuid, None)
        return return_controller.classify(
            *shown, held_s,
            has_run=return_controller.has_run_since(server.launched_at,
            victim.launched_at, victim.ended_at))


class VictimUnshelver:
    """Unshelves victims once there is capacity for them.

    :param decisions: a nova_preempt.db.Decisions
    :param clients: a nova_preempt.cloud.clients.Clients
    :param headroom: a nova_preempt.headroom.Headroom
    :param events: a
        nova_preempt.handover.preemption_notifications.Notifications
    :param options: [preemption_engine] of the configuration
    :param returning: a nova_preempt.classes.unshelve_choice.UnshelveChooser,
        None where there are no classes
    :param wanted: returns the uuids of servers that return whatever their
        flavors say
    """

    def __init__(self, decisions, clients, headroom, events, options,
                 monotonic=time.monotonic, returning=None, wanted=frozenset):
        self._wanted = wanted
        self._returning = returning
        self._decisions = decisions
        self._clients = clients
        self._headroom = headroom
        self._events = events
        self._options = options
        self._looks = ShelvedServerReader(clients.nova, monotonic)
        self._memory = None       # of the controller

    def restore(self):
        """Track victims that were unshelved, and unshelve the next ones.

        :raises NoAnswer: Nova cannot be reached; the next call continues
        """
        wanted = self._wanted()
        found = {victim.server_uuid: (uuid, victim) for uuid, victim
                 in self._decisions.get_victims(decisions.SHELVED,
                                                decisions.LEFT)}
        coming = {uuid for uuid, each in found.items()
                  if each[1].status == decisions.SHELVED and (
                      uuid in wanted or each[1].tries
                      or self._comes_back(*each))}
        # The others still have a notice when their owners unshelve them.
        victims = {uuid: each for uuid, each in found.items()
                   if uuid in coming or each[1].notice_s}
        self._looks.keep(victims.keys())
        observed = _Observed(
            victims, coming, self._looks, self._clients.placement,
            self._headroom, self._options, self._returning)
        # NOTE: other victims are chosen for those that cannot return.
        for _ in range(_STEPS):
            for uuid in self._looks.failed():
                victims.pop(uuid, None)
            step = return_controller.step(
                observed, self._memory,
                times.microseconds(timeutils.utcnow()))
            self._memory = step.memory
            if not sum(self._carry_out(intent, victims)
                       for intent in step.intents):
                break

    def _comes_back(self, decision_uuid, victim):
        """Return whether a victim is to be unshelved, by its flavor."""
        comes_back = return_controller.is_shelved_by(victim.asked)
        if victim.restore and not comes_back:
            LOG.info('Server %s is not unshelved: its owner shelved it.',
                     victim.server_uuid)
            self._decisions.update_victim(
                decision_uuid, victim.server_uuid, decisions.SHELVED,
                restore=False)
        return victim.restore and comes_back

    def _carry_out(self, intent, victims):
        """Carry out an intent after a look at the server.

        :returns: whether a victim was to be unshelved, and cannot be
        """
        decision_uuid, victim = victims[intent.uuid]
        sight = (intent.sight if isinstance(intent, return_controller.Close)
                 else self._looks.look(victim))
        if sight is return_controller.ShelvedState.SHELVED:
            if isinstance(intent, return_controller.Unshelve):
                victims[intent.uuid] = decision_uuid, self._unshelve(
                    decision_uuid, victim, intent.next_try_us)
                return False
            LOG.info('Server %s stays shelved: there was no capacity for it '
                     'for too long.', victim.server_uuid)
            self._close(decision_uuid, victim, decisions.LEFT)
        elif sight in _CLOSED:
            self._close(decision_uuid, victim, _CLOSED[sight])
        del victims[intent.uuid]
        return isinstance(intent, return_controller.Unshelve)

    def _unshelve(self, decision_uuid, victim, next_try_us):
        tried = {'tries': victim.tries + 1,
                 'next_try_at': times.at(next_try_us).replace(tzinfo=None)}
        # NOTE: written first, so that a failure is not retried at once.
        self._decisions.update_victim(
            decision_uuid, victim.server_uuid, decisions.SHELVED, **tried)
        LOG.info('Unshelving server %s, as there may be capacity for it.',
                 victim.server_uuid)
        try:
            self._clients.nova.unshelve(victim.server_uuid)
        except nova_api.NoAnswer:
            raise
        except nova_api.NovaError as exc:
            LOG.warning('Server %(uuid)s cannot be unshelved yet: %(exc)s',
                        {'uuid': victim.server_uuid, 'exc': exc})
        return dataclasses.replace(victim, **tried)

    def _close(self, decision_uuid, victim, status):
        if status == decisions.RESTORED:
            if not self._clients.nova.clear_notice(victim.server_uuid,
                                                   decision_uuid):
                return
            LOG.info('Server %s was restored.', victim.server_uuid)
        self._decisions.update_victim(decision_uuid, victim.server_uuid,
                                      status)
        if status == decisions.RESTORED:
            self._events.restored(
                self._decisions.get_decision(decision_uuid), victim)


def find_room(placement, headroom, resources):
    """Return {host: free capacity} of hosts that fit these resources.

    The scheduler decides in the end. A victim that had no allocations may
    return at once, as its size is not known.
    """
    if not resources:
        return {'': {}}
    room = placement.get_room(resources)
    if room:
        headroom.refresh()
    return room if room and headroom.has_room(resources) else {}


class _Observed:
    """The shelved victims as core.eviction.return_controller observes them.

    :param victims: {server uuid: (decision uuid, db.Victim)}
    :param coming: the uuids of those that are to be unshelved
    :param options: [preemption_engine] of the configuration
    """

    def __init__(self, victims, coming, looks, placement, headroom, options,
                 returning):
        self._victims, self._coming, self._looks = victims, coming, looks
        self._placement, self._headroom = placement, headroom
        self._returning = returning
        self._promised = returning.of_class(coming) if returning else set()
        self.options = return_controller.Options(
            options.restore_at_once, options.restore_timeout_s)

    def _shelved(self):
        for uuid, (_, victim) in self._victims.items():
            if uuid in self._coming:
                yield return_controller.ShelvedVictim(
                    uuid, capacity.total(item['resources'] for item
                                         in victim.allocations.values()),
                    times.microseconds(victim.ended_at), victim.tries,
                    victim.next_try_at and times.microseconds(
                        victim.next_try_at),
                    self._returning.period_s if uuid in self._promised
                    else None)

    def asked(self):
        return [each for each in self._shelved() if each.tries]

    def waiting(self):
        groups = collections.defaultdict(list)
        for each in self._shelved():
            if each.period_s is None:
                groups[tuple(sorted(each.resources.items()))].append(each)
        return groups.values()

    def of_class(self):
        return [each for each in self._shelved() if each.period_s is not None]

    def unseen(self):
        return self._looks.unseen(self._victims)

    def sight(self, uuid):
        return self._looks.look(self._victims[uuid][1])

    def holds(self, uuid):
        return bool(self._placement.get_consumer(uuid).allocations)

    def room(self, server):
        return find_room(self._placement, self._headroom, server.resources)

    def choose(self, waiting, most, memory, now_us):
        return self._returning.step(waiting, most, self.room, memory, now_us)
