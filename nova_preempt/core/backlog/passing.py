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
"""One pass over the requests that wait: which of them start now.

They come in the order of a plugin (``order.py``). One that does not fit lets
others pass, but not for ever: once it has waited for long the hosts that are
nearest to having room for it are kept for it (a reserved start, as in
EASY backfilling: Lifka, JSSPP 1995).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import datetime
from typing import Any

from nova_preempt.core.backlog import answers
from nova_preempt.core.backlog import groups
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.estimate import Pace
from nova_preempt.core.backlog.estimate import estimate_s
from nova_preempt.core.backlog.estimate import to_s
from nova_preempt.core.backlog.flavors import AsAsked
from nova_preempt.core.backlog.flavors import Ladders
from nova_preempt.core.backlog.ledger import Ledger
from nova_preempt.core.backlog.places import Places
from nova_preempt.core.backlog.planning import Planner
from nova_preempt.core.backlog.planning import Plans
from nova_preempt.core.backlog.room import Kind
from nova_preempt.core.backlog.room import Lack
from nova_preempt.core.backlog.room import Room
from nova_preempt.core.backlog.room import kind
from nova_preempt.core.backlog.servers import OnTheirWay
from nova_preempt.core.backlog.stays import AS_FLAVORS_SAY
from nova_preempt.core.backlog.stays import Stays

# Why a request waits.
ROOM = "room"  # no host has room now
NO_HOST = "no_host"  # none has what it asks for beside room
TOO_LARGE = "too_large"  # none would have if it were empty
RESERVATION = "reservation"  # it names one that does not let it in
WINDOW = "window"  # it is not to start yet
LADDER = "ladder"  # its share of the idle cores is less than any flavor has
RETRY = "retry"  # Nova has refused; it is tried again later
TURN = "turn"  # others are started first
GROUP = "group"  # of its server group, which leaves it no host


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What an operator may set about passes.

    :param most_starts: so many requests start in one pass
    :param most_of_project: so many of them are of one project
    :param hold_after_s: hosts are kept for who has waited for so long
    :param most_holds: for so many requests at once
    """

    most_starts: int = 500
    most_of_project: int = 100
    hold_after_s: int = 3600
    most_holds: int = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """Boot so many servers of this flavor for a request.

    :param hosts: where, {host: how many of them}, if that was planned;
        otherwise it is for Nova to choose
    :param reason: why it was not, where others are planned
    """

    uuid: str
    flavor_id: str
    count: int
    hosts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    reason: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """What is said of a request that goes on waiting.

    :param position: in the order, from 1; None if it never was in one
    :param waits_for: {"code", "text"}; where it is for room also {"lacks":
        {resource class: amount}, "hosts": {resource class: how many lack it}}
    :param estimate_s: how long it may still wait, None if nobody knows
    """

    position: int | None
    waits_for: Mapping[str, Any]
    estimate_s: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Pass:
    """What a pass has decided.

    :param notes: of those that do not start, by uuid
    :param held: the uuids of those for which hosts are kept
    """

    starts: tuple[Start, ...]
    notes: Mapping[str, Note]
    held: tuple[str, ...] = ()


def decide(
    ranked: Sequence[model.Request],
    rooms: Iterable[Room],
    now: datetime.datetime,
    options: Options,
    pace: Pace | None = None,
    ladders: Ladders | None = None,
    planner: Planner | None = None,
    on_their_way: Iterable[OnTheirWay] = (),
    places: Places | None = None,
    known_groups: Mapping[str, groups.Group] | None = None,
    stays: Stays = AS_FLAVORS_SAY,
) -> Pass:
    """Decide who starts.

    :param ranked: those with servers to start, in order
    :param now: naive, in UTC
    :param pace: at which others were placed lately
    :param ladders: chooses among the flavors of a request; by default all
        that the user named come into question
    :param planner: places those together that fit into what is free; without
        one each gets the first room that is found
    :param on_their_way: the servers that still take their part of the rooms,
        see servers.without_room()
    :param places: what reservations say; without it there are none
    :param known_groups: by groups.key(); who is in another one is left to
        Nova, as far as that is concerned
    :param stays: for how long servers keep their places
    """
    ledger = Ledger(
        rooms, places.lead_s if places else lambda _: 0, stays)
    known = known_groups or {}
    for alternative, count, hosts, key in on_their_way:
        ledger.expect(alternative, count, hosts, known.get(key))
    one = _Pass(ledger, ladders or AsAsked(), now, options, places, known)
    one.plan(planner, ranked)
    notes: dict[str, Note] = {}
    ahead: dict[str, int] = {}
    for request in ranked:
        waits_for = one.look(request)
        if waits_for is None:
            continue
        # Who never starts is not before anybody.
        is_never = waits_for["code"] in (NO_HOST, TOO_LARGE)
        if not is_never:
            missing = model.missing(request)
            for name, amount in request.alternatives[0].resources.items():
                ahead[name] = ahead.get(name, 0) + amount * missing
        notes[request.uuid] = Note(
            len(notes) + 1,
            waits_for,
            None if is_never else estimate_s(request, ahead, now, pace),
        )
    return Pass(tuple(one.starts), notes, tuple(one.held))


class _Pass:
    """A pass that is under way."""

    def __init__(
        self,
        ledger: Ledger,
        ladders: Ladders,
        now: datetime.datetime,
        options: Options,
        places: Places | None,
        known_groups: Mapping[str, groups.Group],
    ) -> None:
        self._places = places
        self._known_groups = known_groups
        self.starts: list[Start] = []
        self.held: list[str] = []
        self._ledger = ledger
        self._ladders = ladders
        self._now = now
        self._options = options
        self._of_project: dict[str, int] = {}
        self._lacks: dict[tuple[Kind, ...], Lack] = {}
        self._plans = Plans(None, ledger, (), 0)

    def plan(
        self, planner: Planner | None, ranked: Sequence[model.Request]
    ) -> None:
        """Place together whom that is possible for.

        What the rung of a ladder is depends on who has started before.
        """
        if planner is not None:
            self._plans = Plans(
                planner,
                self._ledger,
                [
                    request
                    for request in ranked
                    if not request.ladder and self._not_yet(request) is None
                ],
                self._options.most_starts,
                self._group,
            )

    def _group(self, request: model.Request) -> groups.Group | None:
        return groups.of(request, self._known_groups)

    def look(self, request: model.Request) -> Mapping[str, Any] | None:
        """Start it, or say why it waits."""
        waits_for = self._not_yet(request)
        if waits_for is not None:
            return waits_for
        group = self._group(request)
        if group is not None and self._ledger.is_astray(group):
            return {"code": GROUP, "text": groups.ASTRAY}
        start = self._find(request, group)
        if start is None:
            waits_for = self._has_no_room(request, group)
            if not (self._places and self._places.answer(request)):
                return waits_for
            return {**waits_for, "text": waits_for["text"] + _RESERVED}
        started = self._of_project.get(request.project_id, 0)
        if (
            len(self.starts) >= self._options.most_starts
            or started >= self._options.most_of_project
        ):
            # Its room is its own, so that nobody behind it gets that.
            return _TURN
        self._of_project[request.project_id] = started + 1
        self.starts.append(start)
        return None

    def _not_yet(self, request: model.Request) -> Mapping[str, Any] | None:
        if to_s(request.not_before, self._now):
            return {
                "code": WINDOW,
                "text": f"It is not to start before {request.not_before}.",
            }
        if to_s(request.next_try_at, self._now):
            if request.waits_for.get("code") in answers.CODES:
                return request.waits_for
            return {
                "code": RETRY,
                "text": "Nova found no host for it "
                f"{request.tries} times; it is tried again at "
                f"{request.next_try_at}.",
            }
        answer = self._places and self._places.answer(request)
        if answer and answer.reason:
            return {"code": RESERVATION, "text": answer.reason}
        return None

    def _alternatives(
        self, request: model.Request
    ) -> tuple[model.Alternative, ...]:
        """Those that come into question, on the hosts that do."""
        found = self._ladders.alternatives(request)
        answer = self._places and self._places.answer(request)
        if not answer:
            return found
        return tuple(
            dataclasses.replace(
                item, hosts=answer.hosts, own_hosts=answer.own_hosts)
            for item in found
        )

    def _find(
        self, request: model.Request, group: groups.Group | None
    ) -> Start | None:
        """Take room for as many of its servers as there is room for."""
        place = self._plans.place(request)
        if place is not None:
            self._ledger.take_at(place.alternative, place.hosts, group)
            count = sum(place.hosts.values())
            self._ladders.start(request, place.alternative, count)
            return Start(request.uuid, place.alternative.flavor_id, count,
                         place.hosts)
        for alternative in self._alternatives(request):
            count = self._take(request, alternative, group)
            if count:
                self._ladders.start(request, alternative, count)
                return Start(request.uuid, alternative.flavor_id, count,
                             reason=self._plans.why(request))
        return None

    def _take(
        self,
        request: model.Request,
        alternative: model.Alternative,
        group: groups.Group | None,
    ) -> int:
        """Take room for servers of a flavor, and say for how many.

        Where what is planned for others leaves it none, or less, it takes
        that: it comes first.
        """
        missing, least = model.missing(request), model.least(request)
        count = self._ledger.count(alternative, missing, group, least)
        if not count:
            return 0
        behind = self._plans.behind
        if (
            behind is None
            or behind.count(alternative, missing, group) < count
        ):
            self._ledger.take(alternative, count, group)
            self._plans.upset()
        else:
            hosts = behind.take(alternative, count, group)
            self._ledger.take_at(alternative, hosts, group, is_sure=False)
        return count

    def _has_no_room(
        self, request: model.Request, group: groups.Group | None
    ) -> Mapping[str, Any]:
        if not self._alternatives(request):
            return {
                "code": LADDER,
                "text": f"Each flavor of the ladder {request.ladder} has more "
                "cores than it may have now.",
            }
        if group is not None and not request.apart and any(
            self._ledger.count(
                item, model.missing(request), least=model.least(request))
            for item in self._alternatives(request)
        ):
            return self._is_kept_off(request, group)
        lack = self._lack(request)
        if not lack.suited:
            return {
                "code": NO_HOST,
                "text": "No host that is in use has the traits that it asks "
                "for.",
            }
        if not lack.ever:
            return {
                "code": TOO_LARGE,
                "text": "No host that is in use would have room for it if it "
                "were empty.",
            }
        if not self._ever(request, group):
            return self._is_too_large(group)
        text = "No host has room for one of its servers now."
        if not lack.amounts:
            text = "There is not room for enough of its servers now."
        if lack.reserved:
            text += f" Reserved for others are {lack.reserved} hosts."
        return {
            "code": ROOM,
            "text": text + self._hold(request, group),
            "lacks": dict(lack.amounts),
            "hosts": {name: n for name, n in lack.hosts.items() if n},
        }

    def _is_kept_off(
        self, request: model.Request, group: groups.Group
    ) -> Mapping[str, Any]:
        """Say why it waits where there is room, which others may have."""
        if not self._ever(request, group):
            return self._is_too_large(group)
        text = groups.why(
            group,
            self._ledger.is_settled(group),
            any(self._ledger.count(item, 1, group)
                for item in self._alternatives(request)),
        )
        return {"code": GROUP, "text": text + self._hold(request, group)}

    def _ever(
        self, request: model.Request, group: groups.Group | None
    ) -> list[model.Alternative]:
        """Return its flavors of which enough would find room on empty hosts.

        As many as have to start together, where its group lets them.
        """
        return [
            item for item in self._alternatives(request)
            if self._ledger.is_ever(item, model.least(request), group)
        ]

    def _is_too_large(self, group: groups.Group | None) -> Mapping[str, Any]:
        return {
            "code": TOO_LARGE,
            "text": _TOO_MANY if group is None else groups.too_large(
                group, self._ledger.is_settled(group)),
        }

    def _hold(
        self, request: model.Request, group: groups.Group | None
    ) -> str:
        """Keep hosts for it, if it has waited for long, and say so.

        For the first of its flavors that there are any for, and that it
        could start in.
        """
        if not self._is_to_hold(request):
            return ""
        for wanted in self._ever(request, group):
            kept, in_s = self._ledger.hold(
                wanted, model.least(request), group)
            if kept:
                break
        else:
            return ""
        self.held.append(request.uuid)
        self._plans.upset()
        text = " Hosts are kept free for it"
        return text + ("." if in_s is None else f": it can start in {in_s} s.")

    def _lack(self, request: model.Request) -> Lack:
        """As it was when the first of its kind was looked at."""
        wanted = self._alternatives(request)
        key = tuple(map(kind, wanted))
        if key not in self._lacks:
            found = [self._ledger.lack(item) for item in wanted]
            self._lacks[key] = next(
                (item for item in found if item.ever), found[0]
            )
        return self._lacks[key]

    def _is_to_hold(self, request: model.Request) -> bool:
        since = request.waits_since or request.created_at
        waited = self._now - since
        return (
            len(self.held) < self._options.most_holds
            and waited.total_seconds() >= self._options.hold_after_s
        )


_TOO_MANY = (
    "The hosts that are in use would have room for fewer of its servers than "
    "have to start together if they were empty."
)
_RESERVED = " It goes to hosts of its reservation alone."
_TURN = {"code": TURN, "text": "Others are started first in this pass."}
