# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document, made of the operations and their schemas."""

import http

from nova_preempt.api import http_errors
from nova_preempt.api import microversion
from nova_preempt.api import schemas


def document(public, operations, url):
    """The document as JSON.

    :param public: the operations without a token
    :param operations: those with one
    :param url: of the root of the API
    """
    paths = {}
    for operation in (*public, *operations):
        paths.setdefault(operation.path, {})[operation.method.lower()] = (
            _operation(operation, operation in public))
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


def _operation(operation, public):
    parameters = [
        {'name': name, 'in': 'path', 'required': True, 'schema': schema}
        for name, schema in operation.path_parameters.items()]
    parameters += [
        {'name': name, 'in': 'query', 'schema': schema,
         'required': name in operation.query.get('required', ())}
        for name, schema in operation.query['properties'].items()]
    codes = {400, *operation.errors}
    if operation.since:
        codes.add(404)
    if not public:
        parameters.append(_version_header(operation.since))
        codes |= {401, 403, 406}
    entry = {
        'operationId': operation.name,
        'summary': operation.summary,
        'parameters': parameters,
        'responses': {
            str(operation.success): _response(operation.success,
                                              operation.answer)},
    }
    if operation.body is not None:
        codes |= {413, 415}
        entry['requestBody'] = {
            'required': True,
            'content': {http_errors.JSON: {'schema': operation.body}}}
    entry['responses'].update({str(code): _response(
        code, {'$ref': '#/components/schemas/Error'})
        for code in sorted(codes)})
    if not public:
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
