# SPDX-License-Identifier: Apache-2.0

"""Finds the cheapest set of victims on one host.

This is the selection of Algorithm 5 of A. Lopez Garcia et al., FGCS 2019 (doi
10.1016/j.future.2018.12.057): over all combinations of preemptible servers
that free enough, the one of least total cost; made exact where the paper is
silent (ties), and fast where the paper enumerates.
"""

import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
import operator
from typing import TypeAlias

from nova_preempt.core.cover.candidate_keys import SHARE
from nova_preempt.core.cover.candidate_keys import CandidateKeys
from nova_preempt.core.cover.candidate_keys import make_keys
from nova_preempt.core.cover.cheapest_cover import FoundCover
from nova_preempt.core.cover.cheapest_cover import solve
from nova_preempt.core.cover.problem_reduction import Row
from nova_preempt.core.cover.ranked_covers import CoverCaps
from nova_preempt.core.cover.ranked_covers import ranked
from nova_preempt.core.model import Amounts, Candidate, VictimCap, VictimSet

#: Returns whether a set of victims, in order of uuid, is acceptable.
Accept: TypeAlias = Callable[[tuple[Candidate, ...]], bool]


@dataclasses.dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of the search in steps, independent of the machine.

    ``branch_steps``: nodes of the branch and bound, which settles everyday
    cases within some tens. ``dp_labels``: labels (or as much other work) of
    the search that follows, 0.1 to 0.2 microseconds each: at most about
    40 ms and 10 MB at the default. ``accept_checks``: sets offered to
    ``accept`` in ascending order, before it is merely asked which victims
    can be spared. ``cap_splits``: sets that break a cap, each of which
    divides the search. ``placements``: on hosts that are trees, how many
    ways to place a part of a request are looked at further, 0.1 ms each. 0
    leaves a method out; where more of it is wanted, more time is all it
    takes.

    :raises ValueError: when a limit is negative
    """

    branch_steps: int = 1_000
    dp_labels: int = 220_000
    accept_checks: int = 32
    cap_splits: int = 100
    placements: int = 1_000

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if getattr(self, field.name) < 0:
                raise ValueError(f"{field.name} must not be negative")


#: The limits unless the caller sets others.
DEFAULT_LIMITS = SearchLimits()

#: One ``accept`` may lead to hundreds of searches; together they may take so
#: many times the budget of one search, then the rest are approximated.
_SEARCHES = 4

#: Unit prices are compared as fixed-point numbers with so many bits.
_PRICE_BITS = 32


def cheapest_victims(
    candidates: Iterable[Candidate], missing: Amounts, *,
    capacity: Amounts | None = None, accept: Accept | None = None,
    caps: Iterable[VictimCap] = (), limits: SearchLimits = DEFAULT_LIMITS,
) -> VictimSet | None:
    """Return the best set that frees at least what is missing.

    Best of all subsets is, in this order: least total cost; fewest
    victims; least surplus (what is freed in all classes of ``capacity``,
    each as a share of it; without ``capacity``, in the missing classes);
    smallest sorted uuids. It is unique, so that neither the order of the
    candidates nor the method can matter. None = not even all of them free
    enough, or not even all of them are accepted.

    ``accept`` is an extra test of a whole set, for instance the filters of
    Nova on the host without these servers. Sets are offered to it in
    ascending order; after ``limits.accept_checks`` refusals, victims are
    given back from all candidates, dearest first, as long as the rest frees
    enough and is accepted.

    No set that breaks one of the ``caps`` is returned. After
    ``limits.cap_splits`` cheaper ones that do, victims are spared in the
    same way from some large sets that keep them; then None may also mean
    that these did not free enough.

    A set that is not ``optimal`` is still minimal: without any one of its
    victims it would free too little or not be accepted.

    :raises ValueError: when two candidates have the same uuid
    """
    missing = {name: missing[name] for name in sorted(missing)}
    missing = {name: d for name, d in missing.items() if d > 0}
    if not missing and accept is None:
        return VictimSet((), 0, optimal=True, steps=0)
    pool = sorted(candidates, key=operator.attrgetter("uuid"))
    uuids = [candidate.uuid for candidate in pool]
    if len(set(uuids)) < len(uuids):
        raise ValueError(f"some candidates have the same uuid: {uuids}")
    caps = tuple(caps)
    barred = {uuid for cap in caps if cap.most <= 0 for uuid in cap.uuids}
    pool = [c for c in pool if c.uuid not in barred]
    if accept is None:
        # A candidate that frees nothing can matter only to ``accept``.
        pool = [c for c in pool if any(map(c.resources.get, missing))]
    search = CoverSearch(pool, missing, capacity, limits, caps)
    if accept is None and not search.caps.caps:
        return search.cheapest()
    return search.accepted(accept)


class CoverSearch:
    """A search for victims: candidates in order of uuid, and steps so far."""

    def __init__(self, pool: Sequence[Candidate], missing: Amounts,
                 capacity: Amounts | None, limits: SearchLimits,
                 caps: Sequence[VictimCap],
                 keys: CandidateKeys | None = None,) -> None:
        self.pool = pool
        members = [
            (frozenset(i for i, c in enumerate(pool) if c.uuid in cap.uuids),
             max(0, cap.most)) for cap in caps]
        # Only the caps that the pool could break.
        self.caps = CoverCaps([cap for cap in members if len(cap[0]) > cap[1]])
        self.need: Row = tuple(missing.values())
        self.rows: list[Row] = [
            tuple([c.resources.get(name, 0) for name in missing]) for c in pool
        ]
        self.keys = keys or make_keys(pool, missing, capacity)
        self.limits = limits
        self.steps = 0

    def cheapest(self) -> VictimSet | None:
        """Return the best set, without regard to ``accept`` and caps."""
        answer = self.solve([], list(range(len(self.pool))))
        if answer is None:
            return None
        chosen = self.keys.decode(answer.key)
        if not answer.exact:
            chosen = self.spare(chosen, self.frees_enough)
        return self.victims(chosen, optimal=answer.exact)

    def accepted(self, accept: Accept | None) -> VictimSet | None:
        """Return the best accepted set that the budget allows to find."""

        def good(chosen: list[int]) -> bool:
            return self.frees_enough(chosen) and (
                accept is None or accept(tuple([self.pool[i] for i in chosen]))
            )

        if not self.frees_enough(range(len(self.pool))):
            return None
        # Without a test the first set is accepted.
        checks = 1 if accept is None else self.limits.accept_checks
        for chosen, optimal in self.offers(checks):
            if good(chosen):
                minimal = chosen if optimal else self.spare(chosen, good)
                return self.victims(minimal, optimal=optimal)
        for crowd in self.fallback_sets():
            if good(crowd):
                return self.victims(self.spare(crowd, good), optimal=False)
        return None

    def offers(self, checks: int) -> Iterator[tuple[list[int], bool]]:
        """Yield sets that free enough and keep the caps, ascending."""
        splits = self.limits.cap_splits
        covers = ranked(self.keys, self.solve, self.caps)
        while checks and splits:
            cover = next(covers, None)
            if cover is None:
                return
            if self.caps.excess(cover[0], []):
                splits -= 1
            else:
                checks -= 1
                yield cover

    def fallback_sets(self) -> Iterator[list[int]]:
        """Yield large sets that keep the caps; all candidates without caps.

        Filled greedily by freed amount, by freed amount per cost, and by cost.
        """
        freed = [
            sum([SHARE * r // n for r, n in zip(row, self.need, strict=True)])
            for row in self.rows]
        costs = [candidate.cost for candidate in self.pool]
        everybody = range(len(self.pool))
        for order in (
            [-share for share in freed],
            [SHARE * cost // max(1, share)
             for cost, share in zip(costs, freed, strict=True)],
            costs):
            crowd: list[int] = []
            for i in sorted(everybody, key=order.__getitem__):
                if not self.caps.excess([*crowd, i], []):
                    crowd.append(i)
            yield sorted(crowd)
            if not self.caps.caps:
                return

    def solve(self, forced: list[int], free: list[int]) -> FoundCover | None:
        """Return the best set of free candidates that completes the forced."""
        allowed = self.caps.open(forced, free)
        if allowed is None:
            return None
        nodes, labels = self.limits.branch_steps, self.limits.dp_labels
        if self.steps > _SEARCHES * (nodes + labels):
            nodes = labels = 0
        need = self.need
        for i in forced:
            need = tuple(map(operator.sub, need, self.rows[i]))
        items = [(self.keys.keys[i], self.rows[i]) for i in allowed]
        answer = solve(items, need, self.keys.low, nodes, labels)
        if answer is not None:
            self.steps += answer.steps
        return answer

    def spare(
        self, chosen: list[int], good: Callable[[list[int]], bool]
    ) -> list[int]:
        """Return the set without unnecessary victims, dearest dropped first.

        Repeats until no victim can be spared, since ``good`` may be any test:
        a victim that was needed once may be unnecessary after others were
        dropped.
        """
        keys = self.keys.keys
        queue = collections.deque(
            sorted(chosen, key=keys.__getitem__, reverse=True))
        needed = 0
        while needed < len(queue):
            dearest = queue.popleft()
            if good(sorted(queue)):
                needed = 0
            else:
                queue.append(dearest)
                needed += 1
        return sorted(queue)

    def frees_enough(self, chosen: Sequence[int]) -> bool:
        """Return whether a set frees the missing amount of every class."""
        return all(
            sum([self.rows[i][k] for i in chosen]) >= wanted
            for k, wanted in enumerate(self.need))

    def victims(self, chosen: list[int], *, optimal: bool) -> VictimSet:
        """Return the set as a VictimSet."""
        victims = tuple([self.pool[i] for i in chosen])
        cost = sum([victim.cost for victim in victims])
        return VictimSet(victims, cost, optimal, self.steps)


def lower_bound(
    candidates: Iterable[Candidate], missing: Amounts) -> int | None:
    """Return a lower bound of the cost of victims; None: no set suffices.

    The largest, over the missing classes, of the cost of freeing that class
    alone if servers were divisible. O(classes * n log n).
    """
    pool = list(candidates)
    bounds = [
        divisible(
            [(c.cost, min(c.resources.get(name, 0), need)) for c in pool],
            need, ) for name, need in missing.items() if need > 0]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return None
    return max(known, default=0)


def stays_cheapest(
    candidates: Iterable[Candidate], victim_set: VictimSet) -> bool:
    """Return whether the set remains the cheapest if less is missing.

    True for a single victim that costs less than any other candidate, as long
    as anything is missing.
    """
    if len(victim_set.victims) != 1:
        return False
    (victim,) = victim_set.victims
    return all(
        other.cost > victim.cost for other in candidates
        if other.uuid != victim.uuid)


def divisible(offers: list[tuple[int, int]], need: int) -> int | None:
    """Return the least cost of ``need`` units, rounded up.

    ``offers``: (cost, units) that can be bought in part. Costs may exceed
    floats.
    """
    offers = sorted(
        [offer for offer in offers if offer[1]],
        key=lambda offer: (offer[0] << _PRICE_BITS) // offer[1], )
    left = need
    for price, unit in offers:
        left -= unit
        if left <= 0:
            # Evaluated as the dual at this one's price per unit, which is a
            # lower bound even if rounding has put the offers out of order.
            saved = sum([max(0, price * u - p * unit) for p, u in offers])
            return -((saved - price * need) // unit)
    return None
