# SPDX-License-Identifier: Apache-2.0
"""openstackclient with the plugin, against the API on a real socket."""

import contextlib
import io
import json
import logging
import os
from unittest import mock

from openstackclient import shell
from osc_lib import clientmanager

from nova_preempt.api import pagination
from tests.unit.api import listening
from tests.unit.api.base import make_uuid


class ClientTestCase(listening.ListeningTestCase):

    def setUp(self):
        super().setUp()
        # The client tells what went wrong by logging it.
        logging.disable(logging.NOTSET)

    def openstack(self, *arguments, token='u:p', auth=None, code=0):
        """Return the output of the command."""
        auth = auth or ['--os-auth-type', 'admin_token', '--os-endpoint',
                        f'{self.url}/v1', '--os-token', token]
        # A process runs one command, so the class keeps the client.
        cache = vars(clientmanager.ClientManager).get('preemption')
        if cache is not None:
            cache._handle = None
        out = io.StringIO()
        with contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(out):
            result = shell.OpenStackShell().run([*auth, *arguments])
        self.assertEqual(code, result, out.getvalue())
        return out.getvalue()

    def json(self, *arguments, **values):
        return json.loads(self.openstack(*arguments, '-f', 'json', **values))

    def catalog(self, url):
        """Arguments for a Keystone whose catalog has this URL."""
        return ['--os-auth-url', self.keystone(url),
                '--os-username', 'u', '--os-password', 'x',
                '--os-project-name', 'p', '--os-user-domain-id', 'd',
                '--os-project-domain-id', 'd']


class TestVersion(ClientTestCase):

    def test_an_unsupported_version(self):
        for version in ('1.6', '2', 'latest', '1.0'):
            out = self.openstack('--os-preemption-api-version', version,
                                 'preemption', 'list', code=1)
            self.assertIn(f'{version} is not supported; supported are 1.', out)
        with mock.patch.dict(os.environ, OS_PREEMPTION_API_VERSION='1.6'):
            self.openstack('preemption', 'list', code=1)

    def test_the_supported_one(self):
        self.openstack('--os-preemption-api-version', '1', 'preemption',
                       'list')


class TestCommands(ClientTestCase):

    def test_list(self):
        for number in range(3):
            self.add(f'd{number}', 'p', [('v1', 'p', 'spot')], number)
        self.add('other', 'q', [('v2', 'q', 'spot')])
        found = self.json('preemption', 'list')
        self.assertEqual({
            'ID': make_uuid('d0'), 'Created At': '2026-11-20T12:00:00Z',
            'Status': 'done', 'Server': make_uuid('d0-server'),
            'Operation': 'create', 'Flavor': 'normal', 'Host': None,
            'Victims': [make_uuid('v1')]}, found[0])
        self.assertEqual(3, len(found))
        self.enterContext(mock.patch.object(pagination, 'MOST_ITEMS', 1))
        for arguments, number in (((), 3), (('--limit', '2'), 2)):
            self.assertEqual(number, len(self.json('preemption', 'list',
                                                   *arguments)))
        found = self.json('preemption', 'list', '--all-projects', '--long',
                          token='admin:z')
        self.assertEqual(
            (4, 'host1', 60 / 1e6, ['spot'], 'normal'),
            (len(found), found[0]['Host'], found[0]['Cost (s)'],
             found[0]['Victim Flavors'], found[0]['Flavor']))

    def test_filters(self):
        self.add('a', 'p', [('v1', 'p', 'spot')])
        for arguments, number in (
                (('--server', make_uuid('v1')), 1),
                (('--victim', make_uuid('a-server')), 0),
                (('--flavor', 'spot', '--status', 'done'), 1),
                (('--since', '2026-11-20T12:00:00'), 1),
                (('--until', '2026-11-20T12:00:00+01:00'), 0),
                (('--marker', make_uuid('a')), 0)):
            self.assertEqual(number, len(self.json(
                'preemption', 'list', *arguments)), arguments)
        self.assertEqual(1, len(self.json(
            'preemption', 'list', '--project', 'p', '--host', 'host1',
            token='admin:z')))

    def test_table(self):
        uuid = self.add('a', 'p', [('v1', 'p', 'spot'), ('v2', 'q', 'spot')])
        text = self.openstack('preemption', 'list')
        self.assertIn(f'| {uuid} | 2026-11-20T12:00:00Z | done   |', text)
        text = self.openstack('preemption', 'show', uuid, token='admin:z')
        self.assertIn(make_uuid('v2'), text)
        self.assertIn('host1 is full', text)

    def test_show(self):
        uuid = self.add('a', 'p', [('v1', 'q', 'spot')])
        found = self.json('preemption', 'show', uuid, token='u:q')
        self.assertEqual((uuid, None, make_uuid('v1')), (
            found['id'], found['server'], found['victims'][0]['server_id']))

    def test_explain(self):
        self.assertEqual(3, self.json('preemption', 'explain',
                                      'small')['victim_count'])
        self.assertEqual('host1', self.json(
            'preemption', 'explain', 'small', '--host', 'host1',
            '--availability-zone', 'az1', token='admin:z')['host'])
        self.assertEqual(('az1', 'host1'), self.scheduler.calls[-1][-2:])

    def test_simulate(self):
        self.assertEqual({'id': make_uuid('simulated')}, self.json(
            'preemption', 'simulate', make_uuid('p-spot'), '--reason', 'me'))
        self.assertEqual('me', self.engine.calls[-1][-1])

    def test_stats(self):
        self.add('a', 'p', [('v1', 'p', 'spot')])
        row = {'Preemptions': 1, 'By Status': {'done': 1}, 'Victims': 1,
               'Victims By Status': {'gone': 1}, 'Servers Placed': 1,
               'Mean Lifetime (s)': None}
        self.assertEqual(
            [{'Flavor': 'spot', **row}, {'Flavor': 'total', **row}],
            self.json('preemption', 'statistics', 'list', '--since',
                      '2026-11-20T00:00:00'))

    def test_chance(self):
        self.assertEqual(
            [{'Flavor': flavor, 'Availability Zone': 'az1',
              'Preemptible': 3, 'Normal': 7} for flavor in ('a', 'b')],
            self.json('preemption', 'capacity', 'list', 'a', 'b',
                      '--availability-zone', 'az1'))

    def test_errors(self):
        for arguments, message in (
                (('show', make_uuid('x')), 'There is no preemption'),
                (('show', '../x?y=1'), 'The path is unknown.'),
                (('list', '--all-projects'), 'Policy does not allow'),
                (('list', '--marker', 'x'), "'marker'"),
                (('explain', 'unknown'), 'There is no flavor'),
                (('simulate', make_uuid('p-normal')),
                 'is not preemptible.')):
            text = self.openstack('preemption', *arguments, code=1)
            self.assertIn(message, text)
        for option, value in (('--limit', '0'), ('--limit', 'x'),
                              ('--status', 'x')):
            with self.assertRaises(SystemExit):
                self.openstack('preemption', 'list', option, value)


class TestEndpoint(ClientTestCase):

    def test_catalog(self):
        self.add('a', 'p')
        for url in (self.url, f'{self.url}/', f'{self.url}/v1',
                    f'{self.url}/v1/'):
            self.assertEqual(1, len(self.json(
                'preemption', 'list', auth=self.catalog(url))), url)

    def test_another_endpoint(self):
        self.add('a', 'p')
        auth = self.catalog(None)
        self.openstack('preemption', 'list', auth=auth, code=1)
        for url in (self.url, f'{self.url}/v1/'):
            self.assertEqual(1, len(self.json(
                'preemption', 'list', auth=[
                    *auth, '--os-preemption-endpoint', url])), url)
        with mock.patch.dict(os.environ, OS_PREEMPTION_ENDPOINT=self.url):
            self.assertEqual(1, len(self.json('preemption', 'list',
                                              auth=auth)))
