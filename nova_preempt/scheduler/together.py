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

It is made where Nova sorts hosts for the first of them, and obeyed as hosts
are that the engine has chosen (chosen_hosts.py).
"""

from nova import exception

from nova_preempt.core.backlog import chosen
from nova_preempt.core.batch import alike
from nova_preempt.core.batch import choice
from nova_preempt.core.batch import model
from nova_preempt.scheduler import states

OFF = 'off'


def load(options):
    """A Together, None where Nova is to choose.

    :param options: [preemption] of the configuration
    :raises InvalidConfiguration: what it needs is not installed
    """
    score = options.multi_create_score
    if score == OFF:
        return None
    try:
        # All are alike: one by one places as many as is possible.
        return Together(choice.make(model.Options(
            mode=model.GREEDY, score=score)))
    except choice.NotInstalled as exc:
        raise exception.InvalidConfiguration(
            f'[preemption]multi_create_score is {score}: {exc}') from exc


class Together:
    """Decides about several servers at once.

    :param placer: a core.batch.choice.Placer
    """

    def __init__(self, placer):
        self._placer = placer

    def hosts(self, spec_obj, instance_uuids):
        """The AlikeHosts of a request, None for one server alone."""
        if len(instance_uuids) < 2:
            return None
        return AlikeHosts(self._placer, len(instance_uuids),
                          *_group(spec_obj))


def _group(spec_obj):
    """(policy, how many on a host) of its server group."""
    group = (spec_obj.instance_group
             if 'instance_group' in spec_obj else None)
    if group is None or not group.policy:
        return '', 1
    return group.policy, int(group.rules.get('max_server_per_host', 1))


class AlikeHosts:
    """As chosen_hosts.ChosenHosts, chosen once hosts are known.

    :param count: how many servers
    :param policy: of their server group, '' if they have none
    :param most: how many of them may be on a host, where that is the policy
    """

    def __init__(self, placer, count, policy, most):
        self._placer = placer
        self._count = count
        self._policy = policy
        self._most = most
        self._wanted = {}
        self._summaries = {}
        self.restart()

    def restart(self):
        self._left = None

    def offer(self, offered, ask, resources, find_providers):
        _requests, summaries, _version = offered
        self._wanted = resources.merged_resources()
        # Nova may ask twice, in other words.
        self._summaries = {**self._summaries, **(summaries or {})}
        return offered

    def first(self, host_states):
        host_states = list(host_states)
        if self._left is None:
            self._left = chosen.Left(self._choose(host_states))
        return sorted(host_states, key=lambda state: (
            not self._left.is_next(state.nodename)))

    def consumed(self, state):
        if self._left is not None:
            self._left.take(state.nodename)

    def _choose(self, host_states):
        return alike.place(
            self._placer, self._wanted, self._count,
            [self._room(state) for state in host_states
             if state.uuid in self._summaries
             and not states.mark_of(state).victims],
            self._policy, self._most)

    def _room(self, state):
        resources = self._summaries[state.uuid]['resources']
        return model.HostState(
            state.nodename,
            {name: item['capacity'] - item['used']
             for name, item in resources.items()},
            {name: item['capacity'] for name, item in resources.items()})
