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

from oslo_log import log as logging

from nova_preempt.core import model
from nova_preempt.core import victims as core_victims
from nova_preempt.db import api as db_api
from nova_preempt.db import pauses
from nova_preempt.termination import terms

LOG = logging.getLogger(__name__)

HEADROOM = 'headroom'

# No more preemptible servers than this are chosen from, the cheapest first.
_MOST = 200


class Headroom:
    """Ends preemptible servers until there is enough free.

    :param preemption: a nova_preempt.scheduler.preemption.Preemption
    :param ends: a nova_preempt.engine.ends.Ends
    """

    def __init__(self, preemption, ends):
        self._preemption = preemption
        self._ends = ends

    def keep(self):
        """Give notice to as few and cheap servers as headroom needs."""
        if self._preemption.pauses.why(pauses.PREEMPTION):
            return
        for group in self._preemption.headroom.groups():
            self._keep(group)

    def _keep(self, group):
        missing = self._missing(group)
        if not missing:
            return
        nodes = group.nodes
        preemption = self._preemption
        now = preemption.clock()
        rules = terms.get_rules(preemption.conf)
        actions = preemption.conf.actions
        spending = preemption.budgets.spending()
        servers = {
            server.uuid: server for server in preemption.view.servers()
            if server.node in nodes
            and server.uuid in nodes[server.node].allocations
            and terms.may_give_way(server, rules, actions, now)
            and spending.allows(server)}
        ending = {victim.server_uuid for decision
                  in preemption.db.get_decisions(statuses=db_api.OPEN)
                  for victim in decision.victims}
        candidates = sorted(
            (self._candidate(server, nodes[server.node], now)
             for server in servers.values() if server.uuid not in ending),
            key=lambda item: (item.cost, item.uuid))[:_MOST]
        caps = spending.caps([servers[item.uuid] for item in candidates])
        for victim in self._choose(group, candidates, missing, caps):
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
    def _choose(group, candidates, missing, caps):
        """The cheapest that free enough; all that help if none do."""
        capacity = {name: group.capacity(name) for name in missing}
        found = core_victims.cheapest_victims(
            tuple(candidates), missing, capacity=capacity, caps=caps)
        if found is not None:
            return found.victims
        return [item for item in candidates
                if any(item.resources.get(name) for name in missing)]

    def _missing(self, group):
        """{class: amount} that is not free and not being freed."""
        freeing = {}
        uuids = group.uuids()
        for victim in self._ends.ending(HEADROOM):
            for uuid in uuids & victim.allocations.keys():
                resources = victim.allocations[uuid]['resources']
                for name, amount in resources.items():
                    freeing[name] = freeing.get(name, 0) + amount
        return group.missing(freeing)
