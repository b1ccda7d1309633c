# SPDX-License-Identifier: Apache-2.0
"""Nova's SchedulerManager, which preempts where a normal server has no room.

It hooks in where Nova has been the same from 2025.1 to 2026.2: around
select_destinations and _schedule, at _get_sorted_hosts,
_get_alternate_hosts, _consume_selected_host and _cleanup_allocations, and in
front of the Placement client. None of Nova's code is copied or patched.
"""

import contextlib
import dataclasses
import functools
import time

from keystoneauth1 import exceptions as ks_exc
from nova import exception
from nova import objects
import nova.conf
from nova.scheduler import manager
from nova.scheduler import utils
from nova.scheduler.client import report
from oslo_log import log as logging
import oslo_messaging as messaging
from oslo_service import periodic_task
from oslo_utils import excutils

from nova_preempt import metrics
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import request_specs
import nova_preempt.conf
from nova_preempt.core import refusal_texts
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.db import connection
from nova_preempt.handover import handover
from nova_preempt.handover import service_context
from nova_preempt.reservation import lease_cache
from nova_preempt.scheduler import engine_chosen_hosts
from nova_preempt.scheduler import filters
from nova_preempt.scheduler import host_states as states
from nova_preempt.scheduler import multi_create_claim
from nova_preempt.scheduler import multi_create_decision
from nova_preempt.scheduler import preemption_quotas
from nova_preempt.scheduler import request_context
from nova_preempt.scheduler import retry_loop
from nova_preempt.scheduler import scheduler_context
from nova_preempt.scheduler import scheduler_endpoint
from nova_preempt.scheduler import weights
from nova_preempt.scheduler.filters import reservation_filter
from nova_preempt.scheduler.weights import efficiency_weigher

CONF = nova.conf.CONF
nova_preempt.conf.register_opts(CONF)
LOG = logging.getLogger(__name__)

#: How often what has changed among servers and providers is read in the
#: background, in seconds. A decision to preempt reads the latest changes of
#: servers first; this keeps that reading short.
REFRESH_S = 30


# Failures of databases and services. Nova's conductor makes the text of an
# error the fault of the server, which its owner reads: it must not contain the
# address of a database, a query or the name of an internal class.
_ERRORS = (*connection.ERRORS, ks_exc.ClientException, cell_calls.CellDown,
           nova_api.NovaError, placement_api.PlacementError,
           placement_api.Conflict, cloud_view.Unanswered)


def refuse_on_failure(function):
    """Decorate a method to raise NoValidHost when a service fails.

    :param function: a method of Nova's scheduler manager
    """
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except _ERRORS as exc:
            LOG.exception('A request cannot be scheduled: a database or '
                          'service that it needs has failed.')
            raise exception.NoValidHost(reason=refusal_texts.UNSERVED) from exc
    return wrapper


class PreemptibleSchedulerManager(manager.SchedulerManager):
    """The scheduler service's manager."""

    def __init__(self, *args, **kwargs):
        self.preemption = None
        self._client = None
        # Called with a dict after each request that is not a rebuild.
        self.observers = []
        self.clock = service_context.utcnow
        self.monotonic = time.monotonic
        super().__init__(*args, **kwargs)
        self.host_manager.filter_handler = filters.HostFilterHandler(
            lambda spec_obj: filters.pending_group_members(
                self.preemption.process, spec_obj) if self.preemption else {})
        self.additional_endpoints.append(scheduler_endpoint.QueryEndpoint(self))

    @property
    def placement_client(self):
        client = self._client or report.report_client_singleton()
        if self.preemption is None:
            return client
        return request_context.ReportClientProxy(
            client, self.preemption.clients.placement.list_providers)

    @placement_client.setter
    def placement_client(self, client):
        # Up to 2026.1 Nova sets it once.
        self._client = client

    # -- the service -----------------------------------------------------

    def init_host(self, service_ref):
        # Here and not in __init__: this runs in the worker, after the fork.
        super().init_host(service_ref)
        self.start_preemption()
        if lease_cache.is_used(CONF):
            lease_cache.start(CONF, lambda: self.clock().timestamp())

    def start_preemption(self):
        """Read the configuration, open the database, repair what is open."""
        if not nova_api.NovaAPI.is_configured(CONF):
            LOG.error('[preemption]auth_type is not set: without credentials '
                      'for Nova no preemptible server can be ended, and this '
                      'scheduler behaves as nova-scheduler.')
            return
        self.preemption = scheduler_context.SchedulerContext(
            CONF, self.host, self.host_manager,
            report.report_client_singleton, lambda: self.clock(),
            lambda: self.monotonic())
        self.preemption.process.start()
        self.retry_loop = retry_loop.RetryLoop(self.preemption, self.observers)
        self.retry_loop.start()
        self.multi_create = multi_create_decision.load(
            CONF.preemption, self.host_manager.get_weighed_hosts)
        weights.check(self.host_manager.weighers)
        for weigher in self.host_manager.weighers:
            if isinstance(weigher, efficiency_weigher.KWRankingWeigher):
                weigher.start()
        metrics.serve(CONF.preemption.metrics_port,
                      CONF.preemption.metrics_address)
        self._repair()

    @periodic_task.periodic_task(spacing=REFRESH_S, run_immediately=True)
    def _refresh_preemptible_servers(self, context):
        if self.preemption is not None:
            self.preemption.known.refresh()
            self.retry_loop.corrector.run()

    @periodic_task.periodic_task(spacing=service_context.REPAIR_S)
    def _repair_preemptions(self, context):
        if self.preemption is not None:
            self._repair()

    def _repair(self):
        try:
            self.preemption.repair()
        except Exception:
            LOG.exception('Cannot roll back abandoned preemptions; retrying '
                          'every %s s.', service_context.REPAIR_S)

    # -- a request -------------------------------------------------------

    @messaging.expected_exceptions(exception.NoValidHost)
    @refuse_on_failure
    def select_destinations(
        self, context, request_spec=None, filter_properties=None,
        spec_obj=manager.SchedulerManager._sentinel, instance_uuids=None,
        return_objects=False, return_alternates=False, ):
        """Nova's, with room made by preemption where there is none."""
        if spec_obj is self._sentinel:
            spec_obj = objects.RequestSpec.from_primitives(
                context, request_spec, filter_properties)
        preemption_quotas.restore_zeroed(
                spec_obj, CONF.preemption_quota.restored_resources)

        asked = request_context.RequestContext(
            context, spec_obj, tuple(instance_uuids or ()),
            get_operation=functools.cache(lambda: request_specs.get_operation(
                context, spec_obj, instance_uuids[0])))
        select = functools.partial(
            self.select, instance_uuids=instance_uuids,
            return_objects=return_objects, return_alternates=return_alternates)
        if utils.request_is_rebuild(spec_obj):
            return select(asked)
        reservation_filter.admit(asked)
        if self.preemption is None or not instance_uuids:
            return select(asked)
        return self.retry_loop.serve(dataclasses.replace(
            asked, deadline=self.preemption.deadline(),
            chosen=self._batch_claim(asked)), select)

    def _batch_claim(self, asked):
        """Return the MultiCreateClaim of hosts chosen together, or None."""
        hosts = engine_chosen_hosts.find(self.preemption.process.db, asked,
                                         self.clock().replace(tzinfo=None))
        choose = self.multi_create if hosts is None else lambda *_: hosts
        if choose is None or (hosts is None and len(asked.server_uuids) == 1):
            return None
        return multi_create_claim.MultiCreateClaim(
            self.preemption.clients.placement, asked.server_uuids, choose,
            sorted(hosts or ()))

    def select(self, asked, **kwargs):
        """Nova's scheduling of a RequestContext."""
        try:
            with request_context.working_on(asked):
                return super().select_destinations(
                    asked.context, spec_obj=asked.spec_obj, **kwargs)
        except messaging.ExpectedException as exc:
            raise exc.exc_info[1] from None

    # -- where Nova's scheduling is joined -------------------------------

    def _schedule(self, context, spec_obj, instance_uuids, *args, **kwargs):
        current = request_context.current()
        schedule = functools.partial(super()._schedule, context, spec_obj,
                                     instance_uuids, *args, **kwargs)
        with current.chosen or contextlib.nullcontext():
            return schedule() if current.cycle is None else self._preempt(
                current.cycle, schedule, len(instance_uuids))

    def _preempt(self, cycle, schedule, count):
        try:
            selections = schedule()
            cycle.stop_choosing()
            if cycle.made.claims and self.preemption.handover.finish(
                    cycle.made.claims, cycle.asked.deadline) == count:
                raise handover.ServersNotWanted
            return selections
        except Exception as exc:  # noqa: BLE001 (raised again)
            with excutils.save_and_reraise_exception():
                self._roll_back(cycle, exc)

    def _roll_back(self, cycle, exc):
        """Roll back the claims of all servers of the request."""
        cycle.stop_choosing()
        try:
            self.preemption.handover.roll_back_lost(cycle.made.lost, str(exc))
            self.preemption.handover.roll_back(cycle.made.claims, str(exc))
        finally:
            if cycle.made.claims or cycle.made.lost or isinstance(
                    exc, exception.NoValidHost):
                # A request for which nobody had to end fails as it does with
                # Nova. For NoValidHost Nova deletes them, too, but ignores a
                # Placement that does not answer: then the request must not be
                # tried again, as Nova adds to what a server has.
                placement = self.preemption.clients.placement
                placement_api.for_each(cycle.made.free,
                                       placement.delete_allocations)

    def _get_all_host_states(self, context, spec_obj, provider_summaries):
        if request_context.current().cycle is None or (
                provider_summaries is None):
            return super()._get_all_host_states(context, spec_obj,
                                                provider_summaries)
        return states.get_few(self.host_manager, context,
                              list(provider_summaries), spec_obj)

    def _get_sorted_hosts(self, spec_obj, host_states, index):
        current = request_context.current()
        cycle, chosen = current.cycle, current.chosen
        nova_sort = super()._get_sorted_hosts

        def sort(spec_obj, host_states, index):
            return nova_sort(spec_obj, states.outside_headroom(
                host_states, current.headroom,
                cycle.takes if cycle else states.claimed), index)

        if cycle is None:
            hosts = sort(spec_obj, host_states, index)
        else:
            hosts = cycle.sorted_hosts(sort, spec_obj, host_states, index)
        return chosen.first(hosts, spec_obj) if chosen else hosts

    def _get_alternate_hosts(self, selected_hosts, spec_obj, hosts, *args,
                             **kwargs):
        cycle = request_context.current().cycle
        if cycle is not None:
            hosts = cycle.alternates(hosts)
        return super()._get_alternate_hosts(selected_hosts, spec_obj, hosts,
                                            *args, **kwargs)

    def _consume_selected_host(self, selected_host, spec_obj,
                               instance_uuid=None):
        current = request_context.current()
        if current.chosen is not None:
            current.chosen.consumed(selected_host)
        if current.cycle is not None:
            headroom = self.preemption.known.headroom
            if headroom and current.headroom is None and (
                    not states.mark_of(selected_host).victims):
                headroom.placed(
                    selected_host.uuid, states.claimed(selected_host))
            current.cycle.consumed(selected_host)
        super()._consume_selected_host(selected_host, spec_obj,
                                       instance_uuid=instance_uuid)

    def _cleanup_allocations(self, context, instance_uuids):
        cycle = request_context.current().cycle
        if cycle is not None and instance_uuids:
            # Those that took victims are taken back in _schedule, together
            # with what their victims had.
            claimed = {decision.server_uuid for decision in cycle.made.claims}
            instance_uuids = [uuid for uuid in instance_uuids
                              if uuid not in claimed]
        super()._cleanup_allocations(context, instance_uuids)
