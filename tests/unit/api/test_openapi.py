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
"""The API is what its OpenAPI document says, whatever is sent."""

import contextlib

import hypothesis
import schemathesis
from schemathesis.specs.openapi import checks

from tests.unit.api import base


class TestDocument(base.AnsweringTestCase):

    def document(self):
        return self.get('/v1/openapi.json', None)

    def test_all_operations_are_there(self):
        self.assertEqual(
            {('/', 'get'), ('/v1', 'get'), ('/v1/openapi.json', 'get'),
             ('/v1/preemptions', 'get'),
             ('/v1/preemptions/{preemption_id}', 'get'),
             ('/v1/explain', 'post'), ('/v1/simulate', 'post'),
             ('/v1/placement-chances', 'get'), ('/v1/statistics', 'get')},
            {(path, method) for path, methods in
             self.document()['paths'].items() for method in methods})

    def test_schema_holds(self):
        self.add('a', 'p', [('v1', 'p', 'spot'), ('v2', 'q', 'spot')])
        self.add('b', 'q', [('v3', 'p', 'spot')])
        schema = schemathesis.openapi.from_wsgi('/v1/openapi.json', self.app)
        for operation in schema.get_all_operations():
            for mode, token in (
                    (schemathesis.GenerationMode.POSITIVE, 'u:p'),
                    (schemathesis.GenerationMode.POSITIVE, 'admin:p'),
                    # Who may do more gets further.
                    (schemathesis.GenerationMode.NEGATIVE, 'admin:p')):
                self.fuzz(operation.ok(), mode, token)

    def fuzz(self, operation, mode, token):
        headers = {'X-Auth-Token': token,
                   'OpenStack-API-Version': 'preemption 1.0'}

        @hypothesis.settings(
            max_examples=15, deadline=None, database=None,
            derandomize=True, print_blob=False,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(case=operation.as_strategy(mode, headers=headers))
        def test(case):
            # A marker may be well-formed and still be of nothing.
            excluded = ([checks.positive_data_acceptance]
                        if 'marker' in (case.query or {}) else [])
            case.call_and_validate(headers=headers, excluded_checks=excluded)

        with self.subTest(operation=operation.label, mode=mode, token=token), \
                contextlib.suppress(hypothesis.errors.Unsatisfiable):
            # Where nothing is sent, nothing can be wrong.
            test()
