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
"""Who of a class comes back next, and when others may end for it.

The pass of M. Carvalho et al. (JISA 11, 2020), over those that gave way. It
says who is asked to come; where it comes to, and who ends for it there, the
scheduler decides as for any request of a class.
"""

import dataclasses
import time

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.core import capacity
from nova_preempt.core.classes import rounds
from nova_preempt.core.classes import rules
from nova_preempt.core.times import microseconds
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from nova_preempt.handover import eviction_policy

LOG = logging.getLogger(__name__)

#: How they come back.
OPERATION = 'unshelve'


class Returning:
    """Chooses among shelved servers of a class.

    :param parts: a nova_preempt.handover.parts.Parts
    :param table: a core.classes.table.Table
    :param exact: see core.classes.rules.ByPromise
    :ivar period_s: how often others may end for them, in seconds, and after
        how long one that was asked to come is asked again
    """

    def __init__(self, parts, table, exact=True, monotonic=time.monotonic):
        self.period_s = table.pass_period_s
        self._classes = table.classes
        self._rule = rules.ByPromise(table.classes, exact)
        self._process = parts.process
        self._known = parts.known
        self._promised = parts.known.promised
        self._placement = parts.clients.placement
        self._stuck = parts.handover.stuck
        self._monotonic = monotonic
        self._passed_at = None

    def of_class(self, uuids):
        """Those of these servers that are of a class."""
        claimants = self._promised.claimants
        return {uuid for uuid in uuids if uuid in claimants}

    def choose(self, needs, most):
        """The uuids of those that are to be asked to come, in this order.

        :param needs: {uuid: {class: amount}} of those that wait
        :param most: how many there may be
        """
        if not needs or most <= 0:
            return []
        now = self._process.clock()
        rooms, spared = self._rooms(needs)
        placed = self._round(spared, most, rooms, now)
        chosen = [placement.uuid for placement in placed]
        if len(chosen) < min(most, len(needs)) and self._is_time():
            # Who would take what is kept free is in nobody's way.
            chosen = list(dict.fromkeys(
                [*self._pass(needs, most, now), *chosen]))
        return chosen[:most]

    def _is_time(self):
        """Whether the last pass in which others ended is long enough ago."""
        now = self._monotonic()
        if not self._promised.is_recent or not self._may_end() or (
                self._passed_at is not None
                and now - self._passed_at < self.period_s):
            return False
        self._passed_at = now
        return True

    def _may_end(self):
        return not (
            self._process.pauses.why(pauses.PREEMPTION)
            or eviction_policy.why_not_allowed(
                self._process.options, lambda: OPERATION))

    def _busy(self):
        """Those that end already, or lately did not."""
        return self._stuck() | {
            victim.server_uuid for decision
            in self._process.decisions.get_decisions(statuses=decisions.OPEN)
            for victim in decision.victims}

    def _pass(self, needs, most, now):
        metrics.CLASS_PASSES.inc()
        placed = self._round(needs, most, self._hosts(needs, now), now)
        LOG.info('A pass over %(waiting)s servers of a class that wait: '
                 '%(room)s have room, for %(ends)s others may end.',
                 {'waiting': len(needs),
                  'room': sum(not item.victims for item in placed),
                  'ends': sum(bool(item.victims) for item in placed)})
        return [placement.uuid for placement in placed]

    def _round(self, needs, most, hosts, now):
        now_us = microseconds(now)
        claimants = self._promised.claimants
        waiting = rounds.foremost(
            (dataclasses.replace(claimants[uuid], resources=wanted)
             for uuid, wanted in needs.items() if uuid in claimants),
            self._classes, self._rule, now_us, most)
        return rounds.one_round(waiting, hosts, self._classes, self._rule,
                                now_us)

    def _rooms(self, needs):
        """What is free, and for whom.

        Who had no allocations needs nobody knows what: it is for the
        scheduler to say whether there is room.

        :returns: ([RoundHost with nobody on it], needs without those that
            would take what is kept free)
        """
        closed, rooms = set(), {}
        for size in sorted({_size(wanted) for wanted in needs.values()}):
            wanted = dict(size)
            if not wanted:
                rooms[''] = {}
                continue
            found = self._placement.get_room(wanted)
            if not found:
                continue
            self._known.headroom.refresh()
            if self._known.headroom.has_room(wanted):
                for uuid, free in found.items():
                    # It may have changed since it was asked for another one.
                    rooms[uuid] = capacity.least(rooms.get(uuid, free), free)
            else:
                closed.add(size)
        return ([rounds.RoundHost(uuid, free) for uuid, free in rooms.items()],
                {uuid: wanted for uuid, wanted in needs.items()
                 if _size(wanted) not in closed})

    def _hosts(self, needs, now):
        """The same, with those who may give way."""
        hosts = {host.uuid: host for host in self._rooms(needs)[0]}
        # They are replaced in the background, never changed.
        claimants = self._promised.current()
        by_node = self._known.servers.by_node()
        budgets = self._known.budgets.read()
        policy = self._known.policy()
        busy = self._busy()
        for listed, provider, _ in self._known.providers.look(
                (), self.period_s):
            if provider is None:
                continue
            there = [
                dataclasses.replace(claimants[uuid],
                                    resources=provider.allocations[uuid])
                for uuid, server in by_node.get(listed.name, {}).items()
                if uuid in provider.allocations and uuid not in busy
                and uuid in claimants and claimants[uuid].is_certain
                and policy.may_give_way(server, now)
                and (budgets is None or budgets.allows(server))]
            if there:
                free = {name: provider.free(name)
                        for name in provider.inventories}
                hosts[listed.uuid] = rounds.RoundHost(
                    listed.uuid, capacity.total(
                        (free, *(each.resources for each in there))),
                    tuple(there))
        return list(hosts.values())


def _size(resources):
    return tuple(sorted(resources.items()))
