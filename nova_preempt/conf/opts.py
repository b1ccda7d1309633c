# SPDX-License-Identifier: Apache-2.0

"""Lists the options for oslo-config-generator and the documentation."""

from nova_preempt.conf import backlog
from nova_preempt.conf import benchmark_credentials
from nova_preempt.conf import classes
from nova_preempt.conf import database
from nova_preempt.conf import energy
from nova_preempt.conf import engine_tasks
from nova_preempt.conf import preemption
from nova_preempt.conf import preemption_quota
from nova_preempt.conf import reservation
from nova_preempt.conf import reservation_blazar
from nova_preempt.conf import rest_api
from nova_preempt.conf import weigher_multipliers


def list_opts():
    """Return [(group, options)] of all options of nova_preempt."""
    return [
        (rest_api.GROUP, rest_api.OPTS),
        (backlog.GROUP, backlog.OPTS),
        (benchmark_credentials.GROUP, benchmark_credentials.list_opts()),
        (classes.GROUP, classes.OPTS),
        (database.GROUP, database.list_opts()),
        (energy.GROUP, energy.OPTS),
        (engine_tasks.GROUP, engine_tasks.OPTS),
        (preemption.GROUP, preemption.list_opts()),
        (preemption_quota.GROUP, preemption_quota.OPTS),
        (reservation.GROUP, reservation.OPTS),
        (reservation_blazar.GROUP, reservation_blazar.list_opts()),
        (weigher_multipliers.GROUP, weigher_multipliers.OPTS),
    ]
