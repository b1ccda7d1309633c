# SPDX-License-Identifier: Apache-2.0
"""Hosts, and the input of the controller of an open reservation."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
import dataclasses
from typing import Any, Protocol

from nova_preempt.core.energy import host_classification
from nova_preempt.core.model import VictimCap
from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import reservation_model


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A compute node, as it was read last.

    :ivar state: up or down; up if it is off but can be woken
    :ivar status: enabled or disabled; enabled if it is off but can be woken
    :ivar properties: see host_properties
    :ivar asleep: its power state if it is not on, None if it is
    :ivar dark: whether its cell cannot be read
    """

    name: str
    service_host: str = ""
    provider_uuid: str = ""
    state: str = "up"
    status: str = "enabled"
    properties: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    reservable: bool = True
    flops_per_watt: float | None = None
    disabled_reason: str = ""
    asleep: host_classification.OffHost | None = None
    dark: bool = False

    @property
    def is_usable(self) -> bool:
        """Tell whether Nova would place a server there, were it on."""
        return self.state == "up" and self.status == "enabled"

    def as_reported(self, service: Mapping[str, Any]) -> Host:
        """Return the host with the current state of its service, if known."""
        if "state" not in service:
            return self
        changed = {"state": "down" if service.get("forced_down")
                   else service["state"], "status": service["status"]}
        return dataclasses.replace(
            self, properties={**self.properties, **changed},
            disabled_reason=service.get("disabled_reason") or "", **changed)


class ReservationView(Protocol):
    """An open reservation, its hosts and their servers, as they are now."""

    @property
    def reservation(self) -> reservation_model.Reservation:
        """The reservation."""

    @property
    def leads_s(self) -> Collection[float]:
        """The times before a start at which there is something to do."""

    @property
    def down(self) -> Collection[str]:
        """The names of hosts to replace; see down_host_controller."""

    @property
    def running(self) -> Mapping[str, reservation_model.Reservation]:
        """The reservations whose servers are not drained."""

    def host(self, name: str) -> Host | None:
        """Return a host, None if it is not listed."""

    def servers(self, name: str) -> Sequence[drain_rules.Server]:
        """Return the servers that are on a host."""

    def caps(self, servers: Collection[str]) -> Collection[VictimCap]:
        """Return how many of these preemptible servers may be evicted now."""

    def evicting(self) -> Container[str]:
        """Return the uuids of servers whose eviction has begun."""

    def is_free(self, name: str, servers: Collection[str]) -> bool | None:
        """Tell whether only these servers use a host, None if unknown."""

    def candidates(self) -> Sequence[str]:
        """Return the hosts that it could be given, the best ones first."""

    def former(self) -> Collection[str]:
        """Return the hosts that it has lost and that are free again."""
