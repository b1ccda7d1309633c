# SPDX-License-Identifier: Apache-2.0
"""Intents of the controller of an open reservation."""

from __future__ import annotations

import dataclasses
import enum
from typing import TypeAlias

from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import healing_rules


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
    residents: tuple[drain_rules.Server, ...] = ()
    blocking: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class StartReservation:
    """Let the reservation start."""


Intent: TypeAlias = (
    Evict | Migrate | TurnAway | SetHost | ReplaceHost | healing_rules.Return
    | StartReservation)
