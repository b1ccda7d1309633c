# SPDX-License-Identifier: Apache-2.0
"""Selects members of an affinity group that fit on one host."""

from __future__ import annotations

from collections.abc import Collection, Sequence
import dataclasses
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog.host_capacity import Room

Array: TypeAlias = npt.NDArray[Any]

#: More than this is not counted.
_LARGEST = 2**62


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """Servers of a group that somebody waits for, those of one request.

    :param count: so many, or fewer, but not fewer than ``least``
    """

    alternative: backlog_model.Alternative
    count: int
    least: int


class Rooms:
    """What is free of hosts, for many groups one after the other."""

    def __init__(self, rooms: Sequence[Room]) -> None:
        self._rooms = rooms
        self._number = {room.host: n for n, room in enumerate(rooms)}
        self._free: dict[str, Array] = {}
        self._suited: dict[tuple[tuple[str, ...], tuple[str, ...]], Array] = {}

    def fitting(
        self, wishes: Sequence[Wish], hosts: Collection[str] | None = None
    ) -> list[int]:
        """Return how many servers of each find room together on one host.

        Of the first as many as possible, of those as many of the second, and
        so on: who comes first is not left out for who comes later. Which host
        that is, is for the batch to say.

        :param hosts: the only ones that come into question, None for all
        """
        left: Array = np.arange(len(self._rooms))
        if hosts is not None:
            left = np.array(sorted(
                self._number[host] for host in hosts if host in self._number
            ), dtype=np.intp)
        taken: dict[str, int] = {}
        found = []
        for wish in wishes:
            counts = self._times(wish, left, taken)
            most = int(counts.max(initial=0))
            if most < wish.least:
                found.append(0)
                continue
            left = left[counts == most]
            for name, amount in wish.alternative.resources.items():
                taken[name] = taken.get(name, 0) + amount * most
            found.append(most)
        return found

    def _times(self, wish: Wish, left: Array, taken: dict[str, int]) -> Array:
        counts = np.where(self._suits(wish.alternative)[left], wish.count, 0)
        for name, amount in wish.alternative.resources.items():
            if amount > _LARGEST:
                return np.zeros_like(counts)
            if amount > 0:
                free = self._of(name)[left] - taken.get(name, 0)
                counts = np.minimum(counts, np.maximum(free, 0) // amount)
        return counts

    def _of(self, name: str) -> Array:
        """What is free of a resource class, host by host."""
        if name not in self._free:
            self._free[name] = np.array([
                max(0, min(room.free.get(name, 0), _LARGEST))
                for room in self._rooms], dtype=np.int64)
        return self._free[name]

    def _suits(self, alternative: backlog_model.Alternative) -> Array:
        """Whether the traits of each host are right."""
        key = alternative.required, alternative.forbidden
        if key not in self._suited:
            self._suited[key] = np.array(
                [room.is_for(alternative) for room in self._rooms], dtype=bool)
        return self._suited[key]
