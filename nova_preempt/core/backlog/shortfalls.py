# SPDX-License-Identifier: Apache-2.0
"""Why a request finds no room in a pass, and the hosts kept for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog import kept_hosts
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from nova_preempt.core.backlog.host_capacity import Kind
from nova_preempt.core.backlog.host_capacity import kind
from nova_preempt.core.backlog.suitable_hosts import fewest
from nova_preempt.core.model import Resources

# Why a request waits.
ROOM = "room"  # no host has room now
NO_HOST = "no_host"  # none has what it asks for beside room
TOO_LARGE = "too_large"  # none would have if it were empty
LADDER = "ladder"  # its share of the idle cores is less than any flavor has
GROUP = "group"  # of its server group, which leaves it no host

#: Such a request does not start however long it waits.
NEVER = (NO_HOST, TOO_LARGE)

_Wanted = Sequence[backlog_model.Alternative]


@dataclasses.dataclass(frozen=True, slots=True)
class Lack:
    """Reason why a request waits.

    :param amounts: what the host lacks that is nearest to having room
    :param hosts: how many hosts lack each of the classes
    :param ever: whether an empty host would have room
    :param suited: how many hosts have the traits that are asked for, and are
        of the reservation that is named
    :param reserved: how many of them are for others
    """

    amounts: Resources
    hosts: Mapping[str, int]
    ever: bool
    suited: int
    reserved: int = 0


def lack(ledger: CapacityTracker,
         alternative: backlog_model.Alternative) -> Lack:
    """Return what keeps a server from starting."""
    suited, count, reserved = ledger.suited(alternative), 0, 0
    hosts = dict.fromkeys(sorted(alternative.resources), 0)
    nearest: tuple[tuple[int, str], Resources] | None = None
    for number, room in enumerate(ledger.rooms):
        if not room.is_for(alternative):
            continue
        count += 1
        if number not in suited.open:
            # Of its own reservation those are none that others leave.
            reserved += alternative.hosts is None and not (
                room.off and alternative.preemptible)
            continue
        found = room.lack(alternative)
        for name in found:
            hosts[name] += 1
        if found and suited.ever[number]:
            here = room.far(alternative), found
            nearest = min(nearest or here, here, key=lambda item: item[0])
    return Lack(nearest[1] if nearest else {}, hosts,
                fewest(suited.largest, 1) > 0, count, reserved)


class Shortfalls:
    """Says why there is no room.

    :param ledger: the room that is left; hosts are kept there
    :param keeper: says for whom
    """

    def __init__(
        self, ledger: CapacityTracker, keeper: kept_hosts.Keeping) -> None:
        self._ledger = ledger
        self._keeping = keeper
        # Room only shrinks in a pass, so each is asked for once a kind.
        self._lacks: dict[Kind, Lack] = {}
        self._kept_off: dict[Kind, int] = {}

    def why(
        self, request: backlog_model.Request, wanted: _Wanted,
        group: group_placement.Group | None, ) -> Mapping[str, Any]:
        """Say why a request finds no room, and keep hosts for it if it may.

        :param wanted: its flavors that come into question
        :param group: of its servers
        :returns: what it waits for
        """
        if not wanted:
            return {
                "code": LADDER,
                "text": f"Each flavor of the ladder {request.ladder} has more "
                "cores than it may have now.",
            }
        missing, least = backlog_model.missing(request), backlog_model.least(
            request)
        # In which as many as start together would find room on empty hosts.
        ever = [item for item in wanted
                if self._ledger.is_ever(item, least, group)]
        if group is not None and not request.apart and any(
            self._ledger.count(item, missing, least=least) for item in wanted
        ):
            if not ever:
                return self._too_large(group)
            text = group_placement.why(group, self._ledger.seats.is_settled(
                group), any(
                    self._ledger.count(item, 1, group) for item in wanted))
            return {"code": GROUP,
                    "text": text + self._hold(request, wanted, ever, group)}
        found = self._lack(wanted)
        if not found.suited:
            return {"code": NO_HOST, "text": _NO_TRAITS}
        if not found.ever:
            return {"code": TOO_LARGE, "text": _TOO_LARGE}
        if not ever:
            return self._too_large(group)
        return {
            "code": ROOM,
            "text": _text(found) + self._hold(request, wanted, ever, group),
            "lacks": dict(found.amounts),
            "hosts": {name: n for name, n in found.hosts.items() if n},
            **({"reserved": found.reserved} if found.reserved else {}),
            **self._kept_from(request, wanted),
        }

    def _too_large(self, group: group_placement.Group | None) -> Mapping[str,
                                                                         Any]:
        return {
            "code": TOO_LARGE,
            "text": _TOO_MANY if group is None else group_placement.too_large(
                group, self._ledger.seats.is_settled(group)),
        }

    def _lack(self, wanted: _Wanted) -> Lack:
        """As it was when the first of its kind was looked at."""
        found = []
        for item in wanted:
            key = kind(item)
            if key not in self._lacks:
                self._lacks[key] = lack(self._ledger, item)
            found.append(self._lacks[key])
        return next((item for item in found if item.ever), found[0])

    # -- hosts that are kept -----------------------------------------------

    def _hold(
        self, request: backlog_model.Request, wanted: _Wanted, ever: _Wanted,
        group: group_placement.Group | None, ) -> str:
        """Keep hosts for it, if it was chosen, and say so.

        For the first of its flavors that there are enough for, and that it
        could start in. Where none are kept, say whether some are from it.
        """
        text = self._keeping.why_none(request)
        for item in ever if self._keeping.is_chosen(request) else ():
            held = self._ledger.hold(
                item, backlog_model.least(request), group,
                self._keeping.most(request, self._ledger.suited(item).names))
            if held is not None:
                self._keeping.keep(request, held)
                self._kept_off.clear()
                return " Hosts are kept free for it" + (
                    "." if held.in_s is None
                    else f": it can start in {held.in_s} s.")
        if any(map(self._from, wanted)):
            text += (" Hosts that have room are kept free for requests that "
                     "have waited for long.")
        return text

    def _kept_from(
        self, request: backlog_model.Request, wanted: _Wanted
    ) -> Mapping[str, int]:
        if request.uuid in self._keeping.held:
            return {}
        hosts = max(map(self._from, wanted))
        return {"kept_from": hosts} if hosts else {}

    def _from(self, wanted: backlog_model.Alternative) -> int:
        key = kind(wanted)
        if key not in self._kept_off:
            self._kept_off[key] = self._ledger.kept_off(wanted)
        return self._kept_off[key]


def _text(found: Lack) -> str:
    text = "No host has room for one of its servers now."
    if not found.amounts:
        text = "There is not room for enough of its servers now."
    if found.reserved:
        text += " Some hosts are reserved for others."
    return text


_NO_TRAITS = "No host that is in use has the traits that it asks for."
_TOO_LARGE = (
    "No host that is in use would have room for it if it were empty."
)
_TOO_MANY = (
    "The hosts that are in use would have room for fewer of its servers than "
    "have to start together if they were empty."
)
