# SPDX-License-Identifier: Apache-2.0
"""Runs explorations, and makes a failing one as short as it goes."""

import dataclasses
import gc
import traceback

from nova_preempt.core import invariants
from tests.exploration import features
from tests.exploration import operations
from tests.exploration import served_requests
from tests.exploration import snapshots
from tests.exploration import world as worlds

#: How long after the last operation and fault all has to be at rest, in
#: virtual seconds: longer than any timeout, several in a row.
REST_S = 1500
#: Steps of tasks between two snapshots.
EVERY = 100


@dataclasses.dataclass(frozen=True)
class Failure:
    """A failed exploration.

    :ivar kind: the name of the invariant, or of the error
    """

    seed: int
    kind: str
    text: str
    operations: tuple = ()


class Broken(Exception):
    """An invariant does not hold."""


class Exploration:
    """One run: a seed, and operations.

    :param chosen: operations.Operations
    :param trace: called with each line of what happens, None for nothing
    :param faults: False: no call fails, and nothing crashes by itself
    """

    def __init__(self, seed, chosen, trace=None, faults=True, settings=None):
        self._seed = seed
        self._operations = chosen
        self.world = worlds.World(
            seed, trace, features.draw_settings(seed, features.draw(seed))
            if settings is None else settings)
        self.world.faults.is_off = not faults
        self._checked = 0

    def run(self):
        """Return a Failure, None if all was well."""
        try:
            with self.world as world:
                self._watcher = world.watcher = snapshots.Watcher(world)
                self._run(world)
        except Broken as exc:
            kind, _, text = str(exc).partition(': ')
            return Failure(self._seed, kind, text, tuple(self._operations))
        except Exception as exc:  # noqa: BLE001 (any error is a failure)
            return Failure(self._seed, type(exc).__name__,
                           traceback.format_exc(), tuple(self._operations))
        finally:
            # tools/explore.py collects garbage only here: it takes less time.
            if not gc.isenabled():
                gc.collect()
        return None

    def _run(self, world):
        loop = world.loop
        world.start()
        loop.watch = self._watch
        begin_s = loop.now_s + 15
        for each in self._operations:
            loop.start(world.operator, f'operation {each.number}',
                       lambda each=each: self._perform(world, begin_s, each))
        last_s = max((each.at_s for each in self._operations), default=0)
        loop.run(begin_s + last_s + 30)
        world.faults.is_off = True
        world.hanging.clear()
        loop.tell('no more faults')
        rest_s = loop.now_s + REST_S
        while loop.now_s < rest_s:
            loop.run(min(rest_s, loop.now_s + 20))
            if not (world.operator.tasks or world.nova.process.tasks) and (
                    self._is_at_rest()):
                break
        self._check(is_at_rest=True)
        breach = served_requests.find_breach(world)
        if breach:
            raise Broken(f'fitting_requests_are_served: {breach}')

    def _perform(self, world, begin_s, operation):
        world.loop.sleep(begin_s + operation.at_s - world.loop.now_s)
        world.loop.tell('OPERATION', operation.number, operation.kind)
        operations.perform(world, self._watcher, operation)

    def _watch(self):
        self._checked += 1
        if self._watcher.acts or self._checked % EVERY == 0:
            self._check()

    def _is_at_rest(self):
        """Return whether the invariants of a world at rest hold."""
        return not self._breaches(is_at_rest=True)

    def _check(self, is_at_rest=False):
        found = self._breaches(is_at_rest)
        if found:
            raise Broken(found[0])

    def _breaches(self, is_at_rest):
        return invariants.breaches(self._watcher.snapshot(), is_at_rest) + (
            self.world.recommendations.breaches(is_at_rest))


def shorten(failure, most=60, **options):
    """Return a Failure of the same kind with fewer operations.

    Leaves out ever smaller parts of them for as long as it still fails.

    :param most: how many runs at most
    """
    best, size = failure, max(1, len(failure.operations) // 2)
    runs = 0
    while size and runs < most:
        start, found = 0, False
        while start < len(best.operations) and runs < most:
            kept = (best.operations[:start]
                    + best.operations[start + size:])
            runs += 1
            again = Exploration(failure.seed, kept, **options).run()
            if again is not None and again.kind == failure.kind:
                best, found = again, True
            else:
                start += size
        if not found:
            size //= 2
    return best
