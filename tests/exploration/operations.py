# SPDX-License-Identifier: Apache-2.0
"""What users and operators do, drawn from a seed.

An operation is drawn before the exploration begins, with random numbers of
its own: to leave some out changes nothing of what the others draw.
"""

import dataclasses
import datetime
import random

from novaclient import exceptions as nova_exc
from oslo_db import exception as db_exc

from nova_preempt import exceptions
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import pauses
from nova_preempt.reservation import reservation_schedule
from tests.exploration import processes
from tests.exploration import requests


@dataclasses.dataclass(frozen=True)
class Operation:
    """Something that somebody does.

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
    ('spot-moved', 2, {_SPOT: 'true', 'preemptible:action': 'migrate',
                       'preemptible:notice_s': '5'}),
    ('spot-promised', 1, {_SPOT: 'true',
                          'preemptible:minimum_runtime_s': '60'}),
    ('spot-short', 1, {_SPOT: 'true',
                       'preemptible:maximum_runtime_s': '120'}),
), 1))
_SPOTS = [each for each in FLAVORS if each.name.startswith('spot')]
_NORMAL = [each for each in FLAVORS if not each.name.startswith('spot')]

#: {kind: how often it is drawn, by weight}
WEIGHTS = {
    'boot_spot': 30, 'boot_normal': 22, 'boot_several': 6, 'user_acts': 30,
    'user_deletes': 12, 'host_fails': 2, 'pause': 1, 'crash': 4,
    'host_is_disabled': 1, 'cell_hangs': 1, 'clock_jumps': 1,
    'administrator_acts': 6, 'reserve': 5, 'cancel_reservation': 1,
    'boot_on_reservation': 5}

#: The same, so that most servers are placed by an eviction.
EVICTIONS = {
    'boot_spot': 36, 'boot_normal': 24, 'boot_several': 2, 'user_acts': 10,
    'normal_is_deleted': 24, 'host_fails': 1, 'pause': 3, 'crash': 5,
    'administrator_acts': 8}

_ACTIONS = ('stop', 'start', 'shelve', 'unshelve', 'lock', 'unlock', 'pause',
            'unpause', 'resize', 'confirm_resize', 'revert_resize',
            'live_migrate', 'shelve_offload')


def draw(seed, count, weights=None):
    """Return the Operations of a seed, in the order of their times.

    :param weights: {kind: how often it is drawn}; WEIGHTS
    """
    weights = weights or WEIGHTS
    rng = random.Random(f'{seed} operations')
    over_s = max(60, count * 5)
    kinds = rng.choices(list(weights), weights.values(), k=count)
    # Bursts: much at once, and pauses in between.
    times = sorted(rng.choice((rng.uniform(0, over_s), rng.choice(
        range(0, over_s, 30)) + rng.uniform(0, 2))) for _ in range(count))
    return [Operation(number, at_s, kind) for number, (at_s, kind)
            in enumerate(zip(times, kinds, strict=True))]


#: Options of operators; each seed draws some.
SETTINGS = (
    {('preemption', 'actions'): ['migrate', 'delete', 'shelve', 'stop']},
    {('preemption', 'actions'): ['delete', 'shelve', 'stop', 'migrate']},
    {('preemption', 'actions'): ['shelve', 'delete']},
    {('preemption', 'actions'): ['stop', 'delete']},
    {('preemption', 'honored_locks'): 'all'},
    {('preemption', 'headroom'): 'VCPU:2'},
    {('preemption', 'project_budget'): 2},
    {('preemption', 'project_budget'): 2,
     ('preemption', 'budget_window_s'): 60},
    {('preemption', 'minimum_runtime_s'): 30},
    {('preemption', 'stop_retention_s'): 100},
    {('preemption', 'termination_timeout_s'): 20},
    {('preemption', 'migrate_timeout_s'): 10},
    {('preemption', 'notice_s'): 15},
    {('preemption', 'consider'): 'always'},
    {('preemption', 'max_waiting_requests'): 1},
    {('preemption', 'maximum_runtime_s'): 150},
)
RESERVATIONS = {
    ('reservation', 'enabled'): True,
    ('reservation', 'reservable_default'): True,
    ('reservation', 'guard_s'): 60,
    ('reservation', 'evacuation_lead_s'): 40,
    ('reservation', 'before_end_s'): 30,
    ('filter_scheduler', 'enabled_filters'): ['ReservationFilter']}


def draw_settings(seed):
    """Return {(group, option): value} of a seed; of every third the defaults.
    """
    rng = random.Random(f'{seed} settings')
    found = {}
    if seed % 3:
        for each in rng.sample(SETTINGS, rng.choice((1, 2, 4))):
            found |= each
    if seed % 4 == 3:
        found |= RESERVATIONS
    return found


def perform(world, watcher, operation):
    """Do it, in a task of the world's operator."""
    rng = random.Random(f'{world.seed} {operation.number}')
    _KINDS[operation.kind](world, watcher, rng)


def _live(world, is_preemptible=None):
    return [server for server in sorted(
        world.nova.servers.values(), key=lambda each: each.created_at)
        if not server.deleted and is_preemptible in (
            None, server.is_preemptible)]


def _project(rng):
    return rng.choice(('p1', 'p2'))


def boot_spot(world, watcher, rng):
    world.nova.boot(rng.choice(_SPOTS), _project(rng))


def boot_normal(world, watcher, rng):
    world.nova.boot(rng.choice(_NORMAL), _project(rng))


def boot_several(world, watcher, rng):
    world.nova.boot(rng.choice(FLAVORS[:5]), _project(rng),
                    rng.choice((2, 2, 3)))


def _act(world, rng, actions, is_admin):
    servers = _live(world)
    if not servers:
        return
    server = rng.choice(servers)
    action = rng.choice(actions)
    arguments = {}
    if action == 'resize':
        arguments['flavor'] = rng.choice(
            _SPOTS if server.is_preemptible else _NORMAL)
    try:
        world.nova.act(server.uuid, action, is_admin, **arguments)
    except nova_exc.ClientException as exc:
        world.loop.tell('refused', action, server.uuid[:8], exc)


def user_acts(world, watcher, rng):
    _act(world, rng, _ACTIONS, is_admin=False)


def administrator_acts(world, watcher, rng):
    _act(world, rng, ('lock', 'unlock', 'live_migrate', 'stop', 'start'),
         is_admin=True)


def user_deletes(world, watcher, rng):
    _act(world, rng, ('delete',), is_admin=False)


def normal_is_deleted(world, watcher, rng):
    servers = _live(world, is_preemptible=False)
    if servers:
        world.nova.act(servers[0].uuid, 'delete')


def host_fails(world, watcher, rng):
    host = world.nova.hosts[rng.choice(sorted(world.nova.hosts))]
    world.loop.tell('compute service down on', host.name)
    host.is_up = False
    world.loop.sleep(rng.choice((5, 60, 200)))
    host.is_up = True


def host_is_disabled(world, watcher, rng):
    host = world.nova.hosts[rng.choice(sorted(world.nova.hosts))]
    host.disabled = True
    world.loop.sleep(rng.choice((5, 60, 200)))
    host.disabled = False


def pause(world, watcher, rng):
    database = processes.database()
    world.loop.tell('preemption is paused')
    _surely(world, lambda: pauses.pause(database, pauses.PREEMPTION, 'why'))
    watcher.paused(True)
    world.loop.sleep(rng.choice((10, 60)))
    watcher.paused(False)
    _surely(world, lambda: pauses.resume(database, pauses.PREEMPTION))


def _surely(world, function):
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
    world.loop.tell('the clock of', each.name, 'is set to',
                    each.process.skew_s)


def _ask_api(world, function):
    """Have the API do something, unless it refuses or is away."""
    def serve():
        try:
            function(world.api.schedule)
        except (exceptions.PreemptError, db_exc.DBError) as exc:
            world.loop.tell('refused:', exc)

    if ('reservation', 'enabled') in world.settings and world.api.is_serving:
        world.loop.join(world.loop.start(world.api.process, 'api', serve))


def reserve(world, watcher, rng):
    request = reservation_schedule.Request(
        quantity=rng.choice((1, 1, 2)), duration_s=rng.choice((60, 120)),
        start_time=world.loop.utcnow() + datetime.timedelta(
            seconds=rng.choice((5, 60, 90))) if rng.random() < 0.7 else None,
        end_action=rng.choice(('shelve', 'delete')))
    project = _project(rng)
    _ask_api(world, lambda schedule: schedule.create(
        None, project, 'user', request))


def _reservations(watcher):
    return [each for each in watcher.reservations()
            if each.status in reservation_model.OPEN]


def cancel_reservation(world, watcher, rng):
    found = _reservations(watcher)
    if found:
        chosen = rng.choice(found)
        _ask_api(world, lambda schedule: schedule.cancel(chosen.uuid))


def boot_on_reservation(world, watcher, rng):
    found = _reservations(watcher)
    if found:
        chosen = rng.choice(found)
        world.nova.boot(rng.choice(_NORMAL[:2]), chosen.project_id,
                        hints={'reservation': [chosen.uuid]})


_KINDS = {name: globals()[name] for name in WEIGHTS | EVICTIONS}
