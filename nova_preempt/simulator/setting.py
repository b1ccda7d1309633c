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
"""What is simulated: a cloud, what may be asked of it, and its options."""

from collections.abc import Iterator, Mapping
import dataclasses

from nova_preempt.core.backlog import answers as backlog_answers
from nova_preempt.core.backlog import order as orders
from nova_preempt.core.backlog import passing
from nova_preempt.core.backlog.planning import Planner
from nova_preempt.core.model import Inventory
from nova_preempt.core.scheduling.policy import Policy
from nova_preempt.simulator import memory
from nova_preempt.simulator.delays import Delays


@dataclasses.dataclass(frozen=True)
class HostKind:
    """So many equal hosts, NAME-1 and so on."""

    name: str
    count: int
    inventories: Mapping[str, Inventory]

    def hosts(self) -> Iterator[memory.MemoryHost]:
        """Yield them, empty."""
        width = len(str(self.count))
        for number in range(1, self.count + 1):
            name = f'{self.name}-{number:0{width}}'
            yield memory.MemoryHost(name, name, dict(self.inventories))


@dataclasses.dataclass(frozen=True)
class Terms:
    """What extra specs say of preemptible servers."""

    minimum_runtime_s: int = 0
    maximum_runtime_s: int | None = None
    notice_s: int | None = None
    action: str = ''
    restore: bool = False


@dataclasses.dataclass(frozen=True)
class Flavor:
    """What servers of a flavor have; ``terms`` are None of normal ones."""

    resources: Mapping[str, int]
    terms: Terms | None = None


@dataclasses.dataclass(frozen=True)
class Setting:
    """A cloud without servers.

    :param classes: {name: Terms of its servers, None if they are normal}; of
        one that is not here they are. They count where there is no flavor.
    :param waiting: classes whose servers are asked for by way of the backlog,
        where that is enabled
    :param spread: whether the host with the most free memory comes first, as
        Nova's RAMWeigher has it by default, or that with the least
    """

    hosts: tuple[HostKind, ...]
    flavors: Mapping[str, Flavor] = dataclasses.field(default_factory=dict)
    classes: Mapping[str, Terms | None] = dataclasses.field(
        default_factory=lambda: CLASSES)
    delays: Delays = dataclasses.field(default_factory=Delays)
    spread: bool = True
    waiting: frozenset[str] = frozenset()


#: The preemptible classes of the formats of traces.
CLASSES = {name: Terms() for name in (
    'preemptible', 'bronze', 'free', 'best-effort')}


@dataclasses.dataclass(frozen=True)
class Backlog:
    """What an operator has set of the backlog; see [backlog].

    :param planner: places those together that fit, None: one by one
    """

    order: orders.Order
    passes: passing.Options = dataclasses.field(
        default_factory=passing.Options)
    answers: backlog_answers.Options = dataclasses.field(
        default_factory=backlog_answers.Options)
    interval_s: int = 10
    planner: Planner | None = None


@dataclasses.dataclass(frozen=True)
class Options:
    """What an operator has set, beside the core's Policy.

    For each see the option of the same name; ``max_waiting_requests`` are
    those of all workers together, ``headroom`` is what core.headroom.parse()
    makes of it, ``backlog`` is None where it is off.
    """

    policy: Policy
    enabled: bool = True
    maximum_runtime_s: int = 0
    max_waiting_requests: int = 128
    max_attempts: int = 10
    termination_timeout_s: int = 120
    stop_retention_s: int = 86400
    project_budget: int = 0
    group_budget: int = 0
    budget_window_s: int = 0
    headroom: Mapping[str, tuple[int, bool]] = dataclasses.field(
        default_factory=dict)
    max_age_s: int = 10
    interval_s: int = 10
    restore_interval_s: int = 60
    restore_at_once: int = 10
    restore_timeout_s: int = 7 * 86400
    backlog: Backlog | None = None
