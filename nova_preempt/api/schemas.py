# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of requests and responses about preemptions.

They validate requests, and the OpenAPI document is made of them.
"""

from nova_preempt.db import queries

# No control characters, which databases and logs handle in various ways, and
# nothing above U+FFFF, which MySQL's utf8 refuses to compare.
TEXT = {'type': 'string', 'minLength': 1, 'maxLength': 255,
        'pattern': r'^[\u0020-\u007e\u00a0-\ud7ff\ue000-\uffff]+$'}
UUID = {'type': 'string', 'format': 'uuid', 'minLength': 36, 'maxLength': 36}
TIME = {'type': 'string', 'format': 'date-time', 'maxLength': 40}
STATUS = {'type': 'string', 'enum': list(queries.STATUSES)}
#: Page sizes above api.pagination.MOST_ITEMS are cut down to it.
LIMIT = {'type': 'integer', 'minimum': 1, 'maximum': 2 ** 31 - 1}
#: Of one question.
MAX_FLAVORS = 50


def described(schema, description):
    """The schema with a text for who reads it."""
    return {**schema, 'description': description}


def array(items, description='', **more):
    """The schema of a list of such items.

    :param more: further keywords
    """
    schema = {'type': 'array', 'items': items, **more}
    return described(schema, description) if description else schema


def make_object(required, optional=None, closed=False):
    """A schema; closed means that there are no other members."""
    schema = {'type': 'object', 'required': list(required),
              'properties': {**required, **(optional or {})}}
    if closed:
        schema['additionalProperties'] = False
    return schema


def wished(name, members, **more):
    """The schema of a body: an object of this name, whose members may be.

    :param more: further keywords of the object
    """
    return make_object({name: {**make_object({}, members, closed=True),
                               **more}}, closed=True)


def listing(name, item):
    """The schema of the answer to who lists items of a schema."""
    return make_object({name: array(item)}, {f'{name}_links': LINKS})


SINCE = described(TIME, 'The earliest time. UTC if no offset is given.')
UNTIL = described(TIME, 'The time before which they are. UTC if no offset '
                  'is given.')

LIST_QUERY = make_object({}, {
    'server_id': described(UUID, 'Server that was placed, or victim.'),
    'victim_id': described(UUID, 'A victim.'),
    'flavor': described(TEXT, 'The name of the flavor of a victim.'),
    'status': described(STATUS, 'Of the preemption. "refused" is for '
                                'administrators.'),
    'since': SINCE,
    'until': UNTIL,
    'host': described(TEXT, 'For administrators.'),
    'project_id': described(TEXT, 'Of a server in it. For administrators.'),
    'all_projects': {'type': 'boolean', 'description':
                     'All projects. For administrators.'},
    'limit': described(LIMIT, 'The size of a page.'),
    'marker': described(UUID, 'The last preemption of the page before.'),
}, closed=True)

STATISTICS_QUERY = make_object({}, {'since': SINCE, 'until': UNTIL},
                               closed=True)

CHANCES_QUERY = make_object({
    'flavor': array(TEXT, 'Id or name; may be given several times.',
                    minItems=1, maxItems=MAX_FLAVORS),
}, {
    'availability_zone': described(TEXT, 'All of them if it is missing.'),
}, closed=True)

EXPLAIN = make_object({'explain': make_object({
    'flavor': described(TEXT, 'Id or name.'),
}, {
    'availability_zone': TEXT,
    'host': described(TEXT, 'For administrators.'),
}, closed=True)}, closed=True)

SIMULATE = make_object({'simulate': make_object({
    'server_id': described(UUID, 'A preemptible server.'),
}, {'reason': TEXT}, closed=True)}, closed=True)

STRING = {'type': 'string'}
COUNT = {'type': 'integer', 'minimum': 0}
_COUNT_OR_NULL = {'type': ['integer', 'null'], 'minimum': 0}
_COST_US = {'type': 'integer', 'description': 'Cost, in microseconds.'}
NULLABLE = {'type': ['string', 'null']}
_COUNTS = {'type': 'object', 'additionalProperties': COUNT}
LINKS = array(make_object({'rel': STRING, 'href': STRING}))

VICTIM = make_object({
    'server_id': STRING, 'project_id': STRING, 'user_id': STRING,
    'flavor': STRING, 'status': STRING, 'cost_us': _COST_US,
    'action': STRING, 'notice_s': COUNT, 'deadline': NULLABLE,
    'ended_at': NULLABLE, 'restore': {'type': 'boolean'}})

PREEMPTION = make_object({
    'id': UUID,
    'created_at': TIME,
    'updated_at': TIME,
    'status': STRING,
    'operation': described(STRING, 'Why: create, resize, ..., or '
                           'maximum_runtime, headroom, reservation, '
                           'simulate, repair.'),
    'server': {
        'type': ['object', 'null'],
        'description': 'The server that was placed, null if it is of another '
                       'project or if nobody took the space.',
        'properties': {'id': STRING, 'project_id': STRING,
                       'user_id': STRING, 'flavor': STRING}},
    'victims': array(VICTIM, 'Victims that belong to the project.'),
}, {
    'request_id': STRING,
    'host': STRING,
    'cost_us': _COST_US,
    'reason': STRING,
    'record': {'type': 'object', 'description':
               'How it was decided; alternatives are for administrators.'},
})

PREEMPTIONS_ANSWER = listing('preemptions', PREEMPTION)
PREEMPTION_ANSWER = make_object({'preemption': PREEMPTION})

EXPLAIN_ANSWER = make_object({'explain': make_object({
    'outcome': {'type': 'string',
                'enum': ['free', 'preempts', 'no_valid_host']},
    'victim_count': COUNT,
    'victims': array(make_object({
        'server_id': STRING, 'project_id': STRING, 'flavor': STRING,
        'cost_us': _COST_US}),
        'Victims that belong to the project.'),
}, {
    'host': NULLABLE,
    'cost_us': _COST_US,
    'reason': STRING,
    'considered': array(make_object({
        'host': STRING, 'node': STRING, 'cost_us': _COST_US,
        'victims': array(STRING)})),
})})

SIMULATE_ANSWER = make_object({'preemption': make_object({'id': STRING})})

CHANCES_ANSWER = make_object({'placement_chances': array(make_object({
    'flavor': STRING, 'availability_zone': NULLABLE,
    'preemptible': described(
        _COUNT_OR_NULL, 'How many preemptible servers would fit; null if '
                        'what the flavor asks for is not known.'),
    'normal': described(_COUNT_OR_NULL, 'How many normal servers would.')}))})

_NUMBERS = {
    'preemptions': COUNT,
    'preemptions_by_status': _COUNTS,
    'victims': COUNT,
    'victims_by_status': _COUNTS,
    'servers_placed': COUNT,
    'mean_lifetime_s': {'type': ['number', 'null'], 'description':
                        'Of the victims; null if it is not known.'},
}
NUMBERS = make_object(_NUMBERS)
STATISTICS_ANSWER = make_object({'statistics': make_object({
    'since': NULLABLE, 'until': NULLABLE, 'total': NUMBERS,
    'flavors': array(make_object({'flavor': STRING, **_NUMBERS}))})})

_VERSION = make_object({
    'id': STRING, 'status': STRING, 'min_version': STRING,
    'max_version': STRING, 'links': LINKS})
VERSIONS_ANSWER = make_object({'versions': array(_VERSION)})
VERSION_ANSWER = make_object({'version': _VERSION})

ERROR = make_object({'error': make_object({
    'code': {'type': 'integer'}, 'title': STRING, 'message': STRING})})
