# SPDX-License-Identifier: Apache-2.0
"""Turns of projects: when hosts may be kept free for requests of each.

A turn begins when hosts are kept for a request of the project. It ends six
hours later, or six hours after the hosts that are kept for one of its requests
last came nearer to having enough room, but after a day at the latest. Where it
is known that they will have enough within that day, it lasts until then. Then
the project rests for a third of that time. After its rest it may have another
turn, behind projects whose last turn began earlier, or that never had one.
"""

from collections.abc import Collection, Mapping
import dataclasses
import datetime
import math

from nova_preempt.core.backlog.host_capacity import KeptHosts

#: Length of a turn after the last progress, in seconds. Most servers that end
#: within a day end within hours.
TURN_S = 6 * 3600
#: The longest turn, in seconds.
LONGEST_TURN_S = 24 * 3600
#: A project rests for its turn divided by this.
TURNS_PER_REST = 3
# Tolerance of the time at which its hosts are ready, in seconds.
_SLACK_S = 600
#: Turns that began so long ago are dropped, in seconds.
MEMORY_S = 30 * 24 * 3600


@dataclasses.dataclass(frozen=True, slots=True)
class ProjectTurn:
    """The last turn of a project.

    :param since: when it began; naive, in UTC
    :param nearer_at: when hosts last came nearer to having enough room
    :param hosts: those that were kept last, without those of reservations
    :param far: {uuid of a request: how far its hosts were from that at best}
    :param place: tells turns apart that began at once: smaller ones come first
    """

    since: datetime.datetime
    nearer_at: datetime.datetime
    hosts: frozenset[str] = frozenset()
    far: Mapping[str, int] = dataclasses.field(default_factory=dict)
    place: int = 0

    @property
    def ends_at(self) -> datetime.datetime:
        """Return the end of the turn unless there is more progress."""
        return min(self.nearer_at + datetime.timedelta(seconds=TURN_S),
                   self.since + datetime.timedelta(seconds=LONGEST_TURN_S))

    @property
    def rests_until(self) -> datetime.datetime:
        """Return when the project may have another turn."""
        turn_s = int((self.ends_at - self.since).total_seconds())
        return self.ends_at + datetime.timedelta(
            seconds=turn_s // TURNS_PER_REST)


class ProjectTurns:
    """The turns of all projects in a pass.

    :param known: the turns after the last pass, by project
    :param waiting: the uuids of all waiting requests
    :ivar known: the last turn of each project, for the next pass
    """

    def __init__(
        self, known: Mapping[str, ProjectTurn], waiting: Collection[str],
        now: datetime.datetime, ) -> None:
        self._now = now
        self._kept: set[str] = set()
        memory = datetime.timedelta(seconds=MEMORY_S)
        self.known = {
            project: dataclasses.replace(turn, far={
                uuid: far for uuid, far in turn.far.items()
                if uuid in waiting})
            for project, turn in known.items() if now - turn.since < memory}

    def is_on(self, project: str) -> bool:
        """Tell whether a project has its turn now."""
        turn = self.known.get(project)
        return turn is not None and self._now < turn.ends_at

    def rests_until(self, project: str) -> datetime.datetime | None:
        """Return until when a project rests, None if it does not."""
        turn = self.known.get(project)
        if turn is not None and turn.ends_at <= self._now < turn.rests_until:
            return turn.rests_until
        return None

    def since(self, project: str) -> datetime.datetime | None:
        """Return when its turn began, None if it has neither turn nor rest."""
        if self.is_on(project) or self.rests_until(project):
            return self.known[project].since
        return None

    def rank(self, project: str) -> tuple[bool, float, int]:
        """Return a key that ranks projects; the smallest is served first.

        Projects with a turn or a rest come first, then the others, by the
        begin of their last turn.
        """
        turn = self.known.get(project)
        if turn is None:
            return True, -math.inf, 0
        return (self.since(project) is None,
                (turn.since - self._now).total_seconds(), turn.place)

    def are_resting(self, hosts: Collection[str]) -> bool:
        """Tell whether a host was held for a project that rests now."""
        return any(self.rests_until(project) and not turn.hosts.isdisjoint(
            hosts) for project, turn in self.known.items())

    def keep(self, project: str, uuid: str, held: KeptHosts,
             is_shared: bool, place: int) -> None:
        """Record that hosts are held for a request.

        :param is_shared: whether other requests might use these hosts
        :param place: of the request among the chosen ones
        """
        turn = self.known[project] if self.is_on(project) else ProjectTurn(
            self._now, self._now, place=place)
        best = turn.far.get(uuid, held.distance)
        is_nearer = held.distance < best or self._is_late(turn, held.in_s)
        self.known[project] = dataclasses.replace(
            turn, nearer_at=self._now if is_nearer else turn.nearer_at,
            hosts=frozenset(held.hosts if is_shared else ()).union(
                turn.hosts if project in self._kept else ()),
            far={**turn.far, uuid: min(held.distance, best)})
        self._kept.add(project)

    def _is_late(self, turn: ProjectTurn, in_s: int | None) -> bool:
        """Tell whether its hosts are ready after its end, but within a day.

        :param in_s: in how many seconds they have, None: nobody knows
        """
        if not in_s:
            return False
        start_at = self._now + datetime.timedelta(seconds=in_s)
        latest = turn.since + datetime.timedelta(seconds=LONGEST_TURN_S)
        return start_at < latest and turn.ends_at < (
            start_at + datetime.timedelta(seconds=_SLACK_S))
