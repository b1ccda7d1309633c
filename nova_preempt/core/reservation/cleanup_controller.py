# SPDX-License-Identifier: Apache-2.0

"""Controller of an ended reservation: removes its servers from its hosts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
from typing import Protocol, TypeAlias

from nova_preempt.core import controller_step
from nova_preempt.core import eligibility
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import DELETING
from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import reservation_model

#: How often the call that ends a server is repeated.
ASK_AGAIN_S = 10

#: How long after its hosts were found free servers are still looked for:
#: servers in scheduling may still appear.
LATE_S = 120

#: Time limit of the cleanup of a reservation, in seconds: shelving uploads an
#: image first.
TIMEOUT_S = 600
#: After this share of the time a server that cannot be shelved is deleted.
_LATE = 0.5

#: After this share a server that could not be shelved is deleted, too, where
#: another reservation needs its host.
_LAST = 0.9


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server on a host of the reservation, as Nova has it.

    :ivar named: the ids of the reservations that it names
    :ivar is_kept: whether an administrator has locked it
    """

    uuid: str
    host: str
    named: Collection[str]
    vm_state: str
    task_state: str | None
    preemptible: bool = False
    is_kept: bool = False


class EndedReservation(Protocol):
    """An ended reservation, and the servers on its hosts."""

    @property
    def reservation(self) -> reservation_model.Reservation:
        """The reservation; released once its hosts were found free."""

    @property
    def running(self) -> Mapping[str, reservation_model.Reservation]:
        """The reservations that have started, by their ids."""

    @property
    def needed(self) -> Collection[str]:
        """The names of hosts that other reservations need."""

    @property
    def dark(self) -> bool:
        """Return whether a host is in a cell that cannot be read."""

    def servers(self, host: str) -> Sequence[Server]:
        """Return the servers that are on a host."""

    def coming(self) -> Sequence[Server]:
        """Return its servers with allocations there that are not there yet."""

    def homeless(self, coming: Sequence[Server]) -> Iterable[Server]:
        """Return the servers of these without a host, in their true states."""


@dataclasses.dataclass(frozen=True, slots=True)
class EndServer:
    """Call Nova's API to shelve or delete a server."""

    server: str
    call: str


@dataclasses.dataclass(frozen=True, slots=True)
class ReportStranger:
    """Report a server of no reservation of a host; it is not removed."""

    server: str
    host: str


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """Release the hosts of the reservation, whatever is left there."""

    left: tuple[Server, ...]


Intent: TypeAlias = EndServer | ReportStranger | Release


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """State of a reservation that one step keeps for the next.

    :ivar since_us: when its cleanup began, None if it has not
    :ivar asked_us: when each server was told to end
    """

    since_us: int | None = None
    asked_us: Mapping[str, int] = dataclasses.field(default_factory=dict)


def step(
    view: EndedReservation, memory: Memory, now_us: int
) -> controller_step.Step[Intent, Memory]:
    """Decide the next step of the cleanup of a reservation.

    :param now_us: since the epoch
    """
    left, intents = _own(view)
    asked_us = {uuid: min(when_us, now_us) for uuid, when_us
                in memory.asked_us.items()}
    if view.reservation.released_at is not None:
        intents += _end(view, left, asked_us, now_us)
        return controller_step.Step(
            tuple(intents), _remember(None, left, asked_us, now_us))
    wake_at_us = now_us + drain_rules.BUSY_S * SECOND
    if view.dark:
        return controller_step.Step(tuple(intents), _remember(
            memory.since_us, left, asked_us, now_us), wake_at_us)
    since_us = now_us if memory.since_us is None else min(
        memory.since_us, now_us)
    spent = (now_us - since_us) / (TIMEOUT_S * SECOND)
    coming = () if left else view.coming()
    if spent >= 1 or not (left or coming):
        return controller_step.Step(
            (*intents, Release((*left, *coming))), Memory())
    if left or spent >= _LATE:
        intents += _end(view, left or view.homeless(coming), asked_us,
                        now_us, spent)
    return controller_step.Step(tuple(intents), _remember(
        since_us, (*left, *coming), asked_us, now_us), wake_at_us)


def _own(view: EndedReservation) -> tuple[list[Server], list[Intent]]:
    """Return its servers that are still there, and reports of strangers.

    A server that also names a running reservation of the host stays. A server
    that names none of them is reported: an administrator may have put it
    there.
    """
    left: list[Server] = []
    intents: list[Intent] = []
    for host in view.reservation.hosts:
        for server in view.servers(host.host):
            if view.reservation.uuid not in server.named:
                if (host.status != reservation_model.LOST
                        and not server.preemptible):
                    intents.append(ReportStranger(server.uuid, server.host))
            elif not any(_has(view.running.get(uuid), host.host)
                         for uuid in server.named):
                left.append(server)
    return left, intents


def _end(
    view: EndedReservation, servers: Iterable[Server],
    asked_us: dict[str, int], now_us: int, spent: float = 0.0,
) -> list[Intent]:
    """Return the calls that end servers; record when they were made."""
    intents: list[Intent] = []
    for server in servers:
        before_us = asked_us.get(server.uuid)
        found = call(
            view.reservation.end_action, server.vm_state, server.task_state,
            None if before_us is None else (now_us - before_us) / SECOND,
            spent=spent, needed=server.host in view.needed,
            is_kept=server.is_kept)
        if found:
            asked_us[server.uuid] = now_us
            intents.append(EndServer(server.uuid, found))
    return intents


def _remember(
    since_us: int | None, servers: Iterable[Server],
    asked_us: Mapping[str, int], now_us: int, ) -> Memory:
    """Forget servers that are gone, or have been on no host for a while."""
    there = {server.uuid for server in servers}
    return Memory(since_us, {
        uuid: when_us for uuid, when_us in asked_us.items()
        if uuid in there or now_us - when_us < ASK_AGAIN_S * SECOND})


def _has(reservation: reservation_model.Reservation | None, host: str) -> bool:
    return (
        reservation is not None
        and reservation.status in reservation_model.OPEN
        and host in reservation.held)


def needed(near: Iterable[reservation_model.Reservation]) -> frozenset[str]:
    """Return the hosts of reservations that have begun, or are prepared."""
    return frozenset(name for each in near for name in each.held)


def call(
    end_action: str, vm_state: str, task_state: str | None,
    asked_s: float | None = None, *, spent: float = 0.0, needed: bool = False,
    is_kept: bool = False, ) -> str:
    """Return the call of Nova's API that ends a server, '' for none now.

    Nova shelves no server that is resized or rescued: the resize is confirmed,
    or the rescue ended, first. A server in build or in error may reach a state
    in which it can be shelved until half of the time is spent, and is deleted
    then. Near the end of the time a server that could not be shelved is
    deleted if its host is needed: its owner may rescue it again and again, and
    Nova may refuse to shelve it. No server is deleted instead of shelved while
    Nova shelves or moves it, and none at all that an administrator has locked.

    :param end_action: delete or shelve
    :param asked_s: how long ago the last call was made, None if none was
    :param spent: the share of the cleanup time that has passed
    :param needed: whether another reservation needs the host
    :param is_kept: whether an administrator has locked it
    """
    found = eligibility.next_call(end_action, vm_state)
    was_tried = asked_s is not None or task_state is not None
    if _may_delete(found, spent, needed=needed and was_tried) and (
        task_state not in eviction_steps.SHELVING | eviction_steps.MOVING):
        found = "force_delete"
    if found == "force_delete":
        if is_kept or task_state in DELETING:
            return ""
    elif task_state is not None:
        return ""
    if asked_s is not None and asked_s < ASK_AGAIN_S:
        return ""
    return found or ""


def _may_delete(next_call: str | None, spent: float, *, needed: bool) -> bool:
    """Tell whether a server may be deleted instead of shelved.

    :param next_call: the call that would bring it nearer to being shelved
    :param needed: whether it could not be shelved though its host is needed
    """
    if next_call is None:
        return spent >= _LATE
    # A shelved server only has to be offloaded.
    return (
        needed and spent >= _LAST
        and next_call not in (eligibility.THERE, "shelve_offload"))


def outcome(status: str, left: Collection[Server]) -> Mapping[str, str]:
    """Return status and reasons of a reservation with released hosts.

    :param left: the servers that are still there
    """
    if not left:
        return {"status": status}
    said = f"servers were not removed within {TIMEOUT_S} s: "
    texts = [(f"{each.uuid} ({each.vm_state})", each.host) for each in left]
    return {
        "status": reservation_model.ERROR,
        "reason": said
        + ", ".join(f"{text} on {host}" for text, host in texts),
        "public_reason": said + ", ".join(text for text, _host in texts),
    }
