# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of requests and responses about the backlog."""

from nova_preempt.api import schemas
from nova_preempt.api import service_class_handlers
from nova_preempt.cloud import boot_schema
from nova_preempt.core.backlog import backlog_model

_object = schemas.make_object

_NUMBER = {'type': 'integer', 'minimum': 1, 'maximum': 2 ** 31 - 1}
_PRIORITY = {'type': 'integer', 'minimum': 1, 'maximum': 3}
_MAX_FLAVORS = 10


def _nullable(schema):
    return {'anyOf': [schema, {'type': 'null'}]}


_WISHES = {
    'count': _NUMBER,
    'least_count': _NUMBER,
    'name': schemas.TEXT,
    'class': {'anyOf': [{**schemas.TEXT, 'maxLength': 64},
                        {'type': 'string', 'maxLength': 0}]},
    'priorities': _nullable(_object({}, dict.fromkeys(
        ('time', 'reputation', 'cores', 'redundancy'), _PRIORITY),
        'priorities', closed=True)),
    'not_before': _nullable(schemas.TIME),
    'not_after': _nullable(schemas.TIME),
    'longest_wait_s': _nullable(_NUMBER),
    'comes_back': schemas.FLAG,
    'back_until': _nullable(schemas.TIME),
    'most_returns': _nullable(_NUMBER),
}

CREATE = schemas.make_body('request', {
    'body': _object({'server': _object({}, {
        'flavorRef': {'type': ['string', 'integer', 'null'],
                      'maxLength': 255}})}, section='compute_body'),
}, {
    'compute_version': {
        'type': 'string', 'maxLength': 10, 'description':
        'Microversion of Nova in which the body is written; that of the '
        f'header for compute, or else {boot_schema.DEFAULT}, if missing.'},
    'flavors': schemas.array(schemas.TEXT, minItems=1, maxItems=_MAX_FLAVORS),
    'ladder': {**schemas.TEXT, 'maxLength': 64},
    **_WISHES,
}, 'request_body')

CHANGE = schemas.make_body('request', {}, _WISHES, 'request_body',
                           minProperties=1)

STATUS = {'type': 'string', 'enum': list(backlog_model.STATES)}

LIST_QUERY = schemas.make_query({
    'status': STATUS, 'user_id': schemas.TEXT, **schemas.LIST,
}, 'requests_query')

DELETE_QUERY = schemas.make_query({'servers': schemas.FLAG},
                                  'cancellation_query')

_WHOLE_NUMBER = {'type': ['integer', 'null']}

FLAVOR = _object({
    'id': schemas.STRING, 'name': schemas.STRING, 'resources': schemas.COUNTS,
    'preemptible': schemas.FLAG}, section='request_flavor')
SERVER = _object({
    'id': schemas.STRING, 'status': schemas.STRING, 'since': schemas.TIME,
}, {'availability': service_class_handlers.CLOCKS}, 'request_server')
CHANGED = _object({'at': schemas.TIME, 'status': STATUS,
                   'reason': schemas.STRING})
_LISTED = {
    'id': schemas.UUID,
    'name': schemas.STRING,
    'project_id': schemas.STRING,
    'user_id': schemas.STRING,
    'status': STATUS,
    'reason': schemas.STRING,
    'created_at': schemas.TIME,
    'updated_at': schemas.TIME,
    'compute_version': schemas.STRING,
    'count': schemas.COUNT,
    'least_count': schemas.COUNT,
    'flavors': schemas.array(FLAVOR),
    'ladder': schemas.STRING,
    'class': schemas.STRING,
    'priorities': {'type': ['object', 'null']},
    'not_before': schemas.NULLABLE,
    'not_after': schemas.NULLABLE,
    'longest_wait_s': _WHOLE_NUMBER,
    'comes_back': schemas.FLAG,
    'back_until': schemas.NULLABLE,
    'most_returns': _WHOLE_NUMBER,
    'returns': schemas.COUNT,
    'waits_since': schemas.NULLABLE,
    'waits_for': {'type': 'object'},
    'position': _WHOLE_NUMBER,
    'estimate_s': _WHOLE_NUMBER,
    'servers': schemas.array(SERVER),
}
LISTED = _object(_LISTED, section='request')
REQUEST = _object(
    {**_LISTED, 'body': {'type': 'object'}, 'history': schemas.array(CHANGED)},
    {'availability': service_class_handlers.CLOCKS,
     'promised_availability': service_class_handlers.SHARE}, 'request')
REQUEST_ANSWER = _object({'request': REQUEST})
REQUESTS_ANSWER = schemas.listing('requests', LISTED, 'requests_list')
