# SPDX-License-Identifier: Apache-2.0

"""Passes over waiting requests of classes: chooses hosts and victims.

Algorithm 1 of M. Carvalho et al. (JISA 11, 2020), and the scheduler by
priority alone that they compare it with. A pass is due when a request comes,
when one ends, when a host is added, and else once a period
(availability_margin.PASS_PERIOD_S). A preemption is no reason for a pass: the
victim waits for the next.

The module only decides: equal requests, hosts and time give equal placements,
in whatever order they come.
"""

import collections
from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
import fractions
import functools
import operator
from typing import TypeAlias

from nova_preempt.core import capacity
from nova_preempt.core import lazy_ordering
from nova_preempt.core.classes.availability_margin import QosClass
from nova_preempt.core.classes.availability_margin import QosClasses
from nova_preempt.core.classes.availability_margin import Standing
from nova_preempt.core.classes.class_policies import ClassPolicy
from nova_preempt.core.classes.class_policies import Key
from nova_preempt.core.classes.class_policies import RankedRequest
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.model import Resources


@dataclasses.dataclass(frozen=True, slots=True)
class Claimant:
    """A request of a class, waiting or on a host.

    ``overhead_us``: how long it takes to get it to a host again, in
    microseconds.
    """

    uuid: str
    qos: QosClass
    clocks: ServerClocks
    resources: Resources
    overhead_us: int = 0

    @property
    def is_certain(self) -> bool:
        """Tell whether its clocks are complete, as far as can be seen."""
        return self.clocks.kind is not None and not self.clocks.has_gap

    def stand(self, classes: QosClasses, now_us: int) -> Standing:
        """Return its standing now."""
        return classes.stand(
            self.uuid, self.qos, self.clocks, now_us, self.overhead_us)


@dataclasses.dataclass(frozen=True, slots=True)
class PassHost:
    """A host of a pass, with its requests of classes.

    ``capacity``: without the allocations of other servers.
    """

    uuid: str
    capacity: Resources
    claimants: tuple[Claimant, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class HostAndVictims:
    """The host of a request, and the victims there that end first.

    ``victims`` are in order of uuid.
    """

    uuid: str
    host: str
    victims: tuple[str, ...] = ()


def dispatch(waiting: Collection[Claimant], hosts: Collection[PassHost],
              classes: QosClasses, policy: ClassPolicy,
              now_us: int) -> tuple[HostAndVictims, ...]:
    """Return the placements of a pass, in the order of the decisions.

    1. Waiting requests are ranked. 2. A request goes to the host with the best
    allocation score, if one has capacity. 3. Else victims are chosen on each
    host, among requests that it may preempt; it goes where they cost least,
    then to where the fewest end, then where the score is best. 4. A request
    without a host waits on, and so does a victim.

    Ties go to the smaller uuid. O(P H k log k) for P requests, H hosts and k
    claimants on each.
    """

    def hold(claimant: Claimant) -> RankedRequest:
        return RankedRequest(claimant.stand(classes, now_us),
            claimant.resources, policy)

    there = [
        _Host(host, map(hold, host.claimants))
        for host in sorted(hosts, key=operator.attrgetter("uuid"))]
    queue = sorted(
        map(hold, waiting), key=lambda held: policy.order(held.standing))
    placed = []
    for one in queue:
        found = _roomiest(there, one) or _cheapest(there, one)
        if found is not None:
            host, victims = found
            host.replace(victims, one)
            placed.append(HostAndVictims(
                one.standing.uuid, host.uuid,
                tuple(sorted(each.standing.uuid for each in victims))))
    return tuple(placed)


def first_requests(waiting: Iterable[Claimant], classes: QosClasses,
        policy: ClassPolicy, now_us: int, most: int) -> list[Claimant]:
    """Return the requests that may be among the first ``most`` to get a host.

    Of equal demands of a class at most ``most`` are returned: either all of
    those get a host, or there is none for more of them, but for what larger
    requests may leave. So a pass over very many evaluates few.
    """
    ordered = sorted(
        waiting, key=lambda one: policy.order(one.stand(classes, now_us)))
    kinds: collections.Counter[object] = collections.Counter()
    found = []
    for one in ordered:
        kind = one.qos.name, tuple(sorted(one.resources.items()))
        kinds[kind] += 1
        if kinds[kind] <= most:
            found.append(one)
    return found


class _Host:
    """A host during a pass."""

    def __init__(self, host: PassHost, held: Iterable[RankedRequest]) -> None:
        self.uuid = host.uuid
        self.held = {each.standing.uuid: each for each in held}
        self._capacity = host.capacity
        self.free = capacity.subtract(
            host.capacity,
            capacity.total(each.resources for each in self.held.values()))

    def replace(self, victims: Iterable[RankedRequest],
            newcomer: RankedRequest) -> None:
        """Put a request here in place of victims."""
        for victim in victims:
            del self.held[victim.standing.uuid]
            self.free = capacity.total((self.free, victim.resources))
        self.held[newcomer.standing.uuid] = newcomer
        self.free = capacity.subtract(self.free, newcomer.resources)

    def score(
        self, resources: Resources, freed: Iterable[Resources] = ()
    ) -> fractions.Fraction:
        """Return the allocation score of a request here."""
        free = capacity.total((self.free, *freed))
        return allocation_score(resources, free, self._capacity)

    def preemptible(self, one: RankedRequest) -> list[RankedRequest]:
        """Return the requests here that a request may preempt."""
        may_preempt, standing = one.policy.may_preempt, one.standing
        return [
            each for each in self.held.values()
            if may_preempt(standing, each.standing)]


def allocation_score(
    resources: Resources, free: Resources, has: Resources
) -> fractions.Fraction:
    """Return how well a request fits on a host with capacity, from 0 to 10.

    The mean of LeastRequested of Kubernetes 1.9 (the mean share that stays
    free) and its BalancedAllocation (the shares in use are the same): larger
    is better.

    :param free: free amounts before
    :param has: the amounts of the empty host
    """
    return _score(tuple(
        (amount, free.get(name, 0), has.get(name, 0))
        for name, amount in sorted(resources.items()) if amount))


@functools.lru_cache(maxsize=4096)
def _score(amounts: tuple[tuple[int, int, int], ...]) -> fractions.Fraction:
    """Return the score of (wanted, free, capacity) of each resource class."""
    if not amounts:
        return fractions.Fraction(10)
    left = [fractions.Fraction(free - wanted, has)
            for wanted, free, has in amounts]
    mean = sum(left, fractions.Fraction()) / len(left)
    return 5 * (mean + 1 - (max(left) - min(left)))


_Found: TypeAlias = "tuple[_Host, Sequence[RankedRequest]] | None"


def _roomiest(hosts: Iterable[_Host], one: RankedRequest) -> _Found:
    """Return the best of the hosts with capacity."""
    best = max(
        (host for host in hosts if capacity.fits(one.resources, host.free)),
        key=lambda host: host.score(one.resources), default=None)
    return None if best is None else (best, ())


def _cheapest(hosts: Iterable[_Host], one: RankedRequest) -> _Found:
    """Return the host with the cheapest victims."""
    preemptible: dict[str, list[RankedRequest]] = {}

    def bound(host: _Host) -> Key | None:
        held = preemptible[host.uuid] = host.preemptible(one)
        return (one.policy.floor(held),) if held else None

    def exact(host: _Host) -> tuple[Key, Sequence[RankedRequest]] | None:
        missing = _missing(one.resources, host.free)
        victims = one.policy.victims(preemptible[host.uuid], missing)
        if victims is None:
            return None
        freed = [each.resources for each in victims]
        key = (
            one.policy.cost(victims), len(victims),
            -host.score(one.resources, freed), host.uuid)
        return key, victims

    for _, host, victims in lazy_ordering.ascending(hosts, bound, exact):
        return host, victims
    return None


def _missing(resources: Resources, free: Mapping[str, int]) -> Resources:
    return {
        name: amount
        for name, amount in capacity.subtract(resources, free).items()
        if amount > 0 and resources.get(name, 0) > 0}
