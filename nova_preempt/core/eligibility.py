# SPDX-License-Identifier: Apache-2.0
"""Rules that say which servers may be evicted, and how.

A server ends as its terms say (delete, shelve, stop), whatever state its
owner has brought it into: what Nova does not do in that state is made
possible first. A resize is confirmed, a rescue is taken back, a paused or
suspended server goes on. Only Nova's own work on it (a task state), and the
locks that the operator has count, leave a server alone.
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import Protocol

# Whose locks count: those of administrators, or their owners' as well.
ADMIN = "admin"
ALL = "all"

#: Nothing has to be asked for any more.
THERE = ""

_FIRST = {"resized": "confirm_resize", "rescued": "unrescue"}
# Its owner has deleted it; nobody has a use for what is left.
_DELETED = {"soft-delete": "force_delete"}

# {action: {Nova's vm_state: the call that brings the server nearer to it}}.
# What is missing cannot be done.
_CALLS: Mapping[str, Mapping[str, str]] = {
    "shelve": {
        **_FIRST,
        **_DELETED,
        "active": "shelve",
        "stopped": "shelve",
        "paused": "shelve",
        "suspended": "shelve",
        "shelved": "shelve_offload",
        "shelved_offloaded": THERE,
    },
    "stop": {
        **_FIRST,
        **_DELETED,
        "active": "stop",
        "error": "stop",
        "paused": "unpause",
        "suspended": "resume",
        # Its image is kept: what is on the host is of no use.
        "shelved": "shelve_offload",
        "shelved_offloaded": THERE,
        "stopped": THERE,
    },
}

# States in which a server is on its host to stay.
_ON_HOST = frozenset(
    (
        "active",
        "paused",
        "stopped",
        "suspended",
        "rescued",
        "resized",
        "error",
        "shelved",
        "soft-delete",
    ),
)

# Nova frees what a server has before its record says that it is gone, or away
# from its host; where that is interrupted it stays there like this.
_WITHOUT_SPACE = frozenset(("soft-delete", "shelved_offloaded", "deleted"))

# Actions after which a server may run elsewhere.
_LIVES_ON = frozenset(("shelve", "migrate"))

#: States of a server that uses what its host has: it runs, or its owner can
#: have it run on at any time. Its maximum run time holds in all of them.
RUNNING = frozenset(("active", "paused", "suspended", "rescued", "resized"))


def next_call(action: str, vm_state: str) -> str | None:
    """The call of Nova's API that is next on the way to an end.

    :param action: delete, shelve or stop
    :param vm_state: as Nova's record of the server says
    :returns: THERE if nothing has to be asked for, None if nothing can be
    """
    if action == "delete":
        return "force_delete"
    return _CALLS[action].get(vm_state)


def needs_space(vm_state: str, task_state: str | None) -> bool:
    """Whether a server with a host certainly has to have space there."""
    return not task_state and vm_state not in _WITHOUT_SPACE


class Server(Protocol):
    """What is asked of a server here."""

    @property
    def vm_state(self) -> str: ...

    @property
    def task_state(self) -> str | None: ...

    @property
    def locked_by(self) -> str:
        """'' if it is not locked, else "owner" or "admin"."""

    @property
    def minimum_runtime_s(self) -> int:
        """What its flavor promises."""

    @property
    def one_time(self) -> bool:
        """Whether it has a device that can be used once only."""


def wastes_device(action: str, *, one_time: bool) -> bool:
    """Whether an action takes another device that can be used once only.

    The one that the server has is not free afterwards, and the server gets
    another one: where it is migrated to, or when it returns.
    """
    return one_time and action in _LIVES_ON


def why_not_by(server: Server, action: str) -> str:
    """Why a server must not end by an action, '' if it may."""
    return (
        f"it has a device that can be used once only, which {action} would "
        "waste"
        if wastes_device(action, one_time=server.one_time) else "")


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """What an operator says about who may end.

    :param locks: ADMIN or ALL
    :param minimum_runtime_s: what is promised to all of them
    """

    locks: str = ADMIN
    minimum_runtime_s: int = 0

    def counts(self, locked_by: str) -> bool:
        """Whether a lock of this one leaves a server alone."""
        return bool(locked_by) and (self.locks == ALL or locked_by != "owner")

    def why_not(self, server: Server, action: str) -> str:
        """Why a server cannot end at all now, '' if it can.

        :param action: what its terms say: delete, shelve or stop
        """
        if server.task_state is not None:
            return f"it is {server.task_state}"
        if self.counts(server.locked_by):
            by = "its owner" if server.locked_by == "owner" else (
                "an administrator"
            )
            return f"it is locked by {by}"
        if server.vm_state not in _ON_HOST or (
            next_call(action, server.vm_state) is None):
            return f"it is {server.vm_state}"
        return why_not_by(server, action)

    def may_give_way(
        self, server: Server, action: str, uptime_us: int, ) -> bool:
        """Whether it may be a victim: it can end, and has run long enough."""
        return self.has_run(server, uptime_us) and not self.why_not(
            server, action, )

    def has_run(self, server: Server, uptime_us: int) -> bool:
        """Whether it has run for as long as it was promised."""
        minimum_s = self.promised_s(server.minimum_runtime_s)
        return uptime_us >= minimum_s * 1_000_000

    def promised_s(self, of_flavor_s: int) -> int:
        """For how long a server is promised to run.

        :param of_flavor_s: what its flavor promises
        """
        return max(self.minimum_runtime_s, of_flavor_s)
