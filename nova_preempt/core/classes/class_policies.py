# SPDX-License-Identifier: Apache-2.0

"""Policies of class schedulers: the order of requests, and their victims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import functools
from typing import Any, Protocol, TypeAlias

from nova_preempt.core import victims as searches
from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes import victim_harm
from nova_preempt.core.classes.availability_margin import QosClasses
from nova_preempt.core.classes.availability_margin import Standing
from nova_preempt.core.model import Candidate, Resources

#: Smaller is better.
Key: TypeAlias = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class RankedRequest:
    """A request with its standing in a pass, waiting or on a host."""

    standing: Standing
    resources: Resources
    policy: ClassPolicy

    @functools.cached_property
    def price(self) -> int:
        """Return the cost of it as a victim."""
        return self.policy.price(self.standing)


class ClassPolicy(Protocol):
    """The decisions in which class schedulers differ."""

    def price(self, standing: Standing) -> int:
        """Return the cost of one victim, 0 if costs are not additive."""

    def order(self, standing: Standing) -> Key:
        """Return the key that ranks a waiting request; it is unique."""

    def may_preempt(self, one: Standing, other: Standing) -> bool:
        """Tell whether a request may preempt another; a strict order."""

    def victims(self, held: Sequence[RankedRequest],
            missing: Resources) -> Sequence[RankedRequest] | None:
        """Return the victims on a host, None if all together free too little.
        """

    def cost(self, victims: Iterable[RankedRequest]) -> Key:
        """Return the key by which hosts are compared."""

    def floor(self, held: Sequence[RankedRequest]) -> Key:
        """Return the least cost of one or more of these, () if unknown."""


@dataclasses.dataclass(frozen=True)
class PromisePolicy:
    """Ranks the request first that is nearest to a broken promise.

    ``exact``: the best victims of a host, and the host where they are best, by
    the same cost; else the published choice, see victim_harm.py.
    """

    classes: QosClasses
    exact: bool = True

    def price(self, standing: Standing) -> int:
        return victim_harm.harm_cost(self.classes, standing)

    def order(self, standing: Standing) -> Key:
        return standing.order

    def may_preempt(self, one: Standing, other: Standing) -> bool:
        return availability_margin.may_preempt(one, other)

    def victims(self, held: Sequence[RankedRequest],
            missing: Resources) -> Sequence[RankedRequest] | None:
        if not self.exact:
            return reprieve(held, missing, self.order)
        found = searches.cheapest_victims(
            (Candidate(each.standing.uuid, each.resources, each.price)
             for each in held), missing)
        if found is None:
            return None
        chosen = {each.uuid for each in found.victims}
        return [each for each in held if each.standing.uuid in chosen]

    def cost(self, victims: Iterable[RankedRequest]) -> Key:
        if self.exact:
            return (sum(each.price for each in victims),)
        return victim_harm.published_cost(
            self.classes, (each.standing for each in victims))

    def floor(self, held: Sequence[RankedRequest]) -> Key:
        if self.exact:
            return (min(each.price for each in held),)
        return ()


def reprieve(held: Sequence[RankedRequest], missing: Resources,
        order: Callable[[Standing], Key]) -> Sequence[RankedRequest] | None:
    """Return the victims by the published search, see victim_harm.py."""
    found = victim_harm.reprieve(
        [(each.standing, each.resources) for each in held], missing, order)
    if found is None:
        return None
    chosen = {each.uuid for each in found}
    return [each for each in held if each.standing.uuid in chosen]
