# SPDX-License-Identifier: Apache-2.0
"""Gives recommendations to leave, and withdraws them."""

import json

from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.core import times
from nova_preempt.core.eviction import recommendation_controller
from nova_preempt.db import decisions
from nova_preempt.db import pauses

LOG = logging.getLogger(__name__)

#: The key of the server's metadata that the guest reads.
KEY = 'preemption_recommendation'

#: How often recommendations are given and withdrawn, in seconds.
INTERVAL_S = 30

#: How many at once: a call of Nova's API takes some 0.1 s.
MOST = 200


class Recommender:
    """Writes recommendations into the metadata of servers.

    It remembers those that it has written. What another engine has written is
    renewed or ends by itself.

    :param parts: a nova_preempt.handover.service_context.ServiceContext
    :param choose: returns the evictions for a HostGroup that keeps headroom,
        see nova_preempt.engine.headroom_task.HeadroomKeeper
    :param open_reservations: returns the open Reservations
    """

    def __init__(self, parts, choose, open_reservations):
        self._process = parts.process
        self._servers = parts.known.servers
        self._get_policy = parts.known.policy
        self._nova = parts.clients.nova
        self._events = parts.handover.events
        self._get_groups = parts.known.headroom.groups
        self._choose = choose
        self._open_reservations = open_reservations
        self._given = {}

    def run(self):
        """Give and withdraw recommendations.

        :returns: after how many seconds to do it again
        """
        if self._process.pauses.why(pauses.PREEMPTION):
            return INTERVAL_S
        now, policy = self._process.clock(), self._get_policy()
        ending = {
            victim.server_uuid for decision
            in self._process.decisions.get_decisions(statuses=decisions.OPEN)
            for victim in decision.victims}
        step = recommendation_controller.step(
            recommendation_controller.Observed(
                self._servers.servers(), self._open_reservations(),
                self._next_victims(), lambda server: (
                    server.uuid not in ending
                    and policy.may_be_victim(server, now))),
            self._given, times.microseconds(now))
        for intent in step.intents[:MOST]:
            if isinstance(intent, recommendation_controller.Recommend):
                self._recommend(intent.server, intent.recommendation)
            else:
                self._write(intent.server_uuid, None)
                del self._given[intent.server_uuid]
        return INTERVAL_S

    def _next_victims(self):
        return {
            end.server.uuid for group in self._get_groups()
            for end in self._choose(group.scaled(
                recommendation_controller.LOW_HEADROOM))}

    def _recommend(self, server, found):
        until = times.at(found.until_us)
        given = self._given.get(server.uuid)
        is_written = self._write(server.uuid, {
            'reason': found.reason, 'until': f'{until:%Y-%m-%dT%H:%M:%SZ}'})
        # NOTE: not tried again where Nova refuses it, such as by a quota.
        self._given[server.uuid] = found
        if is_written and (given is None or given.reason != found.reason):
            LOG.info('Server %s is recommended to leave, because of %s.',
                     server.uuid, found.reason)
            self._events.recommendation(server, found.reason, until)

    def _write(self, uuid, told):
        """Write a recommendation, or delete it; return whether Nova did.

        :raises NoAnswer: to be tried again
        """
        try:
            return (self._nova.set_meta(uuid, {KEY: json.dumps(told)}) if told
                    else self._nova.delete_meta(uuid, [KEY])) is not None
        except nova_api.NoAnswer:
            raise
        except nova_api.NovaError as exc:
            LOG.debug('A recommendation is not written: %s', exc)
            return False
