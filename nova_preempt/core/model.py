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

"""What the decision core is told, and what it answers.

Amounts are whole numbers in the unit of their resource class (``VCPU``
pieces, ``MEMORY_MB`` mebibytes, ...). Costs are whole micro-units, so that
every method gives the same answer: 1_000_000 stands for one second.
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import enum
from typing import TypeAlias

#: resource class -> amount
Resources: TypeAlias = Mapping[str, int]

#: micro-units in one second
SECOND = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """What one resource provider offers of one class, as Placement says."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2**31 - 1
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """How much may be allocated in all; never below 0.

        The float expression is Placement's own, so that both round the
        same way where a ratio such as 0.9 has no exact value.
        """
        exact = (self.total - self.reserved) * self.allocation_ratio
        return max(0, int(exact))


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A preemptible server that may become a victim.

    :raises ValueError: when the cost or an amount is negative: the search
        relies on every further victim costing and freeing something or
        nothing, never less
    """

    uuid: str
    resources: Resources
    cost: int

    def __post_init__(self) -> None:
        if self.cost < 0:
            msg = f"cost of {self.uuid} is negative: {self.cost}"
            raise ValueError(msg)
        if min(self.resources.values(), default=0) < 0:
            msg = f"{self.uuid} uses a negative amount: {self.resources}"
            raise ValueError(msg)


@dataclasses.dataclass(frozen=True, slots=True)
class Cap:
    """Of the servers with these uuids at most so many may be victims."""

    uuids: frozenset[str]
    most: int


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """One compute node; ``used`` counts everybody, candidates included."""

    uuid: str
    name: str
    inventories: Mapping[str, Inventory]
    used: Resources
    candidates: tuple[Candidate, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class VictimSet:
    """Who gives way.

    ``victims`` are in order of uuid and ``cost`` is their sum. ``optimal``
    says that no better set exists; otherwise a budget ended first, and the
    set is merely one of which no victim can be spared. ``steps`` is the
    work done, a count and not a time.
    """

    victims: tuple[Candidate, ...]
    cost: int
    optimal: bool
    steps: int


class RefusalCode(enum.Enum):
    """Why a host can never serve a request."""

    NO_INVENTORY = "no_inventory"
    BELOW_MIN_UNIT = "below_min_unit"
    ABOVE_MAX_UNIT = "above_max_unit"
    STEP_SIZE = "step_size"
    NO_ROOM = "no_room"


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """The host can never serve the request, whoever gives way on it."""

    code: RefusalCode
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The request on this host, after these victims are gone.

    ``missing`` is what they had to free; empty when nobody has to leave.
    """

    host: Host
    victim_set: VictimSet
    missing: Resources


@dataclasses.dataclass(frozen=True, slots=True)
class PreemptibleServer:
    """What a cost function sees of a preemptible server."""

    uuid: str
    uptime_us: int
    resources: Resources
    project_id: str = ""
    flavor: str = ""
    #: how often it has given way before, and lived on
    preemptions: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class CostOptions:
    """What an operator may set about costs.

    :raises ValueError: when the billing period is not positive, or the
        price of a repetition negative
    """

    billing_period_s: int = 3600
    repeat_cost_s: int = 0

    def __post_init__(self) -> None:
        if self.repeat_cost_s < 0:
            msg = f"repeat_cost_s is negative: {self.repeat_cost_s}"
            raise ValueError(msg)
        if self.billing_period_s <= 0:
            msg = (
                "billing_period_s must be positive, not "
                f"{self.billing_period_s}"
            )
            raise ValueError(msg)
