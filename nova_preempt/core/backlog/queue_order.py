# SPDX-License-Identifier: Apache-2.0
"""The interface of queue orders, their options, and first in first out.

An order is a plugin of the group ``nova_preempt.order``. All numbers are
exact, so the same requests come in the same order wherever it is asked for.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
import operator
from typing import Any, Protocol

from nova_preempt.core import capacity
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog.host_capacity import HostCapacity
from nova_preempt.core.model import Resources


@dataclasses.dataclass(frozen=True, slots=True)
class ProjectUsage:
    """The usage of each project, and the capacity of the cloud.

    :param used: by servers of a project, {project id: {resource class: n}}
    :param total: the capacity of all hosts
    """

    used: Mapping[str, Resources]
    total: Resources


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Operator options of orders; each order reads the ones that it knows.

    :param weights: of priorities by name; 1 where none is set
    :param patience_s: a request that has waited for so long comes first, 0:
        none does
    :param claims: of classes of service, None where there are none; see
        nova_preempt.classes.claims
    """

    weights: Mapping[str, int] = dataclasses.field(default_factory=dict)
    patience_s: int = 86400
    claims: Any = None


def shares(requests: Iterable[backlog_model.Request], rooms: Iterable[
        HostCapacity]) -> ProjectUsage:
    """Return the usage of the servers of requests, and the total of hosts."""
    used: dict[str, list[Resources]] = {}
    for request in requests:
        if not request.servers:
            continue
        sizes = {item.flavor_id: item.resources
                 for item in request.alternatives}
        flavors = {boot.number: boot.flavor_id for boot in request.boots}
        used.setdefault(request.project_id, []).extend(
            sizes.get(flavors.get(server.boot, ""), {})
            for server in request.servers
            if server.state in (backlog_model.BUILDING, backlog_model.RUNNING))
    return ProjectUsage(
        {project: capacity.total(each) for project, each in used.items()},
        capacity.total(room.capacity for room in rooms))


class Order(Protocol):
    """Ranks requests; a plugin is constructed with Options."""

    def rank(
        self, requests: Iterable[backlog_model.Request],
        now: datetime.datetime, shares: ProjectUsage,
    ) -> list[backlog_model.Request]:
        """Return all requests, the next one first."""


_age = operator.attrgetter("created_at", "serial", "uuid")


def oldest_first(requests: Iterable[backlog_model.Request]) -> list[
    backlog_model.Request]:
    """Return requests by creation time, serial number and uuid."""
    return sorted(requests, key=_age)


class FIFO:
    """First come, first served."""

    def __init__(self, options: Options | None = None) -> None:
        pass

    def rank(
        self, requests: Iterable[backlog_model.Request],
        now: datetime.datetime, shares: ProjectUsage,
    ) -> list[backlog_model.Request]:
        return oldest_first(requests)
