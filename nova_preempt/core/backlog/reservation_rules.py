# SPDX-License-Identifier: Apache-2.0
"""Checks which hosts reservations leave open to a waiting request."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.reservation import leases
from nova_preempt.core.reservation import reservation_model

# Nova's names of scheduler hints in a body.
HINTS = ("os:scheduler_hints", "OS-SCH-HNT:scheduler_hints")


@dataclasses.dataclass(frozen=True, slots=True)
class ReservationRules:
    """The reservations as they are in a pass, and how early hosts close."""

    view: leases.LeaseView
    guard: leases.GuardTime

    def free_s(self, host: str) -> float:
        """Return the seconds until a host's next reservation."""
        return self.view.free_s(host)

    def lead_s(self, alternative: backlog_model.Alternative) -> float:
        """Return for how long a server of a flavor must have its host."""
        return self.guard.lead_s(
            alternative.preemptible, alternative.minimum_run_s,
            alternative.notice_s, )

    def answer(self,
            request: backlog_model.Request) -> leases.AllowedHosts | None:
        """Return the hosts of its reservations, None if a request names none.
        """
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
