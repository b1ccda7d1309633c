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
"""What the scheduler and the API ask of power control."""

import threading

import oslo_messaging as messaging

from nova_preempt.core import efficiency
from nova_preempt.db import energy as db_energy
from nova_preempt.db import pauses
from nova_preempt.rpc import ENERGY

_DEMAND = 'a request finds no other host'


class Requests:
    """An RPC endpoint. Every engine serves it, also those that do not act:
    it only writes what is to be done.

    :param control: a control.Control
    :param switcher: its switching.Switcher
    :param database: a db.Database
    :param stopped: a nova_preempt.pauses.Pauses
    """

    target = messaging.Target(namespace=ENERGY, version='1.0')

    def __init__(self, control, switcher, database, stopped):
        self._control = control
        self._switcher = switcher
        self._db = database
        self._pauses = stopped
        self._lock = threading.Lock()
        self._promised = {}     # host: {request: servers}

    def wake(self, context, request, servers, hosts):
        """See nova_preempt.rpc.EngineClient."""
        if self._pauses.why(pauses.POWER):
            return {'hosts': [], 'boot_s': 0.0}
        with self._lock:
            states = db_energy.get_power(self._db)
            self._forget(states)
            left = servers
            chosen = []
            for host in self._in_order(states, hosts):
                if left <= 0:
                    break
                others = sum(
                    number for other, number
                    in self._promised.get(host, {}).items()
                    if other != request)
                room = hosts[host] - others
                if room > 0 and self._is_coming(states[host]):
                    taken = min(room, left)
                    self._promised.setdefault(host, {})[request] = taken
                    left -= taken
                    chosen.append(host)
            return {'hosts': chosen, 'boot_s': self._control.boot_s(
                [states[host] for host in chosen])}

    def _forget(self, states):
        """What was promised of hosts that are on shows in Placement."""
        self._promised = {
            host: promised for host, promised in self._promised.items()
            if host in states and states[host].state == db_energy.WAKING}

    def _in_order(self, states, hosts):
        """Those on their way first, then the most efficient."""
        efficiencies = self._control.efficiencies()
        known = efficiency.ranking({
            host: efficiencies.get(host) for host in hosts
            if host in states and not self._control.is_excluded(host)})
        return sorted(known, key=lambda host: (
            states[host].state != db_energy.WAKING))

    def _is_coming(self, state):
        """Whether the host will be on, since it was or is now asked to."""
        return state.state == db_energy.WAKING or (
            state.state in (db_energy.EMPTYING, db_energy.ASLEEP)
            and self._control.may_wake()
            and self._switcher.wake(state.host, _DEMAND))
