# SPDX-License-Identifier: Apache-2.0

"""The compared schedulers: ours, Nova's own and a retrying scheduler."""

import copy

from nova.conf import scheduler as scheduler_conf
from nova.scheduler import manager as nova_manager
from nova.scheduler import utils
import oslo_messaging as messaging

from nova_preempt.core import model
from nova_preempt.core.eviction import eviction_values
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.core.scheduling import plan_search
from nova_preempt.scheduler import manager
from nova_preempt.scheduler import nova_cloud_view
from nova_preempt.scheduler import request_context

#: The constants of the scheduler that the embedded cloud lowers.
DEFAULTS = {name: getattr(cloud_view, name)
            for name in ('MAX_AGE_S', 'LIST_MAX_AGE_S')}


class RetryScheduler(nova_manager.SchedulerManager):
    """Fails, ends the cheapest victims, and schedules again.

    :param preemption: finds the victims, the same for both schedulers
    """

    def __init__(self, preemption):
        super().__init__()
        self._preemption = preemption

    def select_destinations(self, context, spec_obj, **kwargs):
        again = copy.deepcopy(spec_obj)
        try:
            return super().select_destinations(
                context, spec_obj=spec_obj, **kwargs)
        except messaging.ExpectedException:
            self._remove_victims(context, spec_obj)
        return super().select_destinations(context, spec_obj=again, **kwargs)

    def _remove_victims(self, context, spec_obj):
        resources = utils.resources_from_request_spec(
            context, spec_obj, self.host_manager)
        preemption = self._preemption
        wanted = model.Request.of(resources.merged_resources())
        cloud = nova_cloud_view.NovaCloudView(
            preemption, request_context.RequestContext(
                context, spec_obj, deadline=preemption.deadline()),
            resources, wanted)
        search = plan_search.PlanSearch(
            cloud, wanted, preemption.known.policy(),
            preemption.process.clock(), memo=preemption.memo)
        cloud.refresh(0)
        for victim in next(search.ranked()).victims:
            self.placement_client.delete_allocation_for_instance(
                context, victim.uuid, force=True)


class FreeTerminator:
    """Evicts servers at once: evictions are not part of the decision."""

    def end(self, decisions, check=None, chosen_at=None):
        return eviction_values.Memory({}, 0)


def _nova_defaults():
    """Return Nova's defaults of the options that the cloud overrides."""
    return {option.dest: option.default
            for option in scheduler_conf.filter_scheduler_opts
            if option.dest in ('available_filters', 'enabled_filters',
                               'weight_classes')}


class Schedulers:
    """A scheduler of each kind, started on a cloud in use."""

    def __init__(self, cloud):
        self.ours = manager.PreemptibleSchedulerManager()
        self.ours.start_preemption()
        self.ours.preemption.handover.terminator = FreeTerminator()
        self.ours.preemption.known.refresh()
        cloud.case.flags(group='filter_scheduler', **_nova_defaults())
        for name, value in DEFAULTS.items():
            cloud.case.patch(cloud_view, name, value)
        self.stock = nova_manager.SchedulerManager()
        self.retry = RetryScheduler(self.ours.preemption)
        for scheduler in (self.stock, self.ours, self.retry):
            cloud.tell(scheduler)
