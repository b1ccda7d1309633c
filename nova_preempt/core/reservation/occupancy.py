# SPDX-License-Identifier: Apache-2.0
"""Tells whether anything uses a host."""

from collections.abc import Collection
import dataclasses


@dataclasses.dataclass(frozen=True)
class Occupants:
    """Uuids of whatever is on a host, comes to it or leaves it.

    A server that is being built has its space in Placement before its host
    knows of it; one that is moving may have it in a record of its migration
    only; one whose allocations were lost is on the host all the same.

    :param consumers: who has allocations of the host, or of any part of it
    :param servers: those that Nova's cell has there
    :param migrations: servers that move from it or to it
    """

    consumers: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()
    migrations: frozenset[str] = frozenset()


def is_empty(occupants: Occupants,
             ignored: Collection[str] = frozenset()) -> bool:
    """Whether nothing is there.

    :param ignored: uuids that do not count, such as those of servers that
        would give way
    """
    found = (occupants.consumers | occupants.servers | occupants.migrations)
    return found <= frozenset(ignored)
