# SPDX-License-Identifier: Apache-2.0
"""Operations on servers, requests and processes during evictions."""

from tests.exploration import faults
from tests.exploration import operations
from tests.exploration import traps

#: What is done to victims.
_VICTIMS = ('stop', 'start', 'shelve', 'lock', 'lock', 'pause', 'resize',
            'live_migrate', 'live_migrate', 'delete')


def _await_decision(world, watcher):
    """Return an open db.Decision, as soon as there is one, or None."""
    for _ in range(60):
        found = watcher.open_decisions()
        if found:
            return found[-1]
        world.loop.sleep(1)
    return None


@operations.kind
def victim_changes(world, watcher, rng):
    """A user or an administrator changes a victim."""
    decision = _await_decision(world, watcher)
    if decision is not None:
        world.loop.sleep(rng.choice((0, rng.uniform(0, 3),
                                     rng.uniform(0, 20))))
        uuid = rng.choice(sorted(watcher.victims())) if (
            watcher.victims()) else decision.victims[0].server_uuid
        action, is_admin = rng.choice(_VICTIMS), rng.random() < 0.4
        if world.nova.servers[uuid].vm_state == 'stopped':
            action, is_admin = 'start', False
        traps.act(world, uuid, action, is_admin)


@operations.kind
def victim_is_locked(world, watcher, rng):
    """An administrator locks a server that has notice."""
    for _ in range(60):
        noticed = [server for server in operations.live(world)
                   if server.metadata]
        if noticed:
            world.loop.sleep(rng.uniform(0, 6))
            traps.act(world, rng.choice(noticed).uuid, 'lock', is_admin=True)
            return
        world.loop.sleep(1)


@operations.kind
def stopped_is_started(world, watcher, rng):
    """The owner of a server that was stopped starts it again."""
    for _ in range(40):
        stopped = [server for server in operations.live(world)
                   if server.vm_state == 'stopped' or (
                       server.task_state == 'powering-off')]
        if stopped:
            world.loop.sleep(rng.choice((0, rng.uniform(0, 3))))
            traps.act(world, rng.choice(stopped).uuid, 'start',
                      is_admin=False)
            return
        world.loop.sleep(1)


@operations.kind
def request_is_withdrawn(world, watcher, rng):
    """A server is deleted that waits for its victims."""
    decision = _await_decision(world, watcher)
    if decision is not None and decision.server_uuid:
        world.loop.sleep(rng.choice((0, rng.uniform(0, 10))))
        traps.act(world, decision.server_uuid, 'delete', is_admin=False)


@operations.kind
def call_fails(world, watcher, rng):
    """The next such call fails, or meets something unexpected."""
    world.faults.traps.append(traps.Trap(
        rng.choice((*traps.CALLS, *['post /allocations'] * 6,
                    *['nova get'] * 3, *['nova set_meta'] * 3,
                    'nova lock')),
        rng.choice((*traps.KINDS, *traps.KINDS, 'meanwhile', 'meanwhile',
                    *faults.Faults.KINDS))))


def _owner(world, decision):
    """Return the process that a decision belongs to, or None."""
    return next((
        each for each in (*world.schedulers, *world.engines) if each.parts
        and each.parts.process.owner.name == decision.owner), None)


@operations.kind
def process_is_cut_off(world, watcher, rng):
    """The owner of a decision does not reach the database for a while."""
    decision = _await_decision(world, watcher)
    owner = decision and _owner(world, decision)
    if owner is not None:
        world.loop.sleep(rng.choice((0, rng.uniform(0, 20))))
        world.loop.tell(owner.name, 'is cut off')
        owner.process.cut_until_s = world.loop.now_s + rng.choice(
            (20, 62, 75))


@operations.kind
def owner_crashes(world, watcher, rng):
    decision = _await_decision(world, watcher)
    owner = decision and _owner(world, decision)
    if owner is not None and owner.is_serving:
        world.loop.sleep(rng.choice((0, rng.uniform(0, 5))))
        if owner.is_serving:
            world.loop.tell('CRASH of', owner.name)
            owner.kill_and_restart(rng.choice((1, 20, 90)))


def free_stand_ins(world, watcher):
    """Delete all allocations of consumers that Nova does not know."""
    known = world.nova.servers.keys() | world.nova.migrations.keys()
    for uuid in sorted(world.placement.consumers.keys() - known):
        world.loop.tell('an operator frees', uuid)
        watcher.rob(uuid)
        world.placement.call('delete', f'/allocations/{uuid}')


@operations.kind
def allocations_are_audited(world, watcher, rng):
    """An operator deletes allocations without server: stand-ins, too.

    As ``nova-manage placement audit --delete`` does.
    """
    _await_decision(world, watcher)
    world.loop.sleep(rng.choice((0, rng.uniform(0, 10))))
    free_stand_ins(world, watcher)
    if rng.random() < 0.5:
        # Others are faster than whoever waits for the space.
        for uuid in sorted(watcher.victims()):
            traps.act(world, uuid, 'lock', is_admin=True)
        for _ in range(3):
            world.nova.boot(operations.NORMAL[0], operations.project(rng))
