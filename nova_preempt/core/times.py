# SPDX-License-Identifier: Apache-2.0
"""Times as whole microseconds, the unit of all costs and clocks."""

import datetime

_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def microseconds(when: datetime.datetime) -> int:
    """Return the microseconds since the epoch; naive times are UTC."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=when.tzinfo)
    return elapsed_us(epoch, when)


def elapsed_us(since: datetime.datetime, now: datetime.datetime) -> int:
    """Return the microseconds from one time to another."""
    return (now - since) // _MICROSECOND


def at(now_us: int) -> datetime.datetime:
    """Return microseconds since the epoch as an aware UTC datetime."""
    return _EPOCH + now_us * _MICROSECOND
