# SPDX-License-Identifier: Apache-2.0
"""Computes when trusts of requests expire, and when they are renewed.

A crash may lose the id of a new trust. Keystone lets nobody attach data to a
trust for others but its expiry: so the expiry, to the second, is specific to
each request, and orphaned trusts can be found by it. It is some days after the
last time at which the trust can be needed to start servers; where there is no
such time, so far ahead that the trust never expires in practice.
"""

import datetime
import hashlib

from nova_preempt.core.backlog import backlog_model

#: A trust is needed for so long after a start, for the cleanup.
_CLEARING = datetime.timedelta(days=1)


def latest_start(request: backlog_model.Request) -> datetime.datetime | None:
    """Return the latest time at which it starts servers, None: any time.

    None as well if no trust has to last that long. A partly active request may
    start more servers whenever there is capacity, and a server group is
    deleted with the last server.
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
    """Return the latest start for which a trust is renewed, None: any time.

    Twice as far ahead as the request asks for, so that each renewal lasts
    twice as long: however often a user changes it, a request has few trusts.
    """
    latest = latest_start(request)
    return latest and latest + max(latest - now, datetime.timedelta())


def outlasts_trust(request: backlog_model.Request) -> bool:
    """Tell whether a request may start servers after its trust expires."""
    if request.trust_until is None:
        return False
    latest = latest_start(request)
    return latest is None or latest + _CLEARING > request.trust_until


#: Trusts without a latest start expire from here on, within 2,000 years.
EARLIEST = datetime.datetime(2500, 1, 1)  # noqa: DTZ001 (naive, in UTC)
_SPAN_S = 2**36
#: Other trusts expire so long after the latest start, for late answers of
#: Nova and for users who extend their wait; within a day and a half of that.
_AFTER = datetime.timedelta(days=7)
_SHORT_SPAN_S = 2**17


def expiry(
    uuid: str, latest: datetime.datetime | None = None) -> datetime.datetime:
    """Return when the trust of a request expires, naive and in UTC.

    :param uuid: of the request
    :param latest: the latest start of servers; None: any time
    """
    digest = int.from_bytes(hashlib.sha256(uuid.encode()).digest(), "big")
    if latest is None or latest >= EARLIEST:
        return EARLIEST + datetime.timedelta(seconds=digest % _SPAN_S)
    return latest + _AFTER + datetime.timedelta(
        seconds=digest % _SHORT_SPAN_S)
