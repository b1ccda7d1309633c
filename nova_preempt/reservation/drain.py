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
"""Hosts are emptied in time for their reservation.

Preemptible servers stay until their notice, and it is early enough for the
last of them to be gone at the start. Normal servers are moved away. Servers
of another reservation stay until its end.
"""

import dataclasses
import datetime
import math

from oslo_log import log as logging

from nova_preempt import requester
from nova_preempt.core import notice
from nova_preempt.core import wanted
from nova_preempt.core.reservation import drain
from nova_preempt.core.reservation import occupancy
from nova_preempt.db import decisions
from nova_preempt.handover import eviction_policy
from nova_preempt.reservation import migration as moving

LOG = logging.getLogger(__name__)

OPERATION = wanted.RESERVATION


@dataclasses.dataclass(frozen=True)
class Found:
    """What was found on a host.

    :ivar empty: nothing is there
    :ivar waiting: servers of another reservation are, whose end is awaited
    :ivar blocked: something is that will not be gone in time
    :ivar lead_s: how long it takes until what is there is gone
    :ivar text: what is there, for operators
    :ivar public: the same for the owner of the reservation, who is not to
        know of others' servers
    """

    empty: bool
    waiting: bool = False
    blocked: bool = False
    lead_s: float = notice.MARGIN_S
    text: str = ''
    public: str = ''


def stays_s(server, options, now):
    """For how long a preemptible server cannot be given notice, in seconds.

    :param server: a nova_preempt.cloud.servers.Server
    :param options: [preemption] of the configuration
    :param now: timezone-aware
    """
    rules = eviction_policy.get_rules(options)
    return drain.stays_s(
        kept=bool(eviction_policy.why_stays(server, options)),
        uptime_s=server.uptime_us(now) / 1_000_000,
        minimum_s=rules.promised_s(server.minimum_runtime_s))


class Drain:
    """Empties hosts.

    :param process: a nova_preempt.handover.process.Process
    :param known: a nova_preempt.handover.knowledge.Knowledge
    :param ends: a nova_preempt.engine.evictions.Evictions
    :param options: [reservation] of the configuration
    :param inventory: a nova_preempt.reservation.inventory.Inventory
    :param migration: a nova_preempt.reservation.migration.Migration
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, process, known, ends, options, inventory, migration,
                 clock):
        self._process = process
        self._known = known
        self._ends = ends
        self._options = options
        self._inventory = inventory
        self._occupancy = inventory.occupancy
        self._migration = migration
        self._clock = clock
        # (reservation uuid, server uuid) of those that should not be there.
        self._seen = set()

    def lead_s(self, notice_s):
        """How long before a start a notice of this length is given."""
        return eviction_policy.lead_s(notice_s, self._process.options)

    def _notice_s(self, server):
        return eviction_policy.notice_rule(
            self._process.options).length_s(server.notice_s)

    def leads_s(self):
        """How long before a start there is anything to do."""
        return (self._options.evacuation_lead_s,
                self.lead_s(self._process.options.maximum_notice_s))

    def empty(self, reservation, host, running):
        """Do the next step for a host of a reservation.

        :param host: a known_host.Host
        :param running: {id: Reservation} of those whose servers stay
        :returns: what was Found
        """
        on_node = self._occupancy.on_node(host.name)
        # Read once: one of them may be gone in a moment.
        known = {item.uuid: self._known.servers.get(item.uuid)
                 for item in on_node if item.preemptible}
        residents = [self._resident(item, known.get(item.uuid), reservation,
                                    running) for item in on_node]
        servers = {item.uuid: known[item.uuid] for item in residents
                   if item.kind is drain.Kind.PREEMPTIBLE}
        step = drain.decide(
            residents,
            (reservation.start_at - self._clock()).total_seconds(),
            self._caps(servers, residents))
        if step.empty:
            return self._found_empty(host, {item.uuid for item in on_node})
        for item in on_node:
            if item.uuid in step.move:
                self._migration.move(item)
        self._give_notice(reservation, host, [
            servers[uuid] for uuid in step.notice])
        return Found(
            False, step.waiting, bool(step.blocking), drain.patience_s(step),
            self._describe(residents, step.blocking, servers,
                           {item.uuid: item.vm_state for item in on_node}),
            _publicly(residents))

    def turn_away(self, reservation, host, running):
        """See to it that nobody else is on a host that has been empty.

        Who was being scheduled when it started, or has been put there by
        hand, goes like those before.
        """
        others = [
            item.uuid for item in self._occupancy.on_node(host.name)
            if reservation.uuid not in self._occupancy.reservations_of(
                item.uuid)]
        for uuid in others:
            if (reservation.uuid, uuid) not in self._seen:
                LOG.warning('Server %(server)s is on host %(host)s, which '
                            'reservation %(uuid)s has for itself.',
                            {'server': uuid, 'host': host.name,
                             'uuid': reservation.uuid})
                self._seen.add((reservation.uuid, uuid))
        if others:
            self.empty(reservation, host, running)

    def forget(self, reservations):
        """Forget who was on hosts of others than these."""
        uuids = {reservation.uuid for reservation in reservations}
        self._seen = {key for key in self._seen if key[0] in uuids}

    def _found_empty(self, host, own):
        occupants = self._inventory.occupants(host)
        empty = occupancy.is_empty(occupants, own)
        return Found(
            empty, text=_list('allocations of', sorted(
                (occupants.consumers | occupants.servers) - own)),
            public='' if empty else 'servers of others come or go there')

    def _resident(self, item, server, reservation, running):
        """The core's view of an occupancy.Resident.

        :param server: what else is known of a preemptible one, or None
        """
        hints = self._occupancy.reservations_of(item.uuid)
        busy = item.task_state is not None
        kind = drain.kind(hints, reservation.uuid, running,
                          preemptible=server is not None)
        if kind is drain.Kind.OWN:
            return drain.Resident(item.uuid, kind)
        if kind is drain.Kind.OTHERS:
            end_at = max(running[uuid].end_at for uuid in hints
                         if uuid in running)
            return drain.Resident(
                item.uuid, kind, busy=busy,
                stays_s=(end_at - self._clock()).total_seconds())
        if kind is drain.Kind.NORMAL:
            return drain.Resident(
                item.uuid, kind,
                drain.move_lead_s(self._options.evacuation_lead_s),
                0.0 if moving.is_movable(item) else math.inf, busy,
                bool(self._migration.why_not(item.uuid)))
        return drain.Resident(
            item.uuid, kind, self.lead_s(self._notice_s(server)),
            stays_s(server, self._process.options, self._clock().replace(
                tzinfo=datetime.timezone.utc)),
            busy or server.task_state is not None)

    def _caps(self, servers, residents):
        """What the budgets allow, as long as it matters."""
        servers = [servers[item.uuid] for item in residents
                   if item.uuid in servers and not item.busy]
        if not servers:
            return ()
        budgets = self._known.budgets.read()
        return budgets.caps(servers) if budgets else ()

    def _give_notice(self, reservation, host, servers):
        """Begin the ends of those whose time has come."""
        if not servers:
            return
        by_uuid = {server.uuid: server for server in servers}
        for uuids in drain.by_notice(
                {server.uuid: self._notice_s(server) for server in servers},
                self._process.decisions.get_ending()):
            self._begin(reservation, host, [by_uuid[uuid] for uuid in uuids])

    def _begin(self, reservation, host, servers):
        try:
            self._ends.begin_all(
                servers, OPERATION,
                f'host {host.name} is reserved from '
                f'{reservation.start_at.isoformat()}Z on', leave=True,
                within_budgets=True,
                asked_by=requester.of_reservation(reservation))
        except (decisions.AlreadyEnding, decisions.OverBudget) as exc:
            LOG.debug('On host %(host)s servers %(exc)s',
                      {'host': host.name, 'exc': exc})

    def _describe(self, residents, blocking, servers, vm_states):
        texts = {
            drain.Kind.OTHERS: 'servers of another reservation',
            drain.Kind.PREEMPTIBLE: 'preemptible servers',
            drain.Kind.NORMAL: 'servers'}
        parts = [_list(text, [
            self._with_reason(item, item.uuid in blocking,
                              servers.get(item.uuid), vm_states[item.uuid])
            for item in residents if item.kind is kind])
            for kind, text in texts.items()]
        return '; '.join(part for part in parts if part)

    def _with_reason(self, item, blocks, server, vm_state):
        why_not = ''
        if item.kind is drain.Kind.NORMAL:
            why_not = self._migration.why_not(item.uuid) or (
                f'it is {vm_state}' if blocks else '')
        elif item.kind is drain.Kind.PREEMPTIBLE and blocks:
            why_not = (
                eviction_policy.why_stays(server, self._process.options)
                or f'promised to run for {item.stays_s:.0f} s more')
        elif blocks:
            why_not = f'whose end is {item.stays_s:.0f} s away'
        return f'{item.uuid} ({why_not})' if why_not else item.uuid


def _publicly(residents):
    """What is there in words that name nobody else's servers."""
    kinds = {item.kind for item in residents}
    if drain.Kind.OTHERS in kinds:
        return 'servers of another reservation are still there'
    return 'servers of others are still there'


def _list(what, items):
    if not items:
        return ''
    more = f' and {len(items) - 5} more' if len(items) > 5 else ''
    return f'{what} {", ".join(items[:5])}{more}'
