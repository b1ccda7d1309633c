# SPDX-License-Identifier: Apache-2.0
"""Handler of the status: the leading engine, pauses and waiting requests."""

import datetime

from oslo_utils import timeutils

from nova_preempt import exceptions
from nova_preempt import rpc
from nova_preempt.api import operation
from nova_preempt.api import pause_handlers
from nova_preempt.api import policy
from nova_preempt.api import preemption_handlers
from nova_preempt.api import schemas
from nova_preempt.core.backlog import backlog_model
from nova_preempt.db import backlog_history
from nova_preempt.db import decision_owners
from nova_preempt.db import preemption_queries

#: The microversion that introduced the status.
SINCE = '1.7'

# How long the scheduler may take to count space, in seconds: the whole answer
# shall take less than one.
_ROOM_S = 0.8
# The flavors with the most victims in this period stand for all.
_DAYS = 30
_MOST_FLAVORS = 3

QUERY = schemas.make_query({'flavor': schemas.array(
    schemas.TEXT, minItems=1, maxItems=schemas.MAX_FLAVORS)}, 'status')
ANSWER = schemas.make_object({'status': schemas.make_object({
    'leader': schemas.NULLABLE, 'processes': schemas.array(schemas.STRING),
    'pauses': pause_handlers.PAUSES_ANSWER['properties']['pauses'],
    'room': schemas.array(schemas.CHANCE),
    'room_reason': schemas.STRING, 'requests_waiting': schemas.COUNT,
    'preemptions_open': schemas.COUNT, 'victims_today': schemas.COUNT},
    section='status')}, section='status')


@operation.serves('GET', '/v1/status', policy.STATUS, ANSWER, query=QUERY,
                  since=SINCE)
def show_status(call):
    """Show the leading engine, pauses, waiting requests and free capacity."""
    database = call.services.database
    leases = decision_owners.get_leases(database)
    leader = decision_owners.get_leader(database)
    today = timeutils.utcnow().replace(hour=0, minute=0, second=0,
                                       microsecond=0)
    states = backlog_history.numbers(database).values()
    room, room_reason = _room(call)
    return {'status': {
        'leader': _host(leader) if leases.get(leader) else None,
        'processes': sorted(_host(name) for name, is_valid in leases.items()
                            if is_valid),
        'pauses': pause_handlers.view(database),
        'room': room, 'room_reason': room_reason,
        'requests_waiting': sum(item.get(backlog_model.WAITING, 0)
                                for item in states),
        'preemptions_open': preemption_queries.count_open(database),
        'victims_today': preemption_queries.count_victims(database,
                                                          today).total()}}


def _host(owner):
    """Return the host in the name of an owner of decisions."""
    return owner.partition('/')[0]


def _room(call):
    """Return (how many servers of flavors fit, why this is not known)."""
    flavors = call.query.get('flavor')
    if flavors is None:
        since = timeutils.utcnow() - datetime.timedelta(days=_DAYS)
        found = preemption_queries.count_victims(call.services.database, since)
        flavors = [flavor for flavor, _ in found.most_common(_MOST_FLAVORS)]
    if not flavors:
        return [], f'No flavor had a victim within {_DAYS} days; name one.'
    try:
        return preemption_handlers.chances(rpc.SchedulerPreviewClient(
            call.services.scheduler.transport, _ROOM_S).placement_chances(
                call.context, flavors, call.context.project_id,
                is_bounded=False)), ''
    except (exceptions.FlavorNotFound, exceptions.NoAnswer) as exc:
        return [], str(exc)
