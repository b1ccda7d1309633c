# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
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
