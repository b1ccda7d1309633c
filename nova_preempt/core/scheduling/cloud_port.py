# SPDX-License-Identifier: Apache-2.0

"""Interface through which a decision reads the cloud.

Whoever answers, Nova's scheduler or a simulation, is told nothing of why. The
questions are few and in bulk, so that they may be recorded and asked again.

Where the cloud cannot answer for a host, the host is left out. An error that
comes at once costs next to nothing. A call that nobody answers takes as long
as its time limit, with Placement 60 s by default, so that time is bounded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
import dataclasses
from typing import Protocol

from nova_preempt.core.model import Provider, Server
from nova_preempt.core.scheduling.eviction_budgets import Budgets
from nova_preempt.core.scheduling.pending_evictions import ReleasingHost

#: How old what is known of free space may be when a preemptible server is
#: placed, and what is known of hosts that need victims while others have room,
#: in seconds. Nobody ends by old data.
MAX_AGE_S = 5.0

#: How old Placement's list of the hosts that may serve a request may be when
#: victims are looked for, in seconds: more than passes until the next
#: reading in the background.
LIST_MAX_AGE_S = 60.0

#: After so many seconds, two calls that nobody answers, no further host is
#: read: the request is decided by what is known.
READ_S = 120.0
#: After one more no host is claimed either.
CLAIM_S = 180.0

#: Stands for the list of all hosts where a host is named.
ALL_HOSTS = ""

#: Said of a host that is not read any more.
NOT_ASKED = "not asked, since other hosts took too long to answer"


class Unanswered(Exception):
    """The cloud cannot answer now; the message says why.

    :param after_s: how long it took until that was known
    """

    def __init__(self, reason: str, after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.after_s = after_s


class UnansweredHosts:
    """The hosts that did not answer for one request, in all its passes.

    :ivar reasons: {uuid of a host: what was said instead of an answer}
    :ivar excluded: uuids of hosts that could not be claimed: the request does
        not go there any more
    """

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        self.excluded: set[str] = set()
        self._spent_s = 0.0

    def note(self, host: str, exc: Unanswered) -> None:
        """Note a question about a host that was not answered."""
        self.reasons[host] = str(exc)
        self._spent_s += exc.after_s

    def exclude(self, host: str, exc: Unanswered) -> None:
        """Note the same of a host that was about to be claimed."""
        self.note(host, exc)
        self.excluded.add(host)

    def answered(self, host: str) -> None:
        """Forget that a host did not answer earlier."""
        self.reasons.pop(host, None)

    @property
    def reason(self) -> str:
        """Return the first error, '' if all hosts answered."""
        return next(iter(self.reasons.values()), "")

    def may_read(self) -> bool:
        """Tell whether there is time left to ask about further hosts."""
        return self._spent_s < READ_S

    def may_claim(self) -> bool:
        """Tell whether there is time left to claim a host."""
        return self._spent_s < CLAIM_S


@dataclasses.dataclass(frozen=True, slots=True)
class ListedHost:
    """A host that may serve the request but for its free space.

    ``providers`` is what is known of it, the root first, () if nothing is;
    ``fresh`` says that nothing has changed since. ``floor_us``: no plan there
    costs less, as far as that is known beforehand.
    """

    uuid: str
    name: str
    providers: tuple[Provider, ...]
    fresh: bool
    floor_us: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class HostTrial:
    """A host as it would be without these servers, in order of uuid.

    ``cost_us`` is what their end costs.
    """

    host: str
    without: tuple[Server, ...] = ()
    cost_us: int = 0


class CloudPort(Protocol):
    """Answers the questions of one request; hosts are named by their uuid."""

    def objection(self) -> str:
        """Say why nobody may end for this request, '' if some may.

        Asked once, before victims are looked for.
        """

    def refresh(self, max_age_s: float) -> None:
        """Learn which servers have changed, if that is older than this."""

    def may_wait(self, notice_s: float) -> bool:
        """Tell whether the request can, and may, wait for such a notice.

        Asked of servers that may end in every other respect.
        """

    def listed(self, max_age_s: float) -> Sequence[ListedHost]:
        """Tell which hosts with preemptible servers may serve the request.

        In ascending order of their ``floor_us``; they are looked at one by
        one, and as a rule not all of them.

        :param max_age_s: how old that may be
        :raises Unanswered:
        """

    def list_again(self, host: str, max_age_s: float) -> ListedHost | None:
        """Tell it of a host that was listed, None if it may not any more.

        :raises Unanswered:
        """

    def read(self, host: str) -> tuple[Provider, ...]:
        """Return the providers of a host as they are now, () if it is gone.

        :raises Unanswered:
        """

    def servers_on(self, name: str) -> Mapping[str, Server]:
        """Return the preemptible servers on the host of this name, by uuid.

        A mapping that is not changed afterwards, and best the same one for
        as long as they are the same.
        """

    def server(self, uuid: str) -> Server | None:
        """Return a preemptible server as it is known now."""

    def ending(self) -> Collection[str]:
        """Return the uuids of the servers that end already.

        Asked before victims are looked for in earnest; from here until the
        request is through nobody else should choose victims.
        """

    def releasing(self) -> Mapping[str, ReleasingHost]:
        """Return what those who end already give up, by host.

        {} for a request that does not wait for that.
        """

    def budgets(self) -> Budgets | None:
        """Return how many servers may end together, None = as many as may."""

    def load(self, hosts: Collection[str]) -> Collection[str]:
        """Look at hosts that were not offered; return those that are there."""

    def passing(self, trials: Sequence[HostTrial]) -> Collection[str]:
        """Return the hosts that pass every filter as they would be then."""

    def order(self, trials: Sequence[HostTrial], index: int) -> Sequence[str]:
        """Return the hosts that pass, the best for the index-th server first.

        Filters see the host as it would be, weighers as it is.
        """

    def room_age_s(self) -> float:
        """Return how long ago the cloud said which hosts have room."""
