# SPDX-License-Identifier: Apache-2.0
"""Controller of maximum run times: evicts servers that have reached theirs."""

from collections.abc import Callable, Iterable
import dataclasses
from typing import Protocol

from nova_preempt.core import eligibility
from nova_preempt.core import eviction_actions
from nova_preempt.core import times
from nova_preempt.core.controller_step import Step
from nova_preempt.core.model import SECOND, PreemptibleServer


class ServerFields(eligibility.ServerFields,
                   eviction_actions.ClassEvictionTerms, Protocol):
    """The fields that decide whether a server can be evicted at its limit."""


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """Servers that may have a maximum run time.

    :ivar default_limit_s: the operator's limit for all servers, 0 for none
    :ivar action: returns the action of the terms of a server
    """

    servers: Iterable[PreemptibleServer]
    default_limit_s: int
    action: Callable[[PreemptibleServer], str]


@dataclasses.dataclass(frozen=True, slots=True)
class Evict:
    """Give notice to a server that has reached its maximum run time."""

    server: PreemptibleServer
    limit_s: int


def limit_s(of_flavor: int | None, of_all: int) -> int:
    """Return the maximum run time of a server, 0 for none.

    :param of_flavor: the extra spec of the flavor, None if it has none
    :param of_all: the operator's default
    """
    return of_all if of_flavor is None else of_flavor


def left_s(
    server: ServerFields, limit_s: int, action: str,
    uptime_us: int) -> int | None:
    """Return the seconds until a server reaches its maximum run time.

    None without a limit, or if it cannot be evicted as it is, or must not: see
    eviction_actions.why_kept(). A lock of its owner does not protect it,
    whichever locks protect from preemption.

    :param action: the action of its terms: delete, shelve or stop
    """
    if (
            limit_s <= 0 or server.vm_state not in eligibility.RUNNING
            or eviction_actions.why_kept(server, action)
            or eligibility.Rules().why_not(server, action)):
        return None
    return max(0, limit_s - uptime_us // SECOND)


def step(observed: Observed, memory: None, now_us: int) -> Step[Evict, None]:
    """Return the servers to evict now, and when the next one is due."""
    ends, due_us = [], []
    for server in observed.servers:
        limit = limit_s(server.maximum_runtime_s, observed.default_limit_s)
        # Most servers have no limit, and the rest is slow.
        if not limit:
            continue
        since_us = times.microseconds(server.launched_at)
        left = left_s(
            server, limit, observed.action(server), max(0, now_us - since_us))
        if left == 0:
            ends.append(Evict(server, limit))
        elif left is not None:
            due_us.append(since_us + limit * SECOND)
    return Step(tuple(ends), memory, min(due_us, default=None))
