# SPDX-License-Identifier: Apache-2.0
"""Outcome of the server that caused a preemption."""

from __future__ import annotations

from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.observed_server import ObservedServer

#: It is on the host that was cleared for it, as was asked for.
SERVED = "served"
#: It is on another host.
ELSEWHERE = "elsewhere"
#: It is in ERROR, or still what it was: nobody needed to end.
FAILED = "failed"
#: It was deleted before it was seen to be there.
DELETED = "deleted"


def outcome(
    server: ObservedServer | None, host: str, operation: str, flavor: str
) -> str | None:
    """Return what became of it, None if nobody can tell yet.

    ``server``: None if Nova knows nothing of it; ``host``: that was cleared
    for it; ``flavor``: the name of the one that it was to have.
    """
    if server is None:
        return DELETED
    if server.deleted:
        served = server.launched_at is not None and server.host == host
        return SERVED if served else DELETED
    if server.vm_state == "deleted":
        # Not quite: whether it ever was there is told once it is.
        return None
    if server.vm_state == "error":
        # One that is evacuated out of it stays in it until it is rebuilt.
        is_rebuilt = (
            operation == "evacuate"
            and server.task_state in eviction_steps.MOVING)
        return None if is_rebuilt else FAILED
    if server.task_state is not None or server.vm_state == "building":
        return None
    if eviction_steps.is_offloaded(server):
        return FAILED
    if operation == "resize" and server.flavor != flavor:
        return FAILED
    return SERVED if server.host == host else ELSEWHERE
