# SPDX-License-Identifier: Apache-2.0
"""Settings of a simulation: a cloud, its flavors and its options."""

from collections.abc import Iterator, Mapping
import dataclasses
from typing import Any

from nova_preempt.core import notice_period
from nova_preempt.core.backlog import backlog_controller
from nova_preempt.core.backlog import queue_order
from nova_preempt.core.backlog.batch_plans import BatchPlanner
from nova_preempt.core.classes.class_table import ClassTable
from nova_preempt.core.energy import energy_observation
from nova_preempt.core.energy.efficiency_ranking import Figures
from nova_preempt.core.model import Inventory
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import leases
from nova_preempt.core.reservation import reservation_limits
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.core.scheduling.preemption_policy import MAX_ATTEMPTS
from nova_preempt.core.scheduling.preemption_policy import Policy
from nova_preempt.simulator import memory_cloud
from nova_preempt.simulator.delays import Delays


@dataclasses.dataclass(frozen=True)
class HostKind:
    """A number of equal hosts, named NAME-1 and so on.

    :param figures: what one computes and draws
    :param asleep_watts: what one draws while it is off
    :param reservable: whether they can be reserved, None where the operator
        says it of all
    """

    name: str
    count: int
    inventories: Mapping[str, Inventory]
    figures: Figures = Figures()  # noqa: RUF009 (it is frozen)
    asleep_watts: float = 0.0
    reservable: bool | None = None

    def hosts(self) -> Iterator[memory_cloud.MemoryHost]:
        """Yield them, empty."""
        width = len(str(self.count))
        for number in range(1, self.count + 1):
            name = f'{self.name}-{number:0{width}}'
            yield memory_cloud.MemoryHost(name, name, dict(self.inventories))


@dataclasses.dataclass(frozen=True)
class PreemptibleTerms:
    """Terms of preemptible servers, as extra specs say them."""

    minimum_runtime_s: int = 0
    maximum_runtime_s: int | None = None
    notice_s: int | None = None
    action: str = ''
    restore: bool = False
    class_name: str = ''


@dataclasses.dataclass(frozen=True)
class Flavor:
    """A flavor; ``terms`` are None of normal servers."""

    resources: Mapping[str, int]
    terms: PreemptibleTerms | None = None


@dataclasses.dataclass(frozen=True)
class CloudSetting:
    """A cloud without servers.

    :param classes: {name: PreemptibleTerms of its servers, None if they are
        normal}; of one that is not here they are. They count where there is no
        flavor.
    :param waiting: classes whose servers are asked for by way of the backlog,
        where that is enabled
    :param spread: whether the host with the most free memory comes first, as
        Nova's RAMWeigher has it by default, or that with the least
    """

    hosts: tuple[HostKind, ...]
    flavors: Mapping[str, Flavor] = dataclasses.field(default_factory=dict)
    classes: Mapping[str, PreemptibleTerms | None] = dataclasses.field(
        default_factory=lambda: CLASSES)
    delays: Delays = dataclasses.field(default_factory=Delays)
    spread: bool = True
    waiting: frozenset[str] = frozenset()


#: The preemptible classes of the formats of traces.
CLASSES: dict[str, PreemptibleTerms | None] = {name: PreemptibleTerms()
                                               for name in (
    'preemptible', 'bronze', 'free', 'best-effort')}


@dataclasses.dataclass(frozen=True)
class BacklogOptions:
    """Options of the backlog; see [backlog].

    :param planner: places those together that fit, None: one by one
    """

    order: queue_order.Order
    options: backlog_controller.Options = backlog_controller.Options()  # noqa: RUF009
    planner: BatchPlanner | None = None


@dataclasses.dataclass(frozen=True)
class ClassOptions:
    """Options of classes of service; see [classes].

    :param claims: a simulated_classes.WaitingRequestClocks that the order of
        the backlog asks, None where it asks nobody
    """

    table: ClassTable
    claims: Any = None


@dataclasses.dataclass(frozen=True)
class ReservationOptions:
    """Options of reservations; see [reservation].

    :param guard: for how long servers must have their hosts
    :param limits: {name: number}, see core.reservation.reservation_limits
    :param maximum_notice_s: the longest notice that there is
    """

    guard: leases.GuardTime
    maximum_notice_s: int
    evacuation_lead_s: int = 900
    end_action: str = 'shelve'
    ranking: calendar.Ranking = calendar.best_fit
    reservable_default: bool = False
    limits: Mapping[str, int] = dataclasses.field(
        default_factory=lambda: dict.fromkeys(reservation_limits.LIMITS, -1))

    def lead_s(self, notice_s: int) -> int:
        """Return how long before a start a notice of this length is given."""
        return notice_period.lead_s(notice_s, self.guard.termination_timeout_s,
                                    self.guard.migrate_timeout_s)

    def leads_s(self) -> tuple[int, int]:
        """Return how long before a start there is anything to do."""
        return self.evacuation_lead_s, self.lead_s(self.maximum_notice_s)


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of the operator, beside the core's Policy.

    For each see the option of the same name; ``max_waiting_requests`` are
    those of all workers together, ``headroom`` is what
    core.headroom_account.parse() makes of it, ``backlog``, ``power``,
    ``classes`` and ``reservations`` are None where they are off.
    ``may_unshelve``: whether servers of a class may end others to come back,
    ``may_migrate``: whether those that make room for a reservation may.
    """

    policy: Policy
    enabled: bool = True
    maximum_runtime_s: int = 0
    max_waiting_requests: int = 128
    max_attempts: int = MAX_ATTEMPTS
    termination_timeout_s: int = 120
    stop_retention_s: int = 86400
    project_budget: int = 0
    group_budget: int = 0
    budget_window_s: int = 0
    headroom: Mapping[str, tuple[int, bool]] = dataclasses.field(
        default_factory=dict)
    max_age_s: float = cloud_view.MAX_AGE_S
    interval_s: int = 10
    restore_at_once: int = 10
    restore_timeout_s: int = 7 * 86400
    backlog: BacklogOptions | None = None
    power: energy_observation.Options | None = None
    classes: ClassOptions | None = None
    reservations: ReservationOptions | None = None
    may_unshelve: bool = True
    may_migrate: bool = True

    @property
    def reservation_options(self) -> ReservationOptions:
        """The options of reservations, where they are on."""
        assert self.reservations is not None
        return self.reservations
