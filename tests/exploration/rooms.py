# SPDX-License-Identifier: Apache-2.0
"""The options of operators, and the rooms of nova_preempt that a seed runs.

A room beside preemption has tasks in the engine, options, and operations of
its users. Each seed draws which rooms run, so that most explorations are
small, and rooms meet each other in the others.
"""

import dataclasses
import random

from tests.exploration import backlog_operations  # noqa: F401 (its kinds)
from tests.exploration import eviction_operations  # noqa: F401
from tests.exploration import operations
from tests.exploration import power_operations  # noqa: F401
from tests.exploration import reservation_operations  # noqa: F401


@dataclasses.dataclass(frozen=True)
class Room:
    """A room beside preemption.

    :ivar works: the names of its tasks in the engine
    :ivar options: {(group, option): what is drawn from}
    :ivar weights: {kind of an operation: how often it is drawn}
    :ivar pace_s: how long it is from an operation to the next in the mean
    """

    works: tuple
    options: dict
    weights: dict
    pace_s: int = 5


#: Options of operators; each seed draws some.
SETTINGS = (
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
ACTIONS = (
    ['delete', 'shelve', 'stop'], ['migrate', 'delete', 'shelve', 'stop'],
    ['delete', 'shelve', 'stop', 'migrate'], ['shelve', 'delete'],
    ['stop', 'delete'])

ROOMS = {
    'reservations': Room(('inventory', 'reservations'), {
        ('reservation', 'enabled'): (True,),
        ('reservation', 'reservable_default'): (True,),
        ('reservation', 'guard_s'): (60,),
        ('reservation', 'evacuation_lead_s'): (40,),
        ('reservation', 'before_end_s'): (30,),
        ('filter_scheduler', 'enabled_filters'): (['ReservationFilter'],)},
        {'reserve': 5, 'cancel_reservation': 1, 'boot_on_reservation': 5}),
    'power': Room(('inventory', 'power'), {
        ('energy', 'enabled'): (True,),
        ('energy', 'switch_interval_s'): (20,),
        ('energy', 'idle_intervals'): (1,),
        ('energy', 'spare_hosts'): (0, 0, 1),
        ('energy', 'minimum_hosts'): (0, 1),
        ('energy', 'boot_timeout_s'): (120,),
        ('energy', 'demand_wait_s'): (0, 100, 300),
        ('energy', 'max_wakes_per_minute'): (1, 10),
        ('energy', 'max_sleeps_per_minute'): (1, 5)},
        {'controller_hangs': 4, 'host_is_powered_on': 2,
         'host_is_disabled': 3, 'power_is_paused': 1, 'user_deletes': 20},
        pace_s=15),
    'backlog': Room(('inventory', 'backlog'), {
        ('backlog', 'enabled'): (True,),
        ('backlog', 'order'): ('fifo',),
        ('backlog', 'hold_after_s'): (30, 3600),
        ('backlog', 'max_requests_per_project'): (2, 100),
        ('backlog', 'max_created_per_day'): (4, 1000)},
        {'submit': 40, 'change_request': 6, 'cancel_request': 8,
         'user_deletes': 20, 'backlog_is_paused': 1, 'user_loses_role': 2,
         'quota_is_set': 2}),
}


def draw(seed):
    """Return the names of the rooms of a seed; every second one has none."""
    rng = random.Random(f'{seed} rooms')
    if seed % 4 == 3:
        return ('reservations', *rng.choice(
            ((), ('power',), ('backlog',), ('power', 'backlog'))))
    if seed % 4 == 1:
        return rng.choice((('power',), ('backlog',), ('power', 'backlog')))
    return ()


def draw_settings(seed, names):
    """Return {(group, option): value} of a seed; of every third the defaults.

    :param names: of the rooms that run
    """
    rng = random.Random(f'{seed} settings')
    found = {}
    if seed % 3:
        for each in rng.sample(SETTINGS, rng.choice((1, 2, 4))):
            found |= each
        found['preemption', 'actions'] = rng.choice(ACTIONS)
    rng = random.Random(f'{seed} options')
    for name in names:
        found |= {option: rng.choice(values)
                  for option, values in ROOMS[name].options.items()}
    return found


def draw_operations(seed, count, names, evictions=False):
    """Return the operations.Operations of a seed.

    :param evictions: whether they lead to many evictions
    """
    weights = dict(operations.EVICTIONS if evictions else operations.WEIGHTS)
    for name in names:
        weights |= ROOMS[name].weights
    return operations.draw(seed, count, weights, max(
        (ROOMS[name].pace_s for name in names), default=5))


def works(settings):
    """Return the names of the tasks of the engine's threads that run.

    :param settings: {(group, option): value}
    """
    return {work for room in ROOMS.values() for work in room.works
            if settings.keys() >= room.options.keys()}
