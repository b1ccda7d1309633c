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
"""Hosts for several servers of one request, by one decision.

It is made where Nova sorts hosts for the first of them, and carried out as
what the engine has chosen (batch_claim.py).
"""

from nova_preempt import exceptions
from nova_preempt.core import capacity
from nova_preempt.core.batch import choice
from nova_preempt.core.batch import model
from nova_preempt.scheduler import states

OFF = 'off'


def load(options, get_weighed):
    """A function that makes AlikeHosts, None where Nova is to choose.

    It is given the number of servers, and returns None for one alone.

    :param options: [preemption] of the configuration
    :param get_weighed: given host states and a RequestSpec, Nova's weighed
        hosts
    :raises InvalidConfiguration: what it needs is not installed
    """
    score = options.multi_create_score
    if score == OFF:
        return None
    try:
        # All are alike: one by one places as many as is possible.
        placer = choice.make(model.Options(mode=model.GREEDY, score=score))
    except choice.NotInstalled as exc:
        raise exceptions.InvalidConfiguration(
            f'[preemption]multi_create_score is {score}: {exc}') from exc
    if score != model.WEIGHTS:
        get_weighed = None
    return lambda count: (AlikeHosts(placer, get_weighed, count)
                          if count > 1 else None)


def _group(spec_obj):
    """(policy, how many on a host) of its server group."""
    group = (spec_obj.instance_group
             if 'instance_group' in spec_obj else None)
    if group is None or not group.policy:
        return '', 1
    return group.policy, int(group.rules.get('max_server_per_host', 1))


class AlikeHosts:
    """As chosen_hosts.ChosenHosts, chosen once hosts are known.

    :param placer: a core.batch.choice.Placer
    :param get_weighed: see load(), None if it does not go by weights
    :param count: how many servers
    """

    def __init__(self, placer, get_weighed, count):
        self._placer = placer
        self._count = count
        self._get_weighed = get_weighed
        self._wanted = {}
        self._summaries = {}

    def offer(self, offered, ask, resources, find_providers):
        _requests, summaries, _version = offered
        self._wanted = resources.merged_resources()
        # Nova may ask twice, in other words.
        self._summaries = {**self._summaries, **(summaries or {})}
        return offered

    def hosts(self, host_states, spec_obj):
        found = [state for state in host_states
                 if state.uuid in self._summaries
                 and not states.mark_of(state).victims]
        weights = self._weights(found, spec_obj)
        return choice.place_alike(
            self._placer, self._wanted, self._count,
            [self._room(state, weights.get(state.uuid, 0))
             for state in found], *_group(spec_obj))

    def _weights(self, host_states, spec_obj):
        """{uuid: how many are worse}: weights may be any numbers."""
        if self._get_weighed is None or not host_states:
            return {}
        weighed = self._get_weighed(host_states, spec_obj)
        ranks = {weight: rank for rank, weight in enumerate(
            sorted({item.weight for item in weighed}))}
        return {item.obj.uuid: ranks[item.weight] for item in weighed}

    def _room(self, state, weight):
        resources = self._summaries[state.uuid]['resources']
        return model.HostState(
            state.nodename,
            capacity.free(resources),
            {name: item['capacity'] for name, item in resources.items()},
            weight=weight)
