# SPDX-License-Identifier: Apache-2.0
"""Times in whole numbers of microseconds, as all costs and clocks have them.
"""

from __future__ import annotations

import datetime

_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def microseconds(when: datetime.datetime) -> int:
    """Return a time since the epoch; a naive one is taken to be UTC."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=when.tzinfo)
    return elapsed_us(epoch, when)


def elapsed_us(since: datetime.datetime, now: datetime.datetime) -> int:
    """Return how long it is from one time to another."""
    return (now - since) // _MICROSECOND


def at(now_us: int) -> datetime.datetime:
    """Return a time since the epoch as an aware datetime, in UTC."""
    return _EPOCH + now_us * _MICROSECOND
