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
"""Room that is coming: what victims free beyond what they end for.

Until the victims of a decision are gone their surplus stays allocated, to
them. A request that fits there needs no victims of its own: it waits for
those and then finds room like any other.
"""

import threading
import time

from nova_preempt.core import capacity
from nova_preempt.core import model
from nova_preempt.db import api as db_api


class RoomComing(Exception):
    """There will be room once this decision is done."""

    def __init__(self, decision, resources):
        super().__init__(f'room is coming on host {decision.host}')
        self.decision_uuid = decision.uuid
        self.resources = resources


class Surplus:
    """Finds surplus that is coming, and waits for it.

    :param db: a nova_preempt.db.Database
    :param options: [preemption] of the configuration
    :param monotonic, sleep: the clock to wait by
    """

    def __init__(self, db, options, monotonic=time.monotonic,
                 sleep=time.sleep):
        self._db = db
        self._options = options
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._open = set()   # uuids of decisions, when they were read last
        self._read_at = None
        self._taken = {}     # decision uuid: [resources] of who waits for it

    def look(self, decisions, resources, waited, providers):
        """Raise RoomComing if there is surplus for a server of this size.

        No more requests of this process wait for a surplus than it has room
        for. The host may still not suit; so nobody waits for the same one
        twice.

        :param decisions: the open db.Decisions
        :param resources: {class: amount}
        :param waited: the uuids of decisions that were waited for before
        :param providers: a ProviderCache
        """
        for decision in decisions:
            if (decision.status != db_api.CLAIMED or decision.uuid in waited
                    or not decision.record['surplus']):
                continue
            with self._lock:
                wanted = [*self._taken.get(decision.uuid, ()), resources]
            # What is remembered is from before the victims lost their space,
            # or later: where it does not fit by that, nobody need ask.
            known = providers.known(decision.provider_uuid)
            if known is not None and not self._fits(known, decision, wanted):
                continue
            state = providers.read(decision.provider_uuid)
            if state is None:
                continue
            with self._lock:
                wanted = [*self._taken.get(decision.uuid, ()), resources]
                if self._fits(state, decision, wanted):
                    self._taken[decision.uuid] = wanted
                    raise RoomComing(decision, resources)

    @staticmethod
    def _fits(state, decision, requests):
        kept = {}
        for victim in decision.victims:
            for name, amount in state.allocations.get(victim.server_uuid,
                                                      {}).items():
                kept[name] = kept.get(name, 0) + amount
        surplus = model.Candidate(decision.uuid, kept, 0)
        host = model.Host(state.uuid, '', state.inventories, state.used,
                          (surplus,))
        total = {}
        for resources in requests:
            for name, amount in resources.items():
                total[name] = total.get(name, 0) + amount
        return all(
            not isinstance(capacity.missing(resources, host), model.Refusal)
            for resources in requests) and all(
                amount <= surplus.resources.get(name, 0) + max(
                    0, host.inventories[name].capacity
                    - host.used.get(name, 0))
                for name, amount in total.items())

    def wait(self, coming, limit):
        """Wait until the decision is closed, however it ends, or time is up.

        :param limit: the request's nova_preempt.scheduler.deadline.Deadline
        """
        uuid = coming.decision_uuid
        start = self._monotonic()
        longest_s = (self._options.maximum_notice_s
                     + self._options.termination_timeout_s)
        try:
            while self._is_coming(uuid, start):
                if (self._monotonic() - start >= longest_s
                        or limit.is_over()):
                    return
                self._sleep(self._options.poll_interval_s)
        finally:
            with self._lock:
                others = self._taken[uuid]
                others.remove(coming.resources)
                if not others:
                    del self._taken[uuid]

    def _is_coming(self, uuid, since):
        """Whether the decision is open, as read since then.

        All who wait share one query in each interval.
        """
        with self._reading:
            now = self._monotonic()
            if (self._read_at is None or self._read_at < since
                    or now - self._read_at >= self._options.poll_interval_s):
                self._open = self._db.get_claimed_uuids()
                self._read_at = now
            return uuid in self._open
