# SPDX-License-Identifier: Apache-2.0

"""The options, for oslo-config-generator and the documentation."""

from nova_preempt.conf import api
from nova_preempt.conf import backlog
from nova_preempt.conf import benchmark
from nova_preempt.conf import classes
from nova_preempt.conf import database
from nova_preempt.conf import energy
from nova_preempt.conf import engine
from nova_preempt.conf import preemption
from nova_preempt.conf import quota
from nova_preempt.conf import reservation
from nova_preempt.conf import reservation_blazar
from nova_preempt.conf import weights


def list_opts():
    """Return [(group, options)] of everything that nova_preempt reads."""
    return [
        (api.GROUP, api.OPTS),
        (backlog.GROUP, backlog.OPTS),
        (benchmark.GROUP, benchmark.list_opts()),
        (classes.GROUP, classes.OPTS),
        (database.GROUP, database.list_opts()),
        (energy.GROUP, energy.OPTS),
        (engine.GROUP, engine.OPTS),
        (preemption.GROUP, preemption.list_opts()),
        (quota.GROUP, quota.OPTS),
        (reservation.GROUP, reservation.OPTS),
        (reservation_blazar.GROUP, reservation_blazar.list_opts()),
        (weights.GROUP, weights.OPTS),
    ]
