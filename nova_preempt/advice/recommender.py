# SPDX-License-Identifier: Apache-2.0
"""Gives recommendations to leave, and withdraws them."""

import json

from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.core import times
from nova_preempt.core.eviction import recommendation_controller as core
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
        self._parts = parts
        self._choose = choose
        self._open_reservations = open_reservations
        self._given = {}

    def run(self):
        """Give and withdraw recommendations.

        :returns: after how many seconds to do it again
        """
        process, known = self._parts.process, self._parts.known
        if process.pauses.why(pauses.PREEMPTION):
            return INTERVAL_S
        now, policy = process.clock(), known.policy()
        store, now_us = process.decisions, times.microseconds(now)
        # A stopped victim has given way, and is to be deleted.
        ending = {victim.server_uuid for victim in (
            *(victim for each in store.get_decisions(statuses=decisions.OPEN)
              for victim in each.victims),
            *(victim for _, victim in store.get_victims(decisions.STOPPED)))}
        step = core.step(core.Observed(
            known.servers.servers(), self._open_reservations(),
            self._next_victims(), lambda server: (
                server.uuid not in ending
                and policy.may_be_victim(server, now))), self._given, now_us)
        for intent in step.intents[:MOST]:
            if isinstance(intent, core.Recommend):
                self._recommend(intent.server, intent.recommendation, now_us)
            else:
                self._withdraw(intent.server_uuid, now_us)
        return INTERVAL_S

    def _next_victims(self):
        return {
            end.server.uuid for group in self._parts.known.headroom.groups()
            for end in self._choose(group.scaled(core.LOW_HEADROOM))}

    def _recommend(self, server, found, now_us):
        given, until = self._given.get(server.uuid), times.at(found.until_us)
        is_written = self._write(server.uuid, given or found, now_us, {
            'reason': found.reason, 'until': f'{until:%Y-%m-%dT%H:%M:%SZ}'})
        if is_written is not None:
            self._given[server.uuid] = found
        if is_written and (given is None or given.reason != found.reason):
            LOG.info('Server %s is recommended to leave, because of %s.',
                     server.uuid, found.reason)
            self._parts.handover.events.recommendation(
                server, found.reason, until)

    def _withdraw(self, uuid, now_us):
        given = self._given[uuid]
        if self._write(uuid, given, now_us) is not None or (
                given.until_us <= now_us):
            del self._given[uuid]

    def _write(self, uuid, given, now_us, told=None):
        """Write a recommendation, or delete it; return whether Nova did.

        :param given: the Recommendation that the server may have
        :returns: None if Nova refuses it in the present state of the server:
            to be tried again
        :raises NoAnswer: to be tried again
        """
        # Before Nova answers, nobody knows what the server has.
        self._given[uuid] = given.unanswered(now_us)
        nova = self._parts.clients.nova
        try:
            return (nova.set_meta(uuid, {KEY: json.dumps(told)}) if told
                    else nova.delete_meta(uuid, [KEY])) is not None
        except nova_api.NoAnswer:
            raise
        except nova_api.NovaError as exc:
            LOG.debug('A recommendation is not written: %s', exc)
            return False if isinstance(exc, nova_api.NotAllowed) else None
