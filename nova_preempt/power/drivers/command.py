# SPDX-License-Identifier: Apache-2.0
"""The driver "command": IPMI, wake-on-LAN or switched sockets by commands."""

import os
import re
import signal
import socket
import subprocess

from nova_preempt.core.energy import power_steps
from nova_preempt.power import driver
from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import power_errors

#: Timeout of a command.
TIMEOUT_S = 60
#: The address and port of magic packets: the engine's network, and the port
#: "discard" by custom; a network card looks at the content only.
BROADCAST = '255.255.255.255'
PORT = 9

_SHOWN_CHARACTERS = 300
_SETTINGS = ('on', 'off', 'force_off', 'status', 'on_pattern')


class CommandFailed(power_errors.PowerError):
    """A command has ended with an error."""


class Command(driver.Driver):
    """Power driver; see nova_preempt.power.driver.Driver.

    Runs commands of hosts_file, or else of the options, without a shell.
    power_on() returns when its command has succeeded, maybe before is_on().
    """

    SHUT_DOWN = 'off'
    SWITCH_OFF = 'force_off'

    def is_on(self, host):
        """Return whether a host is on, by the command "status".

        Its exit status 0 or 1 decides, or a pattern for its output.
        """
        pattern = self._settings(host)['on_pattern']
        command = self._require(host, 'status')
        status, output = self._run(host, command)
        if pattern and status == 0:
            return re.search(pattern, output) is not None
        if not pattern and status in (0, 1):
            return status == 0
        raise power_errors.PowerError(host, _describe(command, status, output))

    def power_on(self, host):
        # NOTE: not waited for: if the status tells of the network, it takes a
        # whole boot. The caller asks again, and a second command or packet
        # does no harm.
        if self.is_on(host):
            return
        settings = self._settings(host)
        if not settings.get('mac'):
            self._ask(host, 'on')
            return
        try:
            send_magic_packet(settings['mac'], settings.get(
                'broadcast', BROADCAST))
        except OSError as exc:
            raise power_errors.PowerError(host, exc) from exc

    def shut_down(self, host):
        try:
            super().shut_down(host)
        except CommandFailed as exc:
            # NOTE: the connection may break as the host shuts down, so this
            # is an error only if it does not.
            try:
                self._waiter.wait(
                    host, lambda: not self.is_on(host),
                    power_steps.POWER_SWITCH_TIMEOUT_S, 'off')
            except power_errors.PowerError:
                raise exc from None

    def _ask(self, host, how):
        """Run a command that has to succeed.

        :raises PowerError: it failed
        """
        command = self._require(host, how)
        status, output = self._run(host, command)
        if status:
            raise CommandFailed(host, _describe(command, status, output))

    def _require(self, host, name):
        value = self._settings(host)[name]
        if not value:
            raise power_errors.PowerError(
                host, f'neither [energy]command_{name} nor [energy]hosts_file '
                f'sets the command "{name}"')
        return value

    def _settings(self, host):
        return {**{name: self._options[f'command_{name}']
                   for name in _SETTINGS},
                **self._hosts.section(host, 'command')}

    def _run(self, host, command):
        """Run a command; return its exit status and output.

        :param command: a list of arguments or one string, with {host}
        :raises PowerError: it cannot be run, or timed out
        """
        try:
            arguments = power_hosts.command(command, host)
            with subprocess.Popen(
                    arguments, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    encoding='utf-8', errors='replace',
                    # So that its children can be killed with it.
                    start_new_session=True) as process:
                try:
                    output, _none = process.communicate(timeout=TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise
        except subprocess.TimeoutExpired as exc:
            raise power_errors.PowerError(
                host,
                f'{arguments[0]} was killed after {TIMEOUT_S} s') from exc
        except (OSError, ValueError, power_errors.HostsFileError) as exc:
            raise power_errors.PowerError(host, exc) from exc
        return process.returncode, output


def send_magic_packet(mac, address):
    """Send the packet that wakes the card of a MAC address.

    :raises OSError: it cannot be sent
    """
    packet = b'\xff' * 6 + bytes.fromhex(
        mac.replace('-', '').replace(':', '')) * 16
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sender.sendto(packet, (address, PORT))


def _describe(command, status, output):
    """Describe the exit and output of a command for an operator."""
    name = command.split()[0] if isinstance(command, str) else command[0]
    return (f'{name} exited with status {status}: '
            + ' '.join(output.split())[-_SHOWN_CHARACTERS:])
