# SPDX-License-Identifier: Apache-2.0
"""Handler that shows what the next pass over the backlog would do."""

from oslo_utils import timeutils

from nova_preempt.api import microversion
from nova_preempt.api import operation
from nova_preempt.api import policy
from nova_preempt.api import schemas
from nova_preempt.api import views

_object = schemas.make_object

#: The microversion that introduced reasons.
_REASON = '1.6'

ANSWER = _object({'backlog_plan': _object({
    'at': schemas.TIME, 'mode': schemas.STRING, 'stopped': schemas.STRING,
    'requests_waiting': schemas.COUNT,
    'starts': schemas.array(_object({
        'request_id': schemas.UUID, 'name': schemas.STRING,
        'project_id': schemas.STRING, 'flavor': schemas.STRING,
        'count': schemas.COUNT, 'hosts': schemas.array(_object(
            {'name': schemas.STRING, 'count': schemas.COUNT},
            section='plan_host'))},
        {'reason': schemas.STRING}, 'plan_start')),
    'hosts': schemas.array(_object({
        'name': schemas.STRING,
        'resources': {'type': 'object', 'additionalProperties': _object(
            dict.fromkeys(('capacity', 'used', 'used_after'),
                          schemas.COUNT))}})),
}, section='plan')})


@operation.serves('GET', '/v1/backlog-plan', policy.BACKLOG_PLAN, ANSWER,
                  errors=(503,), since='1.4')
def show_backlog_plan(call):
    """Show which requests would start now, and on which hosts."""
    found = call.services.engine.plan_backlog(call.context)
    tells_why = microversion.has(call.request.environ, _REASON)
    return {'backlog_plan': {
        'at': views.time(timeutils.utcnow().replace(microsecond=0)),
        'mode': found['mode'],
        'stopped': found['stopped'],
        'requests_waiting': found['waiting'],
        'starts': [
            {'request_id': item['request'],
             **{name: item[name]
                for name in ('name', 'project_id', 'flavor', 'count')},
             'hosts': [{'name': name, 'count': count}
                       for name, count in sorted(item['hosts'].items())],
             # Older engines send no reason.
             **({'reason': item.get('reason', '')} if tells_why else {})}
            for item in found['starts']],
        'hosts': [{'name': item['name'], 'resources': {
            name: {key: max(0, value) for key, value in use.items()}
            for name, use in item['resources'].items()}}
            for item in found['hosts']]}}
