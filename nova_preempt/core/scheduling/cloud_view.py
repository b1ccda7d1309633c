# SPDX-License-Identifier: Apache-2.0

"""Interface through which a decision reads the cloud.

Implemented by Nova's scheduler and by the simulator. The queries are few and
in bulk, so that they can be recorded and replayed.

A host that the cloud cannot read is left out. An error that comes at once
costs next to nothing. A call that is not answered takes as long as its
timeout, with Placement 60 s by default, so that the total time is bounded.
"""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
from typing import Protocol

from nova_preempt.core.model import PreemptibleServer, Provider
from nova_preempt.core.scheduling.eviction_budgets import EvictionBudgets
from nova_preempt.core.scheduling.pending_evictions import ReleasingHost

#: How old data may be, in seconds: on free capacity when a preemptible server
#: is placed, and on hosts that need victims while other hosts have capacity.
#: Nobody is evicted by old data.
MAX_AGE_S = 5.0

#: How old Placement's list of the hosts that may serve a request may be when
#: victims are searched, in seconds: more than the interval of background
#: readings.
LIST_MAX_AGE_S = 60.0

#: After so many seconds, two unanswered calls, no further host is read: the
#: request is decided by the hosts that were.
READ_S = 120.0
#: After one more unanswered call no host is claimed either.
CLAIM_S = 180.0

#: Stands for the list of all hosts in place of the uuid of a host.
ALL_HOSTS = ""

#: The reason for a host that was not read.
NOT_ASKED = "not asked, since other hosts took too long to answer"


class Unanswered(Exception):
    """The cloud cannot answer a query now; the message says why.

    :param after_s: how long the query took to fail
    """

    def __init__(self, reason: str, after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.after_s = after_s


class UnansweredHosts:
    """The hosts that did not answer a request, in all its passes.

    :ivar reasons: {uuid of a host: error}
    :ivar excluded: uuids of hosts that could not be claimed and are not tried
        again for the request
    """

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        self.excluded: set[str] = set()
        self._spent_s = 0.0

    def note(self, host: str, exc: Unanswered) -> None:
        """Record a query about a host that was not answered."""
        self.reasons[host] = str(exc)
        self._spent_s += exc.after_s

    def exclude(self, host: str, exc: Unanswered) -> None:
        """Record a host that could not be claimed, and exclude it."""
        self.note(host, exc)
        self.excluded.add(host)

    def answered(self, host: str) -> None:
        """Remove the earlier error of a host."""
        self.reasons.pop(host, None)

    @property
    def reason(self) -> str:
        """The first error, '' if all hosts answered."""
        return next(iter(self.reasons.values()), "")

    def may_read(self) -> bool:
        """Return whether there is time left to read further hosts."""
        return self._spent_s < READ_S

    def may_claim(self) -> bool:
        """Return whether there is time left to claim a host."""
        return self._spent_s < CLAIM_S


@dataclasses.dataclass(frozen=True, slots=True)
class ListedHost:
    """A host that may serve the request if capacity is freed.

    ``providers``: as last read, the root first, () if never; ``fresh``:
    whether nothing has changed since. ``floor_us``: a lower bound of the cost
    of any plan there.
    """

    uuid: str
    name: str
    providers: tuple[Provider, ...]
    fresh: bool
    floor_us: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class HostTrial:
    """A host without some servers, which are in order of uuid.

    ``cost_us`` is the cost of evicting them.
    """

    host: str
    without: tuple[PreemptibleServer, ...] = ()
    cost_us: int = 0


class CloudView(Protocol):
    """Answers the queries of one request; hosts are named by their uuid."""

    def objection(self) -> str:
        """Return why nobody may be evicted for this request, '' if allowed.

        Called once, before victims are searched.
        """

    def refresh(self, max_age_s: float) -> None:
        """Read the changes of servers, if the last read is older than this."""

    def may_wait(self, notice_s: float) -> bool:
        """Return whether the request can, and may, wait for such a notice.

        Called for servers that are eligible in every other respect.
        """

    def listed(self, max_age_s: float) -> Sequence[ListedHost]:
        """Return the hosts with preemptible servers that the request may use.

        In ascending order of their ``floor_us``; the caller reads them one by
        one, and as a rule not all of them.

        :param max_age_s: how old the list may be
        :raises Unanswered:
        """

    def list_again(self, host: str, max_age_s: float) -> ListedHost | None:
        """Return the present state of a listed host, None if unlisted.

        :raises Unanswered:
        """

    def read(self, host: str) -> tuple[Provider, ...]:
        """Return the present providers of a host, () if it is gone.

        :raises Unanswered:
        """

    def servers_on(self, name: str) -> Mapping[str, PreemptibleServer]:
        """Return the preemptible servers on the host of this name, by uuid.

        The mapping must not change afterwards, and should be the same object
        while the servers are the same.
        """

    def server(self, uuid: str) -> PreemptibleServer | None:
        """Return a preemptible server as known now."""

    def ending(self) -> Collection[str]:
        """Return the uuids of the servers that are being evicted.

        Called before a search whose victims will be evicted; from here until
        the request is done no other request should choose victims.
        """

    def releasing(self) -> Mapping[str, ReleasingHost]:
        """Return the pending evictions by host.

        {} for a request that may not wait for them.
        """

    def budgets(self) -> EvictionBudgets | None:
        """Return the limits on simultaneous evictions, None for no limit."""

    def load(self, hosts: Collection[str]) -> Collection[str]:
        """Read hosts that were not offered; return the hosts that exist."""

    def passing(self, trials: Sequence[HostTrial]) -> Collection[str]:
        """Return the hosts that pass every filter without the servers."""

    def order(self, trials: Sequence[HostTrial], index: int) -> Sequence[str]:
        """Return the hosts that pass, the best for the index-th server first.

        Filters see the host without the servers, weighers as it is.
        """

    def room_age_s(self) -> float:
        """Return the age of the list of hosts with free capacity."""
