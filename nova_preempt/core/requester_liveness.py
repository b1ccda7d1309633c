# SPDX-License-Identifier: Apache-2.0
"""Tells whether a preemption still serves a request, and has an owner.

Checked before each action on a victim. During a notice a user may delete the
new server or cancel the reservation, a host of a reservation may be replaced,
or capacity may become free: then nobody is evicted.
"""

from collections.abc import Collection, Mapping
import dataclasses
import datetime
from typing import Protocol

from nova_preempt.core.reservation import reservation_model

RESERVATION = "reservation"
HEADROOM = "headroom"

SERVER_GONE = "the server was deleted while its victims had their notice"


@dataclasses.dataclass(frozen=True, slots=True)
class ServedRequest:
    """The request that a preemption serves.

    ``server_uuid``: the preemptor, '' if there is none. ``reservation_uuid``:
    set for the operation ``reservation``. ``node``: the host that the
    reservation needs empty. ``providers``: uuids of the providers that hold
    the victims' allocations. A maximum run time, an eviction by the API and a
    repair cannot be withdrawn: they have only an operation.
    """

    operation: str
    server_uuid: str = ""
    reservation_uuid: str = ""
    node: str = ""
    providers: Collection[str] = ()


class RequesterView(Protocol):
    """Answers about requests as they are now."""

    def is_gone(self, server_uuid: str) -> bool:
        """Return whether a server is deleted, or Nova has given it up.

        True also if the backlog request that it was built for was closed,
        since that deletes it.
        """

    def are_hosts_emptied(self) -> bool:
        """Return whether hosts are drained for reservations at all."""

    def reservation(self, uuid: str) -> reservation_model.Reservation | None:
        """Return a reservation, None if it does not exist."""

    def lacks_headroom(self, providers: Collection[str]) -> bool:
        """Return whether a group of these providers is short of headroom."""


def why_unneeded(purpose: ServedRequest, port: RequesterView,
                 now: datetime.datetime) -> str:
    """Return why the victims' capacity is not needed, '' if it is.

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
    purpose: ServedRequest, found: reservation_model.Reservation | None,
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
    """Return whether no process will finish a decision.

    1. A decision of this process: if no thread works on it. It waited for Nova
       to finish with a victim, or failed in an unforeseen way.
    2. A decision whose owner has a lease: if the lease has expired, however
       long ago the owner was last heard from and by whichever clock.
    3. A decision that was given up, or whose owner has no lease: if it has not
       changed for ``timeout_s``. Pending calls have arrived by then.

    :param owner: the name of its owner, empty if it was given up
    :param age_s: the time since its last change
    :param me: the name of this process
    :param working_on: the uuids of decisions that this process works on
    :param leases: {owner: whether its lease is valid}
    :param timeout_s: the age at which a decision without a lease is orphaned
    """
    if owner == me:
        return uuid not in working_on
    if owner in leases:
        return not leases[owner]
    return age_s >= timeout_s
