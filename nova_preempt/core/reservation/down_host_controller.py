# SPDX-License-Identifier: Apache-2.0
"""Controller of the hosts that are down: which of them are given up, and when.

Many hosts that are down at once have one cause: a message bus or a database
that is away, a switch, an operator who disables a rack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses

from nova_preempt.core import controller
from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import healing_rules
from nova_preempt.core.reservation import reservation_model

#: For how long hosts that are down at once are waited for where enough others
#: could take their place, in seconds: what cuts a part of the hosts off, such
#: as a switch, is repaired by then, or is not soon.
BRAKE_S = 1800

#: Between two looks at all hosts there is less, in seconds, unless something
#: is wrong: another engine has acted, nobody did, or the clock was set.
PASS_S = 60

#: How long the compute service of a reserved host may be down, disabled or
#: gone before another host takes its place, in seconds, beside the time after
#: which Nova calls it down: enough for a restart.
GRACE_S = 120

#: What the owner is told whose host is down meanwhile.
BRAKED = (
    "a host is down; it is not replaced yet, since many are down at once"
)

#: So many hosts may be down in any case, as long as most are up: a small cloud
#: heals as well.
HOSTS = 2


def brake_reason(percent: float, down: int, total: int, *, held_s: float = 0,
        enough: bool = False) -> str:
    """Return why no host is given up now, '' if each may be.

    Where half of all are down, or more, there is nobody to tell the one
    from the other, nor enough hosts to take their place. Only an operator
    releases the brake then.

    :param percent: the share of hosts of which more may not be down; 100
        releases the brake
    :param down: how many hosts are down, disabled or gone
    :param total: out of how many that matter
    :param held_s: for how long that has been too many
    :param enough: whether there are hosts for all that would be given up
    """
    allowed = max(HOSTS, int(total * percent / 100))
    most = down >= total or (down > 1 and 2 * down >= total)
    if percent >= 100 and down < total:
        return ""
    if not most and enough and held_s >= BRAKE_S:
        return ""
    if down and (most or down > allowed):
        return f"{down} of {total} hosts are down, disabled or gone at once"
    return ""


def held_since(
    reservations: Iterable[reservation_model.Reservation],
    down: Collection[str], known_s: int | None, now_s: int, ) -> int:
    """Return since when too many hosts are down, as far as is known.

    Owners are told as the brake begins to hold: so an engine knows it that
    has just been started, or that could see no hosts for a while.

    :param down: the names of the held hosts that are down
    :param known_s: what this returned the last time, None if too few were
    """
    return min(
        now_s, now_s if known_s is None else known_s,
        *(
            reservation_model.to_s(each.updated_at) for each in reservations
            if each.public_reason == BRAKED and each.updated_at is not None
            and not set(down).isdisjoint(each.held)),
    )


def are_enough(wanted: Iterable[tuple[int, Sequence[str]]]) -> bool:
    """Whether each reservation gets another host for each that it loses.

    Where there is only just enough this may say that there is not.

    :param wanted: how many hosts each would lose, and the names of those that
        it could have instead
    """
    taken: set[str] = set()
    for number, names in sorted(
        wanted, key=lambda item: (len(item[1]) - item[0], item[0])):
        free = [name for name in names if name not in taken]
        if len(free) < number:
            return False
        taken.update(free[:number])
    return True


def owner_reasons(reservation: reservation_model.Reservation, down: Collection[
        str], why: str) -> Mapping[str, str]:
    """Return which reasons change of one whose hosts wait for the brake.

    :param down: the names of hosts that are down
    :param why: what the brake says, '' if it lets go
    """
    names = [name for name in reservation.held if name in down]
    if why and names:
        if reservation.public_reason:
            return {}
        return {
            "reason": f"{', '.join(names)} down, and not replaced yet: {why}",
            "public_reason": BRAKED,
        }
    if reservation.public_reason == BRAKED:
        return {"reason": "", "public_reason": ""}
    return {}


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """The hosts of open reservations, as they are now.

    :ivar reservations: the open reservations
    :ivar percent: see brake_reason()
    :ivar blind: returns why nobody can tell which hosts are down, "" if all
        can
    :ivar candidates: returns the hosts that a reservation could be given
    """

    reservations: Collection[reservation_model.Reservation]
    down: healing_rules.DownHosts
    percent: float
    blind: Callable[[], str]
    candidates: Callable[[reservation_model.Reservation], Sequence[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class TellOwner:
    """Say in a reservation whether its hosts wait for the brake.

    :ivar many: why they do, '' if they do not; see owner_reasons()
    """

    reservation: str
    many: str
    waits: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """Values that one step keeps for the next.

    :ivar down_since: since when each held host counts as down
    :ivar looked_s: when that was found out
    :ivar why: why no host is given up, '' if each may be
    :ivar many_since_s: since when too many are down at once
    :ivar told: uuids of the reservations whose owner knows of that
    """

    down_since: Mapping[str, float] = dataclasses.field(default_factory=dict)
    looked_s: int | None = None
    why: str = ""
    many_since_s: int | None = None
    told: frozenset[str] = frozenset()

    def given_up(self, now_us: int) -> list[str]:
        """Return the hosts that have had their time to come back."""
        until_s = now_us // SECOND - GRACE_S
        return [] if self.why else [
            name for name, since_s in self.down_since.items()
            if since_s <= until_s]


def step(
    view: Observed, memory: Memory, now_us: int
) -> controller.Step[TellOwner, Memory]:
    """Note which hosts are down, and decide what their owners are told."""
    now_s = now_us // SECOND
    down = view.down.held
    blind = view.blind() if down else ""
    many, many_since_s = "", memory.many_since_s
    if not blind:
        many, many_since_s = _why_many(view, many_since_s, now_s)
    # What was seen while the brake was on says nothing, nor what was seen so
    # long ago that a host may have been up in between.
    is_known = not (blind or many) and memory.looked_s is not None and (
        0 <= now_s - memory.looked_s <= GRACE_S + PASS_S)
    since = {name: memory.down_since.get(name, now_s) if is_known else now_s
             for name in down}
    told = memory.told & {each.uuid for each in view.reservations}
    intents = []
    for each in () if blind else view.reservations:
        waits = bool(many) and not down.isdisjoint(each.held)
        if waits != (each.uuid in told) or (
                not waits and each.public_reason == BRAKED):
            intents.append(TellOwner(each.uuid, many, waits))
            told = told | {each.uuid} if waits else told - {each.uuid}
    return controller.Step(tuple(intents), Memory(
        since, now_s, blind or many, many_since_s, told))


def _why_many(
    view: Observed, since_s: int | None, now_s: int
) -> tuple[str, int | None]:
    """Return why none is given up, and since when too many are down."""
    down = view.down
    if not (down.held and brake_reason(view.percent, down.number, down.of)):
        return "", None
    since_s = held_since(view.reservations, down.held, since_s, now_s)
    held_s = now_s - since_s
    lost = [(len(down.held.intersection(each.held)), each)
            for each in view.reservations]
    return brake_reason(view.percent, down.number, down.of, held_s=held_s,
        enough=held_s >= BRAKE_S and are_enough((number, view.candidates(each))
        for number, each in lost if number)), since_s
