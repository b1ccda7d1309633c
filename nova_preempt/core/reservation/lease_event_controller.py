# SPDX-License-Identifier: Apache-2.0

"""Controller of lease events: starts, warnings before the end, and ends."""

import bisect
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import datetime
import enum
import itertools
from typing import Any, TypeAlias

from nova_preempt.core import controller_step
from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import reservation_model


class Kind(enum.IntEnum):
    """Kinds of events, ordered at one time so that hosts are freed first."""

    END = 0
    BEFORE_END = 1
    START = 2


#: (when in microseconds since the epoch, kind, uuid of the reservation).
_Event: TypeAlias = tuple[int, Kind, str]


@dataclasses.dataclass(frozen=True, slots=True)
class ApplyEvent:
    """Apply change() to each of these reservations.

    A reservation may have changed meanwhile, and be ready since.
    """

    kind: Kind
    reservations: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """State that one step keeps for the next.

    :ivar reservations: the argument of the last step
    :ivar to_come: their events that are not due yet, in order
    """

    reservations: Sequence[reservation_model.Reservation] = ()
    to_come: tuple[_Event, ...] = ()


def step(reservations: Sequence[reservation_model.Reservation], told: Memory,
        now_us: int) -> controller_step.Step[ApplyEvent, Memory]:
    """Return the events that are due, grouped by time and kind.

    An event is returned once for each change of its reservation: a reservation
    that is not ready at its start is started by its own controller.

    :param reservations: the open ones; one that has not changed is the same
        object as in the last step
    """
    to_come = told.to_come
    if reservations is not told.reservations:
        to_come = _updated(to_come, told.reservations, reservations)
    count = bisect.bisect_left(to_come, (now_us + 1,))
    due, to_come = to_come[:count], to_come[count:]
    return controller_step.Step(tuple(ApplyEvent(kind, tuple(uuid for *_,
        uuid in events)) for (_, kind), events in itertools.groupby(due,
        lambda event: event[:2])), Memory(reservations, to_come), to_come[0][
        0] if to_come else None)


def _updated(
    to_come: Sequence[_Event], before: Sequence[reservation_model.Reservation],
    now: Sequence[reservation_model.Reservation], ) -> tuple[_Event, ...]:
    """Return the future events, updated for changed reservations."""
    old, new = set(map(id, before)), set(map(id, now))
    gone = {each.uuid for each in before if id(each) not in new}
    found = [event for event in to_come if event[2] not in gone]
    found += [event for each in now if id(each) not in old
              for event in _events(each)]
    return tuple(sorted(found))


def _events(reservation: reservation_model.Reservation) -> Iterator[_Event]:
    """Yield the future events of an open reservation."""
    uuid, end_us = reservation.uuid, reservation.end_s * SECOND
    yield end_us, Kind.END, uuid
    if reservation.ready_at is None:
        yield reservation.start_s * SECOND, Kind.START, uuid
    elif reservation.noticed_at is None:
        yield (end_us - reservation.before_end_s * SECOND, Kind.BEFORE_END,
               uuid)


def is_ready(reservation: reservation_model.Reservation) -> bool:
    """Tell whether it has hosts, and all of them are empty."""
    held = [host for host in reservation.hosts
            if host.status != reservation_model.LOST]
    return bool(held) and all(host.status == reservation_model.READY
                              for host in held)


def change(
    reservation: reservation_model.Reservation, kind: Kind,
    now: datetime.datetime, *, enabled: bool = True, ) -> Mapping[str, Any]:
    """Return the values that an event changes in a reservation, by name.

    Empty if it is not due, or has happened.

    :param now: naive and in UTC
    :param enabled: whether reservations may start
    """
    now_us, at = reservation_model.to_us(now), now.replace(microsecond=0)
    if reservation.status not in reservation_model.OPEN or not any(
            at_us <= now_us for at_us, what, _ in _events(reservation)
            if what is kind):
        return {}
    if kind is Kind.BEFORE_END:
        return {"noticed_at": at}
    if kind is Kind.END:
        return _end(reservation)
    if not enabled or not is_ready(reservation):
        return {}
    # A degraded reservation stays degraded: it starts with fewer hosts.
    return {"status": reservation_model.ACTIVE
            if reservation.status == reservation_model.PENDING
            else reservation.status, "ready_at": at}


def _end(reservation: reservation_model.Reservation) -> Mapping[str, Any]:
    values = {"status": reservation_model.ENDED}
    if reservation.ready_at is None:
        said = "it ended before its hosts were empty"
        for name, text in (
            ("reason", reservation.reason),
            ("public_reason", reservation.public_reason),
        ):
            values[name] = f"{said}: {text}" if text else said
    return values
