# SPDX-License-Identifier: Apache-2.0
"""Evictions in progress whose space a request may join.

Until victims are gone they hold what was not taken from them. A server that
fits there needs no victims of its own. The host is one like any other, with
victims that cost nothing; so whatever else speaks against a host speaks
against this one too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import dataclasses

from nova_preempt.core import actions
from nova_preempt.core import capacity
from nova_preempt.core import host_requirements
from nova_preempt.core.model import Candidate, Host, Request, Resources, Slot


@dataclasses.dataclass(frozen=True, slots=True)
class PendingEviction:
    """Victims of one decision that have not ended yet, on one host.

    ``actions``: {uuid of a victim: what happens to it}. ``notice_s``: how
    much of their notice is left. ``holders``: {uuid of a victim: that of who
    holds for it what it may not hold itself}, see Plan.displaced().
    """

    decision_uuid: str
    actions: Mapping[str, str]
    notice_s: float = 0.0
    holders: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def held(self, host: Host, victim: str) -> dict[Slot, int]:
        """Return what a victim has there that nobody has taken yet."""
        held = host.held(victim)
        if victim in self.holders:
            held |= host.held(self.holders[victim])
        return held

    def freed(self, host: Host) -> dict[Slot, int]:
        """Return what they give up there that nobody has taken yet."""
        return capacity.total(
            {slot: n for slot, n in self.held(host, uuid).items()
             if actions.frees(slot[1], action)}
            for uuid, action in self.actions.items())


@dataclasses.dataclass(frozen=True, slots=True)
class ReleasingHost:
    """What ends on a host, and who waits for that already.

    ``waiting``: what each of them asks for.
    """

    endings: tuple[PendingEviction, ...]
    waiting: tuple[Resources, ...] = ()

    def held(self, host: Host, uuid: str) -> dict[Slot, int]:
        """Return what anybody has there, be it one of the victims."""
        for ending in self.endings:
            if uuid in ending.holders:
                return ending.held(host, uuid)
        return host.held(uuid)


NOTHING = ReleasingHost(())


def join(
    request: Request, host: Host, releasing: ReleasingHost,
    may_wait: Callable[[float], bool] = lambda notice_s: True,
) -> tuple[PendingEviction, ...]:
    """Return the ends that make room, the earliest; () = they do not.

    Of those that can be waited for, and none that can be spared.

    :param host: its candidates do not count
    :param may_wait: given the notice that is left, whether the request may
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
    # The last ones first: whoever ends early is worth more.
    for each in reversed(usable):
        rest = [other for other in usable if other is not each]
        if _fits(request, asked, host, rest):
            usable = rest
    return tuple(usable)


def _fits(request: Request, asked: Resources, host: Host,
          endings: Iterable[PendingEviction]) -> bool:
    """Tell whether there is room once these are gone.

    The host must take the request itself, in one piece; what others ask for
    it has been found to take before.
    """
    freed = [each.freed(host) for each in endings]
    after = dataclasses.replace(
        host,
        candidates=tuple(
            Candidate(str(number), each, 0)
            for number, each in enumerate(freed)),
    )
    gained = capacity.total(freed)
    if not host_requirements.fits(request, after, gained):
        return False
    room = capacity.by_class(gained)
    return all(
        amount <= host.free(name) + room.get(name, 0)
        for name, amount in asked.items() if amount)
