# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of requests and responses about reservations.

As JSON Schema, as in schemas.
"""

from nova_preempt.api import schemas
from nova_preempt.conf import reservation as conf
from nova_preempt.core.reservation import reservation_model

_described = schemas.described
_object = schemas.make_object

_MAX = 2 ** 31 - 1
_SECONDS = {'type': 'integer', 'minimum': 0, 'maximum': _MAX}
_FLAG = {'type': 'boolean'}
_NAMES = schemas.array(schemas.STRING)
#: Of one host.
_MAX_EXTRA = 100
# So large that nothing is, and still exact as a float.
_NUMBER = {'type': 'number', 'minimum': -2 ** 53, 'maximum': 2 ** 53}

_REQUEST = {
    'host_properties': {
        'type': ['array', 'string'], 'description':
        'Which hosts: a filter, as JSON or as text that is JSON. All of them '
        'if it is missing or empty.'},
    'quantity': {'type': 'integer', 'minimum': 1, 'maximum': _MAX,
                 'description': 'How many hosts; 1 if it is missing.'},
    'duration': {'type': 'integer', 'minimum': 1, 'maximum': _MAX,
                 'description': 'For how long, in seconds; from start_time '
                                'to end_time if it is missing.'},
    'start_time': _described(
        schemas.TIME, 'The earliest start; now if it is missing.'),
    'end_time': _described(
        schemas.TIME, 'When it has to be over; any time if it is missing. '
                      'With neither time it starts now.'),
}
_CHANGEABLE = {
    'name': schemas.TEXT,
    'end_action': {'type': 'string', 'enum': list(conf.END_ACTIONS),
                   'description': 'What happens at the end to the servers '
                                  'that run in it.'},
    'before_end_s': _described(
        _SECONDS, 'How long before its end there is notice.'),
}

# Also of a preview, so that one body does for both.
CREATE = schemas.wished('reservation', {**_REQUEST, **_CHANGEABLE})
CHANGE = schemas.wished('reservation', {
    **_CHANGEABLE,
    'end_at': _described(schemas.TIME, 'When it ends; earlier or later than '
                                       'it would.')}, minProperties=1)

LIST_QUERY = _object({}, {
    'status': {'type': 'string', 'enum': list(reservation_model.STATUSES)},
    'name': schemas.TEXT,
    'since': _described(schemas.TIME, 'They end after this. UTC if no offset '
                                      'is given.'),
    'until': _described(schemas.TIME, 'They start before this. UTC if no '
                                      'offset is given.'),
    'host': _described(schemas.TEXT, 'For administrators.'),
    'project_id': _described(schemas.TEXT, 'For administrators.'),
    'all_projects': _described(_FLAG, 'All projects. For administrators.'),
    'limit': _described(schemas.LIMIT, 'The size of a page.'),
    'marker': _described(schemas.UUID,
                         'The last reservation of the page before.'),
}, closed=True)

HELD_HOST = _object({
    'name': _described(schemas.STRING, 'For administrators; the host_id for '
                                       'others.'),
    'host_id': _described(schemas.STRING, 'As Nova has it for servers.'),
    'start_at': schemas.TIME,
    'end_at': schemas.TIME,
    'status': _described(schemas.STRING, 'assigned, emptying, ready or lost.'),
    'reason': schemas.STRING})
RESERVATION = _object({
    'id': schemas.UUID,
    'name': schemas.STRING,
    'project_id': schemas.STRING,
    'user_id': schemas.STRING,
    'status': {'type': 'string', 'enum': list(reservation_model.STATUSES)},
    'reason': _described(schemas.STRING, 'Why it is degraded or in error.'),
    'created_at': schemas.TIME,
    'updated_at': schemas.TIME,
    'host_properties': {'type': 'array', 'description': 'As asked for.'},
    'quantity': _described(schemas.COUNT, 'As asked for.'),
    'duration': _described(schemas.COUNT, 'From start_at to end_at, in '
                                          'seconds.'),
    'start_time': _described(schemas.TIME, 'The earliest start asked for.'),
    'end_time': _described(schemas.NULLABLE, 'The latest end asked for.'),
    'start_at': _described(schemas.TIME, 'When it starts.'),
    'end_at': _described(schemas.TIME, 'When it ends.'),
    'end_action': schemas.STRING,
    'before_end_s': schemas.COUNT,
    'ready_at': _described(schemas.NULLABLE, 'When its hosts were empty.'),
    'released_at': _described(
        schemas.NULLABLE, 'When its servers were gone after its end.'),
    'hosts': schemas.array(HELD_HOST),
})
RESERVATION_ANSWER = _object({'reservation': RESERVATION})
RESERVATIONS_ANSWER = schemas.listing('reservations', RESERVATION)
PREVIEW_ANSWER = _object({'preview': _object({
    'possible': _FLAG,
    'start_at': schemas.NULLABLE,
    'end_at': schemas.NULLABLE,
    'hosts': _NAMES})})

PROPERTY = _object({
    'name': schemas.STRING,
    'type': _described(schemas.STRING, 'number, text, boolean or list.'),
    'values': {'type': 'array', 'description': 'Some that were seen.'},
    'hidden': _described(_FLAG, 'Whether only administrators see it.')})
PROPERTIES_ANSWER = _object({'properties': schemas.array(PROPERTY)})
PROPERTY_ANSWER = _object({'property': PROPERTY})
CHANGE_PROPERTY = _object({'property': _object(
    {'hidden': _FLAG}, closed=True)}, closed=True)

HOSTS_QUERY = _object({}, {
    'limit': _described(schemas.LIMIT, 'The size of a page.'),
    'marker': _described(schemas.TEXT, 'The last host of the page before.'),
}, closed=True)
BOOKING = _object({
    'id': schemas.UUID, 'project_id': schemas.STRING,
    'status': schemas.STRING, 'start_at': schemas.TIME,
    'end_at': schemas.TIME})
HOST = _object({
    'name': schemas.STRING,
    'service_host': schemas.STRING,
    'state': schemas.STRING,
    'status': schemas.STRING,
    'reservable': _FLAG,
    'vacant': _described(_FLAG, 'Whether nothing but preemptible servers '
                                'runs there.'),
    'running_servers': schemas.COUNT,
    'flops_per_watt': {'type': ['number', 'null']},
    'properties': {'type': 'object'},
    'extra': _described({'type': 'object'},
                        'Those of properties that were set here.'),
    'reservations': schemas.array(BOOKING, 'The open ones, by their start.'),
})
HOSTS_ANSWER = schemas.listing('hosts', HOST)
HOST_ANSWER = _object({'host': HOST})

_SCALAR = {'anyOf': [schemas.TEXT, _NUMBER, _FLAG]}
CHANGE_HOST = schemas.wished('host', {
    'reservable': {'type': ['boolean', 'null'], 'description':
                   'Whether it can be reserved; null as the option '
                   'reservable_default says.'},
    'extra': {
        'type': 'object', 'maxProperties': _MAX_EXTRA,
        'propertyNames': {'pattern': '^[A-Za-z_][A-Za-z0-9_.:-]*$',
                          'maxLength': 255},
        'additionalProperties': {'anyOf': [
            *_SCALAR['anyOf'], {'type': 'null'},
            schemas.array(_SCALAR, maxItems=_MAX_EXTRA)]},
        'description': 'Properties to be set, or unset if null. Others '
                       'stay.'}}, minProperties=1)

_LIMIT = {'type': 'integer', 'minimum': -1, 'maximum': _MAX}
LIMITS = {
    'max_reservations': _described(_LIMIT, 'How many at a time.'),
    'max_hosts': _described(_LIMIT, 'How many hosts at any one time.'),
    'max_duration_s': _described(_LIMIT, 'How long one may last.'),
    'max_advance_s': _described(_LIMIT, 'How far ahead one may start.'),
    'max_created_per_day': _described(_LIMIT, 'How many within 24 hours.'),
}
SET_LIMITS = schemas.wished('reservation_limits', LIMITS)
LIMITS_ANSWER = _object({'reservation_limits': _object({
    'project_id': schemas.STRING,
    'limits': _object(LIMITS),
    'own': _described(_object({}, LIMITS),
                      'Those that the project has of its own.')})})
