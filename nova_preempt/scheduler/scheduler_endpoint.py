# SPDX-License-Identifier: Apache-2.0
"""RPC endpoint of the scheduler for read-only queries."""

import contextlib
import dataclasses
import functools
import math
import threading
import time
import uuid

from keystoneauth1 import exceptions as ks_exc
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.accelerator import cyborg
import nova.conf
from nova.pci import request as pci_request
from nova.scheduler import request_filter
from nova.scheduler import utils
from nova.virt import hardware
from oslo_log import log as logging
import oslo_messaging as messaging

from nova_preempt import exceptions
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import provider_cache
from nova_preempt.cloud import request_specs
from nova_preempt.core import rate_limiter
from nova_preempt.core import refusal_texts
from nova_preempt.core.scheduling import plan_search
from nova_preempt.scheduler import decision_records
from nova_preempt.scheduler import nova_cloud_view
from nova_preempt.scheduler import request_context
from nova_preempt.scheduler import scheduling_pass

LOG = logging.getLogger(__name__)

CONF = nova.conf.CONF


# Fifty flavors take 2.5 s on 40 hosts, and more on more hosts. Half a minute
# is enough for people and dashboards; a client that polls in a loop gets a
# tenth of the scheduler's time.
_TERMS = rate_limiter.RateLimit(at_once_s=30, share=0.1, most_running=2)

# The longest query. The API waits for 30 s by default.
_LONGEST_S = 20

# How old a cached provider may be where find_room() has asked for all hosts: a
# change that does not raise the generation gives a host more room, which it
# finds. Reading 1000 hosts takes 10 s.
_MAX_AGE_S = 3600


class QueryTimeLimits:
    """Limits the scheduler's time that queries of a project take.

    The time is measured in the scheduler, so that the limit holds however many
    API processes ask, and whether or not they still wait for the answer.
    Thread-safe.
    """

    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._allowance = rate_limiter.RateLimiter(_TERMS)
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def query(self, project_id, is_bounded):
        """Measure the time of a project's query.

        Yields a generator function that iterates over items until the time of
        the query is used up.

        :param is_bounded: False if the project has no limit
        :raises TooManyQuestions:
        """
        began_s = self._clock()
        in_time = functools.partial(self._in_time, began_s)
        if not is_bounded:
            yield in_time
            return
        with self._lock:
            wait_s = math.ceil(self._allowance.begin(project_id, began_s))
        if wait_s:
            raise exceptions.TooManyQuestions(
                'The project has used too much time of the scheduler; retry '
                f'after {wait_s} s.', wait_s)
        try:
            yield in_time
        finally:
            with self._lock:
                self._allowance.end(project_id, began_s, self._clock())

    def _in_time(self, began_s, items):
        for item in items:
            if self._clock() - began_s >= _LONGEST_S:
                raise exceptions.NoAnswer(
                    f'The scheduler had no answer within {_LONGEST_S} s; '
                    'request fewer flavors at once.')
            yield item


class DeviceProfiles:
    """Reads Cyborg's device profiles with the credentials in [preemption].

    The user's token is not passed on from our API to the scheduler.
    """

    def __init__(self, conf):
        self._conf = conf
        self._auth = None

    def get_groups(self, name):
        """Return the RequestGroups of a profile, as nova-api makes them.

        :raises NovaException: Cyborg cannot be asked, or has no such profile
        """
        if not nova_api.NovaAPI.is_configured(self._conf):
            raise exception.DeviceProfileError(
                name=name, msg='Calls of Cyborg need the credentials in '
                               '[preemption], which are not set.')
        try:
            if self._auth is None:
                self._auth = nova_api.load_auth(self._conf)
            context = nova_context.get_admin_context()
            context.user_auth_plugin = self._auth
            return cyborg.get_device_profile_request_groups(context, name)
        except ks_exc.ClientException as exc:
            raise exception.DeviceProfileError(
                name=name, msg=str(exc)) from exc


class _Answer(Exception):
    """Nova's scheduling has come to where it would claim this host."""

    def __init__(self, state):
        super().__init__(state.host)
        self.state = state


class _DryRun(scheduling_pass.SchedulingPass):
    """Answers the question where a claim would be made, and only reads."""

    def _begin_choosing(self):
        """Do nothing: queries do not wait for their turn."""

    def _join(self, state):
        raise _Answer(state)

    def _claim_room(self, state, real_claim, server_uuid):
        raise _Answer(state)

    def _take(self, state, *args):
        raise _Answer(state)


class QueryEndpoint:
    """An RPC endpoint beside that of Nova's scheduler.

    :param manager: a PreemptibleSchedulerManager
    """

    target = messaging.Target(namespace='nova_preempt', version='1.0')

    def __init__(self, manager):
        self._manager = manager
        self._profiles = DeviceProfiles(CONF)
        self._limits = QueryTimeLimits()

    @property
    def _preemption(self):
        if self._manager.preemption is None:
            raise exceptions.NoAnswer('This scheduler does not preempt.')
        return self._manager.preemption

    @messaging.expected_exceptions(exceptions.PreemptError)
    def explain(self, context, flavor, project_id, user_id,
                availability_zone=None, host=None, is_bounded=True):
        """See nova_preempt.rpc.SchedulerPreviewClient."""
        with self._limits.query(project_id, is_bounded):
            return self._explain(context, flavor, project_id, user_id,
                                 availability_zone, host)

    def _explain(self, context, flavor, project_id, user_id,
                 availability_zone, host):
        spec_obj = self._spec(context, flavor, project_id, user_id,
                              availability_zone, host)
        if request_specs.is_preemptible(spec_obj):
            request_context.read_headroom(self._preemption)
        asked = request_context.with_terms(
            self._preemption, request_context.RequestContext(
                context, spec_obj, (spec_obj.instance_uuid,),
                deadline=self._preemption.deadline(waits=False)))
        cycle = _DryRun(self._preemption, asked)
        try:
            with cycle:
                self._manager.select(
                    dataclasses.replace(asked, cycle=cycle),
                    instance_uuids=list(asked.server_uuids),
                    return_objects=True)
        except _Answer as answer:
            return self._chosen(cycle, answer.state)
        except exception.NoValidHost as exc:
            return self._none(cycle, str(exc))
        raise exceptions.NoAnswer('The scheduler chose no host.')

    def _chosen(self, cycle, state):
        plan = cycle.decision.plan_of(state.uuid)
        victims, cost_us = [], 0
        reason = 'there is free capacity'
        if plan is not None and plan.joins:
            reason = ('there will be free capacity once victims of other '
                      'requests are gone')
        elif plan is not None and plan.victims:
            get_cost_us = cycle.decision.search.policy.published_cost_us
            cost_us = get_cost_us(plan.cost_us)
            costs = {victim.uuid: get_cost_us(victim.cost)
                     for victim in plan.victim_set.victims}
            victims = [{'server_uuid': server.uuid,
                        'project_id': server.project_id,
                        'flavor': server.flavor,
                        'cost_us': costs[server.uuid]}
                       for server in plan.victims]
        return {'outcome': 'preempts' if victims else 'free',
                'host': state.host, 'cost_us': cost_us, 'victims': victims,
                'considered': _considered(cycle),
                'reason': '' if victims else reason}

    @staticmethod
    def _none(cycle, reason):
        reason = cycle.refusal or (
            refusal_texts.message(refusal_texts.Reason.SERVICE)
            if cycle.unanswered else reason)
        return {'outcome': 'no_valid_host', 'host': None, 'cost_us': 0,
                'victims': [], 'considered': [], 'reason': reason}

    @messaging.expected_exceptions(exceptions.PreemptError)
    def placement_chances(self, context, flavors, project_id,
                          availability_zone=None, is_bounded=True):
        """See nova_preempt.rpc.SchedulerPreviewClient.

        Counts by what Placement has: traits and aggregates are respected,
        Nova's other filters are not asked.
        """
        with self._limits.query(project_id, is_bounded) as in_time:
            return self._chances(context, flavors, project_id,
                                 availability_zone, in_time)

    def _chances(self, context, flavors, project_id, availability_zone,
                 in_time):
        self._preemption.known.refresh()
        answer, unknown, told = [], None, False
        began_s = self._preemption.monotonic()
        for flavor in in_time(flavors):
            try:
                spec_obj = self._spec(context, flavor, project_id, None,
                                      availability_zone)
            except exceptions.NoAnswer as exc:
                LOG.warning('The placement chances of flavor %(flavor)s are '
                            'omitted: %(exc)s', {'flavor': flavor, 'exc': exc})
                unknown = exc
                answer.append({'flavor': flavor, 'preemptible': None,
                               'availability_zone': availability_zone,
                               'normal': None})
                continue
            told = True
            for zone, (preemptible, normal) in sorted(self._count(
                    context, spec_obj, availability_zone, in_time,
                    began_s).items()):
                answer.append({'flavor': flavor, 'preemptible': preemptible,
                               'availability_zone': zone, 'normal': normal})
        if unknown and not told:
            raise unknown
        return answer

    def _count(self, context, spec_obj, zone, in_time, began_s):
        """Return {zone: (number of preemptible servers, of normal ones)}.

        :param zone: the only one that matters, None for any
        :param in_time: see QueryTimeLimits.query()
        :param began_s: when the query began; its flavors share what was read
            since
        """
        try:
            request_filter.process_reqspec(context, spec_obj)
        except exception.RequestFilterFailed:
            return {}          # as a boot would be refused
        resources = utils.resources_from_request_spec(
            context, spec_obj, self._manager.host_manager)
        preemption = self._preemption
        wanted = request_specs.groups(resources)
        cloud = nova_cloud_view.NovaCloudView(
            preemption, request_context.RequestContext(
                context, spec_obj, deadline=preemption.deadline(waits=False)),
            resources, wanted)
        known = preemption.known
        search = plan_search.PlanSearch(
            cloud, wanted, known.policy(), preemption.process.clock(),
            excluded=preemption.handover.stuck() | cloud.ending())
        most = CONF.scheduler.max_placement_results
        age_s = preemption.monotonic() - began_s
        known.providers.find_room(resources.merged_resources(), most, age_s)
        listed = known.providers.list(
            request_specs.provider_query(resources), age_s)
        roots = known.providers.get_all(
            (provider for provider in listed
             if zone in (None, self._zone(provider.name))),
            _MAX_AGE_S if len(listed) < most else provider_cache.MAX_AGE_S)
        trees = known.trees.providers_for(wanted, roots.values())
        found = {name: search.count(name, trees[state.uuid])
                 for name, state in in_time(roots.items())
                 if trees[state.uuid]}
        spare = {roots[name].uuid: free
                 for name, (free, _) in found.items()}
        if known.headroom:
            spare = known.headroom.count(resources.merged_resources(), spare)
        counts, refused = {}, bool(cloud.objection())
        for name, (free, more) in found.items():
            where = self._zone(name)
            before = counts.get(where, (0, 0))
            counts[where] = (before[0] + spare[roots[name].uuid],
                             before[1] + free + (0 if refused else more))
        return counts

    def _zone(self, host):
        manager = self._manager.host_manager
        for number in manager.host_aggregates_map.get(host, ()):
            zone = manager.aggs_by_id[number].metadata.get('availability_zone')
            if zone:
                return zone
        return CONF.default_availability_zone

    def _spec(self, context, flavor, project_id, user_id, zone, host=None):
        found = _get_flavor(context, flavor, project_id)
        image = objects.ImageMeta.from_dict({})
        try:
            topology = hardware.numa_get_constraints(found, image)
        except exception.NovaException as exc:
            raise exceptions.FlavorNotFound(
                f'Flavor {flavor!r} requests an invalid NUMA topology: '
                f'{exc}') from exc
        devices, accelerators = self._get_devices(found, image)
        spec_obj = objects.RequestSpec.from_components(
            context, str(uuid.uuid4()), image, found, topology, devices, {},
            None, zone, project_id=project_id, user_id=user_id)
        spec_obj.requested_resources.extend(accelerators)
        if host is not None:
            spec_obj.requested_destination = objects.Destination(host=host)
        return spec_obj

    def _get_devices(self, flavor, image):
        """Return (InstancePCIRequests, RequestGroups of Cyborg)."""
        profile = flavor.extra_specs.get('accel:device_profile')
        try:
            return pci_request.get_pci_requests_from_flavor(
                flavor,
                affinity_policy=hardware.get_pci_numa_policy_constraint(
                    flavor, image)), (
                self._profiles.get_groups(profile) if profile else [])
        except exception.NovaException as exc:
            raise exceptions.NoAnswer(
                f'The devices that flavor {flavor.name} requests cannot be '
                f'determined: {exc}') from exc


def _get_flavor(context, name, project_id):
    for find in (objects.Flavor.get_by_flavor_id, objects.Flavor.get_by_name):
        try:
            flavor = find(context.elevated(), name)
        except exception.NotFound:
            continue
        if flavor.is_public or project_id in flavor.projects:
            return flavor
    raise exceptions.FlavorNotFound(f'There is no flavor {name!r}.')


def _considered(cycle):
    return [{key: item[key] for key in ('host', 'node', 'victims', 'cost_us')}
            for item in decision_records.get_considered(cycle)]
