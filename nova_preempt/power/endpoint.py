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

import oslo_messaging as messaging

from nova_preempt.core.energy import demand
from nova_preempt.db import energy as db_energy
from nova_preempt.db import promises
from nova_preempt.rpc import ENERGY


class PowerEndpoint:
    """An RPC endpoint. Every engine serves it, also those that do not act:
    it only writes what is to be done.

    :param control: a control.Control
    :param switcher: its switching.Switcher
    :param database: a db.Database
    :param is_stopped: whether an operator wants no host to be switched now
    """

    target = messaging.Target(namespace=ENERGY, version='1.0')

    def __init__(self, control, switcher, database, is_stopped):
        self._control = control
        self._switcher = switcher
        self._db = database
        self._is_stopped = is_stopped

    def wake(self, context, request, servers, hosts):
        """See nova_preempt.rpc.EngineClient.

        As many wake at once as may; the others that are promised follow.
        """
        if self._is_stopped():
            return {'hosts': [], 'boot_s': 0.0}
        states = db_energy.get_power(self._db)
        sleepers = self._sleepers(states, hosts)
        found = promises.make(
            self._db, request,
            lambda others: demand.promise(request, servers, sleepers, others),
            self._switcher.now(), self._control.promised_s,
            lambda name: name not in states
            or states[name].state == db_energy.ON)
        names = [item.host for item in found]
        self._control.wake_promised(states, names)
        return {'hosts': names,
                'boot_s': self._control.ready_s(names)}

    def _sleepers(self, states, hosts):
        efficiencies = self._control.efficiencies()
        off = self._control.off(states, '')
        return [
            demand.Sleeper(name, hosts[name],
                           states[name].state == db_energy.WAKING,
                           bool(off[name].why_late), efficiencies.get(name))
            for name in self._control.switchable(
                name for name in hosts if name in off)]
