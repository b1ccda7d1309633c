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

"""A plain loop that drives a pass, where Nova's scheduler does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nova_preempt.core.scheduling.cycle import Cycle
from nova_preempt.core.scheduling.plan import Plan


def place(
    cycle: Cycle,
    hosts: Sequence[tuple[str, str]],
    claim: Callable[[str, Plan | None], bool],
    count: int = 1,
) -> list[tuple[str, Plan | None]] | None:
    """Place the servers of a request, as Nova's scheduler does.

    :param hosts: (uuid, name) of those with room, and of those offered
    :param claim: takes a host, with the victims of a plan or without; tells
        whether it could
    :returns: where each one goes and who ends for it; None if not all of
        them found a host, whose claims are the caller's to take back
    """
    placed: list[tuple[str, Plan | None]] = []
    for index in range(count):
        ordered = cycle.order(hosts, index)
        for uuid in ordered:
            plan = cycle.plan_of(uuid)
            if plan is not None and plan.victims:
                if not plan.joins:
                    plan = cycle.confirm(uuid)
                if plan is None or not claim(uuid, plan):
                    cycle.lost(uuid)
                    continue
            elif not claim(uuid, None):
                continue
            placed.append((uuid, plan))
            cycle.claimed(uuid)
            hosts = [(uuid, cycle.name_of(uuid)) for uuid in ordered]
            break
        else:
            return None
    return placed
