# SPDX-License-Identifier: Apache-2.0

"""Data model of waiting requests, shared by all modules that handle them."""

from collections.abc import Mapping
import dataclasses
import datetime
from typing import Any

from nova_preempt.core.model import Resources

# States of a request.
WAITING = "waiting"  # for capacity, its window or its quota
PLACING = "placing"  # Nova was asked for servers, which are not built yet
ACTIVE = "active"  # all its servers run
PARTLY_ACTIVE = "partly_active"  # fewer servers run than were requested
EVICTED = "evicted"  # its servers were evicted; they may come back
DONE = "done"  # its servers were deleted by their owner
FAILED = "failed"  # Nova has refused; the reason quotes Nova
CANCELLED = "cancelled"  # by a user
EXPIRED = "expired"  # its longest wait is over
OPEN = (WAITING, PLACING, ACTIVE, PARTLY_ACTIVE, EVICTED)
CLOSED = (DONE, FAILED, CANCELLED, EXPIRED)
STATES = (*OPEN, *CLOSED)
#: States in which a request has a position in the queue.
IN_ORDER = (WAITING, PARTLY_ACTIVE, EVICTED)

# States of a boot, which is one POST /servers.
ASKING = "asking"  # recorded before Nova is asked, which may have happened
ASKED = "asked"  # Nova has accepted
SETTLED = "settled"  # each of its servers runs, or is gone
REFUSED = "refused"  # Nova has not accepted
IN_VAIN = "in_vain"  # Nova found no host for any of its servers
LOST = "lost"  # unknown; no server has appeared in time

# States of a server of a request.
BUILDING = "building"
RUNNING = "running"  # was built, whatever its owner does with it
AWAY = "away"  # evicted, and kept: shelved, or stopped
ENDED = "ended"  # evicted, and deleted
GONE = "gone"  # its owner has deleted it
ERROR = "error"  # Nova could not build it, nor could a retry
UNPLACED = "unplaced"  # Nova found no host; it is deleted, and does not count


@dataclasses.dataclass(frozen=True, slots=True)
class Alternative:
    """A flavor that would do, as it was when the request was made.

    ``run_s`` is how long a server of it runs at most, None if it does not
    say, and ``minimum_run_s`` and ``notice_s`` are what it promises, and asks
    for, where it is preemptible. ``required`` and ``forbidden`` are traits of
    the host. ``hosts`` are those to which a reservation leads, None where
    none is named, ``own_hosts`` the same with those that others are still on.
    ``class_name`` is that of its servers, '' for none.
    """

    flavor_id: str
    name: str
    resources: Resources
    preemptible: bool = False
    run_s: int | None = None
    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    minimum_run_s: int = 0
    notice_s: int | None = None
    hosts: frozenset[str] | None = None
    class_name: str = ""
    own_hosts: frozenset[str] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class SlaPriorities:
    """Four SLA priorities: 1 best effort, 2 advanced, 3 premium."""

    time: int = 1
    reputation: int = 1
    cores: int = 1
    redundancy: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class SentBoot:
    """A POST /servers that was sent for a request.

    ``tag`` is on each of its servers, so that they are found again.
    """

    number: int
    tag: str
    flavor_id: str
    count: int
    asked_at: datetime.datetime
    state: str = ASKING


@dataclasses.dataclass(frozen=True, slots=True)
class OwnServer:
    """A server that was booted for a request."""

    uuid: str
    boot: int
    state: str
    since: datetime.datetime


@dataclasses.dataclass(frozen=True)
class Request:
    """A request for servers; times are naive, UTC and in whole seconds.

    :ivar body: of POST /servers as Nova takes it, without counts and flavor:
        {"server": {...}, "os:scheduler_hints": {...}}
    :ivar compute_version: the microversion of Nova that it is meant for
    :ivar least_count: so many start together, or none does
    :ivar alternatives: in order of preference; the rungs of its ladder, where
        it has one
    :ivar serial: of those of one second the smaller one came in first
    :ivar ladder: the name of flavors of which one is chosen by its priorities
        when its turn comes; '' where the user has chosen
    :ivar apart: whether no two of its servers are on the same host
    :ivar not_after: it is not started later
    :ivar longest_wait_s: the same, counted from when it was made
    :ivar comes_back: whether it waits again once it was evicted
    :ivar waits_for: what the last pass has found: {"code", "text", and what
        else is known: "lacks": {resource class: amount}, "ahead": number}
    :ivar position: in the order of the last pass, from 1
    :ivar estimate_s: how long it may still wait, None if nobody knows
    :ivar ends_servers: whether who has cancelled it wants its servers deleted
    """

    uuid: str
    project_id: str
    user_id: str
    trust_id: str
    body: Mapping[str, Any]
    compute_version: str
    count: int
    least_count: int
    alternatives: tuple[Alternative, ...]
    created_at: datetime.datetime
    updated_at: datetime.datetime
    serial: int = 0
    name: str = ""
    class_name: str = ""
    priorities: SlaPriorities | None = None
    ladder: str = ""
    apart: bool = False
    not_before: datetime.datetime | None = None
    not_after: datetime.datetime | None = None
    longest_wait_s: int | None = None
    comes_back: bool = False
    back_until: datetime.datetime | None = None
    most_returns: int | None = None
    state: str = WAITING
    reason: str = ""
    waits_for: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    position: int | None = None
    estimate_s: int | None = None
    ends_servers: bool = False
    # The begin of its current wait, its returns, the failed tries since,
    # and the time of the next try.
    waits_since: datetime.datetime | None = None
    returns: int = 0
    tries: int = 0
    next_try_at: datetime.datetime | None = None
    # When its trust expires; None: practically never.
    trust_until: datetime.datetime | None = None
    boots: tuple[SentBoot, ...] = ()
    servers: tuple[OwnServer, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class StateChange:
    """A state transition of a request: its time, and the reason."""

    at: datetime.datetime
    state: str
    reason: str = ""


def missing(request: Request) -> int:
    """Return how many servers of a request are still to be started.

    A victim that is kept, such as a shelved one, returns by itself. A server
    that its owner has deleted is not wanted any more, and a server that could
    not be built would fail again.
    """
    if not request.servers:
        return request.count
    there = sum(
        server.state in (BUILDING, RUNNING, AWAY, GONE, ERROR)
        for server in request.servers)
    return max(0, request.count - there)


def least(request: Request) -> int:
    """Return the minimum number of missing servers that start together."""
    there = request.count - missing(request)
    return max(1, request.least_count - there)


def has_group(request: Request) -> bool:
    """Tell whether the servers of a request have their own server group."""
    return request.apart and request.count > 1


def group_name(request: Request) -> str:
    """Return the name of this server group, by which it is found again."""
    return f"backlog:{request.uuid}"
