# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Questions that the API asks of the scheduler; nobody ends by an answer."""

import uuid

from nova import exception
from nova import objects
import nova.conf
from nova.scheduler import request_filter
from nova.scheduler import utils
from nova.virt import hardware
import oslo_messaging as messaging

from nova_preempt import exceptions
from nova_preempt.scheduler import attempt as attempts
from nova_preempt.scheduler import request
from nova_preempt.termination import terms

CONF = nova.conf.CONF


class _Answer(Exception):
    """Nova's scheduling has come to where it would claim this host."""

    def __init__(self, state):
        super().__init__(state.host)
        self.state = state


class DryRun(attempts.Attempt):
    """A pass that ends where a claim would be made.

    It only reads, and has nobody wait for its turn.
    """

    takes_turns = False

    def offer(self, resources, offered):
        if not request.is_preemptible(self.spec_obj):
            return super().offer(resources, offered)
        requests, summaries, _version = offered
        if requests is not None:
            self.note_room(resources, summaries)
            self.refusal = 'a preemptible server never preempts'
        return offered

    def claim(self, real_claim, server_uuid, alloc_request, project_id,
              user_id):
        raise _Answer(self.state_of(alloc_request))


class Questions:
    """An RPC endpoint beside that of Nova's scheduler.

    :param manager: a PreemptibleSchedulerManager
    """

    target = messaging.Target(namespace='nova_preempt', version='1.0')

    def __init__(self, manager):
        self._manager = manager

    @property
    def _preemption(self):
        if self._manager.preemption is None:
            raise exceptions.NoAnswer('This scheduler does not preempt.')
        return self._manager.preemption

    @messaging.expected_exceptions(exceptions.PreemptError)
    def explain(self, context, flavor, project_id, user_id,
                availability_zone=None, host=None):
        """See nova_preempt.rpc.SchedulerClient."""
        spec_obj = self._spec(context, flavor, project_id, user_id,
                              availability_zone, host)
        server_uuid = spec_obj.instance_uuid
        attempt = DryRun(
            self._preemption, self._manager.host_manager, context, spec_obj,
            lambda: 'create', self._preemption.stuck(), [server_uuid],
            self._preemption.patience(waits=False))
        try:
            with attempt:
                self._manager.dry_run(context, spec_obj, [server_uuid])
        except _Answer as answer:
            return self._chosen(attempt, answer.state)
        except exception.NoValidHost as exc:
            return self._none(attempt, str(exc))
        raise exceptions.NoAnswer('The scheduler chose no host.')

    def _chosen(self, attempt, state):
        option = attempt.option_of(state)
        victims, cost_us = [], 0
        reason = 'there is room'
        if option is not None and option.joins:
            reason = ('there will be room once preemptible servers that are '
                      'ending already are gone')
        elif option is not None:
            cost_us = option.victim_set.cost
            costs = {victim.uuid: victim.cost
                     for victim in option.victim_set.victims}
            victims = [{'server_uuid': server.uuid,
                        'project_id': server.project_id,
                        'flavor': server.flavor,
                        'cost_us': costs[server.uuid]}
                       for server in option.victims]
        return {'outcome': 'preempts' if victims else 'free',
                'host': state.host, 'cost_us': cost_us, 'victims': victims,
                'considered': _considered(attempt),
                'reason': '' if victims else reason}

    @staticmethod
    def _none(attempt, reason):
        if attempt.refusal:
            reason = attempt.refusal
        return {'outcome': 'no_valid_host', 'host': None, 'cost_us': 0,
                'victims': [], 'considered': [], 'reason': reason}

    @messaging.expected_exceptions(exceptions.PreemptError)
    def placement_chances(self, context, flavors, project_id,
                          availability_zone=None):
        """See nova_preempt.rpc.SchedulerClient.

        Counts by what Placement has: traits and aggregates are respected,
        Nova's other filters are not asked.
        """
        self._preemption.refresh()
        answer = []
        for flavor in flavors:
            spec_obj = self._spec(context, flavor, project_id, None,
                                  availability_zone)
            for zone, (free, more) in sorted(
                    self._count(context, spec_obj).items()):
                if availability_zone in (None, zone):
                    answer.append({'flavor': flavor, 'preemptible': free,
                                   'availability_zone': zone,
                                   'normal': free + more})
        return answer

    def _count(self, context, spec_obj):
        """{zone: (servers that fit, those that fit by preemption too)}."""
        request_filter.process_reqspec(context, spec_obj)
        resources = utils.resources_from_request_spec(
            context, spec_obj, self._manager.host_manager)
        wanted = resources.merged_resources()
        preemption = self._preemption
        now = preemption.clock()
        counts = {}
        for provider in preemption.providers.list(
                request.provider_query(resources)):
            state = preemption.providers.get(provider)
            if state is None:
                continue
            ending = self._may_be_freed(provider.name, state, now)
            free = fits(wanted, state, {})
            more = fits(wanted, state, ending) - free
            zone = self._zone(provider.name)
            before = counts.get(zone, (0, 0))
            counts[zone] = before[0] + free, before[1] + more
        return counts

    def _may_be_freed(self, node, state, now):
        """{class: amount} of the preemptible servers on a node."""
        preemption = self._preemption
        total = {}
        rules = terms.get_rules(preemption.conf)
        actions = preemption.conf.actions
        for server in preemption.view.on_node(node).values():
            resources = state.allocations.get(server.uuid)
            if resources and terms.may_give_way(server, rules, actions, now):
                for name, amount in preemption.freed(server,
                                                     resources).items():
                    total[name] = total.get(name, 0) + amount
        return total

    def _zone(self, host):
        manager = self._manager.host_manager
        for number in manager.host_aggregates_map.get(host, ()):
            zone = manager.aggs_by_id[number].metadata.get(
                'availability_zone')
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
                f'Flavor {flavor} asks for what no server can have: '
                f'{exc}') from exc
        spec_obj = objects.RequestSpec.from_components(
            context, str(uuid.uuid4()), image, found, topology,
            objects.InstancePCIRequests(requests=[]), {}, None, zone,
            project_id=project_id, user_id=user_id)
        if host is not None:
            spec_obj.requested_destination = objects.Destination(host=host)
        return spec_obj


def _get_flavor(context, name, project_id):
    context = context.elevated()
    for find in (objects.Flavor.get_by_flavor_id, objects.Flavor.get_by_name):
        try:
            flavor = find(context, name)
        except exception.NotFound:
            continue
        if flavor.is_public or project_id in flavor.projects:
            return flavor
    raise exceptions.FlavorNotFound(f'There is no flavor {name}.')


def _considered(attempt):
    return [{key: item[key] for key in ('host', 'node', 'victims', 'cost_us')}
            for item in attempt.considered]


def fits(wanted, state, freed):
    """How many servers fit on a provider, with so much freed."""
    numbers = []
    for name, amount in wanted.items():
        inventory = state.inventories.get(name)
        if (inventory is None or amount > inventory.max_unit
                or amount < inventory.min_unit
                or amount % inventory.step_size):
            return 0
        room = (inventory.capacity - state.used.get(name, 0)
                + freed.get(name, 0))
        numbers.append(max(0, room) // amount)
    return min(numbers, default=0)
