# SPDX-License-Identifier: Apache-2.0
"""The power of hosts in memory, and the driver by which an engine switches it.

A machine is off, booting, on or stopping. Its controller obeys at once; what
the machine does then takes time, may take too long, or may never end. Its
compute service runs while it is on.
"""

import random

from nova_preempt.power import driver as power_driver
from nova_preempt.power import power_errors
from tests.exploration import tasks

OFF, BOOTING, ON, STOPPING = 'off', 'booting', 'on', 'stopping'

#: How long a controller that hangs lets its callers wait, in seconds.
_TIMEOUT_S = 10


class Machine:
    """The power of a host.

    :ivar hangs_until_s: until when its controller does not answer
    """

    def __init__(self, machines, host):
        self._machines = machines
        self._host = host
        self.state = ON
        self.hangs_until_s = 0.0

    @property
    def is_powered(self):
        return self.state != OFF

    def _enter(self, state):
        self._machines.loop.tell(self._host.name, 'is', state)
        self.state = state
        self._host.change(has_system=state == ON)

    def _later(self, state, after_s, following):
        """Enter a state, and another one later unless a third one comes."""
        self._enter(state)
        token = self._token = object()

        def go_on():
            self._machines.loop.sleep(after_s)
            if self._token is token:
                self._enter(following)

        self._machines.start(f'{self._host.name} {state}', go_on)

    def power_on(self):
        if self.state == OFF:
            self._later(BOOTING, self._machines.boot_s(), ON)

    def shut_down(self):
        """Ask the operating system, which may not listen."""
        if self.state == ON and not self._machines.is_drawn(0.1):
            self._later(STOPPING, self._machines.rng.uniform(1, 20), OFF)

    def switch_off(self):
        self._token = None
        if self.state != OFF:
            self._enter(OFF)


class Machines:
    """The machines of all hosts.

    :param world: a world.World
    :ivar of: {name of a host: Machine}
    """

    def __init__(self, world):
        self.loop = world.loop
        self.rng = random.Random(f'{world.seed} machines')
        self._faults = world.faults
        self._process = tasks.Process('machines', is_trusted=True)
        self.of = {name: Machine(self, host)
                   for name, host in world.nova.hosts.items()}

    def start(self, name, function):
        self.loop.start(self._process, name, function)

    def stop(self):
        self.loop.crash(self._process)

    def is_drawn(self, chance):
        """Return whether a fault occurs; none does at the end of a run."""
        return self.rng.random() < chance and not self._faults.is_off

    def boot_s(self):
        """Draw how long a boot takes: too long, or for ever, if it fails."""
        if self.is_drawn(0.1):
            return self.rng.choice((200, 1e6))
        return self.rng.uniform(5, 60)


class Driver(power_driver.Driver):
    """A driver of nova_preempt for the machines of a world.

    :param world: a world.World
    """

    SHUT_DOWN, SWITCH_OFF = 'shut_down', 'switch_off'

    def __init__(self, world, conf):
        super().__init__(conf)
        self._world = world

    def is_on(self, host):
        return self._call(host, 'is_on',
                          lambda machine: machine.is_powered)

    def power_on(self, host):
        self._call(host, 'power_on', lambda machine: machine.power_on())

    def _ask(self, host, how):
        self._call(host, how, lambda machine: getattr(machine, how)())

    def _call(self, host, what, function):
        world, machine = self._world, self._world.machines.of[host]

        def arrive():
            if machine.hangs_until_s > world.loop.now_s:
                world.loop.sleep(_TIMEOUT_S)
                raise power_errors.PowerError(host, 'explored: it hangs')
            return function(machine)

        return world.call('controller', f'{what} {host}', arrive)
