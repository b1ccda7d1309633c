# SPDX-License-Identifier: Apache-2.0

"""Data model of reservations, shared by all modules that handle them."""

from collections.abc import Mapping
import dataclasses
import datetime
from typing import Any

# Statuses of a reservation. Those in OPEN have their hosts.
PENDING = 'pending'      # granted, has not started
ACTIVE = 'active'        # its hosts are its own
DEGRADED = 'degraded'    # either of these, with fewer hosts than were asked
ENDED = 'ended'
CANCELLED = 'cancelled'  # before it started
ERROR = 'error'          # failed; see the reason
OPEN = (PENDING, ACTIVE, DEGRADED)
STATUSES = (*OPEN, ENDED, CANCELLED, ERROR)

# Statuses of a host of a reservation. All but LOST are held.
ASSIGNED = 'assigned'    # not drained yet
EMPTYING = 'emptying'    # is being drained
READY = 'ready'          # is empty
LOST = 'lost'            # is down, or could not be emptied

_EPOCH = datetime.datetime.fromisoformat('1970-01-01')


def to_s(time: datetime.datetime) -> int:
    """Return whole seconds since the epoch of a naive UTC datetime."""
    delta = time - _EPOCH
    return delta.days * 86400 + delta.seconds


def from_s(time_s: int) -> datetime.datetime:
    """Return the naive UTC datetime; OverflowError if there is none."""
    return _EPOCH + datetime.timedelta(seconds=time_s)


def to_us(time: datetime.datetime) -> int:
    """Return microseconds since the epoch of a naive UTC datetime."""
    return (time - _EPOCH) // datetime.timedelta(microseconds=1)


def from_us(time_us: int) -> datetime.datetime:
    """Return the naive UTC datetime; OverflowError if there is none."""
    return _EPOCH + datetime.timedelta(microseconds=time_us)


@dataclasses.dataclass(frozen=True)
class Assignment:
    """A host of a reservation, for [start_at, end_at)."""

    host: str
    start_at: datetime.datetime
    end_at: datetime.datetime
    status: str = ASSIGNED
    reason: str = ''
    # The reason for its owner.
    public_reason: str | None = None


@dataclasses.dataclass(frozen=True)
class Reservation:
    """A reservation; times are naive, UTC and in whole seconds.

    Its start, its end and its hosts are those that it was granted.
    """

    uuid: str
    project_id: str
    quantity: int
    duration_s: int
    window_start: datetime.datetime
    end_action: str
    before_end_s: int
    name: str = ''
    user_id: str = ''
    status: str = PENDING
    # For operators: it may name servers of others.
    reason: str = ''
    # For its owner.
    public_reason: str | None = None
    # As they were asked for: a JSON value.
    host_properties: list[Any] = dataclasses.field(default_factory=list)
    window_end: datetime.datetime | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None
    start_at: datetime.datetime = _EPOCH
    end_at: datetime.datetime = _EPOCH
    ready_at: datetime.datetime | None = None
    noticed_at: datetime.datetime | None = None
    released_at: datetime.datetime | None = None
    hosts: tuple[Assignment, ...] = ()

    @property
    def held(self) -> tuple[str, ...]:
        """Return the names of its hosts that are not lost, sorted."""
        return tuple(item.host for item in self.hosts if item.status != LOST)

    @property
    def start_s(self) -> int:
        return to_s(self.start_at)

    @property
    def end_s(self) -> int:
        return to_s(self.end_at)


HINT = "reservation"


class InvalidHint(ValueError):
    """Raised for a malformed reservation hint."""


def ids_in_hints(hints: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the ids of reservations in scheduler hints, mostly none or one.

    :raises InvalidHint:
    """
    value = (hints or {}).get(HINT, ())
    ids = (value,) if isinstance(value, str) and value else value
    if not isinstance(ids, str | list | tuple) or not all(
        isinstance(lease_id, str) for lease_id in ids):
        raise InvalidHint("it must be an id or a list of ids")
    return tuple(ids)
