# SPDX-License-Identifier: Apache-2.0
"""Wakes hosts for requests that find no host."""

import copy
import time

from nova import exception
from nova.scheduler import request_filter
from nova.scheduler import utils
import os_traits
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.cloud import request_specs
from nova_preempt.core import fit_and_victims
from nova_preempt.core import model
from nova_preempt.core import poll_timing
from nova_preempt.core import refusal_texts
from nova_preempt.core.energy import power_steps
from nova_preempt.core.energy import wake_choice
from nova_preempt.db import energy_store
from nova_preempt.db import sleeping_host_claims
from nova_preempt.reservation import lease_cache
from nova_preempt.scheduler.filters import reservation_filter

LOG = logging.getLogger(__name__)

_POLL_S = 1.0


class WakeOnDemand:
    """Has the engine wake hosts, and waits for them without any lock.

    :param conf: nova.conf.CONF
    :param preemption: a scheduler_context.SchedulerContext
    :param engine: a nova_preempt.rpc.EngineClient
    :param sleep: waits, by the clock of requests
    """

    def __init__(self, conf, preemption, engine, sleep=time.sleep):
        self._conf = conf
        self._preemption = preemption
        self._db = preemption.process.db
        self._engine = engine
        self._monotonic = preemption.monotonic
        self._sleep = sleep

    @property
    def is_enabled(self):
        return self._conf.energy.enabled and self._conf.energy.demand_wakes

    def serve(self, asked, place):
        """Place servers, and retry after hosts were woken.

        :param asked: their scheduler.request_context.RequestContext
        :param place: given such a one, returns what Nova is answered
        :raises NoValidHost: by place(), if no host can be woken, or not before
            the deadline
        """
        if not self.is_enabled:
            return place(asked)
        kept = asked.copy()
        try:
            return place(asked)
        except exception.NoValidHost as exc:
            error = exc
        return self._retry(kept, place, error)

    def _retry(self, asked, place, error):
        waiting = wake_choice.Waiting(poll_timing.BoundedWait(
            self._monotonic(), min(self._conf.energy.demand_wait_s,
                                   asked.deadline.left_s()), _POLL_S))
        while True:
            hosts, boot_s = self._wake(asked, waiting.tried)
            if not hosts and asked.deadline.is_refused:
                _count('busy')
                raise _add(error, refusal_texts.message(
                    refusal_texts.Reason.BUSY)) from error
            if not hosts:
                _count('refused')
                raise error
            outcome, waiting = self._wait(waiting.promised(hosts))
            if outcome is wake_choice.NextAction.GIVE_UP:
                _count('timeout')
                raise _add(error, refusal_texts.waking_message(
                    boot_s, self._monotonic() - waiting.limit.began
                )) from error
            try:
                selections = place(asked.copy())
            except exception.NoValidHost as exc:
                error = exc
                continue
            _count('served')
            self._release(asked.server_uuids[0])
            self._note(asked, self._monotonic() - waiting.limit.began)
            return selections

    def _wake(self, asked, tried):
        """Return (names of hosts that wake for it, seconds until then)."""
        server_uuid = asked.server_uuids[0]
        try:
            candidates = {
                name: number for name, number in self._candidates(
                    asked.context, asked.spec_obj).items()
                if name not in tried}
            # NOTE: a request that may not wait wakes no host: its user could
            # wake all hosts by more such requests.
            if not candidates or not asked.deadline.may_wait():
                return [], 0
            answer = self._engine.wake_hosts(
                asked.context, server_uuid, len(asked.server_uuids),
                candidates)
        except Exception:
            # The request fails as it does without waking.
            LOG.exception('Waking hosts for server %s failed.', server_uuid)
            return [], 0
        if answer['hosts']:
            LOG.info('Server %(server)s waits for hosts that wake: '
                     '%(hosts)s', {'server': server_uuid,
                                   'hosts': ', '.join(answer['hosts'])})
        return answer['hosts'], answer['boot_s']

    def _candidates(self, context, spec_obj):
        """Return {name of a sleeping host: number of servers that fit on it}.

        Checks traits, aggregates, inventories and reservations. Nova's filters
        need hosts that are up.
        """
        asleep = energy_store.get_power(self._db, power_steps.COMING)
        if not asleep:
            return {}
        spec_obj = copy.deepcopy(spec_obj)
        try:
            request_filter.process_reqspec(context, spec_obj)
        except exception.RequestFilterFailed:
            return {}          # on any host; Nova has reported it
        spec_obj.root_forbidden.discard(os_traits.COMPUTE_STATUS_DISABLED)
        resources = utils.resources_from_request_spec(
            context, spec_obj, self._preemption.host_manager)
        wanted = request_specs.groups(resources)
        may_use = (reservation_filter.ReservationFilter.rule(spec_obj)
                   if lease_cache.is_used(self._conf) else asleep.__contains__)
        listed = self._preemption.clients.placement.list_providers(
            request_specs.provider_query(resources))
        return self._room(wanted, [
            provider for provider in listed
            if provider.name in asleep and may_use(provider.name)])

    def _room(self, wanted, listed):
        """Return {name of a host: number of servers that fit, if any}.

        Unchanged providers are not read again.
        """
        roots = self._preemption.known.providers.get_all(listed)
        trees = self._preemption.known.trees.providers_for(
            wanted, roots.values())
        numbers = {
            name: fit_and_victims.count(
                wanted, model.Host(name, trees[root.uuid]), {})
            for name, root in roots.items() if trees[root.uuid]}
        return {name: number for name, number in numbers.items() if number}

    def _wait(self, waiting):
        """Wait for the next step; see wake_choice.step()."""
        while True:
            states = energy_store.get_power(self._db)
            now_s = self._monotonic()
            outcome, waiting = wake_choice.step(
                waiting, lambda name, states=states: (
                    states[name].state if name in states else power_steps.ON),
                now_s)
            if outcome is not wake_choice.NextAction.WAIT:
                return outcome, waiting
            self._sleep(waiting.limit.pause_s(now_s))

    def _release(self, request):
        """Release the hosts that are kept for a request."""
        try:
            sleeping_host_claims.release(self._db, request)
        except Exception:
            # It expires later.
            LOG.exception('Cannot release hosts woken for %s yet.', request)

    def _note(self, asked, waited_s):
        """Record how long servers have waited, for reports."""
        try:
            for uuid in asked.server_uuids:
                energy_store.add_wake(self._db, energy_store.WakeWait(
                    uuid, timeutils.utcnow(), asked.spec_obj.flavor.vcpus,
                    waited_s))
        except Exception:
            LOG.exception('The wait of servers for hosts cannot be stored.')


def _count(outcome):
    metrics.DEMAND_WAITS.labels(outcome).inc()


def _add(error, text):
    """Return a NoValidHost with one more sentence."""
    return exception.NoValidHost(reason=refusal_texts.join_sentences(
        error.kwargs.get('reason', ''), text))
