# SPDX-License-Identifier: Apache-2.0
"""Tests of the rules that all resources share."""

import io
import json
from unittest import mock

from keystoneauth1 import fixture as ks_fixture
from keystonemiddleware import fixture as auth_fixture
from oslo_db import exception as db_exc
import webob

from nova_preempt import exceptions
from nova_preempt.api import application_factory
from nova_preempt.api import http_errors
from nova_preempt.api import middleware_pipeline
from nova_preempt.conf import energy
from nova_preempt.db import connection
from nova_preempt.db import preemption_queries
from tests import processes
from tests.unit.api import base
from tests.unit.api import server

VERSION = 'OpenStack-API-Version'
UUID = base.make_uuid('x')


class TestVersions(base.ApiTestCase):

    def test_documents_need_no_token(self):
        version = {
            'id': 'v1.0', 'status': 'CURRENT', 'min_version': '1.0',
            'max_version': '1.10',
            'links': [{'rel': 'self', 'href': 'http://localhost/v1/'}]}
        for path in ('/', ''):
            self.assertEqual({'versions': [version]}, self.get(path, None))
        for path in ('/v1', '/v1/'):
            self.assertEqual({'version': version}, self.get(path, None))

    def test_behind_a_proxy(self):
        self.conf.set_override('enable_proxy_headers_parsing', True,
                               'oslo_middleware')
        # Apache's mod_proxy_uwsgi has the slash where one asks for it.
        for prefix in ('/preemption', '/preemption/'):
            answer = self.get('/v1', None, headers={
                'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'cloud',
                'X-Forwarded-Prefix': prefix})
            self.assertEqual('https://cloud/preemption/v1/',
                             answer['version']['links'][0]['href'])

    def version(self, version, code):
        response = self.request('/v1/preemptions', headers={VERSION: version})
        self.checked(response, code)
        self.assertEqual(VERSION, response.headers['Vary'])
        return response

    def test_microversions(self):
        for version, answered in (
                ('preemption 1.0', '1.0'), ('preemption 1.1', '1.1'),
                ('preemption latest', '1.10'), ('compute 9.9', '1.0'),
                ('compute 2.1, preemption 1.0', '1.0'), ('', '1.0')):
            self.assertEqual(
                f'preemption {answered}',
                self.version(version, 200).headers[VERSION], version)
        for version in ('preemption 1.11', 'preemption 0.9', 'preemption 2.0'):
            error = self.version(version, 406).json['error']
            self.assertEqual(('1.0', '1.10'), (error['min_version'],
                                              error['max_version']))
        for version in ('preemption 1', 'preemption x', 'preemption 1.x'):
            self.version(version, 400)

    def test_errors_have_one_too(self):
        response = self.request('/v1/preemptions/x')
        self.assertEqual('preemption 1.0', response.headers[VERSION])


class TestErrors(base.ApiTestCase):

    def test_unknown_path(self):
        for path in ('/v2', '/v1/preemption', '/v1/preemptions/a/b',
                     '/%ff', '/v1//preemptions', '/v1/%00', '/v1%0A',
                     '/v1/preemptions/%0A', '/v1/preemptions%0A'):
            self.get(path, code=404)

    def test_a_url_in_another_encoding_is_refused(self):
        for url, code in (('/v1/%ff', 404), ('/v1/preemptions/%ff', 404),
                          ('/v1/preemptions?limit=%ff', 400),
                          ('/v1/preemptions?%ff=1', 400)):
            self.get(url, code=code)

    def test_a_fault_on_a_path_in_another_encoding_is_an_error(self):
        app = http_errors.middleware(mock.Mock(side_effect=KeyError))
        answer = webob.Request.blank('/%ff').get_response(app)
        self.assertEqual(500, answer.status_int)

    def test_method(self):
        for path, method, allowed in (
                ('/', 'POST', 'GET, HEAD'), ('/v1', 'DELETE', 'GET, HEAD'),
                ('/v1/preemptions', 'POST', 'GET, HEAD'),
                (f'/v1/preemptions/{UUID}', 'DELETE', 'GET, HEAD'),
                ('/v1/explain', 'GET', 'POST'),
                ('/v1/simulate', 'HEAD', 'POST'),
                ('/v1/statistics', 'TRACE', 'GET, HEAD')):
            response = self.request(path, method)
            self.assertEqual((405, allowed), (
                response.status_int, response.headers['Allow']), path)

    def test_head(self):
        response = self.request('/v1/preemptions', 'HEAD')
        self.assertEqual((200, b''), (response.status_int, response.body))

    def test_content_type(self):
        for content_type in ('', 'text/plain', 'application/xml',
                             'application/x-www-form-urlencoded', 'é'):
            self.post('/v1/explain', {}, code=415, content_type=content_type)
        self.post('/v1/explain', {}, code=400,
                  content_type='application/json; charset=utf-8')

    def test_body_that_is_too_large(self):
        body = json.dumps({'explain': {'flavor': 'x' * 200000}}).encode()
        self.post('/v1/explain', body, code=413)
        response = self.request(
            '/v1/explain', 'POST', body=body, content_type='application/json',
            headers={'Transfer-Encoding': 'chunked'},
            environ={'wsgi.input_terminated': True, 'CONTENT_LENGTH': None})
        self.assertIn(response.status_int, (400, 413))

    def test_body_that_ends_early(self):
        # As servers say that whoever sends it has gone.
        for error in (OSError('read'), ConnectionResetError(), TimeoutError(),
                      webob.request.DisconnectionError()):
            body = mock.Mock(read=mock.Mock(side_effect=error))
            self.assertIn('Content-Length', self.aborted(body))
        self.assertIn('Content-Length', self.aborted(io.BytesIO(b'{}')))

    def aborted(self, body):
        response = self.request(
            '/v1/explain', 'POST', content_type='application/json',
            environ={'wsgi.input': body, 'CONTENT_LENGTH': '100'})
        return self.checked(response, 400)['error']['message']

    def test_trouble_with_the_database(self):
        for error, code in ((db_exc.DBConnectionError('secret'), 503),
                            (connection.PoolExhausted('secret'), 503),
                            (RuntimeError('secret'), 500)):
            with mock.patch.object(preemption_queries, 'get_preemptions',
                                   side_effect=error):
                answer = self.get('/v1/preemptions', code=code)
            self.assertNotIn('secret', str(answer))

    def test_health(self):
        response = self.request('/healthcheck', token=None)
        self.assertEqual(200, response.status_int)

    def test_token(self):
        for token in (None, '', 'u', 'u:', ':p'):
            self.get('/v1/preemptions', token, 401)

    def test_headers_do_not_make_an_administrator(self):
        self.get('/v1/preemptions?all_projects=true', code=403,
                 headers={'X-Roles': 'admin', 'X-Is-Admin-Project': 'True'})


class TestKeystone(base.AnsweringTestCase):

    options = ('[keystone_authtoken]\nauth_type = password\n'
               'auth_url = http://keystone\n'
               'www_authenticate_uri = http://keystone\n')

    def setUp(self):
        self.auth = auth_fixture.AuthTokenFixture()
        self.auth.setUp()
        self.addCleanup(self.auth.cleanUp)
        super().setUp()

    def add_token(self, name, *roles, **scope):
        token = ks_fixture.V3Token(user_id='u', project_id='p')
        if scope:
            token = ks_fixture.V3Token(user_id='u', **scope)
        for role in roles:
            token.add_role(role)
        self.auth.add_token(token, name)

    def test_roles(self):
        self.add_token('reader', 'reader')
        self.add_token('member', 'reader', 'member')
        self.add_token('admin', 'reader', 'member', 'admin')
        self.add_token('none')
        roles = ('reader', 'member', 'admin')
        self.add_token('domain', *roles, domain_id='d')
        self.add_token('unscoped', *roles, user_name='u')
        self.add_token('system', *roles, user_name='u')
        self.auth._token_data['system'].set_system_scope()
        body = {'explain': {'flavor': 'x'}}
        for token, listed, explained, everything in (
                ('reader', 200, 403, 403), ('member', 200, 200, 403),
                ('admin', 200, 200, 200), ('none', 403, 403, 403),
                ('domain', 403, 403, 403), ('unscoped', 403, 403, 403),
                ('system', 403, 403, 403)):
            for path in ('preemptions', 'statistics',
                         'placement-chances?flavor=x'):
                self.get(f'/v1/{path}', token, listed)
            self.post('/v1/explain', body, token, explained)
            self.get('/v1/preemptions?all_projects=true', token, everything)
        self.post('/v1/simulate', {'simulate': {'server_id': UUID}},
                  'reader', 403)

    def test_roles_in_reservations(self):
        self.microversion = '1.1'
        self.add_token('reader', 'reader')
        self.add_token('member', 'reader', 'member')
        self.add_token('admin', 'reader', 'member', 'admin')
        self.inventory.add('host1')
        path = '/v1/reservations'
        body = {'reservation': {'duration': 60}}
        for token, read, asked, everything in (
                ('reader', 200, 403, 403), ('member', 200, 200, 403),
                ('admin', 200, 200, 200)):
            self.get(path, token, read)
            self.get('/v1/properties', token, read)
            self.get('/v1/reservation-limits/p', token, read)
            self.post(f'{path}/preview', body, token, asked)
            self.get(f'{path}?all_projects=true', token, everything)
            self.get('/v1/hosts', token, everything)
            self.get('/v1/reservation-limits/q', token, everything)
        self.post(path, body, 'reader', 403)
        made = self.post(path, body, 'member', 201)['reservation']
        path = f'{path}/{made["id"]}'
        self.get(path, 'reader')
        self.patch(path, {'reservation': {'name': 'x'}}, 'reader', 403)
        self.delete(path, 'reader', 403)
        self.patch(path, {'reservation': {'name': 'x'}}, 'member')
        self.delete(path, 'member')

    def test_a_service_may_set_figures_alone(self):
        """The credential of the benchmark, which is on each compute."""
        self.microversion = '1.3'
        self.add_token('service', 'service')
        self.inventory.add('host1')
        path = '/v1/energy/hosts/host1/figures'
        self.put(path, {'figures': {'watts': 400}}, 'service')
        self.delete(path, 'service')
        for path in ('energy', 'energy/hosts', 'energy/report', 'preemptions',
                     'statistics', 'placement-chances?flavor=x', 'pauses',
                     'reservations', 'properties', 'hosts', 'hosts/host1',
                     'reservation-limits/p'):
            self.get(f'/v1/{path}', 'service', 403)
        for path, body in (
                ('explain', {'explain': {'flavor': 'x'}}),
                ('simulate', {'simulate': {'server_id': UUID}}),
                ('reservations', {'reservation': {'duration': 60}})):
            self.post(f'/v1/{path}', body, 'service', 403)
        self.assertEqual(403, self.request(
            '/v1/energy/hosts/host1/retry', 'POST', 'service').status_int)
        self.add_token('member', 'reader', 'member')
        self.put('/v1/energy/hosts/host1/figures', {'figures': {}}, 'member',
                 403)

    def test_nothing_about_tokens(self):
        self.conf.set_override('auth_type', None, 'keystone_authtoken')
        with self.assertRaisesRegex(exceptions.InvalidConfiguration,
                                    r'\[keystone_authtoken\]auth_type'):
            middleware_pipeline.make_app(self.conf, self.services)

    def test_without_a_good_token(self):
        for token in (None, 'bad'):
            response = self.request('/v1/preemptions', token=token)
            self.checked(response, 401)
            self.assertIn('Www-Authenticate', response.headers)
        self.get('/v1', None)

    def test_forged_headers(self):
        self.get('/v1/preemptions', None, 401, headers={
            'X-Identity-Status': 'Confirmed', 'X-Roles': 'admin',
            'X-User-Id': 'u', 'X-Project-Id': 'p'})


class TestPolicyFile(base.AnsweringTestCase):

    options = (f'{base.AnsweringTestCase.options}'
               '[oslo_policy]\npolicy_file = rules.yaml\n')

    def test_rules_of_an_operator(self):
        (self.directory / 'rules.yaml').write_text(
            'preemption:list: "!"\npreemption:show: "role:x"\n'
            'preemption:explain: "role:reader"\n')
        self.get('/v1/preemptions', code=403)
        self.get(f'/v1/preemptions/{UUID}', code=403)
        self.post('/v1/explain', {'explain': {'flavor': 'x'}})
        self.get('/v1/statistics')


class TestEntry(base.DatabaseTestCase):

    options = '[preemption_api]\nauth_strategy = noauth\n'

    def arguments(self, **environ):
        return application_factory.arguments({f'OS_NOVA_CONFIG_{name}': value
                                              for name,
                                              value in environ.items()})

    def test_where_the_configuration_is(self):
        (self.directory / 'more.conf').touch()
        here = str(self.directory)
        self.assertEqual([], application_factory.arguments({}))
        self.assertEqual([f'--config-file={here}/nova.conf'],
                         self.arguments(DIR=here))
        self.assertEqual([f'--config-file={here}/nova.conf',
                          f'--config-file={here}/more.conf'],
                         self.arguments(DIR=here,
                                        FILES='nova.conf; more.conf;'))
        for environ in ({'DIR': f'{here}/x'}, {'DIR': here, 'FILES': 'x'},
                        {'FILES': 'nova-preempt-no-such-file'}):
            with self.assertRaisesRegex(exceptions.InvalidConfiguration,
                                        'cannot be read'):
                self.arguments(**environ)

    def serve(self, *paths):
        """Return the output of a WSGI server with this configuration."""
        _code, out, err = processes.run(server.serve, paths, environment={
            'OS_NOVA_CONFIG_DIR': str(self.directory)})
        return out, err

    def test_a_server_that_names_the_directory_only(self):
        out, err = self.serve('/healthcheck', '/v1')
        self.assertIn('/healthcheck 200\n/v1 200\n', out, err)

    def test_a_server_knows_no_password_of_a_controller(self):
        hosts = self.directory / 'hosts.yaml'
        hosts.write_text('[no hosts')
        path = self.directory / 'nova.conf'
        path.write_text(f'{path.read_text()}\n[energy]\nhosts_file = {hosts}'
                        '\nredfish_password = hush\n'
                        'switch_interval_s = 31\n')
        out, err = self.serve('/v1')
        self.assertIn('/v1 200\n', out, err)
        known = out.splitlines()[-1].split()
        self.assertIn('switch_interval_s', known)
        self.assertFalse({
            opt.dest for opt in energy.OPTS if opt.secret or
            opt.dest.startswith(('redfish', 'command', 'hosts_file',
                                 'prometheus', 'ironic'))
        }.intersection(known), known)

    def test_a_server_that_lacks_something_does_not_start(self):
        path = self.directory / 'nova.conf'
        path.write_text(path.read_text().replace('noauth', 'keystone'))
        out, err = self.serve('/healthcheck')
        self.assertNotIn('/healthcheck', out)
        self.assertIn('InvalidConfiguration: [keystone_authtoken]auth_type '
                      'is not set', out + err)
