# SPDX-License-Identifier: Apache-2.0
"""Look-up of names, and output for people."""

import json
from unittest import mock
import urllib.parse

from keystoneauth1 import fixture as ks_fixture

from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import preemption_queries
from nova_preempt.db import reservable_hosts
from tests.unit.api.base import make_uuid
from tests.unit.client import test_preemption_commands

SPOT = make_uuid('p-spot')
ID = '0f3b7c9d2e5a4816b7c0d1e2f3a4b5c6'


class Cloud:
    """Keystone and Nova for the lookup of names."""

    projects = {ID: 'wrf', 'p1': 'twin', 'p2': 'twin'}
    servers = {SPOT: 'work', make_uuid('x'): 'work-2'}
    #: Whether Keystone lets one look for projects.
    allowed = True

    def __init__(self, case):
        self.url = case.listen(self)
        self.token = ks_fixture.V3Token(user_id='u', project_id='p')
        self.endpoint('identity', f'{self.url}/v3')
        self.endpoint('compute', f'{self.url}/compute/v2.1')
        self.endpoint('preemption', case.url)

    def endpoint(self, kind, url):
        self.token.add_service(kind).add_standard_endpoints(
            public=url, region='here')

    def arguments(self, token):
        self.name = token
        return ['--os-auth-url', f'{self.url}/v3', '--os-username', 'u',
                '--os-password', 'x', '--os-project-name', 'p',
                '--os-user-domain-id', 'd', '--os-project-domain-id', 'd']

    def __call__(self, environ, start_response):
        query = dict(urllib.parse.parse_qsl(environ.get('QUERY_STRING')))
        code, body = self.answer(environ['PATH_INFO'], query, environ)
        start_response(code, [('X-Subject-Token', self.name),
                              ('Content-Type', 'application/json')])
        return [json.dumps(body).encode()]

    def answer(self, path, query, environ):
        if environ['REQUEST_METHOD'] == 'POST':
            return '201 Created', self.token
        if path.startswith(('/v3/projects', '/v3/users')):
            return self.project(path, query)
        if path.startswith('/compute'):
            return self.compute(path.removeprefix('/compute/v2.1'), query)
        return '200 OK', {'version': ks_fixture.V3Discovery(
            f'{self.url}/v3')}

    def compute(self, path, query):
        if path.startswith('/os-availability-zone'):
            return '200 OK', {'availabilityZoneInfo': [{'zoneName': 'az1'}]}
        if path in ('/servers', '/servers/detail'):
            return '200 OK', {'servers': [
                {'id': uuid, 'name': name}
                for uuid, name in self.servers.items()
                if query['name'] in name]}
        if path.startswith('/servers/'):
            uuid = path.removeprefix('/servers/')
            return ('200 OK', {'server': {
                'id': uuid, 'name': self.servers[uuid]}}) if (
                    uuid in self.servers) else ('404 Not Found', {})
        return '200 OK', {'version': {
            'id': 'v2.1', 'status': 'CURRENT', 'version': '2.96',
            'min_version': '2.1', 'links': [
                {'rel': 'self', 'href': f'{self.url}/compute/v2.1'}]}}

    def project(self, path, query):
        if not self.allowed:
            return '403 Forbidden', {}
        kind, _, name = path.removeprefix('/v3/').partition('/')
        if kind == 'users':
            if name:
                return '404 Not Found', {}
            return '200 OK', {'users': [{'id': 'u', 'name': 'ada'}]
                              if query['name'] == 'ada' else []}
        if name:
            return ('200 OK', {'project': {
                'id': name, 'name': self.projects.get(name)}}) if (
                name in self.projects) else ('404 Not Found', {})
        return '200 OK', {'projects': [
            {'id': project_id, 'name': name}
            for project_id, name in self.projects.items()
            if name == query['name']]}


class LookupTestCase(test_preemption_commands.ClientTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = Cloud(self)
        self.inventory.add('host1')

    def run_as(self, token, *arguments, code=0):
        return self.openstack(*arguments, code=code,
                              auth=self.cloud.arguments(token))

    def refused(self, message, *arguments, token='admin:z'):
        self.assertIn(message, self.run_as(token, *arguments, code=1))


class TestProjects(LookupTestCase):

    def set_limits(self, name):
        self.run_as('admin:z', 'reservation', 'limits', 'set', '--max-hosts',
                    '1', name)

    def test_limits_of_a_named_project(self):
        for name in ('wrf', ID):
            self.set_limits(name)
            self.assertEqual({'max_hosts': 1},
                             reservable_hosts.get_limits(self.db, ID))
            self.run_as('admin:z', 'reservation', 'limits', 'unset', name)
            self.assertEqual({}, reservable_hosts.get_limits(self.db, ID))
        self.run_as('admin:z', 'reservation', 'limits', 'show', 'wrf')

    def test_no_such_project(self):
        arguments = ('reservation', 'limits', 'set', '--max-hosts', '1')
        self.refused("There is no project 'wfr'.", *arguments, 'wfr')
        self.refused('Several projects have the name', *arguments, 'twin')
        self.cloud.allowed = False
        self.refused('use its id', *arguments, 'wrf')
        self.set_limits(ID)
        self.assertEqual({}, reservable_hosts.get_limits(self.db, 'wfr'))

    def test_lists(self):
        self.add('d', ID, [('v', 'q', 'spot')])
        for name in ('preemption', 'reservation'):
            self.refused('There is no project', name, 'list', '--project',
                         'x')
        self.assertIn(make_uuid('d'), self.run_as(
            'admin:z', 'preemption', 'list', '--project', 'wrf'))


class TestServers(LookupTestCase):

    def test_simulate_takes_a_name(self):
        self.run_as('u:p', 'preemption', 'simulate', 'work')
        self.assertEqual(SPOT, self.engine.calls[-1][1])
        self.refused("There is no server 'wor'.", 'preemption', 'simulate',
                     'wor', token='u:p')

    def test_lists(self):
        self.add('d', 'p', [('p-spot', 'p', 'spot')])
        for option in ('--victim', '--server'):
            self.assertIn(make_uuid('d'), self.run_as(
                'u:p', 'preemption', 'list', option, 'work'))

    def test_zones_and_hosts(self):
        for command in ('explain', 'chance'):
            self.refused('--availability-zone: there is no zone',
                         'preemption', command, 'x', '--availability-zone',
                         'az2')
            self.run_as('admin:z', 'preemption', command, 'x',
                        '--availability-zone', 'az1')
        self.refused('--host: there is no host', 'preemption', 'explain', 'x',
                     '--host', 'host2')
        for name in ('preemption', 'reservation'):
            self.refused('--host: there is no host', name, 'list',
                         '--all-projects', '--host', 'host2')


class TestForPeople(LookupTestCase):

    def test_seconds_and_omitted_unknown_values(self):
        uuid = self.add('d', 'p', [('v', 'p', 'spot')])
        shown = self.run_as('admin:z', 'preemption', 'show', uuid)
        self.assertIn('cost_s', shown)
        self.assertNotIn('cost_us', shown)
        listed = self.run_as('admin:z', 'preemption', 'list', '--long',
                             '--all-projects')
        for text in (shown, listed, self.run_as('u:p', 'preemption', 'list'),
                     self.run_as('u:p', 'preemption', 'stats')):
            self.assertNotIn('None', text)
        self.assertIn('cost_us', self.run_as(
            'admin:z', 'preemption', 'show', uuid, '-f', 'json'))

    def test_names_beside_ids(self):
        uuid = self.add('d', ID, [('p-spot', ID, 'spot')])
        shown = self.run_as('admin:z', 'preemption', 'show', uuid)
        self.assertIn(f'server_id: work ({SPOT})', shown)
        self.assertIn(f'project_id: wrf ({ID})', shown)
        self.assertRegex(shown, rf'\| id +\| {uuid} +\|')
        # The new server is gone.
        self.assertIn(f'id: {make_uuid("d-server")}', shown)
        self.cloud.allowed = False
        self.assertIn(f'project_id: {ID}', self.run_as(
            'admin:z', 'preemption', 'show', uuid))
        raw = json.loads(self.run_as('admin:z', 'preemption', 'show', uuid,
                                     '-f', 'json'))
        self.assertEqual(SPOT, raw['victims'][0]['server_id'])

    def test_user_by_name(self):
        arguments = ('backlog', 'request', 'list', '--user')
        self.assertIn('Nothing matches --user.',
                      self.run_as('u:p', *arguments, 'ada'))
        self.refused("There is no user 'bob'.", *arguments, 'bob')

    def test_an_empty_list_says_where_there_is_more(self):
        self.add('d', 'p', [('v', 'p', 'spot')])
        for arguments, token, told in (
                ((), 'admin:z', True), ((), 'u:q', False),
                (('--all-projects',), 'admin:z', False),
                (('-f', 'json'), 'admin:z', False)):
            text = self.run_as(token, 'preemption', 'list', *arguments)
            self.assertEqual(told, '--all-projects' in text, (token, text))

    def refused_at_once(self, command, option, value):
        """Check that the command is refused without a call."""
        with mock.patch('argparse.ArgumentParser.exit',
                        side_effect=SystemExit(2)) as leave, \
                self.assertRaises(SystemExit):
            self.run_as('admin:z', *command, option, value)
        self.assertIn(f'argument {option}: ', str(leave.call_args))

    def test_invalid_times_and_numbers(self):
        for option, value in (('--since', 'yesterday'),
                              ('--until', '2026-11-20'), ('--limit', '0'),
                              ('--limit', 'x')):
            self.refused_at_once(('preemption', 'list'), option, value)
        self.refused_at_once(('energy', 'show'), '--since', 'yesterday')

    def test_invalid_statuses(self):
        for command, known in (('preemption', preemption_queries.STATUSES),
                               ('reservation', reservation_model.STATUSES)):
            for status in ('finished', 'DONE', ''):
                self.refused_at_once((command, 'list'), '--status', status)
            for status in known:
                self.run_as('admin:z', command, 'list', '--status', status)
