# SPDX-License-Identifier: Apache-2.0
"""Failures of one particular call, or just before it.

Drawn at random, a failure seldom meets the few calls on which much depends.
"""

import dataclasses

from novaclient import exceptions as nova_exc

_ACTIONS = ('delete', 'lock', 'shelve', 'stop', 'start', 'live_migrate',
            'resize')

#: {part of a call: what the owner of a victim may do just before it}
CALLS = {
    'post /allocations': _ACTIONS, 'put /allocations': _ACTIONS,
    'delete /allocations': _ACTIONS, 'nova force_delete': _ACTIONS,
    'nova shelve': ('lock', 'unlock', 'delete'),
    'nova stop': ('lock', 'delete', 'shelve'), 'nova lock': ('start',),
    'nova live_migrate': ('lock', 'delete', 'resize'),
    'nova set_meta': ('lock', 'delete', 'stop', 'shelve'),
    'nova delete_meta': ('delete', 'lock'), 'nova start': ('start', 'delete'),
    'nova unlock': ('start', 'delete'), 'nova get': ('delete', 'shelve')}

#: How a call fails, beside faults.Faults.KINDS.
KINDS = ('crash', 'meanwhile', 'hosts are down', 'cut off')


@dataclasses.dataclass(frozen=True)
class Trap:
    """The next call that contains a text meets a fault.

    :ivar fault: one of KINDS or of Faults.KINDS, or a function that is given
        the world and the call, and called just before it
    """

    call: str
    fault: str


def spring(world, fault, call):
    """Act before a call, if the fault is in KINDS, or a function."""
    spring_one = fault if callable(fault) else _SPRINGS.get(fault)
    if spring_one is not None:
        world.loop.tell('trap:', getattr(fault, '__name__', fault), call)
        spring_one(world, call)


def _meanwhile(world, call):
    """The owner of a victim, or an administrator, does something to it."""
    rng = world.faults.rng
    named = [uuid for uuid in world.nova.servers if uuid[:8] in call]
    victims = named or sorted(world.watcher.victims())
    actions = next((actions for part, actions in CALLS.items()
                    if part in call), _ACTIONS)
    if victims:
        act(world, rng.choice(victims), rng.choice(actions),
            is_admin=rng.random() < 0.4)
    if rng.random() < 0.5:
        # It has an effect before the next change of allocations.
        world.faults.traps.append(Trap('post /allocations', 'slow'))
    elif rng.random() < 0.5:
        world.loop.sleep(rng.uniform(0.2, 20))


def act(world, uuid, action, is_admin):
    """Have a user do something to a server, unless Nova refuses it."""
    if action == 'start' and not is_admin:
        world.loop.start(world.operator, f'start {uuid[:8]}',
                         lambda: _start(world, uuid))
        return
    attempt(world, uuid, action, is_admin)


def attempt(world, uuid, action, is_admin, **arguments):
    """Call Nova as a user or an administrator, and let it refuse."""
    try:
        if is_admin and action in ('start', 'unlock'):
            world.watcher.released(uuid)
        world.nova.act(uuid, action, is_admin, **arguments)
    except nova_exc.ClientException as exc:
        world.loop.tell('refused', action, uuid[:8], exc)


def _start(world, uuid):
    """Start a server as its owner; Nova's API looks at its lock before."""
    server = world.nova.servers[uuid]
    if not server.locked:
        world.loop.sleep(world.faults.rng.uniform(0, 0.9))
        try:
            world.nova.act(uuid, 'start', by=server.project_id)
        except nova_exc.ClientException as exc:
            world.loop.tell('refused start', uuid[:8], exc)


def _take_hosts_down(world, _call):
    """Take all compute services down for a moment, and let Nova see it."""
    hosts = [host for host in world.nova.hosts.values()
             if host.is_up and host.runs]
    for host in hosts:
        host.change(is_failing=True)
        host.forced_down = True

    def restore():
        world.loop.sleep(seconds)
        for host in hosts:
            host.forced_down = False
            host.change(is_failing=False)

    seconds = world.faults.rng.choice((2, 8, 20))
    world.loop.start(world.operator, 'compute services return', restore)
    # Whoever knew that they are up has to look again.
    world.loop.sleep(world.faults.rng.choice((0, 1.5)))


def _cut_off(world, _call):
    """The process does not reach the database for a while.

    Often the call itself takes as long.
    """
    rng = world.faults.rng
    seconds = rng.choice((10, 20, 62, 70, 100))
    world.loop.current.process.cut_until_s = world.loop.now_s + seconds
    if rng.random() < 0.5:
        world.loop.sleep(seconds + rng.uniform(-2, 2))


def wait_for_database(world):
    """Wait until the process that runs now reaches the database again."""
    left_s = world.loop.current.process.cut_until_s - world.loop.now_s
    if left_s > 0 and not world.faults.is_off:
        world.loop.tell('waits for the database')
        world.loop.sleep(left_s)


_SPRINGS = {'meanwhile': _meanwhile, 'hosts are down': _take_hosts_down,
            'cut off': _cut_off}
