# SPDX-License-Identifier: Apache-2.0
"""Handler of classes of service, and availability of requests."""

from oslo_utils import timeutils

from nova_preempt.api import operation
from nova_preempt.api import policy
from nova_preempt.api import schemas
from nova_preempt.api import views
from nova_preempt.core.backlog import request_history
from nova_preempt.core.times import microseconds
from nova_preempt.db import server_uptimes

#: The microversion that introduced classes.
SINCE = '1.5'

_object = schemas.make_object
_SHARE = {'type': 'number', 'minimum': 0, 'maximum': 1}

SHARE = {**_SHARE, 'type': ['number', 'null']}
CLOCKS = _object({
    'running_s': schemas.COUNT, 'waiting_s': schemas.COUNT,
    'starting_s': schemas.COUNT, 'share': SHARE})

_CLASS = _object({
    'name': schemas.STRING, 'importance': schemas.COUNT,
    'availability': _SHARE, 'safety_margin_s': schemas.COUNT,
    'overhead_limit': _SHARE, 'least_run_s': schemas.COUNT,
    'open': schemas.FLAG}, section='class_of_service')
ANSWER = _object({'classes': schemas.array(_CLASS)},
                 section='class_of_service')


@operation.serves('GET', '/v1/classes', policy.CLASS_LIST, ANSWER, since=SINCE)
def list_classes(call):
    """List the classes of service, the most important first."""
    known = call.services.classes
    return {'classes': [_view(qos, known.table) for qos in
                        known.table.classes] if known else []}


def _view(qos, table):
    return views.render(
        qos, _CLASS, availability=float(qos.availability),
        overhead_limit=float(qos.limit), open=qos.name in table.open)


def class_members(call, request, changes, servers):
    """Return the members of a request about its class, as JSON.

    :param request: a core.backlog.backlog_model.Request
    :param changes: its history
    :param servers: its servers as JSON, to which availabilities are added
    """
    now_us = microseconds(timeutils.utcnow())
    known = call.services.classes
    qos = known and known.table.classes.find(request.class_name)
    if known:
        found = server_uptimes.find(call.services.database,
                                    [item['id'] for item in servers])
        for item in servers:
            if item['id'] in found:
                item['availability'] = _clocks(
                    found[item['id']].clocks, now_us)
    return {
        'availability': _clocks(
            request_history.clocks_of(request_history.History(
                changes, request.class_name, request.not_before)), now_us),
        'promised_availability': float(qos.availability) if qos else None}


def _clocks(clocks, now_us):
    times = clocks.at(now_us)
    return {'running_s': times.running_us // 10 ** 6,
            'waiting_s': times.waiting_us // 10 ** 6,
            'starting_s': times.binding_us // 10 ** 6,
            'share': float(times.availability) if times.total_us else None}
