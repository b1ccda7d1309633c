# SPDX-License-Identifier: Apache-2.0
"""Operations that cause recommendations to leave, or end or disturb them."""

import datetime

from nova_preempt.advice import recommender
from nova_preempt.reservation import reservation_scheduler
from tests.exploration import operations
from tests.exploration import reservation_operations
from tests.exploration import traps

#: What is done to a server, and then perhaps undone.
_CHANGES = (
    ('lock', 'unlock'), ('lock',), ('stop', 'start'), ('stop',),
    ('pause', 'unpause'), ('resize', 'confirm_resize'),
    ('resize', 'revert_resize'), ('shelve', 'unshelve'), ('live_migrate',),
    ('delete',))

_FAULTS = ('lost', 'lost', 'lost', 'refused', 'late', 'slow', 'crash',
           'meanwhile')


@operations.kind
def reserve_ahead(world, watcher, rng):
    """Reserve hosts from some time within the next hour on, or soon after."""
    request = reservation_scheduler.Request(
        quantity=rng.choice((1, 2, 3, 4)), duration_s=7200,
        start_time=world.loop.utcnow() + datetime.timedelta(
            seconds=rng.choice((150, 600, 3000, 3650, 7000))))
    project = operations.project(rng)
    reservation_operations.ask_api(world, lambda schedule: schedule.create(
        None, project, 'user', request))


@operations.kind
def spot_is_changed(world, watcher, rng):
    """A preemptible server is changed, and perhaps changed back later."""
    found = operations.live(world, is_preemptible=True)
    found = [server for server in found
             if recommender.KEY in server.metadata] or found
    if not found:
        return
    server, is_admin = rng.choice(found), rng.random() < 0.5
    for action in rng.choice(_CHANGES):
        arguments = {'flavor': rng.choice(operations.spots(world))} if (
            action == 'resize') else {}
        traps.attempt(world, server.uuid, action, is_admin, **arguments)
        world.loop.sleep(rng.choice((5, 20, 40, 80)))


@operations.kind
def recommendation_is_disturbed(world, watcher, rng):
    """A call that gives or withdraws a recommendation fails.

    A server that gets one without an answer is locked before the next try, and
    one that has one so that it is withdrawn.
    """
    trap = traps.Trap(*rng.choice((
        ('nova recommend', rng.choice(_FAULTS)),
        ('nova withdraw', rng.choice((*_FAULTS, 'meanwhile', 'meanwhile'))))))
    world.faults.traps.append(trap)
    before = {server.uuid for server in operations.live(world)
              if recommender.KEY in server.metadata}
    if trap.call == 'nova withdraw' and before:
        traps.attempt(world, rng.choice(sorted(before)), 'lock', is_admin=True)
    for _ in range(100):
        if trap not in world.faults.traps:
            break
        world.loop.sleep(1)
    if trap.fault == 'lost':
        for server in operations.live(world, is_preemptible=True):
            if recommender.KEY in server.metadata and (
                    server.uuid not in before):
                traps.attempt(world, server.uuid, 'lock', is_admin=True)
