# SPDX-License-Identifier: Apache-2.0
"""Operations of users and operators, drawn from a seed.

An operation is drawn before the exploration begins, with random numbers of
its own: to leave some out changes nothing of what the others draw.
"""

import dataclasses
import random

from oslo_db import exception as db_exc

from nova_preempt import exceptions
from nova_preempt.db import pauses
from nova_preempt.engine import service
from tests.exploration import processes
from tests.exploration import requests
from tests.exploration import traps


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation of a user or an operator.

    :ivar at_s: when, in seconds from the beginning
    :ivar kind: the name of a function of this module
    :ivar number: by which its random numbers are drawn
    """

    number: int
    at_s: float
    kind: str


#: (name, vCPUs, extra specs)
_SPOT = 'preemptible:enabled'
FLAVORS = tuple(requests.flavor(number, name, vcpus, specs)
                for number, (name, vcpus, specs) in enumerate((
    ('small', 1, {}), ('normal', 2, {}), ('large', 4, {}),
    ('spot', 1, {_SPOT: 'true'}), ('spot-large', 2, {_SPOT: 'true'}),
    ('spot-noticed', 1, {_SPOT: 'true', 'preemptible:notice_s': '20'}),
    ('spot-shelved', 1, {
        _SPOT: 'true', 'preemptible:action': 'shelve',
        'preemptible:restore': 'true', 'preemptible:notice_s': '10'}),
    ('spot-stopped', 1, {_SPOT: 'true', 'preemptible:action': 'stop'}),
    ('spot-moved', 1, {_SPOT: 'true', 'preemptible:action': 'migrate',
                       'preemptible:notice_s': '5'}),
    ('spot-promised', 1, {_SPOT: 'true',
                          'preemptible:minimum_runtime_s': '60'}),
    ('spot-short', 1, {_SPOT: 'true',
                       'preemptible:maximum_runtime_s': '120'}),
    ('spot-patient', 1, {_SPOT: 'true', 'preemptible:notice_s': '60'}),
), 1))
SPOTS = [each for each in FLAVORS if each.name.startswith('spot')]
NORMAL = [each for each in FLAVORS if not each.name.startswith('spot')]

#: {kind: how often it is drawn, by weight}
WEIGHTS = {
    'boot_spot': 30, 'boot_normal': 22, 'boot_several': 6, 'user_acts': 30,
    'user_deletes': 12, 'host_fails': 2, 'pause': 1, 'crash': 4,
    'host_is_disabled': 1, 'cell_hangs': 1, 'clock_jumps': 1,
    'administrator_acts': 6}

#: The same, so that most servers are placed by an eviction.
EVICTIONS = {
    'boot_spot': 30, 'boot_normal': 26, 'boot_several': 2, 'user_acts': 6,
    'normal_is_deleted': 22, 'host_fails': 1, 'pause': 3, 'crash': 2,
    'administrator_acts': 4, 'victim_changes': 12, 'request_is_withdrawn': 4,
    'call_fails': 20, 'process_is_cut_off': 5, 'owner_crashes': 2,
    'stopped_is_started': 6, 'victim_is_locked': 4,
    'allocations_are_audited': 2}
#: By what such a weight is multiplied, as the seed draws: no exploration does
#: everything, and some do one thing often.
_FACTORS = (0, 0.5, 1, 1, 3)
_BOOTS = ('boot_spot', 'boot_normal', 'normal_is_deleted')

_ACTIONS = ('stop', 'start', 'shelve', 'unshelve', 'lock', 'unlock', 'pause',
            'unpause', 'resize', 'confirm_resize', 'revert_resize',
            'live_migrate', 'shelve_offload')


#: {kind: the function that does it}
KINDS = {}


def kind(function):
    """Note a function under its name as a kind of operation."""
    KINDS[function.__name__] = function
    return function


def draw(seed, count, weights, pace_s=5):
    """Return the Operations of a seed, in the order of their times.

    :param weights: {kind: how often it is drawn}
    :param pace_s: how long it is from one to the next in the mean
    """
    rng = random.Random(f'{seed} operations')
    weights = {kind: weight * (1 if kind in _BOOTS else rng.choice(_FACTORS))
               for kind, weight in weights.items()}
    over_s = round(max(12, count) * pace_s * rng.choice((0.3, 0.5, 1)))
    kinds = rng.choices(list(weights), weights.values(), k=count)
    # Bursts: much at once, and pauses in between.
    times = sorted(rng.choice((rng.uniform(0, over_s), rng.choice(
        range(0, over_s, 30)) + rng.uniform(0, 2))) for _ in range(count))
    if 'normal_is_deleted' in weights:
        # The cloud is full from the beginning.
        full = count // 5
        kinds[:full] = ['boot_spot'] * full
        times[:full] = sorted(rng.uniform(0, 5) for _ in range(full))
        times.sort()
    return [Operation(number, at_s, kind) for number, (at_s, kind)
            in enumerate(zip(times, kinds, strict=True))]


def perform(world, watcher, operation):
    """Perform an operation, in a task of the world's operator."""
    rng = random.Random(f'{world.seed} {operation.number}')
    KINDS[operation.kind](world, watcher, rng)


def live(world, is_preemptible=None):
    return [server for server in sorted(
        world.nova.servers.values(), key=lambda each: each.created_at)
        if not server.deleted and is_preemptible in (
            None, server.is_preemptible)]


def project(rng):
    return rng.choice(('p1', 'p2'))


def spots(world):
    """Return the preemptible flavors that a seed uses, often few.

    Some faults need several victims of one kind.
    """
    rng = random.Random(f'{world.seed} flavors')
    return rng.sample(SPOTS, rng.choice((1, 2, 4, len(SPOTS))))


def boot_spot(world, watcher, rng):
    world.nova.boot(rng.choice(spots(world)), project(rng))


def boot_normal(world, watcher, rng):
    world.nova.boot(rng.choice(NORMAL), project(rng))


def boot_several(world, watcher, rng):
    world.nova.boot(rng.choice(FLAVORS[:5]), project(rng),
                    rng.choice((2, 2, 3)))


def _act(world, rng, actions, is_admin):
    servers = live(world)
    if not servers:
        return
    server = rng.choice(servers)
    action = rng.choice(actions)
    arguments = {}
    if action == 'resize':
        arguments['flavor'] = rng.choice(
            spots(world) if server.is_preemptible else NORMAL)
    traps.attempt(world, server.uuid, action, is_admin, **arguments)


def user_acts(world, watcher, rng):
    _act(world, rng, _ACTIONS, is_admin=False)


def administrator_acts(world, watcher, rng):
    _act(world, rng, ('lock', 'unlock', 'live_migrate', 'stop', 'start'),
         is_admin=True)


def user_deletes(world, watcher, rng):
    _act(world, rng, ('delete',), is_admin=False)


def normal_is_deleted(world, watcher, rng):
    servers = live(world, is_preemptible=False)
    if servers:
        world.nova.act(servers[0].uuid, 'delete')


def host_fails(world, watcher, rng):
    host = world.nova.hosts[rng.choice(sorted(world.nova.hosts))]
    world.loop.tell('compute service down on', host.name)
    host.change(is_failing=True)
    # An operator may tell Nova, which would notice it within a minute.
    host.forced_down = rng.random() < 0.5
    world.loop.sleep(rng.choice((5, 60, 200)))
    host.forced_down = False
    host.change(is_failing=False)


def host_is_disabled(world, watcher, rng):
    host = world.nova.hosts[rng.choice(sorted(world.nova.hosts))]
    host.disabled, host.disabled_reason = True, None
    world.loop.sleep(rng.choice((5, 60, 200)))
    host.disabled, host.disabled_reason = False, None


def ask_api(world, function):
    """Have the API do something, unless it refuses or is away.

    :param function: given a processes.Api
    """
    def serve():
        try:
            function(world.api)
        except (exceptions.PreemptError, db_exc.DBError) as exc:
            world.loop.tell('refused:', exc)

    if world.api.is_serving:
        world.loop.join(world.loop.start(world.api.process, 'api', serve))


def pause(world, watcher, rng):
    pause_for(world, watcher, pauses.PREEMPTION, rng.choice((10, 60)))


def pause_for(world, watcher, what, seconds):
    """Pause something, and let it go on after a time.

    :param what: one of nova_preempt.db.pauses.ALL
    """
    database = processes.database()
    world.loop.tell('an operator pauses', what)
    surely(world, lambda: pauses.pause(database, what, 'why'))
    watcher.paused(what)
    world.loop.sleep(seconds)
    watcher.resumed(what)
    surely(world, lambda: pauses.resume(database, what))


def surely(world, function):
    current, world.loop.current = world.loop.current, None
    try:
        function()
    finally:
        world.loop.current = current


def crash(world, watcher, rng):
    each = rng.choice((*world.schedulers, *world.engines))
    if each.is_serving:
        world.loop.tell('CRASH of', each.name)
        each.kill_and_restart(rng.choice((1, 20, 90)))


def cell_hangs(world, watcher, rng):
    name = rng.choice(sorted(world.cells))
    world.loop.tell(name, 'hangs')
    world.hanging[name] = world.loop.now_s + rng.choice((5, 15, 80))


def clock_jumps(world, watcher, rng):
    each = rng.choice((*world.schedulers, *world.engines))
    each.process.skew_s += rng.choice((-300, -20, 20, 300))
    if all(abs(engine.process.skew_s) > service.CLOCK_S
           for engine in world.engines):
        # No engine would act: an operator sets one right.
        each.process.skew_s = 0
    world.loop.tell('the clock of', each.name, 'is set to',
                    each.process.skew_s)


KINDS.update({name: globals()[name] for name in WEIGHTS | EVICTIONS
              if name in globals()})
