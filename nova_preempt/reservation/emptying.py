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

import collections
import dataclasses
import datetime

from oslo_log import log as logging

from nova_preempt import requester
from nova_preempt.db import api as db_api
from nova_preempt.termination import terms

LOG = logging.getLogger(__name__)

OPERATION = 'reservation'


@dataclasses.dataclass(frozen=True)
class Found:
    """What was found on a host.

    :ivar empty: nothing is there
    :ivar waiting: servers of another reservation are, whose end is awaited
    :ivar lead_s: how long it takes until what is there is gone
    :ivar text: what is there, for people
    """

    empty: bool
    waiting: bool = False
    lead_s: int = terms.MARGIN_S
    text: str = ''


class Emptying:
    """Empties hosts.

    :param preemption: a nova_preempt.scheduler.preemption.Preemption
    :param ends: a nova_preempt.engine.ends.Ends
    :param options: [reservation] of the configuration
    :param inventory: a nova_preempt.reservation.inventory.Inventory
    :param evacuation: a nova_preempt.reservation.evacuation.Evacuation
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, preemption, ends, options, inventory, evacuation,
                 clock):
        self._preemption = preemption
        self._ends = ends
        self._options = options
        self._inventory = inventory
        self._occupancy = inventory.occupancy
        self._evacuation = evacuation
        self._clock = clock

    def lead_s(self, notice_s):
        """How long before a start a notice of this length is given."""
        return terms.lead_s(notice_s, self._preemption.conf)

    def longest_lead_s(self):
        """How long before a start there is anything to do."""
        return max(self._options.evacuation_lead_s,
                   self.lead_s(self._preemption.conf.maximum_notice_s))

    def empty(self, reservation, host, running):
        """Do the next step for a host of a reservation.

        :param host: an inventory.Host
        :param running: the ids of the reservations whose servers stay
        :returns: what was Found
        """
        before_s = (reservation.start_at - self._clock()).total_seconds()
        staying, preemptible, normal, own = self._sort(
            self._occupancy.on_node(host.name), reservation, running)
        if not (staying or preemptible or normal):
            others = self._inventory.consumers(host) - {
                resident.uuid for resident in own}
            return Found(not others, text=_list('allocations of',
                                                sorted(others)))
        lead_s = terms.MARGIN_S
        if normal:
            lead_s = max(lead_s, self._options.evacuation_lead_s)
            if before_s <= lead_s:
                for resident in normal:
                    self._evacuation.move(resident)
        lead_s = max(lead_s, self._give_notice(reservation, host,
                                               preemptible, before_s))
        return Found(False, bool(staying), lead_s, self._describe(
            staying, preemptible, normal))

    def _sort(self, residents, reservation, running):
        """Of running reservations, preemptible, normal, and its own."""
        staying, preemptible, normal, own = [], [], [], []
        for resident in residents:
            hint = self._occupancy.reservation_of(resident.uuid)
            if hint == reservation.uuid:
                own.append(resident)
            elif hint in running:
                staying.append(resident)
            elif resident.preemptible:
                preemptible.append(resident)
            else:
                normal.append(resident)
        return staying, preemptible, normal, own

    def _give_notice(self, reservation, host, residents, before_s):
        """Begin the ends of those whose time has come.

        Those with notices of the same length end as one decision.

        :returns: how long before the start the first of them has to begin
        """
        groups = collections.defaultdict(list)
        longest_s = 0
        for resident in residents:
            server = self._preemption.view.get(resident.uuid)
            if server is None:
                continue
            notice_s = terms.notice_rule(
                self._preemption.conf).length_s(server.notice_s)
            longest_s = max(longest_s, self.lead_s(notice_s))
            if (server.task_state is None
                    and before_s <= self.lead_s(notice_s)):
                groups[notice_s].append(server)
        ending = self._preemption.db.get_ending() if groups else {}
        for _notice_s, servers in sorted(groups.items()):
            servers = [server for server in servers
                       if server.uuid not in ending]
            if servers:
                self._begin(reservation, host, servers)
        return longest_s

    def _begin(self, reservation, host, servers):
        try:
            self._ends.begin_all(
                servers, OPERATION,
                f'host {host.name} is reserved from '
                f'{reservation.start_at.isoformat()}Z on', leave=True,
                asked_by=requester.of_reservation(reservation))
        except db_api.AlreadyEnding as exc:
            LOG.debug('On host %(host)s servers %(exc)s',
                      {'host': host.name, 'exc': exc})

    def _describe(self, staying, preemptible, normal):
        parts = [_list('servers of another reservation',
                       [item.uuid for item in staying]),
                 _list('preemptible servers',
                       [item.uuid for item in preemptible]),
                 _list('servers', [self._with_reason(item.uuid)
                                   for item in normal])]
        return '; '.join(part for part in parts if part)

    def _with_reason(self, uuid):
        why_not = self._evacuation.why_not(uuid)
        return f'{uuid} ({why_not})' if why_not else uuid


class Patience:
    """How long a host may still take after its reservation should start.

    :param clock: returns now, naive and in UTC
    """

    def __init__(self, clock):
        self._clock = clock
        self._since = {}           # (reservation uuid, host): first seen

    def is_over(self, reservation, host, found):
        """Whether it should have been empty by now.

        What was seen late, since it was reserved at once, came in another's
        place or nobody looked, has the time that it would have had.

        :param found: what was Found there
        """
        now = self._clock()
        key = reservation.uuid, host
        if found.waiting:
            self._since[key] = now
            return False
        since = self._since.setdefault(key, now)
        if now < max(reservation.start_at, since + datetime.timedelta(
                seconds=found.lead_s)):
            return False
        # It may be given another try.
        del self._since[key]
        return True

    def forget(self, reservations):
        """Forget those of reservations that are not among these."""
        uuids = {reservation.uuid for reservation in reservations}
        self._since = {key: since for key, since in self._since.items()
                       if key[0] in uuids}


def _list(what, items):
    if not items:
        return ''
    more = f' and {len(items) - 5} more' if len(items) > 5 else ''
    return f'{what} {", ".join(items[:5])}{more}'
