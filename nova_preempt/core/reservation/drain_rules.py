# SPDX-License-Identifier: Apache-2.0
"""Rules by which a host is drained for a reservation.

No server is evicted in vain: as long as anything on the host will not be gone
in time, no server there is given notice. Minimum run times and locks are
respected as for any eviction.
"""

from collections.abc import Collection, Container, Iterable, Mapping
import dataclasses
import enum
import math

from nova_preempt.core import eligibility
from nova_preempt.core import eviction_actions
from nova_preempt.core import model
from nova_preempt.core import notice_period
from nova_preempt.core.energy import host_classification
from nova_preempt.core.reservation import reservation_model

#: How soon hosts are looked at again, in seconds: while a reservation waits
#: for them, and otherwise.
BUSY_S = 1
IDLE_S = 5

#: How often a replacement of a host is looked for that will not be empty in
#: time, in seconds.
SWAP_S = 30

#: How long after a migration was requested it is retried if it failed, in
#: seconds.
RETRY_S = 30


class ServerKind(enum.Enum):
    """Kinds of servers on the host of a reservation."""

    OWN = "own"  # of the reservation: stays
    OTHERS = "others"  # of another reservation: gone after its end
    PREEMPTIBLE = "preemptible"  # is evicted
    NORMAL = "normal"  # is migrated


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server on a host, as it is now.

    :ivar named: the ids of the reservations that it names
    :ivar notice_s: the length of its notice, None of a normal one
    :ivar lead_s: how long it takes from its notice, or from the start of its
        migration, until it is gone
    :ivar stays_s: for how long from now on it cannot be evicted or migrated;
        for a server of another reservation, until that is over; infinity if
        unknown
    :ivar busy: its eviction, migration or another task runs
    :ivar refused: its last migration has failed
    :ivar asked_us: when its migration was requested last, since the epoch,
        None if never
    :ivar kind: see classified()
    """

    uuid: str
    named: Collection[str] = ()
    notice_s: int | None = None
    lead_s: float = 0.0
    stays_s: float = 0.0
    busy: bool = False
    refused: bool = False
    asked_us: int | None = None
    kind: ServerKind = ServerKind.NORMAL


@dataclasses.dataclass(frozen=True, slots=True)
class DrainStep:
    """A step of the drain of a host.

    :ivar empty: only servers that may stay are there
    :ivar notice: uuids of servers whose notice begins
    :ivar move: uuids of servers whose migration begins
    :ivar blocking: uuids of servers that will not be gone in time; the name of
        the host if that will not be on
    :ivar waiting: the only thing to wait for is the end of another
        reservation, which is in time
    :ivar lead_s: how long before the start there is something to do
    """

    empty: bool = False
    notice: tuple[str, ...] = ()
    move: tuple[str, ...] = ()
    blocking: tuple[str, ...] = ()
    waiting: bool = False
    lead_s: float = 0.0


def classified(
    server: Server, reservation: str,
    running: Mapping[str, reservation_model.Reservation], now_us: int,
) -> Server:
    """Return a server with its kind for a reservation of its host.

    :param running: the reservations whose servers stay, by their ids
    """
    if reservation in server.named:
        return dataclasses.replace(server, kind=ServerKind.OWN)
    ends_s = [running[uuid].end_s for uuid in server.named if uuid in running]
    if ends_s:
        stays_s = (max(ends_s) * model.SECOND - now_us) / model.SECOND
        return dataclasses.replace(server, kind=ServerKind.OTHERS, lead_s=0.0,
                                   stays_s=stays_s, refused=False)
    return dataclasses.replace(
        server, kind=ServerKind.NORMAL if server.notice_s is None
        else ServerKind.PREEMPTIBLE)


def move_lead_s(lead_s: int) -> int:
    """Return how long before the start a normal server is migrated.

    :param lead_s: the operator's option
    """
    return max(notice_period.MARGIN_S, lead_s)


def patience_s(step: DrainStep) -> float:
    """Return for how long a host may still become empty after the start.

    Servers that block are not waited for.
    """
    return max(0.0 if step.blocking else step.lead_s, notice_period.MARGIN_S)


def wait_for_power(name: str, off: host_classification.OffHost,
        to_start_s: float) -> DrainStep:
    """Return the step for a host that is not on: wait.

    A host that will not be on in time blocks as soon as it should begin to
    wake. The others have the time of a boot after the start.
    """
    late = off.why_late and to_start_s <= off.patience_s
    return DrainStep(blocking=(name,) if late else (), waiting=to_start_s > 0,
                lead_s=off.patience_s)


def by_notice(
    notices: Mapping[str, int | None], ending: Container[str]
) -> list[tuple[str, ...]]:
    """Group servers by the length of their notice, the shortest first.

    Each group is evicted as one decision.

    :param notices: the length of their notices, by their uuids
    :param ending: uuids of servers whose eviction has begun
    """
    groups: dict[int, list[str]] = {}
    for uuid, length_s in notices.items():
        if uuid not in ending:
            groups.setdefault(length_s or 0, []).append(uuid)
    return [tuple(groups[length_s]) for length_s in sorted(groups)]


def why_stays(
    server: model.PreemptibleServer, action: str,
    rules: eligibility.Rules) -> str:
    """Return why a server must not leave a needed host, "" if it may.

    Its minimum run time is not checked here.

    :param action: that of its terms
    """
    if rules.counts(server.locked_by):
        return "it is locked"
    return eviction_actions.why_stays(
        server, action, server.vm_state) or eligibility.why_not_by(
        server, eviction_actions.vacating(server, action, server.vm_state))


def stays_s(*, kept: bool, uptime_s: float, minimum_s: float) -> float:
    """Return for how long a preemptible server cannot be given notice.

    :param kept: whether it must not be evicted at all, such as a locked one
    :param minimum_s: its minimum run time
    """
    return math.inf if kept else max(0.0, minimum_s - uptime_s)


def decide(residents: Iterable[Server], to_start_s: float, caps: Collection[
        model.VictimCap] = ()) -> DrainStep:
    """Return the next step for a host; the order of servers does not matter.

    :param to_start_s: until the reservation starts; negative afterwards
    :param caps: how many of the preemptible ones may be evicted now
    """
    others = sorted(
        (item for item in residents if item.kind is not ServerKind.OWN),
        key=lambda item: (-item.lead_s, item.uuid), )
    if not others:
        return DrainStep(empty=True)
    leads = {
        item.uuid: item.lead_s * _waves(item, caps)
        for item in others
        if item.kind in (ServerKind.PREEMPTIBLE, ServerKind.NORMAL)
    }
    lead_s = max(leads.values(), default=0.0)
    blocking = tuple(
        item.uuid for item in others if _blocks(item, to_start_s))
    if blocking:
        return DrainStep(blocking=blocking, lead_s=lead_s)
    due = [
        item for item in others if not item.busy and item.stays_s <= 0
        and to_start_s <= leads.get(item.uuid, -math.inf)]
    held_back = any(item.refused for item in others)
    notice = [item.uuid for item in due if item.kind is ServerKind.PREEMPTIBLE]
    return DrainStep(notice=() if held_back else _within(notice, caps),
        move=tuple(
            item.uuid for item in due if item.kind is ServerKind.NORMAL),
        waiting=any(item.kind is ServerKind.OTHERS for item in others),
        lead_s=lead_s)


def _blocks(item: Server, to_start_s: float) -> bool:
    """Tell whether a server will not be gone in time.

    After the start, in time is as soon as possible.
    """
    if item.kind is ServerKind.OTHERS:
        return item.stays_s > max(to_start_s, 0.0)
    if item.busy or item.stays_s <= 0:
        return False
    return item.stays_s + item.lead_s > max(to_start_s, item.lead_s)


def _waves(item: Server, caps: Collection[model.VictimCap]) -> int:
    """Return how many rounds the evictions of its budget take."""
    return max(
        (
            math.ceil(len(cap.uuids) / max(1, cap.most)) for cap in caps
            if item.uuid in cap.uuids),
        default=1, )


def _within(uuids: Iterable[str],
            caps: Collection[model.VictimCap]) -> tuple[str, ...]:
    """Return the first of these servers that the caps allow together."""
    left = [cap.most for cap in caps]
    chosen = []
    for uuid in uuids:
        counts = [
            number for number, cap in enumerate(caps) if uuid in cap.uuids]
        if all(left[number] > 0 for number in counts):
            chosen.append(uuid)
            for number in counts:
                left[number] -= 1
    return tuple(chosen)
