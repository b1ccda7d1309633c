# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""One pass over requests that wait: who goes where, and who ends for it.

Algorithm 1 of M. Carvalho et al. (JISA 11, 2020), and the scheduler by
priority alone that they compare it with. A pass is to be made when a request
comes, when one ends, when a host was added, and else once a period
(margin.pass_period_s()). A preemption is no reason for one: whoever gave way
waits for the next.

Nothing is done here but decided: equal requests, hosts and time give equal
placements, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
import fractions
import functools
import operator
from typing import Any, Protocol, TypeAlias

from nova_preempt.core import capacity
from nova_preempt.core import victims as searches
from nova_preempt.core.classes import harm
from nova_preempt.core.classes import margin
from nova_preempt.core.classes.clocks import Clocks
from nova_preempt.core.classes.margin import Classes
from nova_preempt.core.classes.margin import QosClass
from nova_preempt.core.classes.margin import Standing
from nova_preempt.core.model import Candidate, Resources


@dataclasses.dataclass(frozen=True, slots=True)
class Claimant:
    """A request, which waits or has a host.

    ``overhead_us``: how long it takes to get it to a host again, in
    microseconds. ``group``: see margin.Standing.
    """

    uuid: str
    qos: QosClass
    clocks: Clocks
    resources: Resources
    overhead_us: int = 0
    group: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class RoundHost:
    """A host, and those on it that take part.

    ``capacity`` is without what others use there.
    """

    uuid: str
    capacity: Resources
    claimants: tuple[Claimant, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """A request gets a host, once the victims there have ended.

    ``victims`` are in order of uuid.
    """

    uuid: str
    host: str
    victims: tuple[str, ...] = ()


#: Smaller is better.
Key: TypeAlias = tuple[Any, ...]
#: Who may be preempted, and what it uses.
Held: TypeAlias = tuple[Standing, Resources]


class Rule(Protocol):
    """What schedulers differ in."""

    def order(self, standing: Standing) -> Key:
        """What waiting requests are sorted by; no two have the same."""

    def may_preempt(self, one: Standing, other: Standing) -> bool:
        """Tell whether a request may end another; a strict order."""

    def victims(
        self, held: Sequence[Held], missing: Resources
    ) -> Sequence[Standing] | None:
        """Return who gives way on a host, None if not all make room."""

    def cost(self, victims: Iterable[Standing]) -> Key:
        """Return what hosts are compared by."""


@dataclasses.dataclass(frozen=True)
class ByPromise:
    """Whoever is nearest to a broken promise is next.

    ``exact``: the best victims of a host, and the host where they are best,
    by the same cost; else the published way to choose, see harm.py.
    """

    classes: Classes
    exact: bool = True

    def order(self, standing: Standing) -> Key:
        return standing.order

    def may_preempt(self, one: Standing, other: Standing) -> bool:
        return margin.may_preempt(one, other)

    def victims(
        self, held: Sequence[Held], missing: Resources
    ) -> Sequence[Standing] | None:
        if not self.exact:
            return harm.reprieve(held, missing)
        found = searches.cheapest_victims(
            (
                Candidate(
                    standing.uuid,
                    resources,
                    harm.folded(self.classes, standing),
                )
                for standing, resources in held
            ),
            missing,
        )
        if found is None:
            return None
        standings = {standing.uuid: standing for standing, _ in held}
        return [standings[each.uuid] for each in found.victims]

    def cost(self, victims: Iterable[Standing]) -> Key:
        if self.exact:
            return (sum(harm.folded(self.classes, each) for each in victims),)
        return harm.published(self.classes, victims)


@dataclasses.dataclass(frozen=True)
class ByPriority:
    """The more important class first, whatever was promised.

    The last that came ends first, and that host is best where the fewest of
    the most important class end.
    """

    classes: Classes

    def order(self, standing: Standing) -> Key:
        return (
            standing.qos.importance,
            standing.admitted_us,
            standing.uuid,
        )

    def may_preempt(self, one: Standing, other: Standing) -> bool:
        return one.qos.importance < other.qos.importance

    def victims(
        self, held: Sequence[Held], missing: Resources
    ) -> Sequence[Standing] | None:
        return harm.reprieve(held, missing, self.order)

    def cost(self, victims: Iterable[Standing]) -> Key:
        numbers = dict.fromkeys((qos.importance for qos in self.classes), 0)
        for standing in victims:
            numbers[standing.qos.importance] += 1
        return tuple(numbers.values())


def one_round(
    waiting: Collection[Claimant],
    hosts: Collection[RoundHost],
    classes: Classes,
    rule: Rule,
    now_us: int,
) -> tuple[Placement, ...]:
    """Return who gets which host now, in the order of the decisions.

    1. What waits is sorted.
    2. A request goes to the host with the best allocation score, if there is
       one with room.
    3. Else, on each host, those end whom the rule says, of those whom it may
       preempt; it goes where that costs least, then to where the fewest end,
       then where the score is best.
    4. Whoever got no host waits on, and so does who gave way.

    Of all that is equal the smaller uuid comes first. O(P H k log k) for P
    requests, H hosts and k claimants on each.
    """

    def stand(claimant: Claimant) -> Standing:
        return classes.stand(
            claimant.uuid,
            claimant.qos,
            claimant.clocks,
            now_us,
            claimant.overhead_us,
            claimant.group,
        )

    there = [
        _Host(host, [(stand(each), each.resources) for each in host.claimants])
        for host in sorted(hosts, key=operator.attrgetter("uuid"))
    ]
    queue = sorted(
        ((stand(each), each.resources) for each in waiting),
        key=lambda held: rule.order(held[0]),
    )
    placed = []
    for standing, resources in queue:
        found = _roomiest(there, resources) or _cheapest(
            there, standing, resources, rule
        )
        if found is not None:
            host, victims = found
            host.replace(victims, (standing, resources))
            placed.append(
                Placement(
                    standing.uuid,
                    host.uuid,
                    tuple(sorted(each.uuid for each in victims)),
                )
            )
    return tuple(placed)


class _Host:
    """A host during a pass."""

    def __init__(self, host: RoundHost, held: list[Held]) -> None:
        self.uuid = host.uuid
        self.held = {standing.uuid: (standing, resources)
                     for standing, resources in held}
        self._capacity = host.capacity
        self.free = capacity.less(
            host.capacity,
            capacity.total(resources for _, resources in held),
        )

    def replace(self, victims: Iterable[Standing], newcomer: Held) -> None:
        """Put somebody here, in the place of others."""
        for victim in victims:
            _, resources = self.held.pop(victim.uuid)
            self.free = capacity.total((self.free, resources))
        self.held[newcomer[0].uuid] = newcomer
        self.free = capacity.less(self.free, newcomer[1])

    def score(
        self, resources: Resources, freed: Iterable[Resources] = ()
    ) -> fractions.Fraction:
        """Return how well a request would fit here."""
        free = capacity.total((self.free, *freed))
        return allocation_score(resources, free, self._capacity)


def allocation_score(
    resources: Resources, free: Resources, has: Resources
) -> fractions.Fraction:
    """Return how well a request fits on a host with room, from 0 to 10.

    The mean of what Kubernetes 1.9 calls LeastRequested (the mean share that
    stays free) and BalancedAllocation (the shares in use are the same): the
    larger the better.

    :param free: what is free before
    :param has: what there is in all
    """
    return _score(
        tuple(
            (amount, free.get(name, 0), has.get(name, 0))
            for name, amount in sorted(resources.items())
            if amount
        )
    )


@functools.lru_cache(maxsize=4096)
def _score(amounts: tuple[tuple[int, int, int], ...]) -> fractions.Fraction:
    """Return it for (wanted, free, capacity) of each class."""
    if not amounts:
        return fractions.Fraction(10)
    left = [
        fractions.Fraction(free - wanted, has) for wanted, free, has in amounts
    ]
    mean = sum(left, fractions.Fraction()) / len(left)
    return 5 * (mean + 1 - (max(left) - min(left)))


_Found: TypeAlias = "tuple[_Host, Sequence[Standing]] | None"


def _roomiest(hosts: Iterable[_Host], resources: Resources) -> _Found:
    """Return the best of the hosts with room."""
    best = max(
        (host for host in hosts if capacity.fits(resources, host.free)),
        key=lambda host: host.score(resources),
        default=None,
    )
    return None if best is None else (best, ())


def _cheapest(
    hosts: Iterable[_Host],
    standing: Standing,
    resources: Resources,
    rule: Rule,
) -> _Found:
    """Return the best of the hosts where others may end."""
    best: tuple[Key, _Host, Sequence[Standing]] | None = None
    for host in hosts:
        held = [
            each
            for each in host.held.values()
            if rule.may_preempt(standing, each[0])
        ]
        if not held:
            continue
        missing = _missing(resources, host.free)
        victims = rule.victims(held, missing)
        if victims is None:
            continue
        freed = [host.held[each.uuid][1] for each in victims]
        key = (
            rule.cost(victims),
            len(victims),
            -host.score(resources, freed),
        )
        if best is None or key < best[0]:
            best = (key, host, victims)
    return None if best is None else best[1:]


def _missing(resources: Resources, free: Mapping[str, int]) -> Resources:
    return {
        name: amount
        for name, amount in capacity.less(resources, free).items()
        if amount > 0 and resources.get(name, 0) > 0
    }
