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
"""Power by commands of an operator: IPMI, wake-on-LAN, switched sockets."""

from nova_preempt.conf import energy
from nova_preempt.power import commands
from nova_preempt.power import errors
from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import polling


class Command:
    """See nova_preempt.power.driver.Driver.

    Each command is that of hosts_file, else that of the options. Power on
    returns when its command has succeeded, before the host is seen to be on.
    """

    def __init__(self, conf, waiter=None):
        self._options = conf[energy.GROUP]
        self._hosts = power_hosts.HostsFile(self._options.hosts_file)
        self._waiter = waiter or polling.Poller()

    def is_on(self, host):
        settings = self._settings(host)
        return commands.is_on(
            host, self._require(host, 'status'), settings['on_pattern'],
            self._options.command_timeout_s)

    def power_on(self, host):
        # It is not waited for: where the status is that of the network, it
        # takes the whole boot. Whoever waits for that asks again, and a
        # second command does no harm.
        if not self.is_on(host):
            self._do(host, 'on')

    def shut_down(self, host):
        self._waiter.switch(
            host, lambda: not self.is_on(host),
            lambda: self._do(host, 'off'), self._options.power_off_timeout_s,
            'shut down')

    def switch_off(self, host):
        self._waiter.switch(
            host, lambda: not self.is_on(host),
            lambda: self._do(host, 'force_off'),
            self._options.power_switch_timeout_s, 'off')

    def _do(self, host, name):
        commands.do(host, self._require(host, name),
                    self._options.command_timeout_s)

    def _require(self, host, name):
        value = self._settings(host)[name]
        if not value:
            raise errors.PowerError(
                host, f'no command "{name}" in [energy]hosts_file, nor in '
                f'[energy]command_{name}')
        return value

    def _settings(self, host):
        options = self._options
        return {
            'on': options.command_on,
            'off': options.command_off,
            'force_off': options.command_force_off,
            'status': options.command_status,
            'on_pattern': options.command_on_pattern,
            **self._hosts.section(host, 'command'),
        }
