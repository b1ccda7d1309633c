# SPDX-License-Identifier: Apache-2.0
"""Explains why a request does not fit in a pass, and holds hosts for it."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog import kept_hosts
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from nova_preempt.core.backlog.host_capacity import CapacityKey
from nova_preempt.core.backlog.host_capacity import capacity_key
from nova_preempt.core.backlog.suitable_hosts import fewest_hosts
from nova_preempt.core.model import Resources

# Reasons to wait.
ROOM = "room"  # no host has capacity now
NO_HOST = "no_host"  # no host has the traits
TOO_LARGE = "too_large"  # no host would have capacity if it were empty
LADDER = "ladder"  # its share of the idle cores is less than any flavor has
GROUP = "group"  # its server group leaves it no host

#: Reasons for which a request never starts.
NEVER = (NO_HOST, TOO_LARGE)

_Wanted = Sequence[backlog_model.Alternative]


@dataclasses.dataclass(frozen=True, slots=True)
class Shortfall:
    """The shortfall of capacity for a server.

    :param amounts: the shortfall of the nearest host
    :param hosts: how many hosts have a shortfall of each resource class
    :param ever: whether an empty host would have enough capacity
    :param suited: how many hosts have the required traits, and belong to the
        named reservation
    :param reserved: how many of them are reserved for other projects
    """

    amounts: Resources
    hosts: Mapping[str, int]
    ever: bool
    suitable: int
    reserved: int = 0


def shortfall(tracker: CapacityTracker,
         alternative: backlog_model.Alternative) -> Shortfall:
    """Return the shortfall that keeps a server from starting."""
    suitable, count, reserved = tracker.suitable(alternative), 0, 0
    hosts = dict.fromkeys(sorted(alternative.resources), 0)
    nearest: tuple[tuple[int, str], Resources] | None = None
    for number, room in enumerate(tracker.rooms):
        if not room.is_for(alternative):
            continue
        count += 1
        if number not in suitable.open:
            # Hosts of its own reservation are not reserved for others.
            reserved += alternative.hosts is None and not (
                room.off and alternative.preemptible)
            continue
        found = room.lack(alternative)
        for name in found:
            hosts[name] += 1
        if found and suitable.ever[number]:
            here = room.distance(alternative), found
            nearest = min(nearest or here, here, key=lambda item: item[0])
    return Shortfall(nearest[1] if nearest else {}, hosts,
                fewest_hosts(suitable.largest, 1) > 0, count, reserved)


class ShortfallExplainer:
    """Explains why requests do not fit, and holds hosts for chosen ones.

    :param tracker: the remaining capacity; hosts are held there
    :param keeper: chooses the requests
    """

    def __init__(self, tracker: CapacityTracker,
                 chooser: kept_hosts.HoldChooser) -> None:
        self._tracker = tracker
        self._keeping = chooser
        # Capacity only shrinks in a pass, so once a kind is enough.
        self._lacks: dict[CapacityKey, Shortfall] = {}
        self._kept_off: dict[CapacityKey, int] = {}

    def why(
        self, request: backlog_model.Request, wanted: _Wanted,
        group: group_placement.Group | None, ) -> Mapping[str, Any]:
        """Return why a request does not fit, and hold hosts for it if it may.

        :param wanted: its flavors that it may get
        :param group: of its servers
        :returns: what it waits for
        """
        if not wanted:
            return {
                "code": LADDER,
                "text": f"Each flavor of the ladder {request.ladder} has more "
                "cores than the request may get now.",
            }
        missing, least = backlog_model.missing(request), backlog_model.least(
            request)
        # Flavors in which the least would fit on empty hosts.
        ever = [item for item in wanted
                if self._tracker.fits_if_empty(item, least, group)]
        if group is not None and not request.apart and any(self._tracker.count(
                item, missing, least=least) for item in wanted):
            if not ever:
                return self._too_large(group)
            text = group_placement.why_no_host(group,
                self._tracker.group_hosts.is_settled(group), any(
                self._tracker.count(item, 1, group) for item in wanted))
            return {"code": GROUP,
                    "text": text + self._hold(request, wanted, ever, group)}
        found = self._lack(wanted)
        if not found.suitable:
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
        return {"code": TOO_LARGE, "text": group_placement.why_too_large(group,
            self._tracker.group_hosts.is_settled(
            group)) if group else _TOO_MANY}

    def _lack(self, wanted: _Wanted) -> Shortfall:
        """Return the shortfall as of the first request of its kind."""
        found = []
        for item in wanted:
            key = capacity_key(item)
            if key not in self._lacks:
                self._lacks[key] = shortfall(self._tracker, item)
            found.append(self._lacks[key])
        return next((item for item in found if item.ever), found[0])

    # -- held hosts ----------------------------------------------------------

    def _hold(
        self, request: backlog_model.Request, wanted: _Wanted, ever: _Wanted,
        group: group_placement.Group | None, ) -> str:
        """Hold hosts for a chosen request, and say so.

        For the first flavor that it could start in. If none are held, say
        whether hosts are held against it.
        """
        text = self._keeping.why_none(request)
        for item in ever if self._keeping.is_chosen(request) else ():
            held = self._tracker.hold(item, backlog_model.least(request),
                group, self._keeping.most(request, self._tracker.suitable(
                item).names))
            if held is not None:
                self._keeping.keep(request, held)
                self._kept_off.clear()
                return " Hosts are kept free for it" + (
                    "." if held.in_s is None
                    else f": it can start in {held.in_s} s.")
        if any(map(self._from, wanted)):
            text += (" Hosts with free capacity are kept free for requests "
                     "that have waited longer.")
        return text

    def _kept_from(
        self, request: backlog_model.Request, wanted: _Wanted
    ) -> Mapping[str, int]:
        if request.uuid in self._keeping.held:
            return {}
        hosts = max(map(self._from, wanted))
        return {"kept_from": hosts} if hosts else {}

    def _from(self, wanted: backlog_model.Alternative) -> int:
        key = capacity_key(wanted)
        if key not in self._kept_off:
            self._kept_off[key] = self._tracker.kept_off(wanted)
        return self._kept_off[key]


def _text(found: Shortfall) -> str:
    text = "No host has free capacity for one of its servers now."
    if not found.amounts:
        text = "There is not enough free capacity for its servers now."
    if found.reserved:
        text += " Some hosts are reserved by others."
    return text


_NO_TRAITS = "No enabled host has the traits that it requires."
_TOO_LARGE = (
    "Each enabled host is too small for one of its servers, even if empty.")
_TOO_MANY = (
    "Even if empty, the enabled hosts could not run the servers that have to "
    "start together.")
