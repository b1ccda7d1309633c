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

"""How many cores a request of a service class gets, on which hosts.

T. Menouer et al. (LNCS 11339, doi 10.1007/978-3-030-10549-5_6) offer
premium, advanced and best-effort service in four respects: how soon a request
is served, on how good hosts, with how many cores, and in how many copies.
Nobody asks for a number of cores; it follows from what is idle, and from who
else waits.

Where their text leaves something open: bounds and shares are rounded down
(their own example divides 63 by 6 and goes on with 10); the bounds are cut to
what the smallest host has; a share is cut to the bounds for best-effort
requests too, which their example forgets; and all copies start, or none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
import enum
import fractions
import operator
from typing import TypeVar

from nova_preempt.core.backlog.model import Priorities
from nova_preempt.core.classes.priorities import RESPECTS
from nova_preempt.core.classes.priorities import ByPriorities
from nova_preempt.core.classes.priorities import Waiting


class Service(enum.IntEnum):
    """How good a service is, in one respect; the number is its priority."""

    BEST_EFFORT = 1
    ADVANCED = 2
    PREMIUM = 3


class Category(enum.Enum):
    """The reputation of a host: of its site, hardware and network."""

    LOW = "low"
    AVERAGE = "average"
    HIGH = "high"


#: Who asks for which reputation goes to which hosts.
CATEGORIES: Mapping[Service, Category] = {
    Service.BEST_EFFORT: Category.LOW,
    Service.ADVANCED: Category.AVERAGE,
    Service.PREMIUM: Category.HIGH,
}


def check(priorities: Priorities) -> None:
    """Refuse what is no service.

    :raises ValueError: another number than 1, 2 or 3
    """
    for name in RESPECTS:
        value = getattr(priorities, name)
        if value not in Service.__members__.values():
            msg = (
                f"priority {name} is {value}, it must be 1 (best effort), "
                "2 (advanced) or 3 (premium)"
            )
            raise ValueError(msg)


@dataclasses.dataclass(frozen=True, slots=True)
class SlaRequest:
    """What waits. ``submitted_us``: in microseconds since the epoch.

    :raises ValueError: see check()
    """

    uuid: str
    submitted_us: int
    priorities: Priorities

    def __post_init__(self) -> None:
        check(self.priorities)

    @property
    def category(self) -> Category:
        """Of the hosts that it may go to."""
        return CATEGORIES[Service(self.priorities.reputation)]


@dataclasses.dataclass(frozen=True, slots=True)
class SlaHost:
    """A host; one that is not active counts for the smallest only.

    :raises ValueError: no core at all, or more idle ones than there are
    """

    uuid: str
    category: Category
    cores: int
    idle_cores: int
    active: bool = True

    def __post_init__(self) -> None:
        if self.cores < 1:
            msg = f"cores of {self.uuid} is {self.cores}, it must be 1 or more"
            raise ValueError(msg)
        if not 0 <= self.idle_cores <= self.cores:
            msg = (
                f"idle_cores of {self.uuid} is {self.idle_cores}, it must be "
                f"from 0 to {self.cores}"
            )
            raise ValueError(msg)


@dataclasses.dataclass(frozen=True)
class SlaOptions:
    """What an operator may set.

    ``replicas``: {service: how many}. ``replicas_include_primary``: whether
    the server itself is one of them, as is usual of servers; the text has
    them come beside it. ``patience_s``: requests age, see
    promethee.ageing(); None where they do not, as in the text.

    :raises ValueError: a service has no number of replicas, or less than one
        copy
    """

    replicas: Mapping[Service, int] = dataclasses.field(
        default_factory=lambda: {
            Service.BEST_EFFORT: 1,
            Service.ADVANCED: 2,
            Service.PREMIUM: 3,
        }
    )
    replicas_include_primary: bool = True
    patience_s: int | None = None

    def __post_init__(self) -> None:
        for service in Service:
            number = self.replicas.get(service)
            least = 1 if self.replicas_include_primary else 0
            if number is None or number < least:
                msg = (
                    f"replicas of {service.name} is {number}, it must be "
                    f"{least} or more"
                )
                raise ValueError(msg)
        # Says whether that many seconds can be.
        _ = self.order

    def copies(self, redundancy: int) -> int:
        """Return how many servers a request is in all."""
        beside = 0 if self.replicas_include_primary else 1
        return self.replicas[Service(redundancy)] + beside

    @property
    def order(self) -> ByPriorities:
        """How requests are put in order, all respects alike."""
        return ByPriorities(patience_s=self.patience_s)


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """The fewest and the most cores of a service, both included."""

    least: int
    most: int

    def clamp(self, cores: int) -> int:
        """Return the nearest number within."""
        return min(max(cores, self.least), self.most)


def bounds(smallest: int) -> dict[Service, Bounds]:
    """Return what each service may get, where no host has fewer cores.

    Thirds of the smallest host, so that each service fits everywhere, and
    nobody gets more cores than who is served better. A host of one or two
    cores has not three thirds: there they overlap.

    :raises ValueError: the smallest host has no core
    """
    if smallest < 1:
        msg = f"the smallest host has {smallest} cores, it must have 1 or more"
        raise ValueError(msg)
    low = max(1, smallest // 3)
    high = max(low, 2 * smallest // 3)
    advanced = min(low + 1, smallest)
    return {
        Service.BEST_EFFORT: Bounds(1, low),
        Service.ADVANCED: Bounds(advanced, max(advanced, high)),
        Service.PREMIUM: Bounds(min(high + 1, smallest), smallest),
    }


def cores(
    priority: int,
    of_all: int,
    idle_cores: int,
    limits: Mapping[Service, Bounds],
) -> int:
    """Return the number of cores of one request (Formula 1).

    Its share, by priority, of all that is idle, within its bounds.

    :param priority: its own, for cores
    :param of_all: the sum over all that wait for hosts of the same category,
        its own included
    :param idle_cores: of these hosts together
    :param limits: see bounds()
    """
    share = priority * idle_cores // of_all
    return limits[Service(priority)].clamp(share)


Name = TypeVar("Name")


def rung(ladder: Mapping[Name, int], most: int) -> Name | None:
    """Return the largest flavor of at most so many cores, None if none is.

    Cores of a server are those of its flavor: who may grow is given a ladder
    of flavors that differ in nothing else.

    :param ladder: {flavor: its VCPUs}; of equal ones the first in order of
        name
    """
    fits = [
        (-vcpus, str(name), name)
        for name, vcpus in ladder.items()
        if vcpus <= most
    ]
    return min(fits, key=operator.itemgetter(0, 1))[2] if fits else None


def best_fit(
    hosts: Iterable[SlaHost], wanted: int, copies: int
) -> tuple[str, ...]:
    """Return the hosts of all copies, () if they do not all have one.

    On each a copy fits, no two are the same, and those are taken that have
    the fewest idle cores left, for the fewest hosts to be in use.
    """
    fits = sorted(
        (host.idle_cores, host.uuid)
        for host in hosts
        if host.idle_cores >= wanted
    )
    if len(fits) < copies:
        return ()
    return tuple(uuid for _, uuid in fits[:copies])


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """What is started: a server of so many cores on each of the hosts."""

    uuid: str
    cores: int
    hosts: tuple[str, ...]


def in_order(
    queue: Collection[SlaRequest], options: SlaOptions, now_us: int
) -> list[SlaRequest]:
    """Return what waits, the first in order of PROMETHEE II first.

    :param now_us: counts where requests age; one that is submitted later has
        waited for 0 seconds
    """
    by_uuid = {request.uuid: request for request in queue}
    best = options.order.ordered(
        (
            Waiting(
                request.uuid, request.submitted_us, request.priorities
            )
            for request in queue
        ),
        now_us,
    )
    return [by_uuid[uuid] for uuid in best]


def run_once(
    queue: Sequence[SlaRequest],
    hosts: Collection[SlaHost],
    options: SlaOptions,
    now_us: int,
) -> Start | None:
    """Return what is started next, None if nothing that waits fits.

    1. The queue is put in order. A request that does not fit stays where it
       is, and the next is tried.
    2. Only active hosts of the category of its reputation come into question.
    3. Its cores are its share of what is idle there.
    4. Its copies go to the hosts where they leave the least.
    """
    if not queue or not hosts:
        return None
    limits = bounds(min(host.cores for host in hosts))
    there = {
        category: [
            host
            for host in hosts
            if host.active and host.category is category
        ]
        for category in Category
    }
    idle = {
        category: sum(host.idle_cores for host in found)
        for category, found in there.items()
    }
    of_all = dict.fromkeys(Category, 0)
    for request in queue:
        of_all[request.category] += request.priorities.cores
    for request in in_order(queue, options, now_us):
        category = request.category
        wanted = cores(
            request.priorities.cores,
            of_all[category],
            idle[category],
            limits,
        )
        chosen = best_fit(
            there[category],
            wanted,
            options.copies(request.priorities.redundancy),
        )
        if chosen:
            return Start(request.uuid, wanted, chosen)
    return None


def run_time_s(sequential_s: int, on_cores: int) -> fractions.Fraction:
    """Return how long what takes so long on one core takes on several.

    As simulations have it: all of it runs in parallel.
    """
    return fractions.Fraction(sequential_s, on_cores)
