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
"""The hosts on which victims would make room, cheapest first."""

from collections.abc import Callable
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core import joining
from nova_preempt.core import model
from nova_preempt.core import ordering
from nova_preempt.core import victims as core_victims
from nova_preempt.scheduler.view import Server


@dataclasses.dataclass(frozen=True)
class Option:
    """A host and the cheapest victims that make room on it.

    An empty victim set means that there is room now. Where it joins the ends
    of other decisions, whose uuids joins has, the victims are theirs and cost
    nothing; waiting is what others ask for who wait for that, too.
    """

    provider_uuid: str
    node: str
    host: model.Host
    missing: dict[str, int]
    victim_set: model.VictimSet
    # Those that may end, by uuid, and what each has on this provider.
    servers: dict[str, Server]
    allocated: dict[str, dict[str, int]]
    resources: dict[str, int] = dataclasses.field(default_factory=dict)
    joins: tuple[str, ...] = ()
    waiting: tuple[dict[str, int], ...] = ()

    @property
    def victims(self):
        """The Servers to end, in order of their uuid."""
        return [self.servers[victim.uuid]
                for victim in self.victim_set.victims]

    @property
    def key(self):
        ended = 0 if self.joins else len(self.victim_set.victims)
        return (self.victim_set.cost, ended, self.node, self.provider_uuid)


@dataclasses.dataclass(frozen=True)
class Releasing:
    """What others are giving up while a request is looked at.

    :ivar leaving: {provider uuid: [nova_preempt.scheduler.surplus.Leaving]}
    :ivar waiting: given the uuid of a provider, what others wait for there
    :ivar longest_notice_s: how long the request can wait
    """

    leaving: dict
    waiting: Callable
    longest_notice_s: float


class Candidates:
    """Finds options for one request.

    :param resources: {class: amount} of one server
    :param may_end: given a Server, whether it may be a victim now
    :param cost_us: given (Server, resources), what its end costs
    :param freed: given the same, what of its resources its end frees
    :param spending: a nova_preempt.scheduler.budgets.Spending
    :ivar releasing: what others are giving up, a Releasing; None for nothing
    """

    def __init__(self, providers, view, resources, may_end, cost_us, freed,
                 spending):
        self._providers = providers
        self._view = view
        self._resources = resources
        self._may_end = may_end
        self._cost_us = cost_us
        self._freed = freed
        self._spending = spending
        self.releasing = None
        self.refusals = {}      # node: why it cannot serve the request

    def forget_spending(self):
        """Somebody ends now: less is left of the budgets."""
        self._spending.forget()

    def ranked(self, params, skip=(), max_age_s=0):
        """Options in ascending order of cost, found as they are asked for.

        A provider that changed since it was last read is read again.

        :param params: of GET /resource_providers
        :param skip: uuids of providers to leave out
        :param max_age_s: how old the listing of providers may be
        """
        nodes = self._view.nodes()
        listed = [provider for provider
                  in self._providers.list(params, max_age_s)
                  if (provider.name in nodes or self._is_released(
                      provider.uuid)) and provider.uuid not in skip]
        for _key, _provider, option in ordering.ascending(
                listed, self._bound, self._exact):
            yield option

    def _bound(self, provider):
        unknown = (0, 0, '', provider.uuid)
        state, fresh = self._providers.peek(provider)
        if not fresh or self._is_released(provider.uuid):
            # It may be cheaper than what is known of it says.
            return unknown
        host, _servers = self._host(provider.name, state)
        missing = capacity.missing(self._resources, host)
        if isinstance(missing, model.Refusal):
            self._refuse(host, missing)
            return None
        bound = core_victims.lower_bound(host.candidates, missing)
        if bound is None:
            return None
        return (bound, 0, '', provider.uuid)

    def _exact(self, provider):
        option = self.option(provider.name, self._providers.get(provider))
        return option and (option.key, option)

    def option(self, node, state, accept=None):
        """The Option of a host, None if no victims make room on it.

        :param state: its ProviderState
        :param accept: given Servers, whether ending them suffices in every
            other respect
        """
        if state is None:
            return None
        host, servers = self._host(node, state)
        joined = self._join(host, state, servers, accept)
        if joined is not None:
            return joined
        missing = capacity.missing(self._resources, host)
        if isinstance(missing, model.Refusal):
            self._refuse(host, missing)
            return None
        victim_set = core_victims.cheapest_victims(
            host.candidates, missing,
            capacity={name: inventory.capacity for name, inventory
                      in host.inventories.items()
                      if name in self._resources},
            accept=accept and (lambda chosen: accept(
                [servers[victim.uuid] for victim in chosen])),
            caps=self._spending.caps(servers.values()))
        if victim_set is None:
            return None
        return Option(host.uuid, node, host, missing, victim_set, servers,
                      {uuid: state.allocations[uuid] for uuid in servers},
                      self._resources)

    def _is_released(self, uuid):
        return self.releasing is not None and uuid in self.releasing.leaving

    def _join(self, host, state, servers, accept):
        """The Option to wait for those who end there already, or None."""
        if not self._is_released(state.uuid):
            return None
        waiting = self.releasing.waiting(state.uuid)
        leaving = self.releasing.leaving[state.uuid]
        joins = joining.join(
            self._resources, host, [item.ending(state) for item in leaving],
            waiting, self.releasing.longest_notice_s)
        if not joins:
            return None
        on_node = self._view.on_node(host.name)
        ending = {uuid: on_node[uuid] for item in leaving
                  if item.decision_uuid in joins
                  for uuid in item.actions if uuid in on_node}
        if accept is not None and not accept(
                [ending[uuid] for uuid in sorted(ending)]):
            return None
        victims = tuple(model.Candidate(uuid, state.allocations.get(uuid, {}),
                                        0) for uuid in sorted(ending))
        return Option(host.uuid, host.name, host, {},
                      model.VictimSet(victims, 0, True, 0),
                      {**servers, **ending}, {}, self._resources, joins,
                      waiting)

    def _refuse(self, host, refusal):
        self.refusals[host.name] = refusal.text

    def _host(self, node, state):
        servers = {uuid: server for uuid, server
                   in self._view.on_node(node).items()
                   if uuid in state.allocations and self._may_end(server)
                   and self._spending.allows(server)}
        candidates = tuple(
            model.Candidate(uuid,
                            self._freed(server, state.allocations[uuid]),
                            self._cost_us(server, state.allocations[uuid]))
            for uuid, server in sorted(servers.items()))
        return model.Host(state.uuid, node, state.inventories, state.used,
                          candidates), servers
