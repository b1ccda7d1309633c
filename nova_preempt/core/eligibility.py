# SPDX-License-Identifier: Apache-2.0
"""Rules that say which servers may be evicted, and by which calls.

A server ends by its terms (delete, shelve, stop), whatever state its owner has
brought it into: a state in which Nova rejects the action is left first. A
resize is confirmed, a rescued server is unrescued, a paused or suspended
server is resumed. Only a task state of Nova, and the locks that the operator
respects, protect a server.
"""

from collections.abc import Mapping
import dataclasses
from typing import Protocol

# Whose locks protect a server: those of administrators, or of owners too.
ADMIN = "admin"
ALL = "all"

#: The server has ended: no call is left to make.
THERE = ""

_FIRST = {"resized": "confirm_resize", "rescued": "unrescue"}
# Its owner has deleted it, and cannot miss what remains.
_DELETED = {"soft-delete": "force_delete"}

# {action: {Nova's vm_state: the next call to evict the server}}. The action is
# not possible in a state that is missing.
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
        # Its image is kept, so that its disk on the host is not needed.
        "shelved": "shelve_offload",
        "shelved_offloaded": THERE,
        "stopped": THERE,
    },
}

# States in which a server is on its host.
_ON_HOST = frozenset((
    "active", "paused", "stopped", "suspended", "rescued", "resized", "error",
    "shelved", "soft-delete"))

# Nova frees allocations before it records that the server is deleted or
# offloaded; an interruption between leaves the server in such a state.
_WITHOUT_SPACE = frozenset(("soft-delete", "shelved_offloaded", "deleted"))

# Actions after which a server may run on another host.
_LIVES_ON = frozenset(("shelve", "migrate"))

#: States of a server that runs, or that its owner can resume at any time. The
#: maximum run time applies to all of them.
RUNNING = frozenset(("active", "paused", "suspended", "rescued", "resized"))


def next_call(action: str, vm_state: str) -> str | None:
    """Return the next call of Nova's API to evict a server.

    :param action: delete, shelve or stop
    :param vm_state: as in Nova's record of the server
    :returns: THERE if no call is left to make, None if none is possible
    """
    if action == "delete":
        return "force_delete"
    return _CALLS[action].get(vm_state)


def needs_allocation(vm_state: str, task_state: str | None) -> bool:
    """Return whether a server with a host must have allocations there."""
    return not task_state and vm_state not in _WITHOUT_SPACE


class ServerFields(Protocol):
    """The fields of a server that the rules read."""

    @property
    def vm_state(self) -> str: ...

    @property
    def task_state(self) -> str | None: ...

    @property
    def locked_by(self) -> str:
        """'' if it is not locked, else "owner" or "admin"."""

    @property
    def minimum_runtime_s(self) -> int:
        """The minimum run time that its flavor promises."""

    @property
    def one_time(self) -> bool:
        """Return whether it has a one-time-use device."""


def wastes_device(action: str, *, one_time: bool) -> bool:
    """Return whether an action uses up another one-time device.

    The device that the server has is not free afterwards, and the server gets
    another one on the host that it is migrated or returned to.
    """
    return one_time and action in _LIVES_ON


def why_not_by(server: ServerFields, action: str) -> str:
    """Return why a server must not end by an action, '' if it may."""
    return (
        f"it has a one-time-use PCI device, which {action} would use "
        "up"
        if wastes_device(action, one_time=server.one_time) else "")


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """The operator's rules about victims.

    :param locks: whose locks protect a server: ADMIN or ALL
    :param minimum_runtime_s: the minimum run time of every server
    """

    locks: str = ADMIN
    minimum_runtime_s: int = 0

    def counts(self, locked_by: str) -> bool:
        """Return whether a lock by this user protects a server."""
        return bool(locked_by) and (self.locks == ALL or locked_by != "owner")

    def why_not(self, server: ServerFields, action: str) -> str:
        """Return why a server cannot be evicted now, '' if it can.

        :param action: the action of its terms: delete, shelve or stop
        """
        if server.task_state is not None:
            return f"it is {server.task_state}"
        if self.counts(server.locked_by):
            return "it is locked by " + (
                "its owner" if server.locked_by == "owner"
                else "an administrator")
        if server.vm_state not in _ON_HOST or (
            next_call(action, server.vm_state) is None):
            return f"it is {server.vm_state}"
        return why_not_by(server, action)

    def may_be_victim(
        self, server: ServerFields, action: str, uptime_us: int, ) -> bool:
        """Return whether a server can be evicted, and has run long enough."""
        return self.has_run(server, uptime_us) and not self.why_not(
            server, action, )

    def has_run(self, server: ServerFields, uptime_us: int) -> bool:
        """Return whether a server has had its minimum run time."""
        minimum_s = self.promised_s(server.minimum_runtime_s)
        return uptime_us >= minimum_s * 1_000_000

    def promised_s(self, of_flavor_s: int) -> int:
        """Return the minimum run time of a server.

        :param of_flavor_s: the minimum run time that its flavor promises
        """
        return max(self.minimum_runtime_s, of_flavor_s)
