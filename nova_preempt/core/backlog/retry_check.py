# SPDX-License-Identifier: Apache-2.0
"""Decides whether a request that Nova refused waits or is retried."""

from collections.abc import Mapping, Sequence
import dataclasses
import datetime
from typing import Any
import zlib

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from nova_preempt.core.backlog.dispatch_values import Cloud
from nova_preempt.core.backlog.wait_estimate import seconds_until

RETRY = "retry"  # Nova has refused; it is tried again later

#: Key in waits_for of the hosts that have had capacity since Nova found none:
#: their number, and a bitmap of fixed size.
SEEN = "seen"
_BITS = 256

#: New capacity ends the pause at once up to so many tries. After more tries
#: a part of the pause has to be over, so that capacity that comes and goes,
_AT_ONCE = 3
_PARTS = 8


class RetryCheck:
    """Tells which refused requests of a pass are not retried yet.

    :param tracker: the remaining capacity
    :param cloud: as the pass sees it
    :param now: naive, in UTC
    """

    def __init__(self, tracker: CapacityTracker, cloud: Cloud,
            now: datetime.datetime) -> None:
        self._tracker = tracker
        self._cloud = cloud
        self._now = now
        self._bitmaps: dict[frozenset[str], int] = {}

    def why(
        self, request: backlog_model.Request
    ) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
        """Return why a request is not retried yet, None if it is.

        After NoValidHost it is retried before its pause is over once a host
        has capacity that had none before. Where no host has any, the request
        waits for capacity instead.

        :returns: the reason, and the state that waits_for keeps as SEEN
        """
        seen = None
        if boot_outcome.refused(request) == boot_outcome.NO_HOST:
            free, reclaimable = self._rooms(request)
            rooms = len(free) + len(reclaimable)
            hosts = self._bitmap(free) | self._bitmap(reclaimable) << _BITS
            seen, is_new = self._compare(request, rooms, hosts)
            if not rooms or is_new:
                return None, seen
        if request.waits_for.get("code") in boot_outcome.CODES:
            return request.waits_for, seen
        return {
            "code": RETRY,
            "text": "Nova found no host for it "
            f"{request.tries} times; it is tried again at "
            f"{request.next_try_at}.",
        }, seen

    def _compare(
        self, request: backlog_model.Request, rooms: int, hosts: int
    ) -> tuple[Mapping[str, Any], bool]:
        """Return the state to keep, and whether new capacity ends the pause.

        :param rooms: how many hosts have capacity
        :param hosts: the bitmap of these hosts
        """
        seen = request.waits_for.get(SEEN)
        if seen is None:
            return {"rooms": rooms, "hosts": f"{hosts:x}",
                    "again": self._again(request).isoformat()}, False
        before = int(seen["hosts"], 16)
        again = datetime.datetime.fromisoformat(seen["again"])
        is_new = rooms > seen["rooms"] or bool(hosts & ~before)
        return {**seen, "rooms": min(rooms, seen["rooms"]),
                "hosts": f"{hosts & before:x}"}, is_new and self._now >= again

    def _again(self, request: backlog_model.Request) -> datetime.datetime:
        """Return from when on new capacity ends a pause that begins now."""
        if request.tries <= _AT_ONCE:
            return self._now
        return self._now + datetime.timedelta(
            seconds=seconds_until(request.next_try_at, self._now) // _PARTS)

    def _rooms(
        self, request: backlog_model.Request
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return the hosts with free and with reclaimable capacity."""
        wanted = self._cloud.alternatives(request)
        return self._hosts(request, [
            dataclasses.replace(item, preemptible=True) for item in wanted
        ]), self._hosts(request, wanted)

    def _hosts(
        self, request: backlog_model.Request,
        wanted: Sequence[backlog_model.Alternative]) -> frozenset[str]:
        group, least = self._cloud.group(request), backlog_model.least(request)
        missing = backlog_model.missing(request)
        return frozenset().union(*(
            self._tracker.hosts(item, group, least) for item in wanted
            if self._tracker.count(item, missing, group, least)))

    def _bitmap(self, hosts: frozenset[str]) -> int:
        if hosts not in self._bitmaps:
            bits = 0
            for host in hosts:
                bits |= 1 << zlib.crc32(host.encode()) % _BITS
            self._bitmaps[hosts] = bits
        return self._bitmaps[hosts]
