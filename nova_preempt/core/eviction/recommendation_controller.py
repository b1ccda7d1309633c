# SPDX-License-Identifier: Apache-2.0
"""Controller of recommendations to leave, ahead of probable evictions.

A recommendation gives a project time to start its work elsewhere. It is no
notice: the server may stay, and its eviction need not follow.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
import dataclasses
from typing import Self, TypeAlias

from nova_preempt.core import requester_liveness
from nova_preempt.core.controller_step import Step
from nova_preempt.core.model import SECOND, PreemptibleServer
from nova_preempt.core.reservation import reservation_model

#: How long before a reservation of its host a server gets a recommendation,
#: in seconds.
AHEAD_S = 3600
#: A group of hosts is low on capacity while less than this multiple of its
#: headroom is free.
LOW_HEADROOM = 2
#: For how long a recommendation because of that is valid, in seconds, so that
#: it does not come and go. It is renewed once half of that has passed.
VALID_S = 3600
#: How long after Nova has refused one, or has not answered, it is tried again,
#: in seconds.
RETRY_S = 300


@dataclasses.dataclass(frozen=True, slots=True)
class Recommendation:
    """A recommendation that a server has.

    :ivar reason: requester_liveness.RESERVATION or HEADROOM
    :ivar until_us: when it ends unless it is renewed: the start of the
        reservation
    :ivar retry_us: it is not written or withdrawn before that
    """

    reason: str
    until_us: int
    retry_us: int = 0

    def unanswered(self, now_us: int) -> Self:
        """Return what is known before Nova answers a call that changes it."""
        return dataclasses.replace(self, reason="",
                                   retry_us=now_us + RETRY_S * SECOND)


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """The preemptible servers, and what may end them.

    :ivar reservations: the open ones
    :ivar next_victims: uuids of the servers that would be evicted if groups
        of hosts kept LOW_HEADROOM times their headroom free
    :ivar may_end: returns whether a server may be evicted and has no notice
    """

    servers: Iterable[PreemptibleServer]
    reservations: Iterable[reservation_model.Reservation]
    next_victims: Collection[str]
    may_end: Callable[[PreemptibleServer], bool]


@dataclasses.dataclass(frozen=True, slots=True)
class Recommend:
    """Give a recommendation, or renew it."""

    server: PreemptibleServer
    recommendation: Recommendation


@dataclasses.dataclass(frozen=True, slots=True)
class Withdraw:
    """Withdraw the recommendation of a server, which may be gone."""

    server_uuid: str


Intent: TypeAlias = Recommend | Withdraw
Memory: TypeAlias = Mapping[str, Recommendation]


def step(observed: Observed, memory: Memory, now_us: int
         ) -> Step[Intent, Memory]:
    """Return the recommendations to give and to withdraw.

    :param memory: the recommendations that servers have, by their uuids
    """
    near = _for_reservations(observed.reservations, now_us)
    after = {uuid: given for uuid, given in memory.items()
             if now_us < given.retry_us}
    intents: list[Intent] = []
    for server in observed.servers:
        given = memory.get(server.uuid)
        found = near.get(server.node) or _for_headroom(
            server.uuid in observed.next_victims, given, now_us)
        if server.uuid not in after and found and observed.may_end(server):
            after[server.uuid] = found
            if found != given:
                intents.append(Recommend(server, found))
    intents += [Withdraw(uuid) for uuid in memory if uuid not in after]
    return Step(tuple(intents), after)


def _for_reservations(reservations: Iterable[reservation_model.Reservation],
                      now_us: int) -> dict[str, Recommendation]:
    """Return {host: the Recommendation for its next reservation} that nears.
    """
    return {
        host: Recommendation(requester_liveness.RESERVATION, start_us)
        # The next one of a host comes last.
        for each in sorted(reservations, key=lambda each: -each.start_s)
        if now_us < (start_us := each.start_s * SECOND) <= (
            now_us + AHEAD_S * SECOND)
        for host in each.held}


def _for_headroom(is_next: bool, given: Recommendation | None, now_us: int
                  ) -> Recommendation | None:
    left_us = given.until_us - now_us if given is not None and (
        given.reason == requester_liveness.HEADROOM) else 0
    if is_next and left_us <= VALID_S * SECOND // 2:
        return Recommendation(requester_liveness.HEADROOM,
                              now_us + VALID_S * SECOND)
    return given if left_us > 0 else None
