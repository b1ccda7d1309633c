# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
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
