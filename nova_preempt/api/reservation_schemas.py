# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of requests and responses about reservations."""

from nova_preempt.api import schemas
from nova_preempt.conf import reservation as conf
from nova_preempt.core.reservation import reservation_model

_object = schemas.make_object

_MAX = 2 ** 31 - 1
_COUNT = {'type': 'integer', 'minimum': 1, 'maximum': _MAX}
#: The most extra properties of a host, and items of one that is a list.
_MAX_EXTRA = 100
# So large that no property is larger, and still exact as a float.
_NUMBER = {'type': 'number', 'minimum': -2 ** 53, 'maximum': 2 ** 53}
_STATUS = {'type': 'string', 'enum': list(reservation_model.STATUSES)}
_LIMIT = {'type': 'integer', 'minimum': -1, 'maximum': _MAX}
_PERIOD = {'start_at': schemas.TIME, 'end_at': schemas.TIME}

_CHANGEABLE = {
    'name': schemas.TEXT,
    'end_action': {'type': 'string', 'enum': list(conf.END_ACTIONS)},
    'before_end_s': {'type': 'integer', 'minimum': 0, 'maximum': _MAX},
}

#: Also the body of a preview.
CREATE = schemas.make_body('reservation', {}, {
    'host_properties': {'type': ['array', 'string']},
    'quantity': _COUNT, 'duration': _COUNT, 'start_time': schemas.TIME,
    'end_time': schemas.TIME, **_CHANGEABLE}, 'reservation_body')
CHANGE = schemas.make_body('reservation', {}, {
    **_CHANGEABLE, 'end_at': schemas.TIME}, 'reservation_body',
    minProperties=1)

LIST_QUERY = schemas.make_query({
    'status': _STATUS, 'name': schemas.TEXT, **schemas.PERIOD,
    'host': schemas.TEXT, **schemas.LIST}, 'reservations_query')

HELD_HOST = _object({
    'name': schemas.STRING, 'host_id': schemas.STRING, **_PERIOD,
    'status': schemas.STRING, 'reason': schemas.STRING}, section='held_host')
RESERVATION = _object({
    'id': schemas.UUID,
    'name': schemas.STRING,
    'project_id': schemas.STRING,
    'user_id': schemas.STRING,
    'status': _STATUS,
    'reason': schemas.STRING,
    'created_at': schemas.TIME,
    'updated_at': schemas.TIME,
    'host_properties': {'type': 'array'},
    'quantity': schemas.COUNT,
    'duration': schemas.COUNT,
    'start_time': schemas.TIME,
    'end_time': schemas.NULLABLE,
    **_PERIOD,
    'end_action': schemas.STRING,
    'before_end_s': schemas.COUNT,
    'ready_at': schemas.NULLABLE,
    'released_at': schemas.NULLABLE,
    'hosts': schemas.array(HELD_HOST),
}, section='reservation')
RESERVATION_ANSWER = _object({'reservation': RESERVATION})
RESERVATIONS_ANSWER = schemas.listing('reservations', RESERVATION,
                                      'reservations_list')
PREVIEW_ANSWER = _object({'preview': _object({
    'possible': schemas.FLAG, 'start_at': schemas.NULLABLE,
    'end_at': schemas.NULLABLE, 'hosts': schemas.array(schemas.STRING),
}, section='preview')})

PROPERTY = _object({
    'name': schemas.STRING, 'type': schemas.STRING,
    'values': {'type': 'array'}, 'hidden': schemas.FLAG,
}, section='host_property')
PROPERTIES_ANSWER = _object({'properties': schemas.array(PROPERTY)},
                            section='host_property')
PROPERTY_ANSWER = _object({'property': PROPERTY})
CHANGE_PROPERTY = schemas.make_body('property', {'hidden': schemas.FLAG})

HOSTS_QUERY = schemas.make_query(
    {'limit': schemas.LIMIT, 'marker': schemas.TEXT, **schemas.PERIOD},
    'hosts_query')
BOOKING = _object({
    'id': schemas.UUID, 'project_id': schemas.STRING,
    'status': schemas.STRING, **_PERIOD}, section='host_booking')
HOST = _object({
    'name': schemas.STRING,
    'service_host': schemas.STRING,
    'state': schemas.STRING,
    'status': schemas.STRING,
    'reservable': schemas.FLAG,
    'vacant': schemas.FLAG,
    'running_servers': schemas.COUNT,
    'flops_per_watt': {'type': ['number', 'null']},
    'properties': {'type': 'object'},
    'extra': {'type': 'object'},
    'reservations': schemas.array(BOOKING),
}, section='host')
HOSTS_ANSWER = schemas.listing('hosts', HOST, 'hosts_list')
HOST_ANSWER = _object({'host': HOST})

_SCALAR = {'anyOf': [schemas.TEXT, _NUMBER, schemas.FLAG]}
CHANGE_HOST = schemas.make_body('host', {}, {
    'reservable': {'type': ['boolean', 'null']},
    'extra': {
        'type': 'object', 'maxProperties': _MAX_EXTRA,
        'propertyNames': {'pattern': '^[A-Za-z_][A-Za-z0-9_.:-]*$',
                          'maxLength': 255},
        'additionalProperties': {'anyOf': [
            *_SCALAR['anyOf'], {'type': 'null'},
            schemas.array(_SCALAR, maxItems=_MAX_EXTRA)]}},
}, 'host_body', minProperties=1)

LIMITS = dict.fromkeys((
    'max_reservations', 'max_hosts', 'max_duration_s', 'max_advance_s',
    'max_created_per_day'), _LIMIT)
SET_LIMITS = schemas.make_body('reservation_limits', {}, LIMITS)
LIMITS_ANSWER = _object({'reservation_limits': _object({
    'project_id': schemas.STRING, 'limits': _object(LIMITS),
    'own': _object({}, LIMITS)})})
