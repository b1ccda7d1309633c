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
"""Space that is kept free ahead of demand.

A normal server then finds room at once, and what gives way for the next one
has its notice meanwhile.
"""

import dataclasses

from nova import context as nova_context
from nova import objects
from oslo_log import log as logging

from nova_preempt.core import model
from nova_preempt.core import victims as core_victims
from nova_preempt.db import api as db_api

LOG = logging.getLogger(__name__)

HEADROOM = 'headroom'

# The key of an aggregate's metadata with a headroom of its own.
METADATA = 'preemptible:headroom'

# No more preemptible servers than this are chosen from, the cheapest first.
_MOST = 200


def parse(text):
    """{class: (amount, is it a percentage)} of "VCPU:10%,MEMORY_MB:8192".

    :raises ValueError: it says what cannot be understood
    """
    wanted = {}
    for item in filter(None, (part.strip() for part in text.split(','))):
        name, colon, amount = item.partition(':')
        percent = amount.endswith('%')
        number = amount.rstrip('%')
        if not (colon and name and number.isdigit()) or (
                percent and int(number) > 100):
            raise ValueError(
                f'{item!r}: headroom is CLASS:AMOUNT or CLASS:PERCENT%, such '
                'as VCPU:10% or MEMORY_MB:65536')
        wanted[name] = (int(number), percent)
    return wanted


@dataclasses.dataclass
class _Group:
    """Hosts of which some space shall be free."""

    name: str
    wanted: dict
    hosts: set | None      # names; None for all


class Headroom:
    """Ends preemptible servers until there is enough free.

    :param preemption: a nova_preempt.scheduler.preemption.Preemption
    :param ends: a nova_preempt.engine.ends.Ends
    """

    def __init__(self, preemption, ends):
        self._preemption = preemption
        self._ends = ends
        self._default = parse(preemption.conf.headroom)

    def keep(self):
        """Give notice to as few and cheap servers as headroom needs."""
        groups = list(self._groups())
        if not groups:
            return
        preemption = self._preemption
        nodes = {}
        for provider in preemption.providers.list([]):
            state = preemption.providers.get(provider)
            if state is not None:
                nodes[provider.name] = state
        for group in groups:
            chosen = {name: state for name, state in nodes.items()
                      if group.hosts is None or name in group.hosts}
            self._keep(group, chosen)

    def _groups(self):
        if self._default:
            yield _Group('the cloud', self._default, None)
        context = nova_context.get_admin_context()
        for aggregate in objects.AggregateList.get_all(context):
            text = aggregate.metadata.get(METADATA)
            if not text:
                continue
            try:
                wanted = parse(text)
            except ValueError as exc:
                LOG.error('Aggregate %(name)s, %(key)s: %(exc)s',
                          {'name': aggregate.name, 'key': METADATA,
                           'exc': exc})
                continue
            yield _Group(aggregate.name, wanted, set(aggregate.hosts))

    def _keep(self, group, nodes):
        missing = self._missing(group, nodes)
        if not missing:
            return
        preemption = self._preemption
        now = preemption.clock()
        spending = preemption.budgets.spending()
        servers = {
            server.uuid: server for server in preemption.view.servers()
            if server.node in nodes
            and server.uuid in nodes[server.node].allocations
            and server.may_end(now, preemption.conf.minimum_runtime_s)
            and self._ends.is_possible(server)
            and spending.allows(server)}
        ending = {victim.server_uuid for decision
                  in preemption.db.get_decisions(statuses=db_api.OPEN)
                  for victim in decision.victims}
        candidates = sorted(
            (self._candidate(server, nodes[server.node], now)
             for server in servers.values() if server.uuid not in ending),
            key=lambda item: (item.cost, item.uuid))[:_MOST]
        caps = spending.caps([servers[item.uuid] for item in candidates])
        for victim in self._choose(candidates, missing, nodes, caps):
            LOG.info('%(group)s lacks %(missing)s of its headroom.',
                     {'group': group.name, 'missing': missing})
            try:
                self._ends.begin(
                    servers[victim.uuid], HEADROOM,
                    f'{group.name} has too little space free',
                    cost_us=victim.cost, within_budgets=True)
            except (db_api.AlreadyEnding, db_api.OverBudget):
                continue

    def _candidate(self, server, state, now):
        resources = state.allocations[server.uuid]
        return model.Candidate(
            server.uuid, self._preemption.freed(server, resources),
            self._preemption.cost_us(server, resources, now))

    @staticmethod
    def _choose(candidates, missing, nodes, caps):
        """The cheapest that free enough; all that help if none do."""
        capacity = {name: sum(state.inventories[name].capacity
                              for state in nodes.values()
                              if name in state.inventories)
                    for name in missing}
        found = core_victims.cheapest_victims(
            tuple(candidates), missing, capacity=capacity, caps=caps)
        if found is not None:
            return found.victims
        return [item for item in candidates
                if any(item.resources.get(name) for name in missing)]

    def _missing(self, group, nodes):
        """{class: amount} that is not free and not being freed."""
        freeing = {}
        for victim in self._ends.ending(HEADROOM):
            for item in victim.allocations.values():
                for name, amount in item['resources'].items():
                    freeing[name] = freeing.get(name, 0) + amount
        missing = {}
        for name, (amount, percent) in group.wanted.items():
            capacity = free = 0
            for state in nodes.values():
                if name in state.inventories:
                    here = state.inventories[name].capacity
                    capacity += here
                    free += max(0, here - state.used.get(name, 0))
            if percent:
                amount = -(-capacity * amount // 100)
            lack = min(amount, capacity) - free - freeing.get(name, 0)
            if lack > 0:
                missing[name] = lack
        return missing
