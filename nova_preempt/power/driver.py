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
"""How hosts are powered off and on, each by its driver."""

import threading
from typing import Protocol

from nova_preempt.conf import energy
from nova_preempt.power import errors
from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import readings

NAMESPACE = 'nova_preempt.power_driver'


class Driver(Protocol):
    """A power driver, made of (conf).

    All may take minutes and can be called for many hosts at once, each
    host by one thread. Called again they change nothing. All raise PowerError.
    """

    def power_on(self, host):
        """Return when the host is powered, which is before it has booted."""

    def shut_down(self, host):
        """Return when it has shut down, by itself.

        It raises PowerError if it cannot be asked to, or did not in time.
        """

    def switch_off(self, host):
        """Return when it is off, switched off hard.

        It raises PowerError if that cannot be done.
        """

    def is_on(self, host):
        """Whether it is powered. A suspended host is not."""


class Drivers:
    """The driver of each host: that of hosts_file, or [energy]driver.

    :raises InvalidConfiguration: one that is named is unknown
    :raises HostsFileError: what hosts_file says cannot be used
    """

    def __init__(self, conf):
        options = conf[energy.GROUP]
        self._conf = conf
        self._default = options.driver
        self._hosts = power_hosts.HostsFile(options.hosts_file)
        self._classes = {
            name: readings.load(NAMESPACE, name, option)
            for name, option in (
                *((name, f'hosts_file for {host}')
                  for name, host in self._hosts.drivers().items()),
                (self._default, 'driver'))}
        self._lock = threading.Lock()
        self._made = {}

    def of(self, host):
        """The Driver of this host."""
        name = self._hosts.driver(host, self._default)
        with self._lock:
            if name not in self._made:
                self._made[name] = self._classes[name](self._conf)
            return self._made[name]

    def power_on(self, host):
        self.of(host).power_on(host)

    def shut_down(self, host):
        made = self.of(host)
        # Drivers of others may know only how to do both.
        (made.shut_down if hasattr(made, 'shut_down')
         else made.power_off)(host)

    def switch_off(self, host):
        made = self.of(host)
        if not hasattr(made, 'switch_off'):
            raise errors.PowerError(
                host, 'its driver cannot switch it off hard apart from '
                'shutting it down')
        made.switch_off(host)

    def is_on(self, host):
        return self.of(host).is_on(host)
