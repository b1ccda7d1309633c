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
"""What does not change of a preemptible server on its host but with it."""

from __future__ import annotations

import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core.model import (
    Resources,
    Server,
    SlotAmounts,
)
from nova_preempt.core.scheduling.policy import Policy
from nova_preempt.core.times import microseconds


@dataclasses.dataclass(frozen=True, slots=True)
class Tenant:
    """A preemptible server that may end on its host once it is old enough.

    ``freed``: what its end frees; ``resources``: what it has, by class.
    """

    server: Server
    launched_us: int
    freed: SlotAmounts
    resources: Resources


def make(server: Server, held: SlotAmounts, policy: Policy) -> Tenant:
    return Tenant(
        server,
        microseconds(server.launched_at),
        policy.freed(server, held),
        capacity.by_class(held),
    )
