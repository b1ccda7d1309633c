# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""By what the trust of a request is known that was never written down.

Who makes a trust may die before its id is kept. Keystone keeps nothing with a
trust that is for others to choose but its expiry: it is so far ahead that it
means nothing, and to the second another one for each request.
"""

from __future__ import annotations

import datetime
import hashlib

#: From here on; after that they span 2,000 years.
EARLIEST = datetime.datetime(2500, 1, 1)  # noqa: DTZ001 (naive, in UTC)
_SPAN_S = 2**36


def expiry(uuid: str) -> datetime.datetime:
    """When the trust of a request expires, naive and in UTC.

    :param uuid: of the request
    """
    digest = hashlib.sha256(uuid.encode()).digest()
    return EARLIEST + datetime.timedelta(
        seconds=int.from_bytes(digest, "big") % _SPAN_S
    )
