# SPDX-License-Identifier: Apache-2.0
"""Powers hosts off and on, each by its driver."""

import threading
import time

from nova_preempt import plugins
from nova_preempt.conf import energy
from nova_preempt.core import poll_backoff
from nova_preempt.core.energy import power_steps
from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import power_errors

NAMESPACE = 'nova_preempt.power_driver'

_POLL_INTERVAL_S = 2


class Driver:
    """A power driver, made of (conf); those of others need not inherit it.

    All methods may take minutes and can be called for many hosts at once, each
    host by one thread. Called again they change nothing. All raise PowerError.

    :cvar SHUT_DOWN, SWITCH_OFF: what _ask() is told to do
    """

    SHUT_DOWN = SWITCH_OFF = ''

    def __init__(self, conf, waiter=None):
        self._options = conf[energy.GROUP]
        self._hosts = power_hosts.HostsFile(self._options.hosts_file)
        self._waiter = waiter or Poller()

    def is_on(self, host):
        """Whether it is powered. A suspended host is not."""
        raise NotImplementedError

    def power_on(self, host):
        """Return when the host is powered, which is before it has booted."""
        raise NotImplementedError

    def shut_down(self, host):
        """Return when it has shut down, by itself.

        It raises PowerError if it cannot be asked to, or did not in time.
        """
        self._power_off(host, self.SHUT_DOWN,
                        power_steps.POWER_OFF_TIMEOUT_S, 'shut down')

    def switch_off(self, host):
        """Return when it is off, switched off hard.

        It raises PowerError if that cannot be done.
        """
        self._power_off(host, self.SWITCH_OFF,
                        power_steps.POWER_SWITCH_TIMEOUT_S, 'off')

    def _power_off(self, host, how, timeout_s, what):
        self._waiter.switch(host, lambda: not self.is_on(host),
                            lambda: self._ask(host, how), timeout_s, what)

    def _ask(self, host, how):
        """Ask once for the host to be powered off."""
        raise NotImplementedError


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
            name: plugins.load(NAMESPACE, name, f'[energy]{option} names')
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
        self.of(host).shut_down(host)

    def switch_off(self, host):
        self.of(host).switch_off(host)

    def is_on(self, host):
        return self.of(host).is_on(host)


class Refused(power_errors.PowerError):
    """The driver refuses the action for good; waiting is useless."""


class Poller:
    """Asks again until it is so.

    :param clock: returns seconds that only grow
    :param sleep: waits for some of them
    """

    def __init__(self, clock=time.monotonic, sleep=time.sleep,
                 interval_s=_POLL_INTERVAL_S):
        self._clock = clock
        self._sleep = sleep
        self._interval_s = interval_s

    def wait(self, host, is_so, timeout_s, what):
        """Return once is_so() is true.

        An error on the way counts as a no: a controller that is busy or
        restarts is back before long.

        :raises PowerError: it did not come true in time
        """
        wait = poll_backoff.Wait(self._clock(), timeout_s, self._interval_s)
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
                    host, f'not {what} within {timeout_s} s{cause}')
            self._sleep(pause_s)

    def switch(self, host, is_so, ask, timeout_s, what):
        """Ask for something unless it is so, and wait until it is.

        :raises PowerError: it could not be asked for, or did not come true
        """
        if not is_so():
            ask()
            self.wait(host, is_so, timeout_s, what)
