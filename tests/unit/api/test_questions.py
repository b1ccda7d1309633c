# SPDX-License-Identifier: Apache-2.0
"""Tests of operations that the scheduler and the engine answer."""

import oslo_messaging as messaging

from tests.unit.api import base
from tests.unit.api.base import make_uuid

ADMIN = 'admin:z'


class TestBound(base.AnsweringTestCase):
    """The scheduler limits the queries of a project."""

    chances = '/v1/placement-chances?flavor='

    def test_a_project_may_ask_again_later(self):
        for path, method, values in (
                (f'{self.chances}too-much', 'GET', {}),
                ('/v1/explain', 'POST', {
                    'body': b'{"explain": {"flavor": "too-much"}}',
                    'content_type': 'application/json'})):
            answer = self.request(path, method, **values)
            self.assertEqual(429, answer.status_int)
            self.assertEqual('17', answer.headers['Retry-After'])
            self.assertEqual('Come back later.',
                             answer.json['error']['message'])

    def test_administrators_are_not_bounded(self):
        for token in ('u:p', ADMIN):
            self.get(f'{self.chances}spot', token)
            self.post('/v1/explain', {'explain': {'flavor': 'spot'}}, token)
        self.assertEqual([True, True, False, False], self.scheduler.bounded)


class TestExplain(base.AnsweringTestCase):

    def explain(self, token='u:p', code=200, **values):
        return self.post('/v1/explain', {'explain': values}, token,
                         code).get('explain')

    def test_own_servers_only(self):
        self.assertEqual(
            {'outcome': 'preempts', 'victim_count': 3, 'victims': [
                {'server_id': make_uuid('p1'), 'project_id': 'p',
                 'flavor': 'spot', 'cost_us': 30}]},
            self.explain(flavor='m1.small', availability_zone='az1'))
        context, *arguments = self.scheduler.calls[0]
        self.assertEqual(['m1.small', 'p', 'u', 'az1', None], arguments)
        self.assertEqual(('u', 'p', False), (
            context.user_id, context.project_id, context.is_admin))
        self.assertIsNone(context.auth_token)

    def test_administrator(self):
        answer = self.explain(ADMIN, flavor='m1.small', host='host1')
        self.assertEqual(('host1', 90, 'host1 lacks 1 VCPU', 3, 3, 1), (
            answer['host'], answer['cost_us'], answer['reason'],
            answer['victim_count'], len(answer['victims']),
            len(answer['considered'])))
        self.assertEqual('host1', self.scheduler.calls[0][-1])
        self.assertTrue(self.scheduler.calls[0][0].is_admin)

    def test_request_id(self):
        """The scheduler logs the id that the user gets."""
        response = self.request('/v1/placement-chances?flavor=x')
        self.assertEqual(response.headers['X-Openstack-Request-Id'],
                         self.scheduler.calls[0][0].request_id)

    def test_no_valid_host(self):
        self.assertEqual(
            {'outcome': 'no_valid_host', 'victim_count': 0, 'victims': []},
            self.explain(flavor='huge'))
        self.assertIsNone(self.explain(ADMIN, flavor='huge')['host'])

    def test_host_is_for_administrators(self):
        self.explain(code=403, flavor='m1.small', host='host1')
        self.assertEqual([], self.scheduler.calls)

    def test_unknown_flavor(self):
        answer = self.post('/v1/explain', {'explain': {'flavor': 'unknown'}},
                           code=400)
        self.assertIn('explain.flavor', answer['error']['message'])

    def test_failure(self):
        answer = self.post('/v1/explain', {'explain': {'flavor': 'broken'}},
                           code=503)
        self.assertNotIn('secret', answer['error']['message'])
        self.assertIn('scheduler', answer['error']['message'])


class TestNobodyAnswers(base.ApiTestCase):

    options = f'{base.AnsweringTestCase.options}rpc_timeout_s = 1\n'

    def test_timeout(self):
        for answer in (
                self.post('/v1/explain', {'explain': {'flavor': 'x'}},
                          code=503),
                self.get('/v1/placement-chances?flavor=x', code=503)):
            self.assertEqual('The scheduler did not answer in time.',
                             answer['error']['message'])
        answer = self.post(
            '/v1/simulate', {'simulate': {'server_id': make_uuid('x')}},
            code=503)
        self.assertEqual('The engine did not answer in time.',
                         answer['error']['message'])


class TestStockScheduler(base.AnsweringTestCase):
    """A nova-scheduler listens to the same topic and does not know the method.
    """

    def serve(self, topic, endpoint, *more):
        endpoint.target = messaging.Target(namespace='other', version='4.0')
        return super().serve(topic, endpoint, *more)

    def test_unknown_method(self):
        self.get('/v1/placement-chances?flavor=x', code=503)


class TestChances(base.AnsweringTestCase):

    def test_zones(self):
        self.assertEqual(
            {'placement_chances': [
                {'flavor': flavor, 'availability_zone': zone,
                 'preemptible': 3, 'normal': 7}
                for flavor in ('a', 'b') for zone in ('az1', 'az2')]},
            self.get('/v1/placement-chances?flavor=a&flavor=b'))
        answer = self.get(
            '/v1/placement-chances?flavor=a&availability_zone=az2')
        self.assertEqual(1, len(answer['placement_chances']))
        self.assertEqual([(['a', 'b'], 'p', None), (['a'], 'p', 'az2')],
                         [call[1:] for call in self.scheduler.calls])

    def test_unknown_flavor(self):
        answer = self.get('/v1/placement-chances?flavor=a&flavor=unknown',
                          code=400)
        self.assertIn("'flavor'", answer['error']['message'])

    def test_flavors_are_needed_but_not_too_many(self):
        for query in ('', '?availability_zone=a', '?' + 'flavor=a&' * 51):
            answer = self.get(f'/v1/placement-chances{query}', code=400)
            self.assertIn("'flavor'", answer['error']['message'])


class TestSimulate(base.AnsweringTestCase):

    def simulate(self, name, token='u:p', code=202, **values):
        body = {'simulate': {'server_id': make_uuid(name), **values}}
        return self.post('/v1/simulate', body, token, code)

    def test_own(self):
        answer = self.simulate('p-spot', reason='a test')
        self.assertEqual({'preemption': {'id': make_uuid('simulated')}},
                         answer)
        self.assertEqual([(make_uuid('p-spot'), 'p', 'a test')],
                         [call[1:] for call in self.engine.calls])

    def test_a_server_of_another_project(self):
        for name in ('p-spot', 'unknown'):
            self.assertEqual(
                f'There is no server {make_uuid(name)}.',
                self.simulate(name, 'u:r', 404)['error']['message'])
        self.simulate('p-spot', ADMIN)
        self.assertIsNone(self.engine.calls[-1][2])

    def test_conflicts(self):
        for name, why in (
                ('p-normal', 'is not preemptible.'),
                ('p-ending', 'is already being evicted.'),
                ('p-locked', 'It is locked.')):
            message = self.simulate(name, code=409)['error']['message']
            self.assertEqual(why, message.removeprefix(
                f'Server {make_uuid(name)} '))
