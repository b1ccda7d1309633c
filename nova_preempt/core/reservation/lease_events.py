# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What begins and ends when: starts, warnings before the end, and ends."""

from __future__ import annotations

from collections.abc import Mapping
import datetime
import enum
from typing import Any, TypeAlias

from nova_preempt.core.reservation import model


class Kind(enum.IntEnum):
    """What happens; of one time in this order, so that hosts get free."""

    END = 0
    BEFORE_END = 1
    START = 2


# When what happens to the reservation of which uuid.
Moment: TypeAlias = tuple[datetime.datetime, Kind, str]


def moments(reservation: model.Reservation) -> list[Moment]:
    """Return what is still to come of an open one."""
    uuid = reservation.uuid
    found = [(reservation.end_at, Kind.END, uuid)]
    if reservation.ready_at is None:
        found.append((reservation.start_at, Kind.START, uuid))
    elif reservation.noticed_at is None:
        found.append((_warning_at(reservation), Kind.BEFORE_END, uuid))
    return found


def is_ready(reservation: model.Reservation) -> bool:
    """Whether it has hosts, and all that it has are empty."""
    held = [host for host in reservation.hosts if host.status != model.LOST]
    return bool(held) and all(host.status == model.READY for host in held)


def change(
    reservation: model.Reservation,
    kind: Kind,
    now: datetime.datetime,
    *,
    enabled: bool = True,
) -> Mapping[str, Any]:
    """Return what changes of a reservation now, by name; nothing if it is
    not so far, or has happened.

    :param now: naive and in UTC
    :param enabled: whether any may start
    """
    if reservation.status not in model.OPEN:
        return {}
    if kind is Kind.END:
        return _end(reservation, now)
    if kind is Kind.BEFORE_END:
        return _warn(reservation, now)
    return _start(reservation, now) if enabled else {}


def _start(
    reservation: model.Reservation, now: datetime.datetime
) -> Mapping[str, Any]:
    if (
        reservation.ready_at is not None
        or now < reservation.start_at
        or not is_ready(reservation)
    ):
        return {}
    # A degraded one stays so: it has started, with fewer hosts.
    status = reservation.status
    if status == model.PENDING:
        status = model.ACTIVE
    return {"status": status, "ready_at": now.replace(microsecond=0)}


def _warn(
    reservation: model.Reservation, now: datetime.datetime
) -> Mapping[str, Any]:
    if reservation.noticed_at is not None or now < _warning_at(reservation):
        return {}
    return {"noticed_at": now.replace(microsecond=0)}


def _warning_at(reservation: model.Reservation) -> datetime.datetime:
    return reservation.end_at - datetime.timedelta(
        seconds=reservation.before_end_s
    )


def _end(
    reservation: model.Reservation, now: datetime.datetime
) -> Mapping[str, Any]:
    if now < reservation.end_at:
        return {}
    values = {"status": model.ENDED}
    if reservation.ready_at is None:
        said = "it ended before its hosts were empty"
        for name, text in (
            ("reason", reservation.reason),
            ("public_reason", reservation.public_reason),
        ):
            values[name] = f"{said}: {text}" if text else said
    return values
