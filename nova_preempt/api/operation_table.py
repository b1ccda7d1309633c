# SPDX-License-Identifier: Apache-2.0
"""The operations of the API, and the OpenAPI document made of them."""

import http

from nova_preempt.api import backlog_handlers
from nova_preempt.api import backlog_plan_handler
from nova_preempt.api import backlog_statistics_handlers
from nova_preempt.api import energy_handlers
from nova_preempt.api import eviction_rate_handler
from nova_preempt.api import http_errors
from nova_preempt.api import microversion
from nova_preempt.api import operation
from nova_preempt.api import pause_handlers
from nova_preempt.api import preemption_handlers
from nova_preempt.api import reservable_host_handlers
from nova_preempt.api import reservation_handlers
from nova_preempt.api import schemas
from nova_preempt.api import service_class_handlers
from nova_preempt.api import status_handler
from nova_preempt.api import webhook_handlers

_MODULES = (preemption_handlers, reservable_host_handlers,
            reservation_handlers, pause_handlers, energy_handlers,
            backlog_handlers, backlog_statistics_handlers,
            backlog_plan_handler, service_class_handlers, status_handler,
            eviction_rate_handler, webhook_handlers)


@operation.serves('GET', '/v1/openapi.json', None, {'type': 'object'})
def document(call):
    """Show this document."""
    return make_document(call.request.application_url)


_ALL = [
    found for module in _MODULES for item in vars(module).values()
    if isinstance(found := getattr(item, 'operation', None),
                  operation.Operation)]

#: Operations that need no token.
PUBLIC = (preemption_handlers.versions.operation,
          preemption_handlers.version.operation, document.operation)
#: Operations that need a token and have a microversion.
OPERATIONS = tuple(item for item in _ALL if item not in PUBLIC)


def make_document(url):
    """Return the OpenAPI document as JSON.

    :param url: the root of the API
    """
    paths = {}
    for item in (*PUBLIC, *OPERATIONS):
        paths.setdefault(item.path, {})[item.method.lower()] = _describe(item)
    return {
        'openapi': '3.1.0',
        'info': {'title': 'Preemption API',
                 'description': 'Preemptions of servers in OpenStack Nova.',
                 'version': microversion.VERSIONS[-1],
                 'license': {'name': 'Apache-2.0',
                             'identifier': 'Apache-2.0'}},
        'servers': [{'url': url}],
        'paths': paths,
        'components': {
            'schemas': {'Error': schemas.ERROR},
            'securitySchemes': {'token': {
                'type': 'apiKey', 'in': 'header', 'name': 'X-Auth-Token'}}},
    }


def _describe(item):
    parameters = [
        {'name': name, 'in': 'path', 'required': True, 'schema': schema}
        for name, schema in item.path_parameters.items()]
    parameters += [
        {'name': name, 'in': 'query', 'schema': schema,
         'required': name in item.query.get('required', ())}
        for name, schema in item.query['properties'].items()]
    codes = {400, *item.errors}
    if item.since:
        codes.add(404)
    if item not in PUBLIC:
        parameters.append(_version_header(item.since))
        codes |= {401, 403, 406}
    entry = {
        'operationId': item.name,
        'summary': item.summary,
        'parameters': parameters,
        'responses': {
            str(item.success): _response(item.success, item.answer)},
    }
    if item.body is not None:
        codes |= {413, 415}
        entry['requestBody'] = {
            'required': True,
            'content': {http_errors.JSON: {'schema': item.body}}}
    entry['responses'].update({str(code): _response(
        code, {'$ref': '#/components/schemas/Error'})
        for code in sorted(codes)})
    if item not in PUBLIC:
        entry['security'] = [{'token': []}]
    return entry


def _version_header(since):
    # No enumeration: what the header says of other services is ignored.
    return {
        'name': microversion.HEADER, 'in': 'header',
        'required': since is not None,
        'description': f'A version from {since or microversion.VERSIONS[0]} '
                       f'to {microversion.VERSIONS[-1]}, or "latest".',
        'schema': {'type': 'string'},
        'example': f'{microversion.SERVICE_TYPE} {microversion.VERSIONS[-1]}'}


def _response(code, schema):
    response = {'description': http.HTTPStatus(code).phrase}
    if schema is not None:
        response['content'] = {http_errors.JSON: {'schema': schema}}
    return response
