# SPDX-License-Identifier: Apache-2.0
"""Interruptions of evictions and of roll-backs at their weakest moments.

Each waits for its moment by a trap on the next calls.
"""

from nova_preempt.core.eviction import closing_rules
from nova_preempt.handover import allocation_claim
from tests.exploration import eviction_operations
from tests.exploration import faults
from tests.exploration import operations
from tests.exploration import traps

#: After so long without the database a process has lost its decisions, and
#: another one has repaired them.
_LOST_S = 100


def _await(world, call, is_now, act, most=200):
    """Call act() before the first such call at the moment wanted.

    :param call: a part of the call
    :param is_now: returns whether it is the moment
    :param act: given the world and the call
    """
    left = [most]

    def look(world, text):
        if is_now(world):
            act(world, text)
        elif left[0]:
            left[0] -= 1
            world.faults.traps.append(traps.Trap(call, look))

    world.faults.traps.append(traps.Trap(call, look))


def _rolled_back(world):
    """Return the db.Decisions that are just being rolled back."""
    return [each for each in world.watcher.open_decisions()
            if each.status == 'rolling_back']


@operations.kind
def owner_stands_still(world, watcher, rng):
    """The owner of a decision stands still while it asks for an end.

    Its call is refused afterwards. Meanwhile an operator may free what it has
    claimed, and lock the victim.
    """
    is_robbed = rng.random() < 0.5

    def stand_still(world, _call):
        process = world.loop.current.process
        if is_robbed:
            world.loop.start(
                world.operator, 'audit',
                lambda: eviction_operations.allocations_are_audited(
                    world, watcher, rng))
        process.cut_until_s = world.loop.now_s + _LOST_S
        world.loop.sleep(_LOST_S)
        raise faults.ERRORS['nova'](lost=False)

    _await(world, rng.choice(('nova force_delete', 'nova shelve',
                              'nova live_migrate', 'nova stop')),
           lambda world: True, stand_still)


@operations.kind
def claimant_is_cut_off(world, watcher, rng):
    """A process does not reach the database once it has claimed.

    Or as it records the notices of its victims.
    """
    def cut(world, _call):
        world.loop.current.process.cut_until_s = world.loop.now_s + _LOST_S

    def cut_before(world, call):
        cut(world, call)
        world.loop.sleep(_LOST_S)

    def has_claimed(world):
        return any(
            each.status == 'claimed' and watcher.is_by_owner(each)
            and any(victim.status == 'pending' and victim.notice_s
                    for victim in each.victims)
            for each in watcher.open_decisions())

    if rng.random() < 0.5:
        _await(world, 'post /allocations', lambda world: any(
            each.status == 'intent' for each in watcher.open_decisions()), cut)
    else:
        _await(world, 'database begin', has_claimed, cut_before,
               most=5000)


@operations.kind
def claimant_is_slow(world, watcher, rng):
    """The owner of a decision takes long to record its first call to Nova.

    Just before it has found that its claim still holds the space. Meanwhile an
    operator frees that, or an administrator locks the victims.
    """
    is_freed = rng.random() < 0.7

    def wait(world, _call):
        claimed = [each for each in watcher.open_decisions()
                   if each.status == 'claimed']
        for each in claimed:
            if is_freed:
                eviction_operations.free_stand_ins(world, watcher)
            else:
                for victim in each.victims:
                    traps.act(world, victim.server_uuid, 'lock', is_admin=True)
        world.loop.sleep(rng.uniform(5.5, 20))

    def look(world, call):
        if any(uuid in call for each in watcher.open_decisions()
               if each.status == 'claimed' and watcher.is_by_owner(each)
               for uuid in allocation_claim.all_stand_ins(each)):
            world.faults.traps.append(traps.Trap('database begin', wait))
        elif left.pop():
            world.faults.traps.append(
                traps.Trap('placement get /allocations/', look))

    left = list(range(200))
    world.faults.traps.append(traps.Trap('placement get /allocations/', look))


@operations.kind
def withdrawal_is_refused(world, watcher, rng):
    """Nova is away for a call that withdraws a notice."""
    world.faults.traps.append(traps.Trap('nova delete_meta', 'refused'))


@operations.kind
def victim_changes_in_roll_back(world, watcher, rng):
    """A victim is deleted or migrated while its decision is rolled back."""
    call, action, seconds = rng.choice((
        ('post /allocations', 'delete', 6), ('nova get', 'delete', 6),
        ('nova get', 'live_migrate', 0.05),
        ('placement get /allocations', 'live_migrate', 0.05)))

    def act(world, _call):
        decision = rng.choice(_rolled_back(world))
        for victim in decision.victims:
            traps.act(world, victim.server_uuid, action, is_admin=True)
        world.loop.sleep(seconds)

    _await(world, call, _rolled_back, act)


@operations.kind
def victim_is_unshelved(world, watcher, rng):
    """The owner of a shelved victim unshelves it as soon as it has space."""
    for _ in range(100):
        for server in operations.live(world):
            if server.metadata and server.vm_state == 'shelved_offloaded':
                traps.act(world, server.uuid, 'unshelve', is_admin=False)
        world.loop.sleep(2)


@operations.kind
def images_fail(world, watcher, rng):
    """Nova can make no image for a while, so that each shelve fails."""
    world.nova.images_fail_until_s = world.loop.now_s + rng.choice((20, 150))


@operations.kind
def others_are_faster(world, watcher, rng):
    """Others boot as soon as a roll-back has freed allocations."""
    def boot(world, _call):
        for _ in range(3):
            world.nova.boot(operations.NORMAL[0], operations.project(rng))
        world.loop.sleep(1)

    _await(world, 'post /allocations', _rolled_back, lambda world, _call:
           _await(world, 'post /allocations', lambda world: True, boot))


@operations.kind
def owner_crashes_at_hand_over(world, watcher, rng):
    """A process dies as it hands the space over to its server."""
    def handed_over(world):
        return [each for each in watcher.open_decisions()
                if each.status == 'claimed' and each.server_uuid
                and closing_rules.have_left(
                    victim.status for victim in each.victims)]

    def crash_before_record(world, _call):
        process = world.loop.current.process
        if process is not world.nova.process:
            for each in handed_over(world):
                # Its owner does not delete it.
                traps.act(world, each.server_uuid, 'lock', is_admin=True)
            _await(world, 'database', lambda world:
                   world.loop.current.process is process,
                   lambda world, _call: world.kill(process))

    _await(world, 'post /allocations', handed_over, crash_before_record)
