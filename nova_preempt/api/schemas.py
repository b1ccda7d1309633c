# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of requests and responses about preemptions.

They validate requests, and the OpenAPI document is made of them. Descriptions
of fields are in field_descriptions.yaml.
"""

from importlib import resources

import yaml

from nova_preempt.db import preemption_queries

_DESCRIPTIONS = yaml.safe_load(resources.files('nova_preempt.api').joinpath(
    'field_descriptions.yaml').read_text(encoding='utf-8'))

# No control characters, which databases and logs treat differently, and
# nothing above U+FFFF, which MySQL's utf8 refuses to compare.
TEXT = {'type': 'string', 'minLength': 1, 'maxLength': 255,
        'pattern': r'^[\u0020-\u007e\u00a0-\ud7ff\ue000-\uffff]+$'}
UUID = {'type': 'string', 'format': 'uuid', 'minLength': 36, 'maxLength': 36}
TIME = {'type': 'string', 'format': 'date-time', 'maxLength': 40}
STATUS = {'type': 'string', 'enum': list(preemption_queries.STATUSES)}
FLAG = {'type': 'boolean'}
#: A page size; pagination.MOST_ITEMS bounds larger ones.
LIMIT = {'type': 'integer', 'minimum': 1, 'maximum': 2 ** 31 - 1}
#: The most flavors of one question.
MAX_FLAVORS = 50


def described(members, section='any'):
    """Return the schemas of members, each with its description.

    :param members: {name: schema}; a schema with a description keeps it
    :param section: of field_descriptions.yaml; its texts replace those of
        "any"
    :raises KeyError: a member has no description
    """
    texts = _DESCRIPTIONS['any'] | _DESCRIPTIONS[section]
    return {name: schema if 'description' in schema else
            {**schema, 'description': texts[name]}
            for name, schema in members.items()}


def array(items, **more):
    """Return the schema of a list of such items.

    :param more: further keywords
    """
    return {'type': 'array', 'items': items, **more}


def make_object(required, optional=None, section='any', closed=False):
    """Return the schema of an object.

    :param section: see described()
    :param closed: whether other members are refused
    """
    schema = {'type': 'object', 'required': list(required),
              'properties': described({**required, **(optional or {})},
                                      section)}
    if closed:
        schema['additionalProperties'] = False
    return schema


def make_body(name, required, optional=None, section='any', **more):
    """Return the schema of a request body that has one object.

    :param name: of the object
    :param more: further keywords of the object
    """
    return make_object({name: {
        **make_object(required, optional, section, closed=True), **more}},
        section=section, closed=True)


def make_query(parameters, section='any', required=None):
    """Return the schema of the parameters of a query."""
    return make_object(required or {}, parameters, section, closed=True)


def listing(name, item, section='any'):
    """Return the schema of a page of items."""
    return make_object({name: array(item)}, {f'{name}_links': LINKS}, section)


PERIOD = {'since': TIME, 'until': TIME}
LIST = {'project_id': TEXT, 'all_projects': FLAG, 'limit': LIMIT,
        'marker': UUID}
PERIOD_QUERY = make_query(PERIOD, 'period_query')

LIST_QUERY = make_query({
    'server_id': UUID, 'victim_id': UUID, 'flavor': TEXT, 'status': STATUS,
    **PERIOD, 'host': TEXT, **LIST}, 'preemptions_query')

CHANCES_QUERY = make_query(
    {'availability_zone': TEXT}, 'chances_query',
    {'flavor': array(TEXT, minItems=1, maxItems=MAX_FLAVORS)})

EXPLAIN = make_body('explain', {'flavor': TEXT},
                    {'availability_zone': TEXT, 'host': TEXT}, 'explain_body')

SIMULATE = make_body('simulate', {'server_id': UUID}, {'reason': TEXT},
                     'simulation_body')

STRING = {'type': 'string'}
COUNT = {'type': 'integer', 'minimum': 0}
NULLABLE = {'type': ['string', 'null']}
COUNTS = {'type': 'object', 'additionalProperties': COUNT}
_COUNT_OR_NULL = {'type': ['integer', 'null'], 'minimum': 0}
_COST_US = {'type': 'integer'}
LINKS = array(make_object({'rel': STRING, 'href': STRING}))

VICTIM = make_object({
    'server_id': STRING, 'project_id': STRING, 'user_id': STRING,
    'flavor': STRING, 'status': STRING, 'cost_us': _COST_US,
    'action': STRING, 'notice_s': COUNT, 'deadline': NULLABLE,
    'ended_at': NULLABLE, 'restore': FLAG}, section='victim')

PREEMPTION = make_object({
    'id': UUID, 'created_at': TIME, 'updated_at': TIME, 'status': STRING,
    'operation': STRING,
    'server': {**make_object({}, {
        'id': STRING, 'project_id': STRING, 'user_id': STRING,
        'flavor': STRING}, 'placed_server'), 'type': ['object', 'null']},
    'victims': array(VICTIM),
}, {
    'request_id': STRING, 'host': STRING, 'cost_us': _COST_US,
    'reason': STRING, 'record': {'type': 'object'},
}, 'preemption')

PREEMPTIONS_ANSWER = listing('preemptions', PREEMPTION, 'preemptions_list')
PREEMPTION_ANSWER = make_object({'preemption': PREEMPTION})

EXPLAIN_ANSWER = make_object({'explain': make_object({
    'outcome': {'type': 'string',
                'enum': ['free', 'preempts', 'no_valid_host']},
    'victim_count': COUNT,
    'victims': array(make_object({
        'server_id': STRING, 'project_id': STRING, 'flavor': STRING,
        'cost_us': _COST_US}, section='victim')),
}, {
    'host': NULLABLE, 'cost_us': _COST_US, 'reason': STRING,
    'considered': array(make_object({
        'host': STRING, 'node': STRING, 'cost_us': _COST_US,
        'victims': array(STRING)}, section='considered_host')),
}, 'explanation')})

SIMULATE_ANSWER = make_object({
    'preemption': make_object({'id': STRING}, section='preemption')})

CHANCE = make_object({
    'flavor': STRING, 'availability_zone': NULLABLE,
    'preemptible': _COUNT_OR_NULL, 'normal': _COUNT_OR_NULL})
CHANCES_ANSWER = make_object({'placement_chances': array(CHANCE)})

NUMBERS = make_object({
    'preemptions': COUNT, 'preemptions_by_status': COUNTS, 'victims': COUNT,
    'victims_by_status': COUNTS, 'servers_placed': COUNT,
    'mean_lifetime_s': {'type': ['number', 'null']},
}, section='preemption_statistics')
STATISTICS_ANSWER = make_object({'statistics': make_object({
    'since': NULLABLE, 'until': NULLABLE, 'total': NUMBERS,
    'flavors': array(make_object({'flavor': STRING, **NUMBERS['properties']}))
}, section='preemption_statistics')})

_VERSION = make_object({
    'id': STRING, 'status': STRING, 'min_version': STRING,
    'max_version': STRING, 'links': LINKS}, section='api_version')
VERSIONS_ANSWER = make_object({'versions': array(_VERSION)})
VERSION_ANSWER = make_object({'version': _VERSION})

ERROR = make_object({'error': make_object({
    'code': {'type': 'integer'}, 'title': STRING, 'message': STRING})})
