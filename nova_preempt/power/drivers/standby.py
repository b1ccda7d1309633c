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
"""Hosts that are suspended instead of powered off, and wake in seconds."""

import socket

from nova_preempt.power import errors
from nova_preempt.power.drivers import command

# "discard", where magic packets are sent by custom; a network card looks for
# the packet's content only.
_PORT = 9


class Standby(command.Commands):
    """See nova_preempt.power.driver.Driver.

    A host suspends by a command and wakes by another, or by a magic packet to
    its MAC address. It is never switched off hard: one that does not suspend
    is an error.
    """

    NAME = 'standby'
    SETTINGS = ('suspend', 'wake', 'status', 'broadcast')

    def __init__(self, conf, waiter=None, port=_PORT):
        super().__init__(conf, waiter)
        self._port = port

    def is_on(self, host):
        return self._is_on(host, '')

    def power_on(self, host):
        if self.is_on(host):
            return
        self._waiter.wait(host, lambda: self._wake(host) or self.is_on(host),
                          self._options.power_switch_timeout_s, 'awake')

    def switch_off(self, host):
        raise errors.PowerError(
            host, 'the driver "standby" switches no host off hard')

    def shut_down(self, host):
        if not self.is_on(host):
            return
        broken = None
        try:
            self._ask(host, 'suspend')
        except errors.PowerError as exc:
            # A connection may break as the host goes, so this matters only
            # if it does not.
            broken = exc
        try:
            self._waiter.wait(
                host, lambda: not self.is_on(host),
                self._options.power_switch_timeout_s, 'suspended')
        except errors.PowerError as exc:
            raise (broken or exc) from exc

    def _wake(self, host):
        """Wake it; again on each call, since packets get lost."""
        settings = self._settings(host)
        if settings.get('mac'):
            try:
                send_magic_packet(settings['mac'], settings['broadcast'],
                                  self._port)
            except OSError as exc:
                raise errors.PowerError(host, exc) from exc
        else:
            self._ask(host, 'wake')


def send_magic_packet(mac, address, port):
    """Wake the card of this MAC address.

    :raises OSError: it cannot be sent
    """
    packet = b'\xff' * 6 + bytes.fromhex(
        mac.replace('-', '').replace(':', '')) * 16
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sender.sendto(packet, (address, port))
