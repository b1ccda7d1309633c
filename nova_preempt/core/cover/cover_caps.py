# SPDX-License-Identifier: Apache-2.0

"""At most so many of these: caps on the members of a cover.

A cover that breaks a cap tells where to look next: of the members that are
too many at least one has to be missing. So its space is divided by who that
is, and what has all of them is left out at once.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Caps:
    """(items, how many of them a cover may have at most), any number."""

    caps: Sequence[tuple[frozenset[int], int]] = ()

    def open(self, forced: list[int], free: list[int]) -> list[int] | None:
        """Return who of the free may join the forced.

        None = the forced alone break a cap.
        """
        for members, most in self.caps:
            held = len(members.intersection(forced))
            if held > most:
                return None
            if held == most:
                free = [i for i in free if i not in members]
        return free

    def excess(self, cover: list[int], forced: list[int]) -> list[int]:
        """Return members one of whom has to be missing; [] = no cap broken.

        None of the forced ones, who do not break a cap themselves.
        """
        for members, most in self.caps:
            over = [i for i in cover if i in members]
            if len(over) > most:
                held = members.intersection(forced)
                others = [i for i in over if i not in held]
                return others[: most - len(held) + 1]
        return []
