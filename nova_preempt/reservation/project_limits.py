# SPDX-License-Identifier: Apache-2.0
"""Limits on what one project may reserve."""

from nova_preempt import exceptions
from nova_preempt.core.reservation import reservation_limits
from nova_preempt.db import reservable_hosts

LIMITS = reservation_limits.LIMITS


class Limits(reservation_limits.Limits):
    """The limits of one project.

    What goes beyond one raises ReservationLimit.
    """

    @classmethod
    def load(cls, conf, database, project_id):
        """Read the limits of the options, and the project's own instead."""
        own = reservable_hosts.get_limits(database, project_id)
        return cls({name: own.get(name, conf.reservation[name])
                    for name in LIMITS})

    def check(self, name, asked, used=0):
        try:
            super().check(name, asked, used)
        except reservation_limits.LimitExceeded as exc:
            raise exceptions.ReservationLimit(str(exc)) from None
