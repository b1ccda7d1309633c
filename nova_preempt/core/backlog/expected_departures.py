# SPDX-License-Identifier: Apache-2.0
"""Estimates how long servers keep their space."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import math

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.eviction import expiry_controller
from nova_preempt.core.model import Server
from nova_preempt.core.notice_period import NoticeRule


@dataclasses.dataclass(frozen=True, slots=True)
class ExpectedDepartures:
    """What an operator says about it.

    :param maximum_runtime_s: of all preemptible servers, 0 for any time
    :param notice: of their ends
    :param are_ended: whether those end whose time is over: not while
        preemption is paused, and nobody knows for how long that is
    """

    maximum_runtime_s: int = 0
    notice: NoticeRule = NoticeRule(0)  # noqa: RUF009
    are_ended: bool = True

    def of(self, alternative: backlog_model.Alternative) -> float:
        """How long one that starts now keeps its place at most, in seconds.

        No others but preemptible ones are made to end.
        """
        limit_s = expiry_controller.limit_s(alternative.run_s,
                                            self.maximum_runtime_s)
        if not (alternative.preemptible and self.are_ended and limit_s > 0):
            return math.inf
        return limit_s + self.notice.length_s(alternative.notice_s)

    def left_s(
        self, server: Server, action: Callable[[Server], str],
        uptime_us: Callable[[Server], int], ) -> int | None:
        """In how many seconds a server will have had its notice.

        None if nobody knows; see expiry_controller.left_s().

        :param action: returns what its terms say; it and how long it has run
            are asked where that matters
        """
        limit_s = expiry_controller.limit_s(
            server.maximum_runtime_s, self.maximum_runtime_s)
        # Most servers have none, and the rest takes a while.
        if not (self.are_ended and limit_s > 0):
            return None
        left_s = expiry_controller.left_s(
            server, limit_s, action(server), uptime_us(server))
        if left_s is None:
            return None
        return left_s + self.notice.length_s(server.notice_s)


#: Where the operator says nothing, and ends come without a notice.
DEFAULT_DEPARTURES = ExpectedDepartures()
