# SPDX-License-Identifier: Apache-2.0

"""JSON Schemas of requests and responses about the backlog.

As JSON Schema, as in schemas.
"""

from nova_preempt.api import class_handlers
from nova_preempt.api import schemas
from nova_preempt.cloud import boot_schema
from nova_preempt.core.backlog import backlog_model

_described = schemas.described
_object = schemas.make_object

_MAX = 2 ** 31 - 1
_NUMBER = {'type': 'integer', 'minimum': 1, 'maximum': _MAX}
_FLAG = {'type': 'boolean'}
_PRIORITY = {'type': 'integer', 'minimum': 1, 'maximum': 3}
_MAX_FLAVORS = 10


def _nullable(schema):
    return {'anyOf': [schema, {'type': 'null'}]}


_PRIORITIES = _object({}, dict.fromkeys(
    ('time', 'reputation', 'cores', 'redundancy'), _PRIORITY), closed=True)

_COUNTS = {
    'count': _described(_NUMBER, 'How many servers; max_count of the body '
                                 'or 1 if it is missing.'),
    'least_count': _described(
        _NUMBER, 'How many have to start together; min_count of the '
                 'body, or else count if it is missing.'),
}
_WISHES = {
    'name': schemas.TEXT,
    'class': _described({'anyOf': [{**schemas.TEXT, 'maxLength': 64},
                                   {'type': 'string', 'maxLength': 0}]},
                        'The class of service; "" for none.'),
    'priorities': {**_nullable(_PRIORITIES), 'description':
                   '1 is best effort, 2 advanced, 3 premium; 1 where one is '
                   'missing.'},
    'not_before': _described(_nullable(schemas.TIME), 'The earliest '
                             'start. UTC if no offset is given.'),
    'not_after': _described(_nullable(schemas.TIME), 'The latest start.'),
    'longest_wait_s': _described(_nullable(_NUMBER), 'How long it waits '
                                 'at most, from when it was made.'),
    'comes_back': _described(_FLAG, 'Whether it waits again once it was '
                                    'evicted.'),
    'back_until': _described(_nullable(schemas.TIME),
                             'Until when it comes back.'),
    'most_returns': _described(_nullable(_NUMBER), 'How often it comes back '
                               'at most.'),
}

CREATE = _object({'request': _object({
    'body': {
        **_object({'server': {'type': 'object', 'properties': {
            'flavorRef': {'type': ['string', 'integer', 'null'],
                          'maxLength': 255}}}}), 'description':
        "The body of Nova's POST /servers."},
}, {
    'compute_version': {
        'type': 'string', 'maxLength': 10, 'description':
        'The microversion of Nova that the body is for; what the header '
        f'says of compute, or else {boot_schema.DEFAULT} if it is missing.'},
    'flavors': schemas.array(
        schemas.TEXT, 'Ids, in order of preference; flavorRef of the body if '
        'it is missing.', minItems=1, maxItems=_MAX_FLAVORS),
    'ladder': {**schemas.TEXT, 'maxLength': 64, 'description':
               'Of flavors, in place of flavors and counts: how many servers '
               'and of which flavor follows from the priorities when its '
               'turn comes.'},
    **_COUNTS, **_WISHES,
}, closed=True)}, closed=True)

CHANGE = schemas.wished('request', {**_COUNTS, **_WISHES}, minProperties=1)

STATUS = {'type': 'string', 'enum': list(backlog_model.STATES)}

LIST_QUERY = _object({}, {
    'status': STATUS,
    'user_id': _described(schemas.TEXT, 'Of this user.'),
    'project_id': _described(schemas.TEXT, 'For administrators.'),
    'all_projects': _described(_FLAG, 'All projects. For administrators.'),
    'limit': _described(schemas.LIMIT, 'The size of a page.'),
    'marker': _described(schemas.UUID, 'The last request of the page before.'),
}, closed=True)

DELETE_QUERY = _object({}, {
    'servers': _described(_FLAG, 'Whether its servers are deleted, too.'),
}, closed=True)

_AMOUNTS = {'type': 'object', 'additionalProperties': schemas.COUNT}
_WHOLE_NUMBER = {'type': ['integer', 'null']}

FLAVOR = _object({'id': schemas.STRING, 'name': schemas.STRING,
                  'resources': _AMOUNTS, 'preemptible': _FLAG})
SERVER = _object({'id': schemas.STRING, 'status': schemas.STRING,
                  'since': schemas.TIME},
                 {'availability': class_handlers.CLOCKS})
CHANGED = _object({'at': schemas.TIME, 'status': STATUS,
                   'reason': schemas.STRING})
_LISTED = {
    'id': schemas.UUID,
    'name': schemas.STRING,
    'project_id': schemas.STRING,
    'user_id': schemas.STRING,
    'status': STATUS,
    'reason': _described(schemas.STRING, 'Why it has this status.'),
    'created_at': schemas.TIME,
    'updated_at': schemas.TIME,
    'compute_version': schemas.STRING,
    'count': schemas.COUNT,
    'least_count': schemas.COUNT,
    'flavors': schemas.array(FLAVOR, 'In order of preference.'),
    'ladder': schemas.STRING,
    'class': schemas.STRING,
    'priorities': {'type': ['object', 'null']},
    'not_before': schemas.NULLABLE,
    'not_after': schemas.NULLABLE,
    'longest_wait_s': _WHOLE_NUMBER,
    'comes_back': _FLAG,
    'back_until': schemas.NULLABLE,
    'most_returns': _WHOLE_NUMBER,
    'returns': _described(schemas.COUNT, 'How often it came back.'),
    'waits_since': schemas.NULLABLE,
    'waits_for': {'type': 'object', 'description':
                  'Why it waits, as the last pass has found: a code, a text '
                  'and, for operators, what hosts lack.'},
    'position': _described(_WHOLE_NUMBER, 'In the order of the last pass, '
                                          'from 1.'),
    'estimate_s': _described(_WHOLE_NUMBER, 'How long it may still wait; '
                                            'null if nobody knows.'),
    'servers': schemas.array(SERVER),
}
LISTED = _object(_LISTED)
REQUEST = _object({
    **_LISTED,
    'body': _described({'type': 'object'}, "Nova's, without passwords, user "
                       'data and files, as *** in their place. Once the '
                       'request is closed only what names its servers, image, '
                       'key, zone and host is there.'),
    'history': schemas.array(CHANGED, 'The oldest first.'),
}, {'availability': class_handlers.CLOCKS,
    'promised_availability': class_handlers.SHARE})
REQUEST_ANSWER = _object({'request': REQUEST})
REQUESTS_ANSWER = schemas.listing('requests', LISTED)
