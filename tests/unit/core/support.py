# SPDX-License-Identifier: Apache-2.0

"""Builders, an exhaustive search for victims, and strategies of the laws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import itertools

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.model import (
    Candidate,
    Host,
    Inventory,
    Provider,
    Resources,
)

#: More examples than of other laws; see also tests/unit/__init__.py.
LAW = hypothesis.settings(max_examples=150)

CLASSES = ("CUSTOM_X", "DISK_GB", "MEMORY_MB", "PCPU", "VCPU")


def candidate(uuid: str, cost: int = 0, **resources: int) -> Candidate:
    """Return a candidate."""
    return Candidate(uuid, resources, cost)


def host(
    name: str,
    capacity: Resources,
    used: Resources,
    candidates: Iterable[Candidate] = (),
) -> Host:
    """Return a host whose candidates are not yet counted in ``used``.

    What these hold is given by class.
    """
    uuid = f"uuid of {name}"
    candidates = tuple(candidates)
    return Host(
        name,
        (
            Provider(
                uuid,
                0,
                {rc: Inventory(total) for rc, total in capacity.items()},
                {"others": used}
                | {each.uuid: each.resources for each in candidates},
            ),
        ),
        tuple(
            Candidate(
                each.uuid,
                {(uuid, rc): n for rc, n in each.resources.items()},
                each.cost,
            )
            for each in candidates
        ),
    )


def uuids(found: Iterable[Candidate]) -> list[str]:
    """Return the uuids of candidates."""
    return [each.uuid for each in found]


def frees_enough(chosen: Iterable[Candidate], missing: Resources) -> bool:
    """Return whether the candidates free the shortfall."""
    chosen = tuple(chosen)
    return all(
        sum(each.resources.get(rc, 0) for each in chosen) >= amount
        for rc, amount in missing.items()
    )


def exhaustive(
    candidates: Iterable[Candidate],
    missing: Resources,
    capacity: Resources | None = None,
    accept: Callable[[tuple[Candidate, ...]], bool] | None = None,
) -> tuple[Candidate, ...] | None:
    """Return the best set by trying them all."""
    weights = (
        {rc: 1 for rc, amount in missing.items() if amount > 0}
        if capacity is None
        else {rc: 10**9 // total for rc, total in capacity.items() if total}
    )

    def key(chosen: tuple[Candidate, ...]) -> tuple[object, ...]:
        surplus = sum(
            weights.get(rc, 0) * amount
            for each in chosen
            for rc, amount in each.resources.items()
        )
        cost = sum(each.cost for each in chosen)
        return cost, len(chosen), surplus, uuids(chosen)

    pool = sorted(candidates, key=lambda each: each.uuid)
    return min(
        (
            chosen
            for count in range(len(pool) + 1)
            for chosen in itertools.combinations(pool, count)
            if frees_enough(chosen, missing)
            and (accept is None or accept(chosen))
        ),
        key=key,
        default=None,
    )


@st.composite
def problems(
    draw: st.DrawFn, most: int = 9
) -> tuple[list[Candidate], dict[str, int], dict[str, int] | None]:
    """Draw (candidates, missing, capacity), with many ties among them."""
    classes = CLASSES[: draw(st.integers(1, len(CLASSES)))]
    largest = draw(st.sampled_from((1, 3, 50)))
    dearest = draw(st.sampled_from((0, 1, 5, 10**9)))
    amounts = st.integers(0, largest)
    flavors = draw(
        st.lists(
            st.fixed_dictionaries(dict.fromkeys(classes, amounts)),
            min_size=1,
            max_size=draw(st.sampled_from((2, most))),
        )
    )
    candidates = [
        Candidate(
            f"{number:02}",
            draw(st.sampled_from(flavors)),
            draw(st.integers(0, dearest)),
        )
        for number in draw(
            st.lists(st.integers(0, 99), unique=True, max_size=most)
        )
    ]
    missing = {
        rc: draw(st.integers(0, 1 + part * total(candidates, rc) // 4))
        for rc, part in zip(
            classes,
            draw(st.lists(st.integers(0, 4), min_size=5, max_size=5)),
            strict=False,
        )
    }
    capacity = draw(
        st.none()
        | st.fixed_dictionaries(
            dict.fromkeys((*classes, "VGPU"), st.integers(0, 200))
        )
    )
    return candidates, missing, capacity


def total(candidates: Iterable[Candidate], rc: str) -> int:
    """Return the amount of a class that all candidates free."""
    return sum(each.resources.get(rc, 0) for each in candidates)


def more(used: Mapping[str, int], extra: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two amounts of resources."""
    return {rc: used.get(rc, 0) + extra.get(rc, 0) for rc in {*used, *extra}}
