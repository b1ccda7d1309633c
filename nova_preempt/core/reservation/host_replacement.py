# SPDX-License-Identifier: Apache-2.0
"""Rules by which hosts of reservations are replaced, or returned.

A lost host returns to the reservation whose servers still run on it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
import dataclasses
import datetime
from typing import Any

from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import host_query
from nova_preempt.core.reservation import observed_hosts
from nova_preempt.core.reservation import reservation_model


@dataclasses.dataclass(frozen=True, slots=True)
class DownHosts:
    """Hosts that are down, disabled or gone.

    :ivar held: the names of such hosts of reservations
    :ivar number: how many of the hosts that matter are down
    :ivar of: how many matter: hosts of reservations, and hosts in use
    """

    held: frozenset[str]
    number: int
    of: int


def find_down(held: Collection[str], hosts: Mapping[str, observed_hosts.Host],
        *, partial: bool) -> DownHosts:
    """Return the hosts that are down.

    :param held: the names of hosts of reservations
    :param partial: whether some cells cannot be read: hosts that are not
        listed may be in such a cell, and are not taken for gone
    """
    kept = {name for name in held if name in hosts or not partial}
    matter = kept | {name for name, host in hosts.items()
                     if host.status == "enabled"}
    down = {
        name
        for name in matter
        if name not in hosts
        or not (hosts[name].is_usable or hosts[name].dark)
    }
    return DownHosts(frozenset(down & kept), len(down), len(matter))


def candidates(
    reservation: reservation_model.Reservation,
    hosts: Iterable[observed_hosts.Host],
    busy: Mapping[str, tuple[calendar.Interval, ...]], *, now_s: int,
    lead_s: int, ranking: calendar.Ranking, is_vacant: Callable[[str], bool],
    servers: Mapping[str, int], down: Collection[str] = (), ) -> list[str]:
    """Return the names of hosts that could be added, the best ones first.

    Hosts that it has not lost come first; then, if it is soon, hosts with
    fewer servers and hosts that are on; then as the ranking says. It is soon
    if there is no time to migrate servers: then only hosts count that are
    vacant, or will be once preemptible servers have ended, and that are on in
    time.

    :param busy: when hosts are leased
    :param lead_s: how long before a start normal servers are migrated
    :param is_vacant: called only where it matters
    :param servers: how many run on each host
    :param down: the names of hosts that are down
    :raises InvalidQuery: an earlier release accepted a query that this one
        does not
    """
    since_s = max(now_s, reservation.start_s)
    soon = since_s <= now_s + lead_s
    matches = host_query.parse(reservation.host_properties).matches
    not_these = {*reservation.held, *down}
    lost = set(lost_hosts(reservation))
    found = {
        host.name: host for host in hosts
        if host.reservable and host.is_usable and matches(host.properties)
        and not (soon and host.asleep and host.asleep.why_late)
        and host.name not in not_these
    }
    ranked = calendar.ranked(
        [calendar.ReservableHost(name, busy.get(name, ()), host.flops_per_watt)
         for name, host in found.items()],
        since_s, reservation.end_s, ranking)
    if soon:
        ranked = [name for name in ranked if is_vacant(name)]
    # The sort is stable, so ties stay ranked.
    return sorted(ranked, key=lambda name: (
        name in lost, servers.get(name, 0) if soon else 0,
        soon and found[name].asleep is not None))


def lost_hosts(reservation: reservation_model.Reservation) -> list[str]:
    """Return the names of the hosts that a reservation has lost."""
    return [host.host for host in reservation.hosts
            if host.status == reservation_model.LOST]


def free_lost_hosts(reservation: reservation_model.Reservation, host: Callable[
        [str], observed_hosts.Host | None], busy: Mapping[str, tuple[
        calendar.Interval, ...]], now_s: int) -> list[str]:
    """Return the hosts that a reservation has lost and that are free again.

    :param host: returns a host of this name, None if it is not listed
    :param busy: when hosts are leased
    """
    return [
        name for name in lost_hosts(reservation)
        if (seen := host(name)) and seen.is_usable
        and calendar.is_free(busy.get(name, ()), now_s, reservation.end_s)]


def exchange(
    reservation: reservation_model.Reservation, old: str | None,
    new: str | None, now: datetime.datetime, reason: str, public_reason: str,
) -> list[reservation_model.Assignment]:
    """Return the changed assignments when a host replaces another.

    The reservation has the new host from now on, or from its start.

    :param old: the host that is LOST, None if one is only added
    :param new: the host that it gets, None if there is none
    :param now: naive and in UTC
    :param reason: why the old one is lost
    :param public_reason: the same for its owner
    """
    since = max(reservation.start_at, now)
    lost = [
        dataclasses.replace(
            host, end_at=since, status=reservation_model.LOST, reason=reason,
            public_reason=public_reason, ) for host in reservation.hosts
        if host.host == old]
    if new is None:
        return lost
    return [
        *lost,
        reservation_model.Assignment(
            new, since, reservation.end_at, reservation_model.ASSIGNED, "", ""
        ),
    ]


def status_after(reservation: reservation_model.Reservation, reason: str,
        public_reason: str | None) -> Mapping[str, Any]:
    """Return status and reasons of a reservation whose hosts have changed.

    :param reason: why a host was lost, if one was
    :param public_reason: the same for its owner
    """
    missing = reservation.quantity - len(reservation.held)
    if missing > 0:
        said = f"{missing} of {reservation.quantity} hosts are missing"
        return {
            "status": reservation_model.DEGRADED,
            "reason": f"{said}: {reason}" if reason else said,
            "public_reason": (
                f"{said}: {public_reason}" if public_reason else said),
        }
    if reservation.status == reservation_model.DEGRADED:
        # It starts when its hosts are empty, not when it is complete.
        status = (
            reservation_model.PENDING if reservation.ready_at is None
            else reservation_model.ACTIVE)
        return {"status": status, "reason": "", "public_reason": ""}
    return {
        "status": reservation.status,
        "reason": reservation.reason,
        "public_reason": reservation.public_reason,
    }


@dataclasses.dataclass(frozen=True, slots=True)
class ReturnHost:
    """Return a host to its reservation, in place of another if named."""

    host: str
    instead_of: str | None = None


def returns(quantity: int, held: Mapping[str, int], lost: Mapping[str,
        int]) -> tuple[ReturnHost, ...]:
    """Return the lost hosts that come back to a reservation.

    Hosts on which its servers run: first where one is missing, then in place
    of one without its servers, and else on top, since its project was promised
    hosts of its own.

    :param held: how many of its servers run on each host that it has
    :param lost: the same of hosts that it has lost, and that are free
    """
    missing = quantity - len(held)
    unused = sorted(
        (name for name, count in held.items() if not count), reverse=True)
    found = []
    for name, count in sorted(
        lost.items(), key=lambda item: (-item[1], item[0])):
        if not count:
            continue
        if missing > 0:
            missing -= 1
            found.append(ReturnHost(name))
        else:
            found.append(ReturnHost(name, unused.pop() if unused else None))
    return tuple(found)
