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
"""Intents of the controller of an open reservation."""

from __future__ import annotations

import dataclasses
import enum
from typing import TypeAlias

from nova_preempt.core.reservation import drain
from nova_preempt.core.reservation import healing


class Loss(enum.Enum):
    """Why a host is taken from a reservation."""

    DOWN = "down"
    OCCUPIED = "occupied"
    ASLEEP = "asleep"


@dataclasses.dataclass(frozen=True, slots=True)
class Evict:
    """Begin the notice of preemptible servers of a host, as one decision."""

    host: str
    servers: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Migrate:
    """Move a normal server away from a host."""

    host: str
    server: str


@dataclasses.dataclass(frozen=True, slots=True)
class TurnAway:
    """Report servers on a host that the reservation has for itself."""

    host: str
    servers: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SetHost:
    """Record the status of a host of the reservation."""

    host: str
    status: str


@dataclasses.dataclass(frozen=True, slots=True)
class ReplaceHost:
    """Give the reservation the first candidate that is still free.

    :ivar host: the host that it loses for that, None if it misses one
    :ivar loss: why it loses that host
    :ivar or_lose: whether it loses the host even if no candidate is free
    :ivar residents: the servers on the host
    :ivar blocking: uuids of those that will not be gone in time
    """

    host: str | None
    candidates: tuple[str, ...]
    loss: Loss | None = None
    or_lose: bool = False
    residents: tuple[drain.Server, ...] = ()
    blocking: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class StartReservation:
    """Let the reservation start."""


Intent: TypeAlias = (
    Evict | Migrate | TurnAway | SetHost | ReplaceHost | healing.Return
    | StartReservation
)
