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
"""Power through the controller of each host, by Redfish."""

import sushy

from nova_preempt.conf import energy
from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import polling
from nova_preempt.power import redfish


class Redfish:
    """See nova_preempt.power.driver.Driver."""

    def __init__(self, conf, waiter=None):
        self._options = conf[energy.GROUP]
        self._controllers = redfish.Controllers(
            self._options, power_hosts.HostsFile(self._options.hosts_file),
            self._options.redfish_timeout_s)
        self._waiter = waiter or polling.Poller()

    def is_on(self, host):
        return self._state(host) != sushy.PowerState.OFF

    def power_on(self, host):
        # One that is powering off has to be off first, or stays off.
        if self._state(host) in (sushy.PowerState.ON,
                                 sushy.PowerState.POWERING_ON):
            return
        timeout_s = self._options.power_switch_timeout_s
        self._waiter.wait(
            host, lambda: self._state(host) != sushy.PowerState.POWERING_OFF,
            timeout_s, 'off')
        self._reset(host, sushy.ResetType.ON)
        self._waiter.wait(
            host, lambda: self._state(host) == sushy.PowerState.ON,
            timeout_s, 'on')

    def shut_down(self, host):
        self._waiter.switch(
            host, lambda: not self.is_on(host),
            lambda: self._reset(host, sushy.ResetType.GRACEFUL_SHUTDOWN),
            self._options.power_off_timeout_s, 'shut down')

    def switch_off(self, host):
        self._waiter.switch(
            host, lambda: not self.is_on(host),
            lambda: self._reset(host, sushy.ResetType.FORCE_OFF),
            self._options.power_switch_timeout_s, 'off')

    def _state(self, host):
        with self._controllers.system(host) as (system, _fetch):
            if system.power_state is None:
                raise ValueError('the system has no power state')
            return system.power_state

    def _reset(self, host, value):
        with self._controllers.system(host) as (system, _fetch):
            system.reset_system(value)
