# SPDX-License-Identifier: Apache-2.0
"""Bad input is refused, and the refusal names the field."""

import datetime
import json
import unittest

from nova_preempt.api import request_validation
from nova_preempt.api import schemas
from tests.unit.api import base
from tests.unit.api.base import make_uuid

ADMIN = 'admin:z'
NO_TEXT = ('', 'x' * 256, 'a\n', '\0', 'a\x7fb', '\x85', '\ud800', '😀')
NO_STRING = (None, True, 1, 1.5, [], ['a'], {}, {'a': 1})
NO_UUID = ('', 'x', make_uuid('x')[:-1], make_uuid('x') + '\n',
           make_uuid('x').replace('-', ''), '{' + make_uuid('x') + '}')


class TestBody(base.ApiTestCase):

    def refused(self, path, body, field=''):
        message = self.post(path, body, ADMIN, 400)['error']['message']
        self.assertIn(field, message)
        self.assertLess(len(message), 600)

    def test_fields(self):
        server_id = make_uuid('x')
        for path, field, good, values in (
                ('explain', 'flavor', {}, NO_TEXT + NO_STRING),
                ('explain', 'availability_zone', {'flavor': 'x'},
                 NO_TEXT + NO_STRING),
                ('explain', 'host', {'flavor': 'x'}, NO_TEXT + NO_STRING),
                ('simulate', 'server_id', {}, NO_UUID + NO_STRING),
                ('simulate', 'reason', {'server_id': server_id},
                 NO_TEXT + NO_STRING)):
            for value in values:
                self.refused(f'/v1/{path}', {path: {**good, field: value}},
                             f"'{path}.{field}'")

    def test_missing_or_unknown(self):
        for path, required in (('explain', 'flavor'),
                               ('simulate', 'server_id')):
            url = f'/v1/{path}'
            self.refused(url, {}, f"'{path}'")
            self.refused(url, {path: {}}, f"'{path}.{required}'")
            for value in (None, 1, 'x', []):
                self.refused(url, {path: value}, f"'{path}'")
                self.refused(url, value, 'Invalid body')
            good = {required: make_uuid('x')}
            self.refused(url, {path: good, 'other': 1}, "'other'")
            for name in ('other', 'x' * 10000, '\ud800', '\0', ''):
                self.refused(url, {path: {**good, name: 1}}, f"'{path}.")

    def test_no_json(self):
        for body in (b'', b'{', b'\xff', '{}'.encode('utf-16'), b'NaN',
                     b'{"explain": {"flavor": Infinity}}', b'1' * 10000,
                     b'[' * 50000, b'{"a":' * 20000,
                     b'\xef\xbb\xbf{}', b'{"explain": {"flavor": "\n"}}'):
            self.refused('/v1/explain', body)

    def test_numbers_that_are_none(self):
        for number in (b'Infinity', b'-Infinity', b'NaN', b'1e999', b'-1e400',
                       b'1' * 400 + b'.5'):
            for field in (b'flavor', b'other'):
                self.refused('/v1/explain',
                             b'{"explain": {"%b": %b}}' % (field, number))

    def test_nested(self):
        for depth in (31, 33, 100, 500, 850, 900, 918, 930, 950, 980, 1000,
                      5000):
            for value in (b'[' * depth + b']' * depth,
                          b'{"a":' * depth + b'1' + b'}' * depth):
                for field in (b'flavor', b'other'):
                    body = b'{"explain": {"%b": %b}}' % (field, value)
                    self.refused('/v1/explain', body,
                                 'nested' if depth > 31 else '')

    def test_umlauts_are_fine(self):
        schema = schemas.EXPLAIN
        for text in ('größe', '小', '\uffff', ' ', '%s', "'; --"):
            value = {'explain': {'flavor': text}}
            for ascii_only in (True, False):
                raw = json.dumps(value, ensure_ascii=ascii_only).encode()
                self.assertEqual(value, request_validation.body(schema, raw))


class TestQuery(base.ApiTestCase):

    def test_parameters(self):
        no_text = ('', 'x' * 256, 'a%0A', '%00', '%7F', '%FF', '%ED%A0%80',
                   '%C2%85', '%F0%9F%98%80')
        no_uuid = ('', 'x', make_uuid('x') + '%0A', '%FF', make_uuid('x')[1:])
        no_time = ('', 'x', '2026', '2026-11-20', '2026-13-20T00:00:00Z',
                   '2026-11-20T00:00:00+01:00', '2026-11-20T25:00:00Z',
                   '2026-11-20T00:00:00Z%0A', '1', '%FF', '9' * 10000)
        for path, name, values in (
                ('preemptions', 'server_id', no_uuid),
                ('preemptions', 'victim_id', no_uuid),
                ('preemptions', 'marker', no_uuid),
                ('preemptions', 'host', no_text),
                ('preemptions', 'flavor', no_text),
                ('preemptions', 'project_id', no_text),
                ('preemptions', 'status', (*no_text, 'DONE', 'releasing')),
                ('preemptions', 'all_projects', (*no_text, '1', 'True')),
                ('preemptions', 'limit', (
                    *no_text, '0', '-1', '1.0', '1e3', '+1', '1_0', '%D9%A3',
                    '9' * 20, '9' * 10000, '2147483648')),
                ('preemptions', 'since', no_time),
                ('preemptions', 'until', no_time),
                ('statistics', 'since', no_time),
                ('statistics', 'until', no_time),
                ('placement-chances', 'flavor', no_text),
                ('placement-chances', 'flavor=x&availability_zone',
                 no_text)):
            for value in values:
                self.refused(path, f'{name}={value}',
                             name.rpartition('&')[2])

    def refused(self, path, query, name):
        answer = self.get(f'/v1/{path}?{query}', ADMIN, 400)
        message = answer['error']['message']
        self.assertIn(f"'{name}", message, query)
        self.assertLess(len(message), 600)

    def test_unknown(self):
        for path in ('preemptions', 'statistics', 'placement-chances',
                     f'preemptions/{make_uuid("x")}'):
            for name in ('x', 'Limit', 'limit%20', 'x' * 1000):
                self.refused(path, f'{name}=1', name[:20].replace('%20', ' '))
            for query in ('%FF=1', '=1', '%00=1', 'a=1&' * 101):
                self.get(f'/v1/{path}?{query}', ADMIN, 400)

    def test_twice(self):
        self.refused('preemptions', 'limit=1&limit=1', 'limit')

    def test_raw_bytes(self):
        self.get('/v1/preemptions', ADMIN,
                 environ={'QUERY_STRING': 'flavor=gr\xc3\xb6\xc3\x9fe'})
        self.get('/v1/preemptions', ADMIN, 400,
                 environ={'QUERY_STRING': 'flavor=\xff'})

    def test_all_at_once(self):
        self.get(
            '/v1/preemptions?all_projects=true&limit=2147483647&status=done&'
            f'server_id={make_uuid("x")}&victim_id={make_uuid("x")}&host=h&'
            'flavor=f&project_id=p&since=0001-01-01T00:00:00%2B23:59&'
            'until=9999-12-31T23:59:59.999999-23:59', ADMIN)


class TestTime(unittest.TestCase):

    def test_utc(self):
        noon = datetime.datetime(2026, 11, 20, 12)
        for text in ('2026-11-20T12:00:00', '2026-11-20T12:00:00Z',
                     '2026-11-20T12:00', '2026-11-20t12:00:00.000z',
                     '2026-11-20T14:30:00+02:30'):
            self.assertEqual(noon, request_validation.parse_time(text), text)
