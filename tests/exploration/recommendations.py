# SPDX-License-Identifier: Apache-2.0
"""Laws of recommendations to leave.

A recommendation that another engine has written, or that arrived late, ends by
itself: before that nobody withdraws it.
"""

import calendar
import datetime
import json

from nova_preempt.advice import recommender
from nova_preempt.core import eligibility
from nova_preempt.core import requester_liveness
from nova_preempt.core.eviction import recommendation_controller
from nova_preempt.core.reservation import reservation_model
from tests.exploration import processes

#: States of a server in which Nova changes its metadata.
_WITH_METADATA = 'active', 'paused', 'suspended', 'stopped'
#: The same for a recommendation at one end of the hour, in seconds.
_SOON_S = 120


def _seconds(text):
    """Return a time in metadata, in seconds since the epoch."""
    return calendar.timegm(datetime.datetime.strptime(
        text, '%Y-%m-%dT%H:%M:%SZ').timetuple())


class Recommendations:
    """Records who writes recommendations, and checks them.

    :param world: a world.World
    """

    def __init__(self, world):
        self._world = world
        self._by = {}             # server: process of the latest change

    def changed(self, uuid):
        """Record that a recommendation is written or deleted."""
        self._by[uuid] = self._world.loop.current.process

    def breaches(self, is_at_rest):
        """Return the violations, as "name: sentence"."""
        if 'evictions' not in self._world.works:
            return []
        laws = [recommended_are_preemptible]
        if is_at_rest:
            laws += [recommendations_are_withdrawn,
                     recommendations_are_given]
        return [f'{law.__name__}: {text}' for law in laws
                for text in law(self._world, self)]

    def is_late(self, uuid):
        """Return whether the latest change of a server arrived late."""
        return self._by.get(uuid) is self._world.nova.process

    def are_known(self, uuid):
        """Return whether the engine that leads knows what a server has."""
        world = self._world
        process = self._by.get(uuid)
        return process is None or any(
            each.process is process and each.is_serving
            and each.parts.process.owner.name == world.watcher.leader()
            for each in world.engines)

    def living(self):
        """Yield each server that lives, and its recommendation or None."""
        for server in self._world.nova.servers.values():
            if not server.deleted:
                text = server.metadata.get(recommender.KEY)
                yield server, json.loads(text) if text else None

    def starts(self, host):
        """Return the starts of the open reservations of a host."""
        return {each.start_s for each in self._world.watcher.reservations()
                if each.status in reservation_model.OPEN
                and host in each.held}


def recommended_are_preemptible(world, recommendations):
    """Only preemptible servers are recommended to leave."""
    for server, has in recommendations.living():
        if has and not server.is_preemptible:
            yield f'{server.uuid} is not preemptible'


def recommendations_are_withdrawn(world, recommendations):
    """A recommendation without a cause is withdrawn.

    Otherwise the owner would move a server that may stay.
    """
    now_s, victims = world.loop.now_s, world.watcher.victims()
    rules = eligibility.Rules(processes.CONF.preemption.honored_locks)
    for server, has in recommendations.living():
        if has is None or server.vm_state not in _WITH_METADATA or (
                _seconds(has['until']) <= now_s
                or not recommendations.are_known(server.uuid)):
            continue
        if server.uuid in victims:
            yield f'{server.uuid} has notice, and {has}'
        elif rules.counts(server.locked_by or ''):
            yield f'{server.uuid} is locked, and has {has}'
        elif has['reason'] == requester_liveness.RESERVATION and (
                _seconds(has['until']) not in recommendations.starts(
                    server.host)):
            yield f'{server.uuid} has {has}, and no reservation begins then'


def recommendations_are_given(world, recommendations):
    """A server knows of the next reservation of its host an hour before.

    Otherwise its owner could not move it in time.
    """
    if any(each.process.skew_s for each in world.engines):
        return
    now_s, victims = world.loop.now_s, world.watcher.victims()
    for server, has in recommendations.living():
        near = [start_s for start_s in recommendations.starts(server.host)
                if now_s < start_s
                <= now_s + recommendation_controller.AHEAD_S]
        if not near or min(near) < now_s + _SOON_S or (
                min(near) > now_s + recommendation_controller.AHEAD_S
                - _SOON_S) or not server.is_preemptible or (
                server.uuid in victims or server.locked
                or (server.vm_state, server.task_state) != ('active', None)
                or recommendations.is_late(server.uuid)):
            continue
        if has is None or _seconds(has['until']) != min(near):
            yield (f'{server.uuid} has {has}, and {server.host} is reserved '
                   f'in {min(near) - now_s:.0f} s')
