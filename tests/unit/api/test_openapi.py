# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the API against its OpenAPI document."""

import contextlib

import ddt
import hypothesis
import schemathesis
from schemathesis.specs.openapi import checks

from nova_preempt.api import schemas
from nova_preempt.core.energy import efficiency_ranking
from tests.unit.api import base

OPERATIONS = (
    ('/', 'get'), ('/v1', 'get'), ('/v1/openapi.json', 'get'),
    ('/v1/preemptions', 'get'),
    ('/v1/preemptions/{preemption_id}', 'get'),
    ('/v1/explain', 'post'), ('/v1/simulate', 'post'),
    ('/v1/placement-chances', 'get'), ('/v1/statistics', 'get'),
    ('/v1/status', 'get'), ('/v1/eviction-rates', 'get'),
    ('/v1/properties', 'get'), ('/v1/properties/{name}', 'patch'),
    ('/v1/reservations', 'get'), ('/v1/reservations', 'post'),
    ('/v1/reservations/preview', 'post'),
    ('/v1/reservations/{reservation_id}', 'get'),
    ('/v1/reservations/{reservation_id}', 'patch'),
    ('/v1/reservations/{reservation_id}', 'delete'),
    ('/v1/hosts', 'get'), ('/v1/hosts/{name}', 'get'),
    ('/v1/hosts/{name}', 'patch'),
    ('/v1/reservation-limits/{project_id}', 'get'),
    ('/v1/reservation-limits/{project_id}', 'put'),
    ('/v1/reservation-limits/{project_id}', 'delete'),
    ('/v1/energy', 'get'), ('/v1/energy/hosts', 'get'),
    ('/v1/energy/hosts/{name}/figures', 'put'),
    ('/v1/energy/hosts/{name}/figures', 'delete'),
    ('/v1/energy/hosts/{name}/retry', 'post'),
    ('/v1/energy/report', 'get'), ('/v1/pauses', 'get'),
    ('/v1/pauses/{what}', 'put'), ('/v1/pauses/{what}', 'delete'),
    ('/v1/requests', 'get'), ('/v1/requests', 'post'),
    ('/v1/requests/{request_id}', 'get'),
    ('/v1/requests/{request_id}', 'patch'),
    ('/v1/requests/{request_id}', 'delete'),
    ('/v1/requests-statistics', 'get'), ('/v1/requests-report', 'get'),
    ('/v1/backlog-plan', 'get'), ('/v1/classes', 'get'),
    ('/v1/webhooks/{project_id}', 'get'),
    ('/v1/webhooks/{project_id}', 'put'),
    ('/v1/webhooks/{project_id}', 'delete'))


def fields(document):
    """Go through (path, schema) of all parameters and members."""
    yield from members(document['components']['schemas']['Error'], 'Error')
    for operations in document['paths'].values():
        for operation in operations.values():
            name = operation['operationId']
            for item in operation['parameters']:
                yield f'{name}?{item["name"]}', {**item['schema'], **item}
            for holder in (operation.get('requestBody', {}),
                           *operation['responses'].values()):
                for content in holder.get('content', {}).values():
                    yield from members(content['schema'], name)


def members(schema, path):
    for part in (schema, *schema.get('anyOf', ())):
        for name, inner in part.get('properties', {}).items():
            yield f'{path}.{name}', inner
            yield from members(inner, f'{path}.{name}')
        for inner in (part.get('items'), part.get('additionalProperties')):
            if isinstance(inner, dict):
                yield from members(inner, path)


class TestDocument(base.AnsweringTestCase):

    microversion = '1.10'

    def test_all_operations_are_there(self):
        document = self.get('/v1/openapi.json', None)
        self.assertEqual(sorted(OPERATIONS), sorted(
            (path, method) for path, methods in document['paths'].items()
            for method in methods))

    def test_each_field_has_a_description(self):
        """And each description describes a field."""
        found = [(path, schema.get('description')) for path, schema
                 in fields(self.get('/v1/openapi.json', None))]
        self.assertEqual([], [path for path, text in found if not text])
        written = {text for texts in schemas._DESCRIPTIONS.values()
                   for text in texts.values()}
        self.assertEqual(set(), written - {text for _path, text in found})


@ddt.ddt
class TestOperations(base.AnsweringTestCase):
    """A test for each, so that several may run at once."""

    microversion = '1.10'
    #: Of each of the three kinds of requests; tests.slow has more.
    examples = 3

    @ddt.idata(OPERATIONS)
    @ddt.unpack
    def test_schema_holds(self, path, method):
        self.add('a', 'p', [('v1', 'p', 'spot'), ('v2', 'q', 'spot')])
        self.add('b', 'q', [('v3', 'p', 'spot')])
        for number in range(3):
            self.inventory.add(f'host{number}')
        self.reservation = self.post(
            '/v1/reservations', {'reservation': {'duration': 60}},
            code=201)['reservation']['id']
        self.asked_for = self.post('/v1/requests', {'request': {'body': {
            'server': {'name': 'a', 'imageRef': self.reading.image_id,
                       'networks': 'none', 'flavorRef': 'f1'}}}},
            code=201)['request']['id']
        schema = schemathesis.openapi.from_wsgi('/v1/openapi.json', self.app)
        operation = schema[path][method]
        for mode, token in (
                (schemathesis.GenerationMode.POSITIVE, 'u:p'),
                (schemathesis.GenerationMode.POSITIVE, 'admin:p'),
                # Who may do more gets further.
                (schemathesis.GenerationMode.NEGATIVE, 'admin:p')):
            self.fuzz(operation, mode, token)

    def fuzz(self, operation, mode, token):
        headers = {'X-Auth-Token': token,
                   'OpenStack-API-Version': 'preemption 1.10'}

        @hypothesis.settings(
            max_examples=self.examples, print_blob=False,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(case=operation.as_strategy(mode, headers=headers))
        def test(case):
            if mode is schemathesis.GenerationMode.POSITIVE:
                self.name_something(case)
            # A marker may be well-formed and still be of nothing, and times
            # be in no order, and figures of no host.
            excluded = ([checks.positive_data_acceptance]
                        if 'marker' in (case.query or {}) or
                        'reservation' in str(case.body) or
                        'requests-report' in case.path or
                        # What Nova takes is not in our schema.
                        'request' in str(case.body) or
                        self.are_of_no_host(case.body) else [])
            case.call_and_validate(headers=headers, excluded_checks=excluded)

        with self.subTest(mode=mode, token=token), \
                contextlib.suppress(hypothesis.errors.Unsatisfiable):
            # Where nothing is sent, nothing can be wrong.
            test()

    def are_of_no_host(self, body):
        with contextlib.suppress(AttributeError, KeyError, TypeError):
            return efficiency_ranking.invalid_figures(
                efficiency_ranking.Figures(*(
                    body['figures'].get(name)
                    for name in ('flops', 'watts', 'idle_watts'))))
        return {}

    def name_something(self, case):
        """Use existing ids in paths."""
        if 'reservation_id' in case.path_parameters:
            case.path_parameters['reservation_id'] = self.reservation
        if 'request_id' in case.path_parameters:
            case.path_parameters['request_id'] = self.asked_for
        if 'name' in case.path_parameters:
            case.path_parameters['name'] = (
                'host0' if '/hosts/' in case.path else 'vcpus')
