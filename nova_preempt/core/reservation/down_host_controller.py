# SPDX-License-Identifier: Apache-2.0
"""Controller of hosts that are down: decides which are replaced, and when.

Many hosts that are down at once have one cause, such as the message bus, the
database, a switch, or an operator who disables a rack. Then a brake holds, and
no host is replaced.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses

from nova_preempt.core import controller_step
from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import host_replacement
from nova_preempt.core.reservation import reservation_model

#: The longest time that the brake holds if there are enough replacements, in
#: seconds: a failed switch is repaired by then, or will not be soon.
BRAKE_S = 1800

#: The longest time between two steps, in seconds, unless another engine has
#: acted, none did, or the clock was set.
PASS_S = 60

#: How long the compute service of a reserved host may be down, disabled or
#: gone before the host is replaced, in seconds, on top of the time after which
#: Nova reports it down: enough for a restart.
GRACE_S = 120

#: The reason for owners while the brake holds.
BRAKED = (
    "a host is down; it is not replaced yet, since many are down at once"
)

#: So many hosts may be down in any case, as long as most are up, so that small
#: clouds heal as well.
HOSTS = 2


def brake_reason(percent: float, down: int, total: int, *, held_s: float = 0,
        enough: bool = False) -> str:
    """Return why the brake holds, '' if hosts that are down may be replaced.

    If half of all hosts or more are down, their cause is unknown and the
    others are too few to replace them. Then only an operator releases the
    brake.

    :param percent: the share of hosts of which more may not be down; 100
        releases the brake
    :param down: how many hosts are down, disabled or gone
    :param total: out of how many that matter
    :param held_s: for how long that has been too many
    :param enough: whether there are hosts to replace all of them
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

    Owners are told when the brake begins to hold: so an engine knows it after
    a restart, or after a time without a view of the hosts.

    :param down: the names of the held hosts that are down
    :param known_s: the last result of this, None if too few were down
    """
    return min(
        now_s, now_s if known_s is None else known_s,
        *(
            reservation_model.to_s(each.updated_at) for each in reservations
            if each.public_reason == BRAKED and each.updated_at is not None
            and not set(down).isdisjoint(each.held)),
    )


def are_enough(wanted: Iterable[tuple[int, Sequence[str]]]) -> bool:
    """Tell whether each reservation gets a host for each that it loses.

    May be false if there are only just enough.

    :param wanted: how many hosts each would lose, and the names of hosts that
        it could get instead
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
    """Return the changed reasons of a reservation while the brake holds.

    :param down: the names of hosts that are down
    :param why: the reason of the brake, '' if it is released
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
    :ivar blind: returns why it is unknown which hosts are down, "" if known
    :ivar candidates: returns the hosts that a reservation could be given
    """

    reservations: Collection[reservation_model.Reservation]
    down: host_replacement.DownHosts
    percent: float
    blind: Callable[[], str]
    candidates: Callable[[reservation_model.Reservation], Sequence[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class TellOwner:
    """Record in a reservation whether its hosts wait for the brake.

    :ivar many: the reason of the brake, '' if it is released; see
        owner_reasons()
    """

    reservation: str
    many: str
    waits: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """State that one step keeps for the next.

    :ivar down_since: since when each held host counts as down
    :ivar looked_s: when that was observed
    :ivar why: why no host is replaced, '' if each may be
    :ivar many_since_s: since when too many are down at once
    :ivar told: uuids of the reservations whose owner was told
    """

    down_since: Mapping[str, float] = dataclasses.field(default_factory=dict)
    looked_s: int | None = None
    why: str = ""
    many_since_s: int | None = None
    told: frozenset[str] = frozenset()

    def given_up(self, now_us: int) -> list[str]:
        """Return the hosts that have been down for longer than GRACE_S."""
        until_s = now_us // SECOND - GRACE_S
        return [] if self.why else [
            name for name, since_s in self.down_since.items()
            if since_s <= until_s]


def step(
    view: Observed, memory: Memory, now_us: int
) -> controller_step.Step[TellOwner, Memory]:
    """Record which hosts are down, and decide what their owners are told."""
    now_s = now_us // SECOND
    down = view.down.held
    blind = view.blind() if down else ""
    many, many_since_s = "", memory.many_since_s
    if not blind:
        many, many_since_s = _why_many(view, many_since_s, now_s)
    # Observations under the brake do not count, nor older ones: a host may
    # have been up in between.
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
    return controller_step.Step(tuple(intents), Memory(
        since, now_s, blind or many, many_since_s, told))


def _why_many(
    view: Observed, since_s: int | None, now_s: int
) -> tuple[str, int | None]:
    """Return the reason of the brake, and since when too many are down."""
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
