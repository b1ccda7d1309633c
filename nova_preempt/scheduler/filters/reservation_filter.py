# SPDX-License-Identifier: Apache-2.0
"""Filter that keeps reserved hosts for their reservations."""

from nova import exception
import nova.conf
from nova.scheduler import filters
from nova.scheduler import utils
from oslo_log import log as logging

from nova_preempt.cloud import extra_specs as specs
from nova_preempt.cloud import request_specs
import nova_preempt.conf
from nova_preempt.handover import eviction_policy
from nova_preempt.reservation import lease_cache

CONF = nova.conf.CONF
nova_preempt.conf.register_opts(CONF)
LOG = logging.getLogger(__name__)


class ReservationFilter(filters.BaseHostFilter):
    """Hosts as the reservations that the lease service knows allow.

    * A request with the hint ``reservation=<id>`` may go to the hosts of this
      reservation, if it is of the same project and active.
    * Any other request may not go to a host that is reserved now, nor to one
      whose next reservation starts within ``[reservation]guard_s``.
    * A preemptible one may stay until its notice: a host whose next
      reservation starts later than that takes it.

    Nobody is asked for each host, nor for each request: see
    nova_preempt.reservation.lease_cache.
    """

    RUN_ON_REBUILD = False

    def filter_all(self, filter_obj_list, spec_obj):
        passes = self.rule(spec_obj)
        return [state for state in filter_obj_list if passes(state.nodename)]

    def host_passes(self, host_state, spec_obj):
        return self.rule(spec_obj)(host_state.nodename)

    @staticmethod
    def rule(spec_obj):
        """A function of the node name: whether the request may go there."""
        if utils.request_is_rebuild(spec_obj):
            return lambda node: True
        known = lease_cache.current(CONF)
        lease_ids = request_specs.reservations(spec_obj)
        if lease_ids:
            answer = known.answer(lease_ids, spec_obj.project_id)
            if answer.reason:
                LOG.info('Server %(server)s gets no host: %(reason)s',
                         {'server': spec_obj.instance_uuid,
                          'reason': answer.reason})
            return lambda node: node in answer.hosts
        view = known.view()
        lead_s = _lead_s(spec_obj)
        return lambda node: view.may_take(node, lead_s)


def _lead_s(spec_obj):
    """Return the seconds for which the host must be unreserved.

    At least one second longer than that.
    """
    preemptible = request_specs.is_preemptible(spec_obj)
    extra_specs = (spec_obj.flavor.extra_specs or {}) if preemptible else {}
    return eviction_policy.get_guard(
        CONF.preemption, CONF.reservation.guard_s).lead_s(
            preemptible, specs.minimum_runtime_s(extra_specs),
            specs.notice_s(extra_specs))


def admit(asked):
    """Refuse a request that names a reservation which it may not use.

    The filter alone could only say that no host was valid.

    A server that exists already and whose reservation is over, or was never
    there, is moved or unshelved like any other: it can not get rid of the
    hint. The hint is taken out of its RequestSpec then.

    :param asked: a nova_preempt.scheduler.request_context.RequestContext
    :raises NoValidHost: says why
    """
    spec_obj = asked.spec_obj
    lease_ids = request_specs.reservations(spec_obj)
    if not lease_ids or not lease_cache.is_used(CONF):
        return
    answer = lease_cache.current(CONF).answer(lease_ids, spec_obj.project_id)
    if not answer.reason:
        return
    server_uuid = next(iter(asked.server_uuids), None)
    if answer.is_void and server_uuid and asked.operation != 'create':
        LOG.info('Server %(server)s is placed without its reservation: '
                 '%(reason)s', {'server': server_uuid,
                                'reason': answer.reason})
        spec_obj.scheduler_hints.pop(request_specs.RESERVATION)
        return
    LOG.info('Server %(server)s is refused: %(reason)s',
             {'server': server_uuid, 'reason': answer.reason})
    raise exception.NoValidHost(reason=answer.reason)
