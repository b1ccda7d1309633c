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

from nova_preempt.api import backlog
from nova_preempt.api import backlog_numbers
from nova_preempt.api import backlog_plan
from nova_preempt.api import backlog_schemas
from nova_preempt.api import classes
from nova_preempt.api import energy
from nova_preempt.api import energy_schemas
from nova_preempt.api import handlers
from nova_preempt.api import openapi
from nova_preempt.api import pauses
from nova_preempt.api import reservable
from nova_preempt.api import reservation_schemas
from nova_preempt.api import reservations
from nova_preempt.api import schemas


@dataclasses.dataclass(frozen=True)
class Operation:
    """One method of one path.

    :param name: of the operation in the OpenAPI document
    :param handler: see handlers
    :param answer: the schema of what comes with the success code, None if
        nothing does
    :param query: the schema of the query parameters
    :param body: the schema of the body, None if there is none
    :param path_parameters: {name: schema}
    :param errors: codes that only this operation has
    :param since: the microversion that brought it, None if there has always
        been one
    :param asks: whether a POST only asks, and changes nothing
    """

    method: str
    path: str
    name: str
    summary: str
    handler: Callable
    answer: dict | None
    query: dict = dataclasses.field(
        default_factory=lambda: {'type': 'object', 'properties': {}})
    body: dict | None = None
    path_parameters: dict = dataclasses.field(default_factory=dict)
    success: int = 200
    errors: tuple[int, ...] = ()
    since: str | None = None
    asks: bool = False

    @property
    def changes(self):
        """Whether something is different afterwards."""
        return self.method not in ('GET', 'HEAD') and not self.asks


def _document(call):
    return openapi.document(PUBLIC, OPERATIONS, call.request.application_url)


_RESERVATION = '/v1/reservations/{reservation_id}'
_RESERVATION_ID = {'reservation_id': schemas.UUID}
_LIMITS = '/v1/reservation-limits/{project_id}'
_PROJECT_ID = {'project_id': schemas.TEXT}
_NAME = {'name': schemas.TEXT}
_REQUEST = '/v1/requests/{request_id}'
_REQUEST_ID = {'request_id': schemas.UUID}
_FIGURES = '/v1/energy/hosts/{name}/figures'

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
              body=schemas.EXPLAIN, errors=(429, 503), asks=True),
    Operation('POST', '/v1/simulate', 'simulate',
              'End a preemptible server as a preemption would',
              handlers.simulate, schemas.SIMULATE_ANSWER,
              body=schemas.SIMULATE, success=202, errors=(404, 409, 503)),
    Operation('GET', '/v1/placement-chances', 'placement_chances',
              'Ask how many servers of flavors would find room now',
              handlers.placement_chances, schemas.CHANCES_ANSWER,
              query=schemas.CHANCES_QUERY, errors=(429, 503)),
    Operation('GET', '/v1/statistics', 'statistics',
              'Show numbers of preemptions by flavor of the victims',
              handlers.statistics, schemas.STATISTICS_ANSWER,
              query=schemas.STATISTICS_QUERY),
    Operation('GET', '/v1/properties', 'list_properties',
              'List the properties of hosts that can be asked for',
              reservable.list_properties,
              reservation_schemas.PROPERTIES_ANSWER, errors=(503,),
              since='1.1'),
    Operation('PATCH', '/v1/properties/{name}', 'update_property',
              'Hide a property of hosts, or show it',
              reservable.update_property, reservation_schemas.PROPERTY_ANSWER,
              body=reservation_schemas.CHANGE_PROPERTY,
              path_parameters=_NAME, errors=(503,), since='1.1'),
    Operation('GET', '/v1/reservations', 'list_reservations',
              'List reservations, newest first',
              reservations.list_reservations,
              reservation_schemas.RESERVATIONS_ANSWER,
              query=reservation_schemas.LIST_QUERY, since='1.1'),
    Operation('POST', '/v1/reservations', 'create_reservation',
              'Reserve hosts at the earliest time that is possible',
              reservations.create_reservation,
              reservation_schemas.RESERVATION_ANSWER,
              body=reservation_schemas.CREATE, success=201,
              errors=(409, 503), since='1.1'),
    Operation('POST', '/v1/reservations/preview', 'preview_reservation',
              'Ask when and where hosts could be reserved; none are',
              reservations.preview_reservation,
              reservation_schemas.PREVIEW_ANSWER,
              body=reservation_schemas.CREATE, errors=(503,), since='1.1',
              asks=True),
    Operation('GET', _RESERVATION, 'show_reservation',
              'Show a reservation with its hosts',
              reservations.show_reservation,
              reservation_schemas.RESERVATION_ANSWER,
              path_parameters=_RESERVATION_ID, since='1.1'),
    Operation('PATCH', _RESERVATION, 'update_reservation',
              'Change a reservation, or let it end earlier or later',
              reservations.update_reservation,
              reservation_schemas.RESERVATION_ANSWER,
              body=reservation_schemas.CHANGE,
              path_parameters=_RESERVATION_ID, errors=(409,), since='1.1'),
    Operation('DELETE', _RESERVATION, 'delete_reservation',
              'Cancel a reservation; one that is under way ends now',
              reservations.delete_reservation, None, success=204,
              path_parameters=_RESERVATION_ID, errors=(409,), since='1.1'),
    Operation('GET', '/v1/hosts', 'list_hosts',
              'List hosts and their reservations', reservable.list_hosts,
              reservation_schemas.HOSTS_ANSWER,
              query=reservation_schemas.HOSTS_QUERY, errors=(503,),
              since='1.1'),
    Operation('GET', '/v1/hosts/{name}', 'show_host',
              'Show a host and its reservations', reservable.show_host,
              reservation_schemas.HOST_ANSWER, path_parameters=_NAME,
              errors=(503,), since='1.1'),
    Operation('PATCH', '/v1/hosts/{name}', 'update_host',
              'Say whether a host can be reserved, and what it has',
              reservable.update_host, reservation_schemas.HOST_ANSWER,
              body=reservation_schemas.CHANGE_HOST, path_parameters=_NAME,
              errors=(503,), since='1.1'),
    Operation('GET', _LIMITS, 'show_reservation_limits',
              'Show how much a project may reserve', reservable.show_limits,
              reservation_schemas.LIMITS_ANSWER, path_parameters=_PROJECT_ID,
              since='1.1'),
    Operation('PUT', _LIMITS, 'set_reservation_limits',
              'Give a project limits of its own', reservable.set_limits,
              reservation_schemas.LIMITS_ANSWER,
              body=reservation_schemas.SET_LIMITS,
              path_parameters=_PROJECT_ID, since='1.1'),
    Operation('DELETE', _LIMITS, 'delete_reservation_limits',
              "Take a project's own limits from it", reservable.delete_limits,
              None, path_parameters=_PROJECT_ID, success=204, since='1.1'),
    Operation('GET', '/v1/pauses', 'list_pauses',
              'List what is stopped for now', pauses.list_pauses,
              pauses.PAUSES_ANSWER, since='1.2'),
    Operation('PUT', '/v1/pauses/{what}', 'pause',
              'Stop preemption, reservations, power control or the backlog '
              'for now',
              pauses.pause, pauses.PAUSE_ANSWER, body=pauses.PAUSE,
              path_parameters=pauses.PATH, since='1.2'),
    Operation('DELETE', '/v1/pauses/{what}', 'resume',
              'Go on with what was stopped', pauses.resume, None,
              success=204, path_parameters=pauses.PATH, since='1.2'),
    Operation('GET', '/v1/energy', 'show_energy',
              'Show what the cloud draws, and what was saved', energy.show,
              energy_schemas.ENERGY_ANSWER, query=energy_schemas.INTERVAL,
              since='1.1'),
    Operation('GET', '/v1/energy/hosts', 'list_energy_hosts',
              'List hosts with their power states and figures',
              energy.list_hosts, energy_schemas.HOSTS_ANSWER, since='1.1'),
    Operation('PUT', _FIGURES, 'set_energy_figures',
              'Say what a host delivers and draws', energy.set_figures,
              energy_schemas.FIGURES_ANSWER, body=energy_schemas.FIGURES,
              path_parameters=_NAME, since='1.1'),
    Operation('DELETE', _FIGURES, 'delete_energy_figures',
              'Forget what a host delivers and draws', energy.delete_figures,
              None, success=204, path_parameters=_NAME, since='1.1'),
    Operation('POST', '/v1/energy/hosts/{name}/retry', 'retry_energy_host',
              'Have a host booted again that has failed', energy.retry, None,
              success=202, path_parameters=_NAME, errors=(409,),
              since='1.1'),
    Operation('GET', '/v1/energy/report', 'report_energy',
              'Show what was drawn and saved over time', energy.report,
              energy_schemas.REPORT_ANSWER, query=energy_schemas.INTERVAL,
              since='1.1'),
    Operation('GET', '/v1/requests', 'list_requests',
              'List requests for servers, newest first',
              backlog.list_requests, backlog_schemas.REQUESTS_ANSWER,
              query=backlog_schemas.LIST_QUERY, since='1.3'),
    Operation('POST', '/v1/requests', 'create_request',
              'Leave a request for servers that start when there is room',
              backlog.create_request, backlog_schemas.REQUEST_ANSWER,
              body=backlog_schemas.CREATE, success=201, errors=(503,),
              since='1.3'),
    Operation('GET', _REQUEST, 'show_request',
              'Show a request with its servers, and why it waits',
              backlog.show_request, backlog_schemas.REQUEST_ANSWER,
              path_parameters=_REQUEST_ID, since='1.3'),
    Operation('PATCH', _REQUEST, 'update_request', 'Change a request',
              backlog.update_request, backlog_schemas.REQUEST_ANSWER,
              body=backlog_schemas.CHANGE, path_parameters=_REQUEST_ID,
              errors=(409,), since='1.3'),
    Operation('DELETE', _REQUEST, 'delete_request',
              'Give a request up, and its servers if that is asked for',
              backlog.delete_request, None,
              query=backlog_schemas.DELETE_QUERY, success=204,
              path_parameters=_REQUEST_ID, errors=(409,), since='1.3'),
    Operation('GET', '/v1/requests-statistics', 'requests_statistics',
              'Show numbers of requests, and how long they waited',
              backlog_numbers.statistics, backlog_numbers.STATISTICS_ANSWER,
              query=backlog_numbers.STATISTICS_QUERY, since='1.3'),
    Operation('GET', '/v1/requests-report', 'requests_report',
              'Show how much the requests of each class ran over time',
              backlog_numbers.report, backlog_numbers.REPORT_ANSWER,
              query=backlog_numbers.REPORT_QUERY, since='1.3'),
    Operation('GET', '/v1/backlog-plan', 'show_backlog_plan',
              'Show which requests would start now, and on which hosts',
              backlog_plan.show, backlog_plan.ANSWER, errors=(503,),
              since='1.4'),
    Operation('GET', '/v1/classes', 'list_classes',
              'List the classes of service, the most important first',
              classes.list_classes, classes.ANSWER, since=classes.SINCE),
)
