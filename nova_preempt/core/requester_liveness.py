# SPDX-License-Identifier: Apache-2.0
"""Tells whether the request that victims end for still exists.

Asked before each act upon a victim. A user deletes the new server or cancels
the reservation during a notice, a host of a reservation is replaced, space
becomes free without the victim: then nobody ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
import dataclasses
import datetime
from typing import Protocol

from nova_preempt.core.reservation import reservation_model

RESERVATION = "reservation"
HEADROOM = "headroom"

SERVER_GONE = "the server was deleted while its victims had their notice"


@dataclasses.dataclass(frozen=True, slots=True)
class Purpose:
    """The request that a preemption serves.

    ``server_uuid``: the server that needs the space, '' if none does.
    ``reservation_uuid``: of the operation ``reservation``. ``node``: the host
    that the reservation needs empty. ``providers``: uuids of those on which
    the victims have their space. A maximum run time, a call that evicts a
    server and a repair cannot be withdrawn: they have only an operation.
    """

    operation: str
    server_uuid: str = ""
    reservation_uuid: str = ""
    node: str = ""
    providers: Collection[str] = ()


class RequesterView(Protocol):
    """Answers about requests as they are now."""

    def is_gone(self, server_uuid: str) -> bool:
        """Whether a server is deleted, or Nova has given it up.

        Or the waiting request was closed that it is for, which deletes it.
        """

    def are_hosts_emptied(self) -> bool:
        """Whether hosts are emptied for reservations at all."""

    def reservation(self, uuid: str) -> reservation_model.Reservation | None:
        """A reservation, None if there is none."""

    def lacks_headroom(self, providers: Collection[str]) -> bool:
        """Whether the headroom around one of these providers is short."""


def why_unneeded(purpose: Purpose, port: RequesterView,
                 now: datetime.datetime) -> str:
    """Return why nobody needs the space of the victims, '' if it is needed.

    :param now: naive and in UTC
    """
    if purpose.server_uuid:
        return SERVER_GONE if port.is_gone(purpose.server_uuid) else ""
    if purpose.operation == RESERVATION and purpose.reservation_uuid:
        if not port.are_hosts_emptied():
            return "reservations were turned off"
        return _why_no_reservation(
            purpose, port.reservation(purpose.reservation_uuid), now)
    if (
        purpose.operation == HEADROOM and purpose.providers
        and not port.lacks_headroom(purpose.providers)):
        return "there is enough headroom without them"
    return ""


def _why_no_reservation(
    purpose: Purpose, found: reservation_model.Reservation | None,
    now: datetime.datetime, ) -> str:
    name = f"reservation {purpose.reservation_uuid}"
    if found is None:
        return f"{name} does not exist any more"
    if found.status not in reservation_model.OPEN:
        return f"{name} is {found.status}"
    if found.end_at <= now:
        return f"{name} is over"
    if purpose.node and purpose.node not in found.held:
        return f"{name} does not have host {purpose.node} any more"
    return ""


def is_orphan(
    uuid: str, owner: str, age_s: float, *, me: str,
    working_on: Collection[str], leases: Mapping[str, bool], timeout_s: float,
) -> bool:
    """Whether a decision has nobody who finishes it.

    1. One of ours, if no thread of this process works on it: it waits until
       Nova has finished with a victim, or has failed in a way that nobody
       foresaw.
    2. One whose owner has a lease, if that has run out. How long ago its owner
       gave a sign is no matter, nor by which clock.
    3. One that was given up, or whose owner has no lease: once nothing has
       happened to it for long enough. What was asked for, and may still
       arrive, has done so by then.

    :param owner: the name of its owner, empty if it was given up
    :param age_s: the time since its last sign of life
    :param me: the name of this process
    :param working_on: the uuids of decisions that this process works on
    :param leases: whether each owner's lease has not run out
    :param timeout_s: how long the others are waited for
    """
    if owner == me:
        return uuid not in working_on
    if owner in leases:
        return not leases[owner]
    return age_s >= timeout_s
