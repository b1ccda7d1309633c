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
others pass, but not for ever: once it has waited for long, the hosts that are
nearest to having room for it are kept for it, see ``keeping.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses
import datetime
from typing import Any

from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import faults
from nova_preempt.core.backlog import groups
from nova_preempt.core.backlog import keeping
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import pauses
from nova_preempt.core.backlog import shortfalls
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from nova_preempt.core.backlog.estimate import Pace
from nova_preempt.core.backlog.estimate import estimate_s
from nova_preempt.core.backlog.estimate import to_s
from nova_preempt.core.backlog.expected_departures import AS_FLAVORS_SAY
from nova_preempt.core.backlog.expected_departures import ExpectedDepartures
from nova_preempt.core.backlog.flavors import AsAsked
from nova_preempt.core.backlog.flavors import Ladders
from nova_preempt.core.backlog.places import Places
from nova_preempt.core.backlog.planning import Planner
from nova_preempt.core.backlog.planning import Plans
from nova_preempt.core.backlog.room import Room
from nova_preempt.core.backlog.servers import OnTheirWay
from nova_preempt.core.backlog.turns import Turn

# Why a request waits, beside what shortfalls.py and pauses.py say.
RESERVATION = "reservation"  # it names one that does not let it in
WINDOW = "window"  # it is not to start yet
TURN = "turn"  # others are started first


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

    :param hosts: where, {host: how many of them}, if that was planned, or
        hosts are kept for others, which Nova does not know of; otherwise it
        is for Nova to choose
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
    :param unseen: the uuids of those that it did not get to
    :param faults: {uuid: exception} of those that could not be looked at
    :param chosen: notes of those that start, until they have: a new position
    :param turns: the last turn of each project, for the next pass
    """

    starts: tuple[Start, ...]
    notes: Mapping[str, Note]
    held: tuple[str, ...] = ()
    unseen: frozenset[str] = frozenset()
    faults: Mapping[str, Exception] = dataclasses.field(default_factory=dict)
    chosen: Mapping[str, Note] = dataclasses.field(default_factory=dict)
    turns: Mapping[str, Turn] = dataclasses.field(default_factory=dict)


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
    stays: ExpectedDepartures = AS_FLAVORS_SAY,
    why_not: Callable[[model.Request], str] = lambda _: "",
    unseen: Collection[str] = (),
    is_over: Callable[[], bool] = lambda: False,
    turns: Mapping[str, Turn] | None = None,
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
    :param why_not: see keeping.Keeping
    :param unseen: the uuids of those that the last pass did not get to, which
        come first now
    :param is_over: tells whether the time of the pass is over; the first
        request is looked at in any case
    :param turns: those that the last pass has left
    """
    rooms = list(rooms)
    ledger = CapacityTracker(
        rooms, places.lead_s if places else lambda _: 0, stays)
    known = known_groups or {}
    for alternative, count, hosts, key in on_their_way:
        ledger.expect(alternative, count, hosts, known.get(key))
    one = _Pass(ledger, ladders or AsAsked(), now, options, places, known)
    failed = faults.Faults()
    for request in ranked:
        failed.call(request, one.check)
    ranked = one.ranked(
        [request for request in ranked if request.uuid not in failed.found],
        len(rooms), why_not, is_over, unseen, turns)
    one.plan(planner, ranked)
    notes: dict[str, Note] = {}
    chosen: dict[str, Note] = {}
    ahead: dict[str, int] = {}
    left: list[str] = []
    for number, request in enumerate(ranked):
        if number and (left or is_over()):
            left.append(request.uuid)
            waits_for: Mapping[str, Any] | None = request.waits_for or _UNSEEN
        else:
            waits_for = failed.call(request, one.look)
        if request.uuid in failed.found:
            continue
        position = len(notes) + len(chosen) + 1
        if waits_for is None:
            chosen[request.uuid] = Note(
                position, request.waits_for, request.estimate_s)
            continue
        # Who never starts is not before anybody.
        is_never = waits_for.get("code") in shortfalls.NEVER
        if not is_never:
            missing = model.missing(request)
            for name, amount in request.alternatives[0].resources.items():
                ahead[name] = ahead.get(name, 0) + amount * missing
        notes[request.uuid] = Note(
            position,
            waits_for,
            None if is_never else estimate_s(request, ahead, now, pace),
        )
    notes.update(dict.fromkeys(
        failed.found, Note(None, faults.WAITS_FOR, None)))
    return Pass(tuple(one.starts), notes, one.keeping.held, frozenset(left),
                failed.found, chosen, one.keeping.turns.known)


class _Pass:
    """A pass that is under way."""

    def __init__(
        self,
        ledger: CapacityTracker,
        ladders: Ladders,
        now: datetime.datetime,
        options: Options,
        places: Places | None,
        known_groups: Mapping[str, groups.Group],
    ) -> None:
        self._places = places
        self._known_groups = known_groups
        self.starts: list[Start] = []
        self._ledger = ledger
        self._ladders = ladders
        self._now = now
        self._options = options
        self._of_project: dict[str, int] = {}
        self._plans = Plans(None, ledger, (), 0)
        self._pauses = pauses.Pauses(ledger, self, now)

    def ranked(
        self,
        requests: Sequence[model.Request],
        hosts: int,
        why_not: Callable[[model.Request], str],
        is_over: Callable[[], bool],
        unseen: Collection[str],
        turns: Mapping[str, Turn] | None,
    ) -> list[model.Request]:
        """Choose for whom hosts are kept, and say who is looked at when."""
        self.keeping = keeping.Keeping(
            requests, hosts, self._now, self._options,
            shortfalls.Trial(self._ledger, self), why_not, is_over,
            turns)
        self._shortfalls = shortfalls.Shortfalls(self._ledger, self.keeping)
        return self.keeping.ranked(requests, unseen)

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
                    if not request.ladder and self.not_yet(request) is None
                    and not to_s(request.next_try_at, self._now)
                ],
                self._options.most_starts,
                self.group,
            )

    def group(self, request: model.Request) -> groups.Group | None:
        return groups.of(request, self._known_groups)

    def check(self, request: model.Request) -> None:
        """Evaluate what is asked about it before its turn comes."""
        self.not_yet(request)
        self.alternatives(request)
        self.group(request)

    def look(self, request: model.Request) -> Mapping[str, Any] | None:
        """Start it, or say why it waits."""
        waits_for, seen = self.not_yet(request), None
        if waits_for is None and to_s(request.next_try_at, self._now):
            waits_for, seen = self._pauses.why(request)
        if waits_for is None:
            waits_for = self._start(request)
        if waits_for is None:
            return None
        found = {**{name: value for name, value in waits_for.items()
                    if name not in (keeping.KEPT, pauses.SEEN)},
                 **self.keeping.remembered(request)}
        if seen is not None:
            found[pauses.SEEN] = seen
        if found["code"] in boot_outcome.CODES:
            found.pop(keeping.REFUSED, None)
        return found

    def _start(self, request: model.Request) -> Mapping[str, Any] | None:
        group = self.group(request)
        if group is not None and self._ledger.is_astray(group):
            return {"code": shortfalls.GROUP, "text": groups.ASTRAY}
        start = self._find(request, group)
        if start is None:
            waits_for = self._shortfalls.why(
                request, self.alternatives(request), group)
            if request.uuid in self.keeping.held:
                self._plans.upset()
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

    def not_yet(self, request: model.Request) -> Mapping[str, Any] | None:
        if to_s(request.not_before, self._now):
            return {
                "code": WINDOW,
                "text": f"It is not to start before {request.not_before}.",
            }
        answer = self._places and self._places.answer(request)
        if answer and answer.reason:
            return {"code": RESERVATION, "text": answer.reason}
        return None

    def alternatives(
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
        for alternative in self.alternatives(request):
            hosts = self._take(request, alternative, group)
            if hosts:
                count = sum(hosts.values())
                self._ladders.start(request, alternative, count)
                return Start(request.uuid, alternative.flavor_id, count,
                             hosts if self.keeping.held else {},
                             self._plans.why(request))
        return None

    def _take(
        self,
        request: model.Request,
        alternative: model.Alternative,
        group: groups.Group | None,
    ) -> Mapping[str, int]:
        """Take room for servers of a flavor: {host: for how many}.

        Where what is planned for others leaves it none, or less, it takes
        that: it comes first.
        """
        missing, least = model.missing(request), model.least(request)
        count = self._ledger.count(alternative, missing, group, least)
        if not count:
            return {}
        behind = self._plans.behind
        if (
            behind is None
            or behind.count(alternative, missing, group) < count
        ):
            hosts = self._ledger.take(alternative, count, group)
            self._plans.upset()
        else:
            hosts = behind.take(alternative, count, group)
            self._ledger.take_at(alternative, hosts, group, is_sure=False)
        return hosts


_RESERVED = " It goes to hosts of its reservation alone."
_TURN = {"code": TURN, "text": "Others are started first in this pass."}
_UNSEEN = {"code": TURN, "text": "The last pass did not get to it in time."}
