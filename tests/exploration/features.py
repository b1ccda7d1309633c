# SPDX-License-Identifier: Apache-2.0
"""The features and the options that each seed of an exploration enables.

A feature is an optional part of nova_preempt: it has tasks in the engine,
options, and operations of its users. Each seed draws its features, so that
most explorations are small and the others combine features.
"""

import dataclasses
import random

from tests.exploration import backlog_operations
from tests.exploration import eviction_operations
from tests.exploration import interruption_operations
from tests.exploration import operations
from tests.exploration import power_operations
from tests.exploration import recommendation_operations
from tests.exploration import reservation_operations

#: The modules that define operations. Their import registers the operations.
OPERATION_MODULES = (
    operations, eviction_operations, interruption_operations,
    reservation_operations, power_operations, backlog_operations,
    recommendation_operations)


@dataclasses.dataclass(frozen=True)
class Feature:
    """An optional part of nova_preempt beside preemption.

    :ivar works: the names of its tasks in the engine
    :ivar options: {(group, option): the values to draw from}
    :ivar weights: {kind of an operation: its weight in the draw}
    :ivar pace_s: mean time between two operations
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

_RESERVATIONS = Feature(('inventory', 'reservations'), {
    ('reservation', 'enabled'): (True,),
    ('reservation', 'reservable_default'): (True,),
    ('reservation', 'guard_s'): (60,),
    ('reservation', 'evacuation_lead_s'): (40,),
    ('reservation', 'before_end_s'): (30,),
    ('filter_scheduler', 'enabled_filters'): (['ReservationFilter'],)},
    {'reserve': 5, 'cancel_reservation': 1, 'boot_on_reservation': 5,
     'reservations_are_paused': 1})

FEATURES = {
    'reservations': _RESERVATIONS,
    # Recommendations to leave, ahead of reservations and for headroom.
    'recommendations': Feature(('inventory', 'reservations', 'evictions'), {
        **_RESERVATIONS.options,
        # Of no other feature: works() knows this one by it.
        ('reservation', 'max_reservations'): (20,),
        ('preemption', 'headroom'): ('', 'VCPU:1', 'VCPU:2')},
        _RESERVATIONS.weights | {
            'reserve_ahead': 12, 'cancel_reservation': 8, 'cell_hangs': 4,
            'spot_is_changed': 20, 'recommendation_is_disturbed': 8}),
    'power': Feature(('inventory', 'power'), {
        ('energy', 'enabled'): (True,),
        ('energy', 'switch_interval_s'): (20,),
        ('energy', 'idle_intervals'): (1,),
        ('energy', 'spare_hosts'): (0, 0, 1),
        ('energy', 'minimum_hosts'): (0, 1),
        ('energy', 'boot_timeout_s'): (120,),
        ('energy', 'demand_wait_s'): (0, 100, 300),
        ('energy', 'max_wakes_per_minute'): (1, 10),
        ('energy', 'max_sleeps_per_minute'): (1, 5)},
        {'controller_hangs': 4, 'host_is_powered_on': 4,
         'host_is_disabled': 3, 'power_is_paused': 1, 'user_deletes': 20,
         'server_comes_late': 20},
        pace_s=15),
    'backlog': Feature(('inventory', 'backlog'), {
        ('backlog', 'enabled'): (True,),
        ('backlog', 'order'): ('fifo',),
        ('backlog', 'pass_interval_s'): (5, 15),
        ('backlog', 'hold_after_s'): (30, 3600),
        ('backlog', 'max_requests_per_project'): (2, 100),
        ('backlog', 'max_created_per_day'): (4, 1000)},
        {'submit': 40, 'change_request': 6, 'cancel_request': 8,
         'user_deletes': 20, 'backlog_is_paused': 1, 'user_loses_role': 2,
         'quota_is_set': 2, 'boot_has_no_answer': 6}),
    # No parts of nova_preempt, but what may come between its calls.
    'interruptions': Feature((), {}, {
        'owner_stands_still': 6, 'claimant_is_cut_off': 6,
        'withdrawal_is_refused': 4, 'victim_changes_in_roll_back': 12,
        'others_are_faster': 6, 'owner_crashes_at_hand_over': 6,
        'request_is_withdrawn': 8}),
    'delays': Feature((), {}, {'claimant_is_slow': 30}),
    'returns': Feature((), {}, {'victim_is_unshelved': 6, 'images_fail': 6}),
}


def draw(seed):
    """Return the names of a seed's features; every eighth seed has none."""
    rng = random.Random(f'{seed} features')
    if seed % 4 == 3:
        return ('reservations', *rng.choice(
            ((), ('power',), ('backlog',), ('power', 'backlog'))),
            *(('recommendations',) if seed % 16 == 7 else ()))
    if seed % 4 == 1:
        return rng.choice((('power',), ('backlog',), ('power', 'backlog')))
    return {2: ('interruptions',), 4: ('delays', 'returns'),
            6: ('interruptions', 'delays', 'returns')}.get(seed % 8, ())


def draw_settings(seed, names):
    """Return {(group, option): value}; every third seed has the defaults.

    :param names: the names of the enabled features
    """
    rng = random.Random(f'{seed} settings')
    found = {}
    if seed % 3:
        for each in rng.sample(SETTINGS, rng.choice((1, 2, 4))):
            found |= each
        found['preemption', 'actions'] = rng.choice(ACTIONS)
    rng = random.Random(f'{seed} options')
    found['preemption_engine', 'interval_s'] = rng.choice((5, 15))
    for name in names:
        found |= {option: rng.choice(values)
                  for option, values in FEATURES[name].options.items()}
    return found


def draw_operations(seed, count, names, evictions=False):
    """Return the operations.Operations of a seed.

    :param names: the names of the enabled features
    :param evictions: whether to draw operations that lead to many evictions
    """
    weights = dict(operations.EVICTIONS if evictions else operations.WEIGHTS)
    for name in names:
        weights |= FEATURES[name].weights
    return operations.draw(seed, count, weights, max(
        (FEATURES[name].pace_s for name in names), default=5))


def works(settings):
    """Return the names of the engine tasks of all enabled features.

    :param settings: {(group, option): value}
    """
    return {work for feature in FEATURES.values() for work in feature.works
            if settings.keys() >= feature.options.keys()}
