# SPDX-License-Identifier: Apache-2.0
"""Estimates when servers leave their hosts."""

from collections.abc import Callable
import dataclasses
import math

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.eviction import expiry_controller
from nova_preempt.core.model import PreemptibleServer
from nova_preempt.core.notice_period import NoticeRule


@dataclasses.dataclass(frozen=True, slots=True)
class ExpectedDepartures:
    """The operator's limits on the run time of preemptible servers.

    :param maximum_runtime_s: of all preemptible servers, 0 for no limit
    :param notice: the notice before an eviction
    :param are_ended: whether servers are evicted at their limit; not while
        preemption is paused, for an unknown time
    """

    maximum_runtime_s: int = 0
    notice: NoticeRule = NoticeRule(0)  # noqa: RUF009
    are_ended: bool = True

    def of(self, alternative: backlog_model.Alternative) -> float:
        """Return the longest time that a new server keeps its space, in s.

        Infinity for servers that are not preemptible: they are never evicted.
        """
        limit_s = expiry_controller.limit_s(alternative.run_s,
                                            self.maximum_runtime_s)
        if not (alternative.preemptible and self.are_ended and limit_s > 0):
            return math.inf
        return limit_s + self.notice.length_s(alternative.notice_s)

    def left_s(
        self, server: PreemptibleServer,
        action: Callable[[PreemptibleServer], str],
        uptime_us: Callable[[PreemptibleServer], int], ) -> int | None:
        """Return in how many seconds a server will have been evicted.

        None if that is unknown; see expiry_controller.left_s().

        :param action: returns the action of its terms; it and the uptime are
            read only where they matter
        """
        limit_s = expiry_controller.limit_s(
            server.maximum_runtime_s, self.maximum_runtime_s)
        # Most servers have no limit, and the rest is expensive.
        if not (self.are_ended and limit_s > 0):
            return None
        left_s = expiry_controller.left_s(
            server, limit_s, action(server), uptime_us(server))
        if left_s is None:
            return None
        return left_s + self.notice.length_s(server.notice_s)


#: Without limits of the operator, and without a notice.
DEFAULT_DEPARTURES = ExpectedDepartures()
