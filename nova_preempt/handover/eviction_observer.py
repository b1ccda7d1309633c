# SPDX-License-Identifier: Apache-2.0

"""Reads the observations of the eviction controller."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import eligibility
from nova_preempt.core import eviction_actions as core_actions
from nova_preempt.core import requester_liveness
from nova_preempt.core.eviction import eviction_controller
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction import eviction_values
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import allocation_claim
from nova_preempt.handover import eviction_policy
from nova_preempt.handover import victim_allocations

if TYPE_CHECKING:
    from nova_preempt.handover import victim_evictor

LOG = logging.getLogger(__name__)


class EvictionObserver:
    """Reads the victims of decisions, their hosts, claims and requests.

    :param terminator: a nova_preempt.handover.victim_evictor.VictimEvictor
    :param decisions: db.Decisions, CLAIMED
    :param chosen_at: when their hosts were known to be up, None if unknown
    :ivar victims: {uuid: eviction_values.Victim}
    """

    def __init__(self, terminator: victim_evictor.VictimEvictor,
                 decisions: Sequence[db_decisions.Decision],
                 chosen_at: float | None) -> None:
        self._terminator = terminator
        self._decisions = {each.uuid: each for each in decisions}
        self.victims = {
            victim.server_uuid: make_victim(each, victim, terminator.options)
            for each in decisions for victim in each.victims}
        self._waiting = {each.uuid: each.host for each in decisions
                         if each.server_uuid}
        self._servers = [each.server_uuid for each in decisions
                         if each.server_uuid]
        # name of a host: (when it was read, whether it is up)
        self._hosts = {} if chosen_at is None else dict.fromkeys(
            self._waiting.values(), (chosen_at, True))
        self._facts: dict[str, Any] = {}
        terminator.requests.add(self._servers)
        terminator.watch.add(list(self.victims))

    def close(self) -> None:
        """Stop polling the victims and requests."""
        self._terminator.requests.remove(self._servers)
        self._terminator.watch.remove(list(self.victims))

    def begin_round(self) -> None:
        """Drop all readings, and read which decisions are unwanted."""
        self._facts = {
            'seen': {}, 'holds': {}, 'hosts': {}, 'is_held': None,
            'unwanted': {uuid: self.why_unwanted(uuid)
                         for uuid in self._decisions}}

    def observed(self) -> eviction_values.Observed:
        """Return the readings of this round, an eviction_values.Observed."""
        return eviction_values.Observed(self.victims, self._waiting,
                                        **self._facts)

    def why_unwanted(self, decision_uuid: str) -> str | None:
        """Return why the capacity of a decision is not needed any more.

        :returns: '' if it is needed, None if that is unknown
        """
        requests = self._terminator.requests
        try:
            return requester_liveness.why_unneeded(
                purpose(self._decisions[decision_uuid]), requests,
                requests.now())
        except (nova_api.NovaError, db_exc.DBError) as exc:
            LOG.warning('No victim is evicted for now: %s', exc)
            return None

    def is_fresh(self, uuid: str, now_us: int) -> bool:
        """Return whether the reading of a victim is recent enough to act."""
        seen, _ = self._facts['seen'][uuid]
        return eviction_controller.is_fresh(seen.read_us, now_us)

    def look_at_server(self, uuid: str, max_age_s: float) -> None:
        try:
            found = self._terminator.watch.get(uuid, max_age_s), True
        except nova_api.NovaError as exc:
            LOG.warning('Cannot read the state of victim %s: %s', uuid, exc)
            found = None, False
        self._facts['seen'][uuid] = found

    def look_at_allocation(self,
                           intent: eviction_values.ReadAllocation) -> None:
        victim = self.victims[intent.victim]
        seen, _ = self._facts['seen'][victim.uuid]
        self._facts['holds'][victim.uuid] = None
        self._facts['holds'][victim.uuid] = victim_allocations.holds(
            self._terminator.clients.placement, victim.uuid, seen,
            eviction_steps.is_gone(seen, victim.terms),
            self._decisions[victim.decision].provider_uuid)

    def look_at_host(self, intent: eviction_values.CheckHostUp) -> None:
        now = self._terminator.monotonic()
        when, is_up = self._hosts.get(intent.host, (None, None))
        if when is None or now - when > intent.max_age_s:
            try:
                is_up = self._terminator.host_is_up(intent.victim, intent.host)
                self._hosts[intent.host] = now, is_up
            except nova_api.NovaError as exc:
                LOG.warning('No victim on host %(host)s is evicted: %(exc)s',
                            {'host': intent.host, 'exc': exc})
                is_up = None
        self._facts['hosts'][intent.host] = is_up

    def look_at_claim(self, unwanted: Container[str]) -> None:
        """Check that the stand-ins still hold their allocations.

        :param unwanted: uuids of decisions that are not checked
        :raises ClaimLost: one does not: victims would be evicted in vain
        """
        self._facts['is_held'] = False
        for uuid, decision in self._decisions.items():
            stand_in = allocation_claim.stand_in(decision)
            if not stand_in or uuid in unwanted:
                continue
            try:
                consumer = self._terminator.clients.placement.get_consumer(
                    stand_in)
            except placement_api.PlacementError as exc:
                LOG.warning('No victim is evicted for now: %s', exc)
                return
            if not consumer.allocations:
                raise allocation_claim.ClaimLost(
                    f'consumer {stand_in}, which held capacity for server '
                    f'{decision.server_uuid}, lost its allocations during '
                    'the notice of the victims')
        self._facts['is_held'] = True


def make_victim(decision: db_decisions.Decision, victim: db_decisions.Victim,
                options: cfg.ConfigOpts.GroupAttr) -> eviction_values.Victim:
    """Return the eviction_values.Victim, with the terms of its eviction.

    :param options: [preemption] of the configuration
    """
    for_good = decision.operation in eviction_steps.FOR_GOOD
    is_migrated = not for_good and core_actions.is_migrated_first(
        victim.action, options.actions,
        one_time=victim.server_uuid in decision.record.get('one_time', ()))
    terms = eviction_steps.VictimTerms(
        decision.host, victim.last_resort or core_actions.last_resort(
            victim.action, options.actions),
        tuple(options.actions), migrate=is_migrated, for_good=for_good,
        timeout_s=options.termination_timeout_s,
        migrate_timeout_s=options.migrate_timeout_s,
        # No lock of its owner lengthens a maximum run time.
        rules=(eligibility.Rules() if for_good
               else eviction_policy.get_rules(options)),
        pinned=decision.record.get('pinned', True))
    return eviction_values.Victim(victim.server_uuid, decision.uuid, terms,
                                  victim.notice_s)


def purpose(
        decision: db_decisions.Decision) -> requester_liveness.ServedRequest:
    """Return the request that needs the space."""
    record = decision.record
    return requester_liveness.ServedRequest(
        decision.operation, decision.server_uuid,
        record.get('asked_by', {}).get('reservation_id', ''),
        record.get('node', ''),
        frozenset(provider for victim in decision.victims
                  for provider in victim.allocations))
