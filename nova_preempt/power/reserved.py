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
"""Which hosts reservations need, and from when on."""

from nova_preempt.db import calendar
from nova_preempt.db import reservation_rows as rows


class Reserved:
    """Reads the calendar, and of it what has changed.

    :param database: a db.Database
    """

    def __init__(self, database):
        self._calendar = calendar.CalendarCache(database)

    def hosts(self, now, until):
        """{host: when it is needed} of those that are, from now until then.

        :param now, until: naive datetimes in UTC
        :returns: the start of its first reservation that has not ended, or
            of those before it, where one follows the other at once
        """
        needed = self._calendar.read().leases.needed(
            rows.to_s(now), rows.to_s(until))
        return {host: rows.from_s(start_s)
                for host, start_s in needed.items()}
