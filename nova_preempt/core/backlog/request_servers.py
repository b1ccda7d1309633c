# SPDX-License-Identifier: Apache-2.0

"""The servers of a request: their boots, tags and states.

A boot is recorded before Nova is asked for it, with the tag of its servers. So
its servers are found by the tag, even after a crash, and the time of the boot
tells whether more may appear.
"""

import collections
from collections.abc import Iterable, Mapping
import dataclasses
import datetime

from nova_preempt.core import eviction_status
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.observed_server import ObservedServer

#: How long unexpected servers are still looked for, in seconds.
LATE_S = 86400

#: States of boots whose servers may still appear.
OPEN_BOOTS = (backlog_model.ASKING, backlog_model.ASKED)
#: States of boots that should have no servers.
VOID_BOOTS = (backlog_model.LOST, backlog_model.REFUSED)

_ON_ITS_WAY = (None, backlog_model.BUILDING)
_DELETED = ("deleted", "soft-delete")
_KEPT = ("shelved", "shelved_offloaded", "stopped")
#: Statuses of victims that are kept.
_KEPT_VICTIM = (
    eviction_status.SHELVED, eviction_status.STOPPED, eviction_status.LEFT)
#: Statuses of victims that are deleted, or are about to be.
_LOST_VICTIM = (
    eviction_status.PENDING, eviction_status.NOTICED, eviction_status.ENDING,
    eviction_status.GONE)


@dataclasses.dataclass(frozen=True, slots=True)
class FoundServers:
    """The servers of a request as Nova has them.

    :ivar victims: {uuid: status} of its victims
    """

    servers: tuple[ObservedServer, ...] = ()
    victims: Mapping[str, str] = dataclasses.field(default_factory=dict)


def tag(uuid: str, number: int) -> str:
    """Return the tag of the servers of a boot."""
    return f"backlog:{uuid}:{number}"


def untag(text: str) -> tuple[str, int] | None:
    """Return (uuid of the request, number of the boot), None if it is no tag.
    """
    kind, _, rest = text.partition(":")
    uuid, _, number = rest.rpartition(":")
    if kind != "backlog" or not uuid or not number.isdecimal():
        return None
    return uuid, int(number)


def boot_of(request: backlog_model.Request, server: ObservedServer) -> int:
    """Return the number of the boot of a server, 0 if it has none.

    The owner of a server may remove its tag.
    """
    for item in request.servers:
        if item.uuid == server.uuid:
            return item.boot
    for text in server.tags:
        owner = untag(text)
        if owner and owner[0] == request.uuid:
            return owner[1]
    return 0


def next_boot(
    request: backlog_model.Request, flavor_id: str, count: int,
    now: datetime.datetime, ) -> backlog_model.SentBoot:
    """Return the boot to record before Nova is asked."""
    number = max((boot.number for boot in request.boots), default=0) + 1
    return backlog_model.SentBoot(number, tag(request.uuid, number), flavor_id,
                                  count, now)


def forgotten_boots(
    request: backlog_model.Request, now: datetime.datetime) -> list[int]:
    """Return the numbers of old boots without servers.

    They have failed, or their servers have ended; they are not looked for any
    more. The last boot stays, since the next has the number after it.
    """
    used = {item.boot for item in request.servers}
    return [
        boot.number for boot in request.boots[:-1]
        if boot.state not in OPEN_BOOTS and boot.number not in used
        and (now - boot.asked_at).total_seconds() >= LATE_S]


PendingServers = tuple[backlog_model.Alternative, int, Mapping[str, int], str]


def unallocated(requests: Iterable[backlog_model.Request], placed: Mapping[str,
        str], chosen: Mapping[tuple[str, int], Mapping[str,
        int]] | None = None) -> list[PendingServers]:
    """Return the servers in boot that have no allocations yet.

    Nova was asked for them, and has allocated nothing: their capacity still
    seems free.

    :param requests: all open requests
    :param placed: {uuid of a consumer: host}
    :param chosen: {(uuid of the request, number of the boot): {host: how
        many}} of planned boots
    :returns: (flavor, how many, the chosen hosts of the boot without those of
        servers that are allocated, group_placement.key())
    """
    found: list[PendingServers] = []
    for request in requests:
        of = {item.flavor_id: item for item in request.alternatives}
        for boot in request.boots:
            if boot.state not in OPEN_BOOTS or boot.flavor_id not in of:
                continue
            known = [item for item in request.servers
                     if item.boot == boot.number]
            count = boot.count - sum(
                item.state != backlog_model.BUILDING or item.uuid in placed
                for item in known)
            if count > 0:
                left = collections.Counter(
                    (chosen or {}).get((request.uuid, boot.number), {}))
                left.subtract(placed[item.uuid] for item in known
                              if item.uuid in placed)
                found.append((of[boot.flavor_id], count, dict(+left),
                              group_placement.key(request)))
    return found


def is_late(request: backlog_model.Request, now: datetime.datetime) -> bool:
    """Tell whether the cleanup of a closed request is long overdue."""
    return (now - request.updated_at).total_seconds() >= LATE_S


def sought_tags(request: backlog_model.Request,
                now: datetime.datetime) -> list[str]:
    """Return the tags of servers that may exist without being known."""
    known = collections.Counter(server.boot for server in request.servers)
    return [
        boot.tag for boot in request.boots
        if (boot.state in OPEN_BOOTS and known[boot.number] < boot.count)
        or (boot.state in VOID_BOOTS
            and (now - boot.asked_at).total_seconds() < LATE_S)]


def sought_servers(request: backlog_model.Request) -> list[str]:
    """Return the uuids of servers to read.

    Of a closed request only servers that are still to be cleaned up.
    """
    states: tuple[str, ...] = (
        backlog_model.BUILDING, backlog_model.RUNNING, backlog_model.AWAY,
        backlog_model.ERROR, backlog_model.UNPLACED)
    if request.state in backlog_model.CLOSED and not request.ends_servers:
        states = backlog_model.BUILDING, backlog_model.UNPLACED
    return [item.uuid for item in request.servers if item.state in states]


def server_state(
    before: str | None, seen: ObservedServer | None, victim: str | None
) -> str:
    """Return the state of a server.

    :param before: its state until now, None if it is new
    :param seen: the server in Nova, None if it does not exist
    :param victim: its status as a victim, None if it is none
    """
    if before == backlog_model.UNPLACED:
        return before
    if seen is None or seen.vm_state in _DELETED:
        if before in (backlog_model.GONE, backlog_model.ENDED):
            return before
        # Its owner cannot delete a stopped victim, which is locked.
        is_lost = victim in _LOST_VICTIM or (
            before == backlog_model.AWAY and victim == eviction_status.STOPPED)
        return backlog_model.ENDED if is_lost else backlog_model.GONE
    if seen.vm_state == "building" and before in _ON_ITS_WAY:
        return backlog_model.BUILDING
    if seen.vm_state == "error" and before in (*_ON_ITS_WAY,
                                               backlog_model.ERROR):
        came_to_nothing = (before != backlog_model.ERROR
            and seen.launched_at is None and is_transient(seen.fault))
        return (backlog_model.UNPLACED if came_to_nothing
                else backlog_model.ERROR)
    if seen.vm_state in _KEPT and victim in _KEPT_VICTIM:
        return backlog_model.AWAY
    return backlog_model.RUNNING


def may_be_evicted(seen: ObservedServer | None) -> bool:
    """Tell whether a server may have been evicted, as far as Nova tells."""
    return seen is None or seen.vm_state in (*_DELETED, *_KEPT)


def is_transient(fault: str) -> bool:
    """Tell whether a fault of Nova may not happen the next time.

    NoValidHost, builds that failed on each host that was tried, and a quota
    that was used up during scheduling. An empty fault: Nova sets the error
    state before the fault (nova/scheduler/utils.py, set_vm_state_and_notify),
    and never sets the fault of servers in build when their compute service is
    stopped.
    """
    text = fault.lower()
    return not text or any(words in text for words in (
        "no valid host", "exceeded maximum number of retries",
        "exhausted all hosts", "quota exceeded"))


def status(request: backlog_model.Request, over: str,
           fault: str) -> tuple[str, str]:
    """Return state and reason of an open request.

    :param over: why it does not come back, '' if it may
    :param fault: the fault of a server in error
    """
    states = [item.state for item in request.servers]
    if any(boot.state in OPEN_BOOTS for boot in request.boots):
        return backlog_model.PLACING, ""
    lacks = backlog_model.missing(request)
    if backlog_model.RUNNING in states:
        if backlog_model.ERROR in states:
            return backlog_model.PARTLY_ACTIVE, fault
        if backlog_model.AWAY in states or lacks:
            return backlog_model.PARTLY_ACTIVE, ""
        return backlog_model.ACTIVE, ""
    if backlog_model.AWAY in states:
        return backlog_model.EVICTED, "Its servers were evicted and are kept."
    if lacks:
        if backlog_model.ENDED in states:
            return backlog_model.EVICTED, "Its servers were evicted."
        return backlog_model.WAITING, ""
    if backlog_model.ERROR in states:
        return backlog_model.FAILED, fault
    if over:
        return (backlog_model.EXPIRED if request.comes_back
                else backlog_model.DONE), over
    return backlog_model.DONE, "Its servers were deleted."
