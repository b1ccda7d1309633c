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
"""All operations: the router serves them, the OpenAPI document lists them."""

from collections.abc import Callable
import dataclasses

from nova_preempt.api import handlers
from nova_preempt.api import openapi
from nova_preempt.api import schemas


@dataclasses.dataclass(frozen=True)
class Operation:
    """One method of one path.

    :param name: of the operation in the OpenAPI document
    :param handler: see handlers
    :param answer: the schema of what comes with the success code
    :param query: the schema of the query parameters
    :param body: the schema of the body, None if there is none
    :param path_parameters: {name: schema}
    :param errors: codes that only this operation has
    """

    method: str
    path: str
    name: str
    summary: str
    handler: Callable
    answer: dict
    query: dict = dataclasses.field(
        default_factory=lambda: {'type': 'object', 'properties': {}})
    body: dict | None = None
    path_parameters: dict = dataclasses.field(default_factory=dict)
    success: int = 200
    errors: tuple[int, ...] = ()


def _document(call):
    return openapi.document(PUBLIC, OPERATIONS, call.request.application_url)


#: Those without a token.
PUBLIC = (
    Operation('GET', '/', 'versions', 'List versions',
              handlers.versions, schemas.VERSIONS_ANSWER),
    Operation('GET', '/v1', 'version', 'Show the version',
              handlers.version, schemas.VERSION_ANSWER),
    Operation('GET', '/v1/openapi.json', 'document',
              'Show this document', _document, {'type': 'object'}),
)

#: Those with a token and a microversion.
OPERATIONS = (
    Operation('GET', '/v1/preemptions', 'list_preemptions',
              'List preemptions, newest first', handlers.list_preemptions,
              schemas.PREEMPTIONS_ANSWER, query=schemas.LIST_QUERY),
    Operation('GET', '/v1/preemptions/{preemption_id}', 'show_preemption',
              'Show a preemption with its decision record',
              handlers.show_preemption, schemas.PREEMPTION_ANSWER,
              path_parameters={'preemption_id': schemas.UUID},
              errors=(404,)),
    Operation('POST', '/v1/explain', 'explain',
              'Ask who would end for a new server; nobody does',
              handlers.explain, schemas.EXPLAIN_ANSWER,
              body=schemas.EXPLAIN, errors=(503,)),
    Operation('POST', '/v1/simulate', 'simulate',
              'End a preemptible server as a preemption would',
              handlers.simulate, schemas.SIMULATE_ANSWER,
              body=schemas.SIMULATE, success=202, errors=(404, 409, 503)),
    Operation('GET', '/v1/placement-chances', 'placement_chances',
              'Ask how many servers of flavors would find room now',
              handlers.placement_chances, schemas.CHANCES_ANSWER,
              query=schemas.CHANCES_QUERY, errors=(503,)),
    Operation('GET', '/v1/statistics', 'statistics',
              'Show numbers of preemptions by flavor of the victims',
              handlers.statistics, schemas.STATISTICS_ANSWER,
              query=schemas.STATISTICS_QUERY),
)
