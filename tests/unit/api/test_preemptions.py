# SPDX-License-Identifier: Apache-2.0
"""Lists, records and numbers, as projects and administrators see them."""

import itertools
from unittest import mock
import urllib.parse

from nova_preempt.api import pagination
from nova_preempt.db import decisions
from tests.unit.api import base
from tests.unit.api.base import make_uuid

ADMIN = 'admin:z'


class TestList(base.ApiTestCase):

    def names(self, query='', token='u:p', code=200):
        """Return the names of the listed preemptions, in order."""
        answer = self.get(f'/v1/preemptions{query}', token, code)
        return [self.known[item['id']] for item in answer['preemptions']]

    def setUp(self):
        super().setUp()
        self.known = {}
        for age_s, (name, project, victims) in enumerate((
                ('both', 'p', [('p1', 'p', 'spot'), ('q1', 'q', 'spot')]),
                ('placed', 'p', [('q2', 'q', 'spot.big')]),
                ('victim', 'q', [('p2', 'p', 'spot.big'),
                                 ('r1', 'r', 'spot')]),
                ('foreign', 'q', [('q3', 'q', 'spot')]))):
            self.known[self.add(name, project, victims, 10 * age_s)] = name
        self.known[self.add('refusal', 'p', status=decisions.REFUSED)] = (
            'refusal')

    def test_own_side_only(self):
        both, placed, victim = self.get('/v1/preemptions')['preemptions']
        self.assertEqual(make_uuid('both-server'), both['server']['id'])
        self.assertEqual([make_uuid('p1')], [
            item['server_id'] for item in both['victims']])
        self.assertEqual(make_uuid('placed-server'), placed['server']['id'])
        self.assertEqual([], placed['victims'])
        self.assertIsNone(victim['server'])
        self.assertEqual([make_uuid('p2')], [
            item['server_id'] for item in victim['victims']])

    def test_nothing_of_others_is_told(self):
        foreign = {make_uuid(name) for name in (
            'q1', 'q2', 'q3', 'r1', 'victim-server', 'foreign-server')}
        secrets = foreign | {base.HOST, 'q-user', 'r-user', '"q"', '"r"',
                             'req-victim', 'considered'}
        paths = ['/v1/preemptions', '/v1/statistics'] + [
            f'/v1/preemptions/{uuid}' for uuid, name in self.known.items()
            if name in ('both', 'placed', 'victim')]
        for path in paths:
            text = self.request(path).text
            for secret in secrets:
                self.assertNotIn(secret, text, path)

    def test_projects(self):
        self.assertEqual(['both', 'placed', 'victim'], self.names())
        self.assertEqual(['both', 'placed', 'victim', 'foreign'],
                         self.names(token='u:q'))
        self.assertEqual(['victim'], self.names(token='u:r'))
        self.assertEqual([], self.names(token=ADMIN))
        self.assertEqual(['both', 'placed', 'victim'],
                         self.names(token='admin:p'))

    def test_administrator(self):
        self.assertEqual(['both', 'placed', 'victim', 'foreign'],
                         self.names('?all_projects=true', ADMIN))
        self.assertEqual(['victim'], self.names('?project_id=r', ADMIN))
        self.assertEqual([], self.names(
            '?all_projects=true&host=host2', ADMIN))
        self.assertEqual(['both', 'placed', 'victim'], self.names(
            '?project_id=p&host=host1', ADMIN))
        item = self.get('/v1/preemptions?project_id=r', ADMIN)[
            'preemptions'][0]
        self.assertEqual(make_uuid('victim-server'), item['server']['id'])
        self.assertEqual(2, len(item['victims']))
        self.assertEqual(base.HOST, item['host'])

    def test_filters_for_administrators_only(self):
        for query in ('all_projects=true', 'host=h', 'project_id=p',
                      'status=refused'):
            self.get(f'/v1/preemptions?{query}', code=403)
        self.assertEqual(3, len(self.names('?all_projects=false')))

    def test_refusals(self):
        self.assertEqual(['refusal'], self.names('?status=refused',
                                                 'admin:p'))
        uuid = make_uuid('refusal')
        self.get(f'/v1/preemptions/{uuid}', code=404)
        self.get(f'/v1/preemptions/{uuid}', ADMIN)

    def test_filters(self):
        for query, names in (
                (f'server_id={make_uuid("p2")}', ['victim']),
                (f'server_id={make_uuid("both-server")}', ['both']),
                (f'victim_id={make_uuid("p1")}', ['both']),
                (f'victim_id={make_uuid("both-server")}', []),
                ('flavor=spot.big', ['victim']),
                ('flavor=spot', ['both']),
                ('status=done', ['both', 'placed', 'victim']),
                ('status=aborted', []),
                ('since=2026-11-20T11:59:50Z', ['both', 'placed']),
                ('until=2026-11-20T11:59:50Z', ['victim']),
                ('since=2026-11-20T12:59:50%2B01:00', ['both', 'placed']),
                ('since=2026-11-20T11:59:40&until=2026-11-20T12:00:00',
                 ['placed', 'victim'])):
            self.assertEqual(names, self.names(f'?{query}'), query)

    def test_a_filter_finds_nothing_of_others(self):
        """A match would reveal victims of other projects."""
        for name in ('q1', 'q2', 'r1', 'victim-server'):
            for parameter in ('server_id', 'victim_id'):
                self.assertEqual([], self.names(
                    f'?{parameter}={make_uuid(name)}'), name)

    def pages(self, query, token):
        path = f'/v1/preemptions?{query}'
        while path:
            answer = self.get(path, token)
            yield [self.known[item['id']] for item in answer['preemptions']]
            links = answer.get('preemptions_links')
            path = links and links[0]['href']

    def test_pages(self):
        self.assertEqual(
            [['both', 'placed'], ['victim', 'foreign']],
            list(self.pages('limit=2&all_projects=true', ADMIN)))
        self.assertEqual([['both', 'placed'], ['victim']],
                         list(self.pages('limit=2', 'u:p')))
        self.enterContext(mock.patch.object(pagination, 'MOST_ITEMS', 1))
        for query in ('limit=2', ''):
            self.assertEqual([['both'], ['placed'], ['victim']],
                             list(self.pages(query, 'u:p')))

    def test_pages_of_the_same_second(self):
        for number in range(7):
            self.known[self.add(f'same{number}', 's')] = f'same{number}'
        names = list(itertools.chain(*self.pages('limit=2', 'u:s')))
        self.assertEqual({f'same{number}' for number in range(7)},
                         set(names))
        self.assertEqual(7, len(names))

    def test_next_keeps_the_filters(self):
        answer = self.get('/v1/preemptions?limit=1&status=done&'
                          'since=2026-01-01T00:00:00%2B01:00&marker=' +
                          make_uuid('both'))
        link, = answer['preemptions_links']
        self.assertEqual('next', link['rel'])
        url = urllib.parse.urlsplit(link['href'])
        self.assertEqual(
            {'limit': ['1'], 'status': ['done'],
             'since': ['2026-01-01T00:00:00+01:00'],
             'marker': [make_uuid('placed')]},
            urllib.parse.parse_qs(url.query))

    def test_marker_that_is_not_ours(self):
        for name in ('foreign', 'nothing'):
            answer = self.get(f'/v1/preemptions?marker={make_uuid(name)}',
                              code=400)
            self.assertIn('marker', answer['error']['message'])


class TestShow(base.ApiTestCase):

    def test_record(self):
        uuid = self.add('a', 'p', [('q1', 'q', 'spot')])

        def show(token, code=200):
            return self.get(f'/v1/preemptions/{uuid}', token, code).get(
                'preemption')

        everything = show(ADMIN)
        self.assertEqual({
            'id': uuid, 'status': 'done', 'host': base.HOST, 'cost_us': 60,
            'reason': 'of host1', 'operation': 'create',
            'request_id': 'req-a', 'created_at': '2026-11-20T12:00:00Z',
            'updated_at': '2026-11-20T12:00:00Z',
            'server': {'id': make_uuid('a-server'), 'project_id': 'p',
                       'user_id': 'p-user', 'flavor': 'normal'},
            'victims': [{
                'server_id': make_uuid('q1'), 'project_id': 'q',
                'user_id': 'q-user', 'flavor': 'spot', 'status': 'gone',
                'cost_us': 30, 'action': 'delete', 'notice_s': 0,
                'deadline': None, 'ended_at': None, 'restore': False}],
            'record': {'operation': 'create', 'flavor': 'normal',
                       'resources': {'VCPU': 2}, 'why': 'host1 is full',
                       'considered': [{'host': 'host1'}]},
        }, everything)
        self.assertEqual({'operation': 'create', 'flavor': 'normal',
                          'resources': {'VCPU': 2}}, show('u:p')['record'])
        self.assertEqual({}, show('u:q')['record'])
        show('u:r', 404)

    def test_unknown(self):
        for uuid in (make_uuid('x'), 'x', '%00', '%ff', 'a' * 10000):
            self.get(f'/v1/preemptions/{uuid}', ADMIN, 404)


class TestStatistics(base.ApiTestCase):

    def setUp(self):
        super().setUp()
        self.add('a', 'p', [('p1', 'p', 'spot'), ('q1', 'q', 'spot'),
                            ('q2', 'q', 'spot.big')])
        self.add('b', 'p', [('q3', 'q', 'spot')], 100,
                 status=decisions.ROLLED_BACK)
        self.add('c', 'q', [('q4', 'q', 'spot')], 200)
        self.add('d', 'p', status=decisions.REFUSED)

    def numbers(self, token, query=''):
        answer = self.get(f'/v1/statistics{query}', token)['statistics']
        return {item.get('flavor', ''): (
            item['preemptions'], item['preemptions_by_status'],
            item['victims'], item['victims_by_status'],
            item['servers_placed'])
            for item in [answer['total'], *answer['flavors']]}

    def test_statistics_of_all_projects(self):
        self.assertEqual({
            '': (3, {'done': 2, 'rolled_back': 1}, 5, {'gone': 5}, 2),
            'spot': (3, {'done': 2, 'rolled_back': 1}, 4, {'gone': 4}, 2),
            'spot.big': (1, {'done': 1}, 1, {'gone': 1}, 1),
        }, self.numbers(ADMIN))

    def test_own(self):
        self.assertEqual({'': (1, {'done': 1}, 1, {'gone': 1}, 1),
                          'spot': (1, {'done': 1}, 1, {'gone': 1}, 1)},
                         self.numbers('u:p'))
        self.assertEqual({'': (0, {}, 0, {}, 0)}, self.numbers('u:r'))

    def test_interval(self):
        query = '?since=2026-11-20T11:58:00Z&until=2026-11-20T12:00:00Z'
        numbers = (1, {'rolled_back': 1}, 1, {'gone': 1}, 0)
        self.assertEqual({'': numbers, 'spot': numbers},
                         self.numbers(ADMIN, query))
        answer = self.get(f'/v1/statistics{query}')['statistics']
        self.assertEqual(('2026-11-20T11:58:00Z', '2026-11-20T12:00:00Z'),
                         (answer['since'], answer['until']))
