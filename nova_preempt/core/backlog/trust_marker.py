# SPDX-License-Identifier: Apache-2.0
"""Marks trusts by their expiry, so that orphaned ones can be found again.

Whoever makes a trust may die before its id is kept. Keystone keeps nothing
with a trust that is for others to choose but its expiry: to the second it is
another one for each request. It is some days after the last time at which the
trust can be needed to start servers; where there is none, so far ahead that it
means nothing.
"""

from __future__ import annotations

import datetime
import hashlib

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
