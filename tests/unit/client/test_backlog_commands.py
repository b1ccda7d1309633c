# SPDX-License-Identifier: Apache-2.0

"""openstack backlog ..."""

import base64
import datetime
import json
import re
from unittest import mock

from oslo_utils import timeutils

from nova_preempt.backlog import secret_encryption
from nova_preempt.client import argtypes
from nova_preempt.core.backlog import backlog_model
from nova_preempt.db import backlog_secrets
from nova_preempt.db import backlog_store
from tests.unit.api import base
from tests.unit.client import test_name_lookup
from tests.unit.client import test_preemption_commands

ADMIN = 'admin:z'
NETWORK = base.make_uuid('network')
UNKNOWN = base.make_uuid('unknown')


class BacklogTestCase(test_preemption_commands.ClientTestCase):

    def request(self, *arguments, **values):
        return self.json('backlog', 'request', *arguments, **values)

    def create(self, name, *arguments, flavor='f1', **values):
        return self.request(
            'create', name, '--image', self.reading.image_id, '--flavor',
            flavor, *arguments, **values)

    def kept(self, made):
        return backlog_store.get(self.db, made['id'])

    def refused(self, message, *arguments, token='u:p'):
        self.assertIn(message, self.openstack(
            'backlog', 'request', *arguments, token=token, code=1))

    def misused(self, message, *arguments):
        """Check that the parser refuses the arguments with a message."""
        with mock.patch('argparse.ArgumentParser.exit',
                        side_effect=SystemExit(2)) as leave, \
                self.assertRaises(SystemExit):
            self.openstack('backlog', 'request', *arguments)
        self.assertIn(message, str(leave.call_args))


class TestCreate(BacklogTestCase):

    def test_as_a_server(self):
        data = self.directory / 'data'
        data.write_text('#!/bin/sh')
        made = self.create(
            'batch', '--flavor', 'f2', '--network', NETWORK, '--key-name',
            'key', '--property', 'a=b', '--property', 'c=d=e',
            '--user-data', str(data), '--hint', f'group={NETWORK}', '--hint',
            f'different_host={NETWORK}', '--hint',
            f'different_host={UNKNOWN}',
            '--security-group', 'web', '--tag', 't', '--description', 'two',
            '--availability-zone', 'west', '--compute-version', '2.90')
        kept = self.kept(made)
        self.assertEqual({
            'server': {
                'name': 'batch', 'imageRef': self.reading.image_id,
                'networks': [{'uuid': NETWORK}], 'key_name': 'key',
                'metadata': {'a': 'b', 'c': 'd=e'}, 'tags': ['t'],
                'user_data': '***',
                'security_groups': [{'name': 'web'}],
                'description': 'two', 'availability_zone': 'west'},
            'os:scheduler_hints': {'group': NETWORK,
                                   'different_host': [NETWORK, UNKNOWN]},
        }, dict(kept.body))
        self.assertEqual(
            {'user_data': base64.b64encode(b'#!/bin/sh').decode()},
            secret_encryption.SecretCipher(self.conf.backlog).open(
                kept, lambda uuid: backlog_secrets.get(self.db, uuid)))
        self.assertEqual(('batch', '2.90', ['big', 'spot']), (
            kept.name, kept.compute_version,
            [item['name'] for item in made['flavors']]))

    def test_wishes(self):
        made = self.create(
            'batch', '--count', '4', '--least-count', '2', '--class', 'gold',
            '--priority', 'time=3', '--priority', 'cores=2',
            '--not-before', '2036-01-01T00:00', '--not-after',
            '2036-01-02T00:00', '--longest-wait', '20000d', '--comes-back',
            '--back-until', '2036-01-03T00:00', '--most-returns', '5',
            flavor='f2')
        self.assertEqual(
            (4, 2, 'gold', '2036-01-01T00:00:00Z', '2036-01-02T00:00:00Z',
             1728000000, True, '2036-01-03T00:00:00Z', 5),
            tuple(made[name] for name in (
                'count', 'least_count', 'class', 'not_before', 'not_after',
                'longest_wait_s', 'comes_back', 'back_until',
                'most_returns')))
        self.assertEqual(backlog_model.SlaPriorities(time=3, cores=2),
                         self.kept(made).priorities)
        self.assertEqual('auto', self.kept(made).body['server']['networks'])

    def test_body(self):
        path = self.directory / 'body.json'
        path.write_text(json.dumps({'server': {
            'name': 'mine', 'imageRef': self.reading.image_id,
            'flavorRef': 'f2', 'networks': 'none', 'max_count': 3}}))
        made = self.request('create', '--body', str(path))
        self.assertEqual(('mine', 3, 1, 'spot'), (
            made['name'], made['count'], made['least_count'],
            made['flavors'][0]['name']))
        made = self.request('create', '--body', str(path), '--flavor', 'f1',
                            '--flavor', 'f2', '--count', '2', 'other')
        self.assertEqual(('other', 2), (made['name'], made['count']))
        self.refused('--image cannot be combined with --body', 'create',
                     '--body', str(path), '--image', self.reading.image_id)
        path.write_text('[]')
        self.misused('must contain the object "server"', 'create',
                     '--body', str(path))
        path.write_text('{')
        self.misused('is not valid JSON', 'create', '--body', str(path))
        self.misused('cannot be read', 'create', '--body', f'{path}2')

    def test_invalid_arguments(self):
        image = ('--image', self.reading.image_id)
        self.refused('A name is required', 'create', '--flavor', 'f1')
        self.refused('A flavor is required', 'create', 'a')
        self.refused("'request.ladder'", 'create', 'a', '--ladder', 'none',
                     '--priority', 'time=1', *image)
        self.refused('cannot be combined with other networks',
                     'create', 'a', '--flavor', 'f1',
                     '--network', 'auto', '--network', 'none')
        self.refused("'request.flavors'", 'create', 'a', '--flavor', 'f3',
                     *image)
        for text in ('time', 'time=4', 'space=1'):
            self.misused(text, 'create', 'a', '--priority', text)
        self.misused('0', 'create', 'a', '--count', '0')
        self.misused('nothing', 'create', 'a', '--property', 'nothing')


class TestRequests(BacklogTestCase):

    def test_list(self):
        made = self.create('a')
        self.create('b', token='u:q')
        self.assertEqual([{
            'ID': made['id'], 'Name': 'a', 'Status': 'waiting', 'Count': 1,
            'Position': None, 'Estimate (s)': None}], self.request('list'))
        backlog_store.change(self.db, made['id'], backlog_model.OPEN, base.NOW,
                             position=2,
                             waits_for={'code': 'room', 'text': 'No room.'})
        found = self.request('list', '--long', '--project', 'p',
                             token=ADMIN)
        self.assertEqual(
            (2, ['big'], 'No room.', 'p', 'u'),
            tuple(found[0][name] for name in (
                'Position', 'Flavors', 'Waits For', 'Project', 'User')))
        for arguments, number in (
                (('--status', 'waiting'), 1), (('--status', 'done'), 0),
                (('--user', 'v'), 0), (('--limit', '1'), 1),
                (('--marker', made['id']), 0)):
            self.assertEqual(number, len(self.request('list', *arguments)))
        self.assertEqual(2, len(self.request('list', '--all-projects',
                                             token=ADMIN)))
        self.assertEqual(backlog_model.STATES, argtypes.REQUEST_STATUSES)

    def test_by_name(self):
        made = self.create('a')
        for name in ('a', made['id']):
            self.assertEqual(made['id'], self.request('show', name)['id'])
        self.refused("There is no request 'b'", 'show', 'b')
        self.create('a')
        self.refused('have the name', 'show', 'a')

    def test_set(self):
        made = self.create('a', '--class', 'gold', '--longest-wait', '60',
                           '--comes-back', flavor='f2')
        self.assertEqual('', self.openstack(
            'backlog', 'request', 'set', 'a', '--name', 'b', '--count', '2',
            '--no-comes-back', '--not-after', '2036-01-01T00:00', '--unset',
            'class', '--unset', 'longest-wait'))
        changed = self.request('show', made['id'])
        self.assertEqual(
            ('b', 2, False, '2036-01-01T00:00:00Z', '', None),
            tuple(changed[name] for name in (
                'name', 'count', 'comes_back', 'not_after', 'class',
                'longest_wait_s')))
        self.refused('at least one option', 'set', 'b')

    def test_availability(self):
        made = self.create('a', '--class', 'gold', flavor='f2')
        found = self.request('show', made['id'])
        self.assertEqual(0.95, found['promised_availability'])
        self.assertEqual({'running_s', 'waiting_s', 'starting_s', 'share'},
                         set(found['availability']))
        self.refused("'silver' is not allowed; allowed are "
                     'gold', 'create', 'b', '--image', self.reading.image_id,
                     '--flavor', 'f2', '--class', 'silver')

    def test_classes(self):
        self.assertEqual([
            {'Name': 'gold', 'Importance': 1, 'Availability': 0.95,
             'Safety Margin (s)': 300, 'Overhead Limit': 0.05,
             'Least Run (s)': 300, 'Open': True},
            {'Name': 'silver', 'Importance': 2, 'Availability': 0.9,
             'Safety Margin (s)': 300, 'Overhead Limit': 0.1,
             'Least Run (s)': 300, 'Open': False}],
            self.json('backlog', 'class', 'list'))

    def test_cancel(self):
        made = [self.create(name)['id'] for name in 'abc']
        self.openstack('backlog', 'request', 'delete', 'a', '--servers')
        self.assertTrue(backlog_store.get(self.db, made[0]).ends_servers)
        text = self.openstack('backlog', 'request', 'delete', 'b', 'x', 'c',
                              code=1)
        self.assertIn("There is no request 'x'", text)
        self.assertIn('1 of 3 requests could not be cancelled', text)
        self.assertEqual({'cancelled'}, {
            item['Status'] for item in self.request('list')})
        self.assertFalse(backlog_store.get(self.db, made[1]).ends_servers)


class TestNumbers(BacklogTestCase):

    def setUp(self):
        super().setUp()
        self.made = self.create('a', '--class', 'gold', flavor='f2')['id']

    def test_stats(self):
        found = self.json('backlog', 'statistics', 'list', '--hours', '2')
        self.assertEqual(['(all)', 'gold'],
                         [item['Class'] for item in found])
        self.assertEqual((1, {'waiting': 1}, 0, None), tuple(
            found[0][name] for name in ('Requests', 'By Status', 'Started',
                                        'Median Wait (s)')))

    def ran(self):
        """A day of which it ran half."""
        day = base.NOW.replace(day=1, hour=0)
        with self.db.engine.begin() as connection:
            connection.exec_driver_sql(
                'UPDATE backlog_requests SET created_at = ?, updated_at = ?',
                (f'{day}.000000', f'{day}.000000'))
            connection.exec_driver_sql(
                'UPDATE backlog_changes SET at = ?', (f'{day}.000000',))
        for hours, state in ((12, backlog_model.ACTIVE),
                             (24, backlog_model.DONE)):
            backlog_store.change(
                self.db, self.made, backlog_model.OPEN,
                base.NOW.replace(day=1 + hours // 24, hour=hours % 24),
                state=state)

    def test_report(self):
        self.ran()
        arguments = ('--since', '2026-11-01T00:00:00Z', '--until',
                     '2026-11-02T00:00:00Z')
        found = self.json('backlog', 'report', *arguments)
        self.assertEqual([{
            'class': 'gold', 'requests': 1, 'availability': 0.5,
            'running_s': 43200, 'waiting_s': 43200, 'starting_s': 0,
            'points': 100}], found['classes'])
        found = self.json('backlog', 'report', '--series', *arguments)
        self.assertEqual([0.0, 1.0], [
            found['classes'][0]['series'][number]['availability']
            for number in (49, 50)])
        file = self.directory / 'a.svg'
        self.openstack('backlog', 'report', '--plot', str(file), *arguments)
        text = file.read_text()
        for label in ('gold, 1 requests', 'requests ran: gold 50.0'):
            self.assertRegex(text, re.escape(label))

    def test_ninety_minutes(self):
        """The report begins with the first request, and has 100 points."""
        begin = timeutils.utcnow() - datetime.timedelta(minutes=90)
        with self.db.engine.begin() as connection:
            connection.exec_driver_sql(
                'UPDATE backlog_requests SET created_at = ?, updated_at = ?',
                (f'{begin}', f'{begin}'))
            connection.exec_driver_sql(
                'UPDATE backlog_changes SET at = ?', (f'{begin}',))
        backlog_store.change(
            self.db, self.made, backlog_model.OPEN,
            begin + datetime.timedelta(minutes=30),
            state=backlog_model.ACTIVE)
        found = self.json('backlog', 'report', '--series')
        shares = [point['availability']
                  for point in found['classes'][0]['series']]
        self.assertEqual({None, 0.0, 1.0}, set(shares) - {
            share for share in shares if share and share < 1})
        self.assertLess(20, shares.count(1.0))
        self.assertLess(10, shares.count(0.0))

    def test_nothing_to_plot(self):
        text = self.openstack(
            'backlog', 'report', '--since', '2026-01-01T00:00:00Z',
            '--until', '2026-01-02T00:00:00Z', '--plot',
            str(self.directory / 'a.png'), code=1)
        self.assertIn('There is nothing to plot', text)


class TestPlan(BacklogTestCase):

    def plan(self, *arguments, **values):
        return self.openstack('backlog', 'plan', *arguments, token=ADMIN,
                              **values)

    def test_table(self):
        found = self.json('backlog', 'plan', token=ADMIN)
        self.assertEqual(
            [('big', 3, {'host1': 2, 'host2': 1}, ''),
             ('spot', 1, {}, 'It asks for VGPU.')],
            [(item['Flavor'], item['Count'], item['Hosts'],
              item['Why Nova Chooses'])
             for item in found])
        self.assertIn("host1='2', host2='1'", self.plan())
        self.assertEqual(
            'Policy does not allow preemption:request:plan to be '
            'performed.\n', self.openstack('backlog', 'plan', code=1))

    def test_hosts(self):
        found = self.json('backlog', 'plan', '--hosts', token=ADMIN)
        self.assertIn({'Host': 'host1', 'Resource Class': 'VCPU',
                       'Capacity': 16, 'Used': 1, 'Used After': 9}, found)
        self.assertEqual(6, len(found))

    def test_why_nothing_is_started(self):
        self.backlog.stopped = 'the backlog is paused: a fire'
        with self.assertLogs('nova_preempt.client.backlog_commands') as logs:
            self.plan()
        self.assertIn('a fire', logs.output[0])

    def test_plot(self):
        file = self.directory / 'a.svg'
        for mode in ('exact', 'off'):
            self.backlog.mode = mode
            self.plan('--plot', str(file))
            text = file.read_text()
            for label in (('4 servers of 2 requests start now, of 3 '
                           'that wait'), 'host3', 'VCPU', 'started now'):
                self.assertIn(label, text)
        # There is none of it.
        self.assertNotIn('MEMORY_MB', text)

    def test_no_plot(self):
        file = str(self.directory / 'a.png')
        with mock.patch.dict('sys.modules', {'matplotlib.figure': None}):
            self.assertIn('pip install nova-preempt[report]',
                          self.plan('--plot', file, code=1))
        with mock.patch.object(self.backlog, 'plan', return_value={
                'mode': 'off', 'stopped': '', 'waiting': 0, 'starts': [],
                'hosts': []}):
            self.assertIn('no host is in use',
                          self.plan('--plot', file, code=1))


class Cloud(test_name_lookup.Cloud):
    """Cloud with flavors, images and networks of these names."""

    named = {'flavors': {'f1': 'big', 'f2': 'spot'},
             'images': {base.Reading.image_id: 'tiny', 'i1': 'twin',
                        'i2': 'twin'},
             'networks': {NETWORK: 'inner'}}

    def __init__(self, case):
        super().__init__(case)
        for kind in ('image', 'network'):
            self.endpoint(kind, f'{self.url}/{kind}/v2.0')

    def answer(self, path, query, environ):
        parts = path.strip('/').split('/')
        for kind, known in self.named.items():
            if kind not in parts:
                continue
            if parts[-1] in (kind, 'detail'):
                return '200 OK', {kind: [
                    {'id': key, 'name': name} for key, name in known.items()
                    # Nova lists them all.
                    if kind == 'flavors' or name == query['name']]}
            if parts[-1] not in known:
                return '404 Not Found', {}
            found = {'id': parts[-1], 'name': known[parts[-1]]}
            return '200 OK', (found if kind == 'images'
                              else {kind[:-1]: found})
        return super().answer(path, query, environ)


class TestNames(BacklogTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = Cloud(self)

    def test_they_are_looked_up(self):
        made = json.loads(self.openstack(
            'backlog', 'request', 'create', 'a', '--flavor', 'spot',
            '--flavor', 'f1', '--image', 'tiny', '--network', 'inner',
            '-f', 'json', auth=self.cloud.arguments('u:p')))
        kept = self.kept(made)
        self.assertEqual(
            (['f2', 'f1'], self.reading.image_id, [{'uuid': NETWORK}]),
            ([item.flavor_id for item in kept.alternatives],
             kept.body['server']['imageRef'],
             kept.body['server']['networks']))
        for arguments, text in (
                (('--flavor', 'other'), "There is no flavor 'other'"),
                (('--flavor', 'spot', '--image', 'twin'),
                 "Several images have the name 'twin'"),
                (('--flavor', 'spot', '--network', 'outer'),
                 "There is no network 'outer'")):
            self.assertIn(text, self.openstack(
                'backlog', 'request', 'create', 'a', *arguments, code=1,
                auth=self.cloud.arguments('u:p')))
