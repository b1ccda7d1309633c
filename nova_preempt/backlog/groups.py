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
"""The server groups of requests that wait, as Nova has them."""

from nova_preempt.cloud import groups as cloud_groups
from nova_preempt.core.backlog import groups as core

# A rule that allows more is none; and solvers count in 64 bits.
_MOST = 2**31 - 1


class Groups:
    """Reads the groups that requests name.

    :param resident: given the uuid of a server, returns the
        nova_preempt.reservation.occupancy.Resident, None if it is on no node
    :param find: see nova_preempt.cloud.groups.find
    """

    def __init__(self, resident, find=cloud_groups.find):
        self._resident = resident
        self._find = find

    def known(self, requests, rooms):
        """{core groups.key(): core Group} of those with strict policies.

        Read at once, and not at all where nobody has one. What is deleted,
        or another's, or has a soft policy, is not there.

        :param requests: core Requests that wait
        :param rooms: core Rooms of the hosts that are in use
        """
        found = {item.uuid: core.own(item) for item in requests
                 if item.apart and item.servers}
        names = {core.named(item) for item in requests
                 if not item.apart} - {''}
        if not names:
            return found
        hosts = {room.host for room in rooms}
        for uuid, group in self._find(names, core.STRICT).items():
            found[uuid] = core.Group(
                uuid, group.policy, min(group.max_server_per_host, _MOST),
                group.members,
                group.policy == core.AFFINITY
                and self._is_elsewhere(group.members, hosts),
                group.project_id)
        return found

    def _is_elsewhere(self, uuids, hosts):
        residents = filter(None, map(self._resident, uuids))
        return any(resident.node not in hosts for resident in residents)
