# SPDX-License-Identifier: Apache-2.0
"""Hosts that reservations leave to a waiting request."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.reservation import leases
from nova_preempt.core.reservation import reservation_model

# How Nova calls scheduler hints in a body; both are taken.
HINTS = ("os:scheduler_hints", "OS-SCH-HNT:scheduler_hints")


@dataclasses.dataclass(frozen=True, slots=True)
class ReservationRules:
    """What is known of reservations in a pass."""

    view: leases.LeaseView
    guard: leases.Guard

    def free_s(self, host: str) -> float:
        """For how long a host is nobody's."""
        return self.view.free_s(host)

    def lead_s(self, alternative: backlog_model.Alternative) -> float:
        """For how long a server of a flavor has to have its host."""
        return self.guard.lead_s(
            alternative.preemptible, alternative.minimum_run_s,
            alternative.notice_s, )

    def answer(self,
            request: backlog_model.Request) -> leases.ReservedHosts | None:
        """Where its reservations lead a request, None if it names none."""
        ids = reservations(request.body)
        return self.view.answer(ids, request.project_id) if ids else None


def hints(body: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the scheduler hints in Nova's body."""
    for name in HINTS:
        found = body.get(name)
        if isinstance(found, Mapping) and found:
            return found
    return {}


def reservations(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the reservations that Nova's body names.

    :raises InvalidHint: see reservation.reservation_hint
    """
    for name in HINTS:
        found = reservation_model.ids_in_hints(body.get(name))
        if found:
            return found
    return ()
