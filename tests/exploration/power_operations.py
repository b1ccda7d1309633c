# SPDX-License-Identifier: Apache-2.0
"""Operations of operators on hosts that are powered off and on."""

from nova_preempt.db import pauses
from tests.exploration import operations


def _machine(world, rng):
    return world.machines.of[rng.choice(sorted(world.machines.of))]


@operations.kind
def controller_hangs(world, watcher, rng):
    _machine(world, rng).hangs_until_s = (
        world.loop.now_s + rng.choice((5, 60, 400)))


@operations.kind
def host_is_powered_on(world, watcher, rng):
    """An operator pushes the power button of a host."""
    _machine(world, rng).power_on()


@operations.kind
def power_is_paused(world, watcher, rng):
    operations.pause_for(world, watcher, pauses.POWER,
                         rng.choice((10, 60, 300)))
