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

import os
import re
import signal
import subprocess

from nova_preempt.power import driver
from nova_preempt.power import errors
from nova_preempt.power import hosts_file as power_hosts

_SHOWN_CHARACTERS = 300


class Commands(driver.Driver):
    """Runs commands without a shell: those of hosts_file, else the options'.

    :cvar NAME: that of the section of hosts_file, and what options begin with
    :cvar SETTINGS: names in that section that are options as well
    """

    NAME = ''
    SETTINGS = ()

    def _is_on(self, host, pattern):
        """Return whether a host is on, as the command "status" says.

        :param pattern: a regular expression that its output matches somewhere
            if the host is on; with an empty one the exit status tells, 0 or 1
        :raises PowerError: it does not tell
        """
        command = self._require(host, 'status')
        status, output = self._run(host, command)
        if pattern and status == 0:
            return re.search(pattern, output) is not None
        if not pattern and status in (0, 1):
            return status == 0
        raise errors.PowerError(host, _describe(command, status, output))

    def _ask(self, host, how):
        """Run a command that has to succeed.

        :raises PowerError: it did not
        """
        command = self._require(host, how)
        status, output = self._run(host, command)
        if status:
            raise errors.PowerError(host, _describe(command, status, output))

    def _require(self, host, name):
        value = self._settings(host)[name]
        if not value:
            raise errors.PowerError(
                host, f'no command "{name}" in [energy]hosts_file, nor in '
                f'[energy]{self.NAME}_{name}')
        return value

    def _settings(self, host):
        return {**{name: self._options[f'{self.NAME}_{name}']
                   for name in self.SETTINGS},
                **self._hosts.section(host, self.NAME)}

    def _run(self, host, command):
        """Run a command to its end; its exit status and what it printed.

        :param command: a list of arguments or one string, with {host}
        :raises PowerError: it cannot be run, or ran for too long
        """
        timeout_s = self._options.command_timeout_s
        try:
            arguments = power_hosts.command(command, host)
            with subprocess.Popen(
                    arguments, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    encoding='utf-8', errors='replace',
                    # So that what it has started can be ended with it.
                    start_new_session=True) as process:
                try:
                    output, _none = process.communicate(timeout=timeout_s)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise
        except subprocess.TimeoutExpired as exc:
            raise errors.PowerError(
                host,
                f'{arguments[0]} ran for more than {timeout_s} s') from exc
        except (OSError, ValueError, errors.HostsFileError) as exc:
            raise errors.PowerError(host, exc) from exc
        return process.returncode, output


class Command(Commands):
    """See nova_preempt.power.driver.Driver.

    Power on returns when its command has succeeded, before the host is seen
    to be on.
    """

    NAME = 'command'
    SETTINGS = ('on', 'off', 'force_off', 'status', 'on_pattern')
    SHUT_DOWN = 'off'
    SWITCH_OFF = 'force_off'

    def is_on(self, host):
        return self._is_on(host, self._settings(host)['on_pattern'])

    def power_on(self, host):
        # It is not waited for: where the status is that of the network, it
        # takes the whole boot. Whoever waits for that asks again, and a
        # second command does no harm.
        if not self.is_on(host):
            self._ask(host, 'on')


def _describe(command, status, output):
    """Describe the exit and output of a command for an operator."""
    name = command.split()[0] if isinstance(command, str) else command[0]
    return (f'{name} ended with {status}: '
            + ' '.join(output.split())[-_SHOWN_CHARACTERS:])
