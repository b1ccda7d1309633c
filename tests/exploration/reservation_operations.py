# SPDX-License-Identifier: Apache-2.0
"""Reservations that users make, cancel and use."""

import datetime

from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import pauses
from nova_preempt.reservation import reservation_scheduler
from tests.exploration import operations


def ask_api(world, function):
    """Have the API change reservations, unless it refuses.

    :param function: given a ReservationScheduler
    """
    operations.ask_api(world, lambda api: function(api.schedule))


@operations.kind
def reserve(world, watcher, rng):
    request = reservation_scheduler.Request(
        quantity=rng.choice((1, 1, 2)), duration_s=rng.choice((60, 120, 7200)),
        start_time=world.loop.utcnow() + datetime.timedelta(
            seconds=rng.choice((5, 60, 90))) if rng.random() < 0.7 else None,
        end_action=rng.choice(('shelve', 'delete')))
    project = operations.project(rng)
    ask_api(world, lambda schedule: schedule.create(
        None, project, 'user', request))


def _reservations(watcher):
    return [each for each in watcher.reservations()
            if each.status in reservation_model.OPEN]


@operations.kind
def reservations_are_paused(world, watcher, rng):
    operations.pause_for(world, watcher, pauses.RESERVATIONS,
                         rng.choice((10, 60)))


@operations.kind
def cancel_reservation(world, watcher, rng):
    found = _reservations(watcher)
    if found:
        chosen = rng.choice(found)
        ask_api(world, lambda schedule: schedule.cancel(chosen.uuid))


@operations.kind
def boot_on_reservation(world, watcher, rng):
    found = _reservations(watcher)
    if found:
        chosen = rng.choice(found)
        world.nova.boot(rng.choice(operations.NORMAL[:2]), chosen.project_id,
                        hints={'reservation': [chosen.uuid]})
