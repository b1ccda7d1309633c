# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""What requests and responses look like, as JSON Schema.

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
#: Page sizes above [preemption_api]max_limit are cut down to it.
LIMIT = {'type': 'integer', 'minimum': 1, 'maximum': 2 ** 31 - 1}
#: Of one question.
MAX_FLAVORS = 50


def _described(schema, description):
    return {**schema, 'description': description}


def _object(required, optional=None, closed=False):
    schema = {'type': 'object', 'required': list(required),
              'properties': {**required, **(optional or {})}}
    if closed:
        schema['additionalProperties'] = False
    return schema


_SINCE = _described(TIME, 'The earliest time. UTC if no offset is given.')
_UNTIL = _described(TIME, 'The time before which they are. UTC if no offset '
                          'is given.')

LIST_QUERY = _object({}, {
    'server_id': _described(UUID, 'Placed, or a victim.'),
    'victim_id': _described(UUID, 'A victim.'),
    'flavor': _described(TEXT, 'The name of the flavor of a victim.'),
    'status': _described(STATUS, 'Of the preemption. "refused" is for '
                                 'administrators.'),
    'since': _SINCE,
    'until': _UNTIL,
    'host': _described(TEXT, 'For administrators.'),
    'project_id': _described(TEXT, 'With a side in it. For administrators.'),
    'all_projects': {'type': 'boolean', 'description':
                     'Of all projects. For administrators.'},
    'limit': _described(LIMIT, 'The size of a page.'),
    'marker': _described(UUID, 'The last preemption of the page before.'),
}, closed=True)

STATISTICS_QUERY = _object({}, {'since': _SINCE, 'until': _UNTIL},
                           closed=True)

CHANCES_QUERY = _object({
    'flavor': {'type': 'array', 'items': TEXT, 'minItems': 1,
               'maxItems': MAX_FLAVORS,
               'description': 'Id or name; may be given several times.'},
}, {
    'availability_zone': _described(TEXT, 'All of them if it is missing.'),
}, closed=True)

EXPLAIN = _object({'explain': _object({
    'flavor': _described(TEXT, 'Id or name.'),
}, {
    'availability_zone': TEXT,
    'host': _described(TEXT, 'For administrators.'),
}, closed=True)}, closed=True)

SIMULATE = _object({'simulate': _object({
    'server_id': _described(UUID, 'A preemptible server.'),
}, {'reason': TEXT}, closed=True)}, closed=True)

_STRING = {'type': 'string'}
_COUNT = {'type': 'integer', 'minimum': 0}
_COST_US = {'type': 'integer', 'description': 'Cost, in microseconds.'}
_NULLABLE = {'type': ['string', 'null']}
_COUNTS = {'type': 'object', 'additionalProperties': _COUNT}
_LINKS = {'type': 'array', 'items': _object(
    {'rel': _STRING, 'href': _STRING})}

PREEMPTION = _object({
    'id': UUID,
    'created_at': TIME,
    'updated_at': TIME,
    'status': _STRING,
    'operation': _described(_STRING, 'Why: create, resize, ..., or '
                            'maximum_runtime, headroom, reservation, '
                            'simulate, repair.'),
    'server': {
        'type': ['object', 'null'],
        'description': 'The server that was placed, null if it is of another '
                       'project or if nobody took the space.',
        'properties': {'id': _STRING, 'project_id': _STRING,
                       'user_id': _STRING, 'flavor': _STRING}},
    'victims': {
        'type': 'array',
        'description': 'The servers that gave way, those of the project.',
        'items': _object({
            'server_id': _STRING, 'project_id': _STRING, 'user_id': _STRING,
            'flavor': _STRING, 'status': _STRING, 'cost_us': _COST_US,
            'action': _STRING, 'notice_s': _COUNT, 'deadline': _NULLABLE,
            'ended_at': _NULLABLE, 'restore': {'type': 'boolean'}})},
}, {
    'request_id': _STRING,
    'host': _STRING,
    'cost_us': _COST_US,
    'reason': _STRING,
    'record': {'type': 'object', 'description':
               'How it was decided; alternatives are for administrators.'},
})

PREEMPTIONS_ANSWER = _object(
    {'preemptions': {'type': 'array', 'items': PREEMPTION}},
    {'preemptions_links': _LINKS})
PREEMPTION_ANSWER = _object({'preemption': PREEMPTION})

EXPLAIN_ANSWER = _object({'explain': _object({
    'outcome': {'type': 'string',
                'enum': ['free', 'preempts', 'no_valid_host']},
    'victim_count': _COUNT,
    'victims': {
        'type': 'array',
        'description': 'Who would end, of the servers of the project.',
        'items': _object({
            'server_id': _STRING, 'project_id': _STRING, 'flavor': _STRING,
            'cost_us': _COST_US})},
}, {
    'host': _NULLABLE,
    'cost_us': _COST_US,
    'reason': _STRING,
    'considered': {'type': 'array', 'items': _object({
        'host': _STRING, 'node': _STRING, 'cost_us': _COST_US,
        'victims': {'type': 'array', 'items': _STRING}})},
})})

SIMULATE_ANSWER = _object({'preemption': _object({'id': _STRING})})

CHANCES_ANSWER = _object({'placement_chances': {
    'type': 'array', 'items': _object({
        'flavor': _STRING, 'availability_zone': _NULLABLE,
        'preemptible': _described(
            _COUNT, 'As many preemptible servers would fit now.'),
        'normal': _described(
            _COUNT, 'As many normal servers, who may preempt.')})}})

_NUMBERS = {
    'preemptions': _COUNT,
    'preemptions_by_status': _COUNTS,
    'victims': _COUNT,
    'victims_by_status': _COUNTS,
    'servers_placed': _COUNT,
    'mean_lifetime_s': {'type': ['number', 'null'], 'description':
                        'Of the victims; null if it is not known.'},
}
STATISTICS_ANSWER = _object({'statistics': _object({
    'since': _NULLABLE, 'until': _NULLABLE, 'total': _object(_NUMBERS),
    'flavors': {'type': 'array', 'items': _object(
        {'flavor': _STRING, **_NUMBERS})}})})

_VERSION = _object({
    'id': _STRING, 'status': _STRING, 'min_version': _STRING,
    'max_version': _STRING, 'links': _LINKS})
VERSIONS_ANSWER = _object(
    {'versions': {'type': 'array', 'items': _VERSION}})
VERSION_ANSWER = _object({'version': _VERSION})

ERROR = _object({'error': _object({
    'code': {'type': 'integer'}, 'title': _STRING, 'message': _STRING})})
