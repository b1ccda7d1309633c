# SPDX-License-Identifier: Apache-2.0
"""Computes how long a trust is needed, and when to renew it."""

from __future__ import annotations

import datetime
import hashlib

from nova_preempt.core.backlog import backlog_model

#: For so long after a start its trust is needed, to clear up.
_CLEARING = datetime.timedelta(days=1)


def latest_start(request: backlog_model.Request) -> datetime.datetime | None:
    """Return when servers are started for it at the latest, None: any time.

    None as well where that is later than any trust has to tell.
    A part of its servers may start whenever there is room, once another part
    runs, and a server group is deleted with the last server.
    """
    ends = []
    if request.not_after is not None:
        ends.append(request.not_after)
    if request.longest_wait_s is not None:
        ends.append(
            request.created_at
            + datetime.timedelta(seconds=request.longest_wait_s))
    if (
        not ends or request.least_count < request.count
        or backlog_model.has_group(request)):
        return None
    latest = min(ends)
    if request.comes_back:
        if request.back_until is None:
            return None
        latest = max(request.back_until, latest)
    return latest if latest < EARLIEST else None


def renewed_until(
    request: backlog_model.Request, now: datetime.datetime
) -> datetime.datetime | None:
    """Return for which latest start a trust is renewed, None: any time.

    It is twice as far ahead as the request asks for, so that each renewal
    takes a wait twice as long: however often a user changes it, a request has
    few trusts.
    """
    latest = latest_start(request)
    return latest and latest + max(latest - now, datetime.timedelta())


def outlasts_trust(request: backlog_model.Request) -> bool:
    """Tell whether it may start servers after its trust has expired."""
    if request.trust_until is None:
        return False
    latest = latest_start(request)
    return latest is None or latest + _CLEARING > request.trust_until


#: Where a trust may be needed at any time: from here on, in 2,000 years.
EARLIEST = datetime.datetime(2500, 1, 1)  # noqa: DTZ001 (naive, in UTC)
_SPAN_S = 2**36
#: Else so long after the last start, for what Nova answers late, and for users
#: who want to wait a little longer; and then within a day and a half.
_AFTER = datetime.timedelta(days=7)
_SHORT_SPAN_S = 2**17


def expiry(
    uuid: str, latest: datetime.datetime | None = None) -> datetime.datetime:
    """When the trust of a request expires, naive and in UTC.

    :param uuid: of the request
    :param latest: when servers may be started for the last time; None where
        that may be any time
    """
    digest = int.from_bytes(hashlib.sha256(uuid.encode()).digest(), "big")
    if latest is None or latest >= EARLIEST:
        return EARLIEST + datetime.timedelta(seconds=digest % _SPAN_S)
    return latest + _AFTER + datetime.timedelta(
        seconds=digest % _SHORT_SPAN_S)
