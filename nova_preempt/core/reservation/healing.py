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
"""When hosts of reservations are given up, and which come back.

A host that was given up returns to the reservation whose servers still run on
it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
import dataclasses
import datetime
from typing import Any

from nova_preempt.core.energy import candidates
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import model

#: Between two looks at all hosts there is less, in seconds, unless something
#: is wrong.
PASS_S = 60

def is_too_long_ago(
    looked_s: float | None, now_s: float, grace_s: float
) -> bool:
    """Whether what was seen of hosts then says nothing about now.

    Another engine has acted since, nobody did, or the clock was set: a host
    may have been up in between.

    :param looked_s: when it was looked last, None if never
    :param grace_s: how long a host may be down
    """
    return looked_s is None or not 0 <= now_s - looked_s <= grace_s + PASS_S


def down_since(
    before: Mapping[str, float],
    down: Collection[str],
    now_s: float,
    *,
    braked: bool,
) -> dict[str, float]:
    """Return since when each of these hosts counts as down.

    What was seen while the brake was on says nothing: afterwards each host
    has its full time again to come back.

    :param before: what this returned the last time, nothing if that is too
        long ago
    """
    return {
        name: now_s if braked else before.get(name, now_s) for name in down
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Health:
    """What is known of whether a host is there.

    :ivar usable: it is up, and nobody has disabled it
    :ivar enabled: nobody has disabled it
    :ivar dark: the cell that it is in cannot be read
    """

    usable: bool
    enabled: bool
    dark: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Down:
    """Hosts that are down, disabled or gone.

    :ivar held: the names of those that a reservation has
    :ivar number: how many of those that matter are
    :ivar of: how many matter: what a reservation has, and what is in use
    """

    held: frozenset[str]
    number: int
    of: int


def find_down(
    held: Collection[str], hosts: Mapping[str, Health], *, partial: bool
) -> Down:
    """Return which hosts are down.

    :param held: the names of those that reservations have
    :param partial: whether some cells cannot be read: who is not listed may
        be in one of them, and is not taken for gone
    """
    kept = {name for name in held if name in hosts or not partial}
    matter = kept | {name for name, host in hosts.items() if host.enabled}
    down = {
        name
        for name in matter
        if name not in hosts
        or not (hosts[name].usable or hosts[name].dark)
    }
    return Down(frozenset(down & kept), len(down), len(matter))


def is_given_up(
    since_s: float | None, now_s: float, grace_s: float, *, braked: bool
) -> bool:
    """Whether a host that is down since then has had its time to come back."""
    return since_s is not None and not braked and now_s - since_s >= grace_s


@dataclasses.dataclass(frozen=True, slots=True)
class Spare:
    """A host that may take the place of another.

    :ivar reservable: whether it may be reserved at all
    :ivar off: what is known of it if it is not on
    :ivar servers: how many preemptible servers run there
    """

    host: calendar.ReservableHost
    reservable: bool = True
    usable: bool = True
    matches: bool = True
    servers: int = 0
    off: candidates.Off | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A place in a reservation that is free.

    :ivar since_s: when it has to be taken
    :ivar soon: whether there is no time to move anybody away until then
    :ivar not_these: the names of hosts that it has, or that are down
    :ivar lost: those of hosts that it has lost
    """

    since_s: int
    end_s: int
    soon: bool = False
    not_these: Collection[str] = frozenset()
    lost: Collection[str] = frozenset()


def make_place(
    reservation: model.Reservation,
    now_s: int,
    lead_s: int,
    down: Collection[str] = (),
) -> Place:
    """Return the Place of a host that a reservation misses.

    :param lead_s: how long before a start normal servers are moved away
    :param down: the names of hosts that are down
    """
    since_s = max(now_s, reservation.start_s)
    return Place(
        since_s,
        reservation.end_s,
        since_s <= now_s + lead_s,
        frozenset((*reservation.held, *down)),
        frozenset(
            host.host
            for host in reservation.hosts
            if host.status == model.LOST
        ),
    )


def substitutes(
    place: Place,
    spares: Iterable[Spare],
    ranking: calendar.Ranking,
    is_vacant: Callable[[str], bool],
) -> list[str]:
    """Return the names of hosts that could be given, the best ones first.

    One that was not lost before others, where it is soon one on which fewer
    servers run and one that is on, and then as the ranking says. Where it is
    soon only those that are vacant, or will be once preemptible servers have
    ended, and that are on in time.

    :param is_vacant: asked only where it matters
    """
    found = {
        spare.host.name: spare
        for spare in spares
        if spare.reservable
        and spare.usable
        and spare.matches
        and not (place.soon and spare.off and spare.off.why_late)
        and spare.host.name not in place.not_these
    }
    ranked = calendar.ranked(
        [spare.host for spare in found.values()],
        place.since_s,
        place.end_s,
        ranking,
    )
    if place.soon:
        ranked = [name for name in ranked if is_vacant(name)]
    # Those that are equal stay in their order.
    return sorted(
        ranked,
        key=lambda name: (
            name in place.lost,
            found[name].servers if place.soon else 0,
            place.soon and found[name].off is not None,
        ),
    )


def exchange(
    reservation: model.Reservation,
    old: str | None,
    new: str | None,
    now: datetime.datetime,
    reason: str,
    public_reason: str,
) -> list[model.Assignment]:
    """Return the assignments that change as one host takes another's place.

    It has the new one from now on, or from its start.

    :param old: the host that is LOST, None if one is only added
    :param new: the host that it gets, None if there is none
    :param now: naive and in UTC
    :param reason: why the old one is lost
    :param public_reason: the same for its owner
    """
    since = max(reservation.start_at, now)
    lost = [
        dataclasses.replace(
            host,
            end_at=since,
            status=model.LOST,
            reason=reason,
            public_reason=public_reason,
        )
        for host in reservation.hosts
        if host.host == old
    ]
    if new is None:
        return lost
    return [
        *lost,
        model.Assignment(
            new, since, reservation.end_at, model.ASSIGNED, "", ""
        ),
    ]


def standing(
    reservation: model.Reservation, reason: str, public_reason: str | None
) -> Mapping[str, Any]:
    """Return status and reasons of one whose hosts have changed.

    :param reason: why a host was taken from it, if one was
    :param public_reason: the same for its owner
    """
    missing = reservation.quantity - len(reservation.held)
    if missing > 0:
        said = f"{missing} of {reservation.quantity} hosts are missing"
        return {
            "status": model.DEGRADED,
            "reason": f"{said}: {reason}" if reason else said,
            "public_reason": (
                f"{said}: {public_reason}" if public_reason else said
            ),
        }
    if reservation.status == model.DEGRADED:
        # It starts when its hosts are empty, and not by being whole.
        status = (
            model.PENDING if reservation.ready_at is None else model.ACTIVE
        )
        return {"status": status, "reason": "", "public_reason": ""}
    return {
        "status": reservation.status,
        "reason": reservation.reason,
        "public_reason": reservation.public_reason,
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Return:
    """That a host comes back, in place of another if that is named."""

    host: str
    instead_of: str | None = None


def returns(
    quantity: int,
    held: Mapping[str, int],
    former: Mapping[str, int],
) -> tuple[Return, ...]:
    """Return which hosts that a reservation has lost come back to it.

    Those on which its servers run: first where one is missing, then in place
    of one on which none does, and else on top, for its project was promised
    hosts of its own.

    :param held: how many of its servers run on each host that it has
    :param former: the same of those that it has lost, and that are free
    """
    missing = quantity - len(held)
    unused = sorted(
        (name for name, count in held.items() if not count), reverse=True
    )
    found = []
    for name, count in sorted(
        former.items(), key=lambda item: (-item[1], item[0])
    ):
        if not count:
            continue
        if missing > 0:
            missing -= 1
            found.append(Return(name))
        else:
            found.append(Return(name, unused.pop() if unused else None))
    return tuple(found)
