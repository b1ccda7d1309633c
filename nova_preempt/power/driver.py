# SPDX-License-Identifier: Apache-2.0
"""Power drivers, which power hosts off and on."""

import threading
import time

from nova_preempt import plugins
from nova_preempt.conf import energy
from nova_preempt.core import poll_timing
from nova_preempt.core.energy import power_steps
from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import power_errors

NAMESPACE = 'nova_preempt.power_driver'

_POLL_INTERVAL_S = 2
# The longest reading of a host's state before it is switched off: servers may
# arrive meanwhile.
_MOST_S = 10.0


class Driver:
    """Base of power drivers, made with (conf); plugins need not inherit it.

    All methods are idempotent, may take minutes, may be called for many hosts
    at once, by one thread a host, and raise PowerError.

    :cvar SHUT_DOWN, SWITCH_OFF: arguments of _ask()
    """

    SHUT_DOWN = SWITCH_OFF = ''

    def __init__(self, conf, waiter=None):
        self._options = conf[energy.GROUP]
        self._hosts = power_hosts.HostsFile(self._options.hosts_file)
        self._waiter = waiter or ConditionPoller()

    def is_on(self, host):
        """Return whether the host is powered; a suspended host is not."""
        raise NotImplementedError

    def power_on(self, host):
        """Power the host on; return before it has booted."""
        raise NotImplementedError

    def shut_down(self, host):
        """Shut the host down; return when it is off.

        :raises PowerError: it cannot be asked to, or is not off in time
        """
        self._power_off(host, self.SHUT_DOWN,
                        power_steps.POWER_OFF_TIMEOUT_S, 'shut down')

    def switch_off(self, host):
        """Power the host off hard; return when it is off.

        :raises PowerError: it cannot be, or is not off in time
        """
        self._power_off(host, self.SWITCH_OFF,
                        power_steps.POWER_SWITCH_TIMEOUT_S, 'powered off')

    def _power_off(self, host, how, timeout_s, what):
        self._waiter.switch(host, lambda: not self.is_on(host),
                            lambda: self._ask(host, how), timeout_s, what)

    def _ask(self, host, how):
        """Request once that the host is powered off."""
        raise NotImplementedError


class Drivers:
    """Calls the driver of each host: that of hosts_file, or [energy]driver.

    :raises InvalidConfiguration: a driver is unknown
    :raises HostsFileError: hosts_file is invalid
    """

    def __init__(self, conf):
        options = conf[energy.GROUP]
        self._conf = conf
        self._default = options.driver
        self._hosts = power_hosts.HostsFile(options.hosts_file)
        self._classes = {
            name: plugins.load(NAMESPACE, name, f'[energy]{option} names')
            for name, option in (
                *((name, f'hosts_file for {host}')
                  for name, host in self._hosts.drivers().items()),
                (self._default, 'driver'))}
        self._lock = threading.Lock()
        self._made = {}

    def of(self, host):
        """Return the Driver of a host."""
        name = self._hosts.driver(host, self._default)
        with self._lock:
            if name not in self._made:
                self._made[name] = self._classes[name](self._conf)
            return self._made[name]

    def power_on(self, host):
        self.of(host).power_on(host)

    def shut_down(self, host):
        self.of(host).shut_down(host)

    def switch_off(self, host):
        self.of(host).switch_off(host)

    def is_on(self, host):
        return self.of(host).is_on(host)


class Refused(power_errors.PowerError):
    """The driver refuses the action permanently; do not retry."""


class ConditionPoller:
    """Polls until a condition holds.

    :param clock: returns seconds of a clock that is never set
    :param sleep: waits for some seconds
    """

    def __init__(self, clock=time.monotonic, sleep=time.sleep,
                 interval_s=_POLL_INTERVAL_S):
        self._clock = clock
        self._sleep = sleep
        self._interval_s = interval_s

    def wait(self, host, is_so, timeout_s, what):
        """Return once is_so() is true.

        An error counts as false, as a controller may be busy or restarting.

        :raises PowerError: it is not true in time
        """
        wait = poll_timing.BoundedWait(
            self._clock(), timeout_s, self._interval_s)
        while True:
            cause = ''
            try:
                if is_so():
                    return
            except Refused:
                raise
            except power_errors.PowerError as exc:
                cause = f': {exc.cause}'
            pause_s = wait.pause_s(self._clock())
            if not pause_s:
                raise power_errors.PowerError(
                    host, f'it was not {what} within {timeout_s} s{cause}')
            self._sleep(pause_s)

    def switch(self, host, is_so, ask, timeout_s, what):
        """Call ask() unless is_so() is true, and wait until it is.

        :raises PowerError: ask() failed, or it is not true in time; or the
            first answer took so long that the host may have servers by now
        """
        began_s = self._clock()
        if not is_so():
            if self._clock() - began_s > _MOST_S:
                raise power_errors.PowerError(
                    host, f'its state took longer than {_MOST_S:g} s to read')
            ask()
            self.wait(host, is_so, timeout_s, what)
