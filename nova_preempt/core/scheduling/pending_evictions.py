# SPDX-License-Identifier: Apache-2.0
"""Evictions in progress whose capacity a request may wait for.

Until victims are gone they hold allocations that no request has claimed. A
server that fits there needs no victims of its own. Such a host is planned like
any other, with victims that cost nothing, so that all filters apply.
"""

from collections.abc import Callable, Iterable, Mapping
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core import eviction_actions
from nova_preempt.core import fit_and_victims
from nova_preempt.core.model import Candidate, Host, Request, Resources, Slot


@dataclasses.dataclass(frozen=True, slots=True)
class PendingEviction:
    """The victims of one decision that have not ended yet, on one host.

    ``actions``: {uuid of a victim: its action}. ``notice_s``: the rest of
    their notice. ``holders``: {uuid of a victim: consumer that holds the
    allocations it may not hold itself}, see Plan.displaced().
    """

    decision_uuid: str
    actions: Mapping[str, str]
    notice_s: float = 0.0
    holders: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def held(self, host: Host, victim: str) -> dict[Slot, int]:
        """Return the unclaimed allocations of a victim there."""
        held = host.held(victim)
        if victim in self.holders:
            held |= host.held(self.holders[victim])
        return held

    def freed(self, host: Host) -> dict[Slot, int]:
        """Return the unclaimed amounts that the victims will free there."""
        return capacity.total(
            {slot: n for slot, n in self.held(host, uuid).items()
             if eviction_actions.frees(slot[1], action)}
            for uuid, action in self.actions.items())


@dataclasses.dataclass(frozen=True, slots=True)
class ReleasingHost:
    """The pending evictions on a host, and the requests that wait there.

    ``waiting``: the resources of each of these requests.
    """

    endings: tuple[PendingEviction, ...]
    waiting: tuple[Resources, ...] = ()

    def held(self, host: Host, uuid: str) -> dict[Slot, int]:
        """Return the allocations of a consumer there, even of a victim."""
        for ending in self.endings:
            if uuid in ending.holders:
                return ending.held(host, uuid)
        return host.held(uuid)


NOTHING = ReleasingHost(())


def join(
    request: Request, host: Host, releasing: ReleasingHost,
    may_wait: Callable[[float], bool] = lambda notice_s: True,
) -> tuple[PendingEviction, ...]:
    """Return the earliest pending evictions that suffice; () = none do.

    Only evictions that the request may wait for, and none that can be spared.

    :param host: its candidates are ignored
    :param may_wait: returns whether the request may wait for a notice
    """
    request = request.on(host.root)
    usable = sorted(
        releasing.endings, key=lambda each: (each.notice_s, each.decision_uuid)
    )
    asked = capacity.total(
        [
            *(group.resources for group in request.groups), *releasing.waiting,
        ])
    if not _fits(request, asked, host, usable):
        return ()
    usable = [each for each in usable if may_wait(each.notice_s)]
    if not _fits(request, asked, host, usable):
        return ()
    # Drop the latest first: an early eviction is worth more.
    for each in reversed(usable):
        rest = [other for other in usable if other is not each]
        if _fits(request, asked, host, rest):
            usable = rest
    return tuple(usable)


def _fits(request: Request, asked: Resources, host: Host,
          endings: Iterable[PendingEviction]) -> bool:
    """Return whether the request fits after these evictions.

    The host must pass for the request alone; the requests that wait were
    checked before, and count by class.
    """
    freed = [each.freed(host) for each in endings]
    after = dataclasses.replace(
        host,
        candidates=tuple(
            Candidate(str(number), each, 0)
            for number, each in enumerate(freed)),
    )
    gained = capacity.total(freed)
    if not fit_and_victims.fits(request, after, gained):
        return False
    room = capacity.by_class(gained)
    return all(
        amount <= host.free(name) + room.get(name, 0)
        for name, amount in asked.items() if amount)
