# SPDX-License-Identifier: Apache-2.0
"""Finds inconsistent requests that nothing repairs."""

from collections.abc import Iterable, Mapping
import datetime

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import request_servers
from nova_preempt.core.backlog import state_from_servers
from nova_preempt.core.backlog.backlog_model import SentBoot
from nova_preempt.core.observed_server import ObservedServer

#: A request is cleaned up within so long after it was closed.
CLEARED_S = 3600

_THERE = (backlog_model.BUILDING, backlog_model.RUNNING, backlog_model.AWAY)


def inconsistency(request: backlog_model.Request, seen: Iterable[
        ObservedServer], victims: Mapping[str, str], now: datetime.datetime,
        options: boot_outcome.Options) -> str:
    """Return what the tracker would change of an open request, '' for nothing.

    Finds requests that the tracker does not follow: placing for ever, active
    without servers, or evicted although no server was preempted.
    """
    verdict = boot_outcome.expire(request, now) or state_from_servers.judge(
        request, seen, victims, now, options)
    if not verdict.changes(request):
        return ""
    if verdict.state != request.state:
        return f"is {request.state}, but {verdict.state} by Nova's servers"
    return f"is {request.state}, but its servers differ from Nova's"


def surplus_servers(request: backlog_model.Request, tagged: Mapping[int,
        Iterable[str]], now: datetime.datetime) -> list[str]:
    """Return the uuids of surplus servers of a request.

    A server is surplus if its boot has more servers than were requested, or
    was given up more than LATE_S ago.

    :param tagged: {number of a boot: uuids of the servers with its tag}
    """
    boots = {boot.number: boot for boot in request.boots}
    known = {item.uuid for item in request.servers if item.state in _THERE}
    found: list[str] = []
    for number, uuids in sorted(tagged.items()):
        boot = boots.get(number)
        # Known servers come first.
        ordered = sorted(uuids, key=lambda uuid: (uuid not in known, uuid))
        if boot is None or _is_forgotten(boot, now):
            found += ordered
        elif boot.state not in request_servers.VOID_BOOTS:
            found += ordered[boot.count:]
    return found


def _is_forgotten(boot: SentBoot, now: datetime.datetime) -> bool:
    age_s = (now - boot.asked_at).total_seconds()
    return (boot.state in request_servers.VOID_BOOTS
            and age_s >= request_servers.LATE_S)


def has_stale_trust(request: backlog_model.Request,
                 now: datetime.datetime) -> bool:
    """Tell whether a request kept its trust long after it was closed."""
    age_s = (now - request.updated_at).total_seconds()
    return (request.state in backlog_model.CLOSED and request.trust_id != ""
            and age_s >= CLEARED_S)
