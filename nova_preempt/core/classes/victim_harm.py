# SPDX-License-Identifier: Apache-2.0

"""Cost of a victim by the harm to its promised availability.

Of one victim that counts, level by level (M. Carvalho et al., JISA 11, 2020):
what lacks of the margin of an urgent one, in the class of its importance, the
most important class first; and at last all margins together. A set of victims
is the better the less it harms an important class, and then the more is left
of what its members may still lose.

Two ways to choose victims on a host:

* reprieve() is the published one. All who may be preempted are taken, and
  given back one by one, the most precious first, as long as the rest makes
  room. Hosts are compared by published_cost().
* harm_cost() folds the levels into one cost, for core.victims, which finds
  the best of all sets. The published last level is no cost: the more victims
  with time left, the better it is, and the best set would be everybody. So
  each victim costs a horizon there, less its margin: fewer victims first, then
  the larger margins. No level is negative then, and no sum of a level reaches
  the unit of the next (see LEVEL_BITS), so that sums of the costs compare as
  the sums of the levels do, one after the other, on a host and between hosts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from nova_preempt.core import capacity
from nova_preempt.core.classes.availability_margin import QosClass
from nova_preempt.core.classes.availability_margin import QosClasses
from nova_preempt.core.classes.availability_margin import Standing

#: No margin counts more, in microseconds: 13 months.
HORIZON_US = 2**45
#: A level of one victim is at most twice the horizon, and 1,023 victims are
#: more than there are on a host.
LEVEL_BITS = 56

Levels: TypeAlias = tuple[int, ...]


def levels(classes: QosClasses, standing: Standing) -> Levels:
    """Return the cost levels of a victim, in microseconds and none negative.

    By class, the most important first, and at last by the margin; lexically
    smaller is better.
    """
    margin_us = _within_horizon(standing.margin // classes.scale)
    costs = [0] * len(classes)
    if margin_us < 0:
        costs[classes.rank(standing.qos)] = -margin_us
    return (*costs, HORIZON_US - margin_us)


def _within_horizon(margin_us: int) -> int:
    return min(max(margin_us, -HORIZON_US), HORIZON_US)


def fold(costs: Iterable[int]) -> int:
    """Return one number that compares as the levels do; sums do as well."""
    folded = 0
    for level in costs:
        folded = folded << LEVEL_BITS | level
    return folded


def harm_cost(classes: QosClasses, standing: Standing) -> int:
    """Return the cost of a victim, which may be added up and compared."""
    return fold(levels(classes, standing))


def highest_cost(classes: QosClasses, qos: QosClass) -> int:
    """Return the highest cost of a victim of a class."""
    costs = [0] * len(classes)
    costs[classes.rank(qos)] = HORIZON_US
    return fold((*costs, 2 * HORIZON_US))


def published_cost(classes: QosClasses, victims: Iterable[Standing]) -> Levels:
    """Return the published key that compares hosts: smaller is better.

    Exact: in microseconds times the scale of the classes. The paper has the
    reciprocals of such sums, which are undefined for a host without a victim
    of a class; such a host is the best for that class.
    """
    harms = dict.fromkeys((qos.name for qos in classes), 0)
    total = 0
    for standing in victims:
        total += standing.margin
        if standing.margin < 0:
            harms[standing.qos.name] -= standing.margin
    return (*harms.values(), -total)


Key = TypeVar("Key")


def reprieve(
    victims: Sequence[tuple[Standing, Mapping[Key, int]]],
    missing: Mapping[Key, int],
    order: Callable[[Standing], Any] = lambda standing: standing.order,
) -> tuple[Standing, ...] | None:
    """Return the victims on a host, None if all together free too little.

    Not the best set, but an inclusion-minimal one.

    :param victims: the evictable requests, and the amounts that each frees
    :param missing: the shortfall
    :param order: ranks the most precious first
    """
    freed = capacity.total(amounts for _, amounts in victims)
    if not capacity.fits(missing, freed):
        return None
    spare = capacity.subtract(freed, missing)
    chosen = []
    for standing, amounts in sorted(
            victims, key=lambda victim: order(victim[0])):
        needed = {key: amounts.get(key, 0) for key in missing}
        if capacity.fits(needed, spare):
            spare = capacity.subtract(spare, needed)
        else:
            chosen.append(standing)
    return tuple(sorted(chosen, key=lambda standing: standing.uuid))
