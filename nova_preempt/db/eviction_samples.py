# SPDX-License-Identifier: Apache-2.0
"""Stores samples of preemptible servers and of their evictions.

The leading engine writes them, the API reads them.
"""

import sqlalchemy as sa

from nova_preempt.core import eviction_rates
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

#: Seconds between two samples.
INTERVAL_S = 3600

# The most samples in memory at once: there may be hundreds of thousands.
_MOST = 1000

_SAMPLE = models.EvictionSample


@transaction_retries.retried
def record(database, servers, zones, now):
    """Store the samples of now, delete old ones, and return the rates.

    :param servers: core PreemptibleServers
    :param zones: {node or host of a service: availability zone}
    :param now: naive and UTC
    """
    decision, victim = models.Decision, models.Victim
    with database.writer() as session:
        since = session.scalar(sa.select(sa.func.max(_SAMPLE.at))) or now
        victims = session.execute(
            sa.select(victim.flavor, decision.host, victim.project_id,
                      victim.lifetime_s)
            .join(decision, decision.uuid == victim.decision_uuid)
            .where(victim.ended_at > since, victim.ended_at <= now,
                   victim.status.in_(decisions.LEFT_PLACE),
                   decision.operation.not_in(eviction_rates.NOT_EARLY)))
        session.execute(sa.delete(_SAMPLE).where(
            _SAMPLE.at <= now - eviction_rates.LONGEST))
        session.add_all(
            _SAMPLE(**vars(item)) for item in eviction_rates.sample(
                now, since, [(server.flavor, server.node, server.project_id)
                             for server in servers], victims, zones))
    return eviction_rates.rates(read(database), now)


def read(database, flavors=()):
    """Yield core eviction_rates Samples of flavors, or of all."""
    query = row_schemas.select(_SAMPLE, eviction_rates.Sample)
    if flavors:
        query = query.where(_SAMPLE.flavor.in_(flavors))
    with database.reader() as session:
        for row in session.execute(query.execution_options(yield_per=_MOST)):
            yield eviction_rates.Sample(*row)
