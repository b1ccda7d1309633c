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
"""What hosts have before a pass, and what they would have after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.dispatch import Start
from nova_preempt.core.backlog.room import Room
from nova_preempt.core.model import Resources


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    """What is used of a host.

    :param added: by servers that a pass would start there
    """

    host: str
    capacity: Resources
    used: Resources
    added: Resources


def uses(
    rooms: Iterable[Room],
    starts: Iterable[Start],
    requests: Mapping[str, model.Request],
) -> list[Use]:
    """Return what is used of hosts, by name.

    Of starts for which no hosts are chosen nobody knows where they will be.

    :param requests: by uuid, those that start
    """
    added: dict[str, list[Resources]] = {}
    for start in starts:
        of = {item.flavor_id: item.resources
              for item in requests[start.uuid].alternatives}
        for host, count in start.hosts.items():
            added.setdefault(host, []).append({
                name: amount * count
                for name, amount in of[start.flavor_id].items()
            })
    return [
        Use(
            room.host, room.capacity, capacity.less(room.capacity, room.free),
            capacity.total(added.get(room.host, ())),
        )
        for room in sorted(rooms, key=lambda room: room.host)
    ]
