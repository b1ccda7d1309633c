# SPDX-License-Identifier: Apache-2.0
"""Input and output of a pass over the backlog."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import datetime
from typing import Any

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog.batch_plans import BatchPlanner
from nova_preempt.core.backlog.batch_plans import PlannedBoot
from nova_preempt.core.backlog.expected_departures import DEFAULT_DEPARTURES
from nova_preempt.core.backlog.expected_departures import ExpectedDepartures
from nova_preempt.core.backlog.host_capacity import HostCapacity
from nova_preempt.core.backlog.kept_host_turns import ProjectTurn
from nova_preempt.core.backlog.ladder_choice import LadderFlavorChooser
from nova_preempt.core.backlog.reservation_rules import ReservationRules
from nova_preempt.core.backlog.wait_estimate import PlacementPace
from nova_preempt.core.backlog.wait_estimate import seconds_until
from nova_preempt.core.reservation import leases

# Reasons for which a request cannot start yet.
RESERVATION = "reservation"  # the named one is closed to it
WINDOW = "window"  # it is not to start yet

#: Nova takes about a second for each start, and eight are asked for at a time.
MOST_STARTS = 100
MOST_OF_PROJECT = 25
#: Held capacity is idle until it is enough.
MOST_HOLDS = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Operator options of passes.

    :param most_starts: the most requests that start in one pass
    :param most_of_project: the most of them for one project
    :param hold_after_s: hosts are held for requests that have waited for so
        long
    :param most_holds: the most requests for which hosts are held
    """

    most_starts: int = MOST_STARTS
    most_of_project: int = MOST_OF_PROJECT
    hold_after_s: int = 3600
    most_holds: int = MOST_HOLDS


@dataclasses.dataclass(frozen=True)
class Cloud:
    """The cloud as a pass sees it.

    :ivar known_groups: by group_placement.key(); who is in another one is left
        to Nova, as far as that is concerned
    :ivar places: what reservations say, None where there are none
    :ivar departures: for how long servers keep their places
    :ivar planner: places those together that fit into what is free; without
        one each gets the first room that is found
    :ivar pace: at which others were placed lately
    :ivar chosen: {(uuid of the request, number of the boot): {host: how
        many}}, where that was planned for servers that are on their way
    :ivar quotas: {(project, user): the absolute limits of Nova's GET /limits},
        without users for whom nobody has asked yet; None: there are none
    :ivar ladders: chooses among the flavors of a request; a pass has its own
    :ivar is_over: tells whether the time of the pass is over; the first
        request is looked at in any case
    """

    rooms: Sequence[HostCapacity]
    known_groups: Mapping[str, group_placement.Group] = dataclasses.field(
        default_factory=dict)
    places: ReservationRules | None = None
    departures: ExpectedDepartures = DEFAULT_DEPARTURES
    planner: BatchPlanner | None = None
    pace: PlacementPace | None = None
    chosen: Mapping[tuple[str, int], Mapping[str, int]] = dataclasses.field(
        default_factory=dict)
    quotas: Mapping[tuple[str, str], Mapping[str, int]] | None = None
    ladders: LadderFlavorChooser | None = None
    is_over: Callable[[], bool] = lambda: False

    def group(self,
              request: backlog_model.Request) -> group_placement.Group | None:
        """Return the server group of a request, None if none is known."""
        return group_placement.group_of(request, self.known_groups)

    def answer(self,
            request: backlog_model.Request) -> leases.AllowedHosts | None:
        """Return where its reservations lead, None if it names none."""
        return None if self.places is None else self.places.answer(request)

    def alternatives(
        self, request: backlog_model.Request
    ) -> tuple[backlog_model.Alternative, ...]:
        """Return the flavors that a request may get, with allowed hosts."""
        found = request.alternatives
        if self.ladders is not None:
            found = self.ladders.alternatives(request)
        answer = self.answer(request)
        return found if answer is None else tuple(
            dataclasses.replace(
                item, hosts=answer.hosts, own_hosts=answer.own_hosts)
            for item in found)

    def start(
        self, request: backlog_model.Request,
        wanted: backlog_model.Alternative, count: int) -> None:
        """Count the start of servers of a request."""
        if self.ladders is not None:
            self.ladders.start(request, wanted, count)

    def why_not_yet(self, request: backlog_model.Request,
            now: datetime.datetime) -> Mapping[str, Any] | None:
        """Return why a request cannot start yet whatever capacity there is."""
        if seconds_until(request.not_before, now):
            return {
                "code": WINDOW,
                "text": f"It must not start before {request.not_before}Z.",
            }
        answer = self.answer(request)
        if answer is not None and answer.reason:
            return {"code": RESERVATION, "text": answer.reason}
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class WaitNote:
    """The reason that the owner of a waiting request reads.

    :param position: in the order, from 1; None if it never was in one
    :param waits_for: {"code", "text"}; where it is for room also {"lacks":
        {resource class: amount}, "hosts": {resource class: how many lack it}}
    :param estimate_s: how long it may still wait, None if nobody knows
    """

    position: int | None
    waits_for: Mapping[str, Any]
    estimate_s: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class PassResult:
    """Decisions of a pass.

    :param notes: of requests that do not start, by uuid
    :param held: the uuids of requests for which hosts are held
    :param unseen: the uuids of requests that it did not reach
    :param faults: {uuid: exception} of requests that raised one
    :param chosen: notes of requests that start, until they have: a new
        position
    :param turns: the last turn of each project, for the next pass
    :param quotas: the uuids of requests whose users' quotas the next pass
        needs
    """

    starts: tuple[PlannedBoot, ...]
    notes: Mapping[str, WaitNote]
    held: tuple[str, ...] = ()
    unseen: frozenset[str] = frozenset()
    faults: Mapping[str, Exception] = dataclasses.field(default_factory=dict)
    chosen: Mapping[str, WaitNote] = dataclasses.field(default_factory=dict)
    turns: Mapping[str, ProjectTurn] = dataclasses.field(default_factory=dict)
    quotas: tuple[str, ...] = ()
