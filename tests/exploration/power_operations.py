# SPDX-License-Identifier: Apache-2.0
"""Operations of operators on hosts that are powered off and on."""

from nova_preempt.db import pauses
from tests.exploration import machines
from tests.exploration import operations
from tests.exploration import traps


def _machine(world, rng):
    return world.machines.of[rng.choice(sorted(world.machines.of))]


@operations.kind
def controller_hangs(world, watcher, rng):
    _machine(world, rng).hangs_until_s = (
        world.loop.now_s + rng.choice((5, 60, 400)))


def _power_on_any(world, rng):
    """Power on a host that is off and that no server needs."""
    used = {provider.name for provider in world.placement.providers.values()
            if provider.allocations}
    off = [machine for name, machine in sorted(world.machines.of.items())
           if machine.state == machines.OFF and name not in used]
    if off:
        rng.choice(off).power_on()


@operations.kind
def host_is_powered_on(world, watcher, rng):
    """An operator pushes the power button of a host without servers."""
    _power_on_any(world, rng)


@operations.kind
def power_is_paused(world, watcher, rng):
    operations.pause_for(world, watcher, pauses.POWER,
                         rng.choice((10, 60, 300)))


@operations.kind
def server_comes_late(world, watcher, rng):
    """A host is closed just after it was chosen for a server.

    Its allocations come later, and still later the server.
    """
    how = rng.choice((_before_the_look, _during_the_look, _after_the_look,
                      _as_it_sleeps))

    def boot(world, call):
        name = call.rpartition(' ')[2]
        server, = world.nova.request(
            rng.choice(operations.FLAVORS[:4]), operations.project(rng))
        if rng.random() < 0.5:
            # Nobody deletes it before it is built.
            world.nova.act(server.uuid, 'lock')
        # As in an availability zone of this host alone.
        server.spec.ignore_hosts = [
            each for each in world.nova.hosts if each != name]
        _trap(world, f'put /allocations/{server.uuid}', how(world, name, rng))
        world.nova.build([server])
        world.loop.sleep(rng.uniform(0.5, 2))

    _trap(world, 'nova disable', boot)
    # It is closed once it has been idle for a while.
    _power_on_any(world, rng)


def _trap(world, call, function):
    world.faults.traps.append(traps.Trap(call, function))


def _sleep(seconds):
    """Return a function for a trap that delays a call."""
    def sleep(world, call):
        world.loop.sleep(seconds)
    return sleep


def _before_the_look(world, name, rng):
    """Its compute service does not know yet of the server by then."""
    host = world.nova.hosts[name]

    def restart():
        host.change(is_failing=True)
        world.loop.sleep(50)
        host.change(is_failing=False)

    world.loop.start(world.operator, f'{name} restarts', restart)
    return _sleep(rng.uniform(0, 8))


def _during_the_look(world, name, rng):
    """Its controller needs some time for a shutdown."""
    _trap(world, f'controller shut_down {name}', _sleep(rng.uniform(0, 8)))
    return _sleep(rng.uniform(0, 15))


def _after_the_look(world, name, rng):
    """Its controller hangs, so that it is not shut down for now."""
    world.machines.of[name].hangs_until_s = world.loop.now_s + 90
    return _sleep(rng.uniform(25, 60))


def _as_it_sleeps(world, name, rng):
    def wait(world, call):
        for _ in range(100):
            if world.machines.of[name].state != machines.ON or (
                    world.loop.now_s > opened_s
                    and not world.nova.hosts[name].disabled):
                break
            world.loop.sleep(1)

    opened_s = world.loop.now_s + 30
    return wait
