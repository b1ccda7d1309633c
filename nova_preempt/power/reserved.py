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

from nova_preempt.db import booking
from nova_preempt.db import reservations


def hosts(database, now, until):
    """{host: when it is needed} of those that are, from now until then.

    :param now, until: naive datetimes in UTC
    :returns: the start of its first reservation that has not ended
    """
    found = {}
    for item in reservations.Reservations(database).snapshot().reservations:
        for host in item.hosts:
            if (host.status != booking.LOST and host.start_at <= until
                    and host.end_at > now):
                found[host.host] = min(host.start_at,
                                       found.get(host.host, host.start_at))
    return found
