# SPDX-License-Identifier: Apache-2.0
"""Sources against HTTP servers that speak their APIs, well and badly."""

import datetime
import time

import fixtures

from nova_preempt.power import power_errors
from nova_preempt.power import power_readings
from nova_preempt.power.sources import gnocchi
from nova_preempt.power.sources import kwapi
from nova_preempt.power.sources import prometheus
from tests.unit.power import base

# As [preemption] of nova.conf has them.
CREDENTIALS = """
[preemption]
auth_type = admin_token
endpoint = http://127.0.0.1:1
token = secret
"""

def vector(*series):
    return {'status': 'success',
            'data': {'resultType': 'vector', 'result': list(series)}}


def group(measures):
    return [{'group': {'original_resource_id': 'a'}, 'measures': measures}]


RUBBISH = (
    b'', b'<html>', b'{', b'[]', b'null', b'"x"',
    {'probes': 5}, {'probes': {'a': 5}},
    {'status': 'success'}, vector(7),
    vector({'metric': {'instance': 'a'}, 'value': [1]}),
    vector({'metric': {'instance': 'a'}, 'value': [1, 'x']}),
    vector({'metric': {'instance': 5}, 'value': [1, '1']}),
    group(7),
    group({'measures': {'i': {'m': {'mean': [[7, 8, 9]]}}}}),
    group({'measures': {'i': {'m': {'mean': [['noon', 8, 9]]}}}}))


class SourceTestCase(base.PowerTestCase):

    #: Of the source, and of the only request that it makes.
    name = None
    request = None

    def setUp(self):
        super().setUp()
        self.configure(CREDENTIALS)
        self.site = base.Site()
        self.url = self.serve(self.site)
        self.set_url(self.url)

    def set_url(self, url):
        self.set(**{f'{self.name}_url': url})

    def answer(self, answer):
        self.site.answers[self.request] = answer

    def make(self):
        raise NotImplementedError

    def read(self, *hosts):
        return {host: (reading.watts, reading.at) for host, reading in
                self.make().read(hosts).items()}

    def fails(self, *texts):
        exc = self.assertRaises(power_errors.SourceError, self.read, 'a')
        for text in texts:
            self.assertIn(text, str(exc))


class Faults:
    """Tests of each source with a failing server."""

    def test_refused_connections(self):
        self.set_url(self.nobody())
        self.fails('Unable to establish connection')

    def test_the_password_of_an_address_is_not_told(self):
        self.set_url(self.nobody().replace('//', '//me:hush@'))
        exc = self.assertRaises(power_errors.SourceError, self.read, 'a')
        self.assertIn('http://***@127.0.0.1', str(exc))
        self.assertNotIn('hush', str(exc))
        self.set_url(self.url.replace('//', '//me:hush@'))
        self.answer((500, b'at http://other:hush@h'))
        exc = self.assertRaises(power_errors.SourceError, self.read, 'a')
        self.assertIn(': 500 at http://***@h', str(exc))
        self.assertNotIn('hush', str(exc))

    def test_errors(self):
        for status in (400, 401, 403, 404, 500, 503):
            self.answer((status, b'<h1>Sorry\n</h1>' * 1000))
            self.fails(f': {status} <h1>Sorry </h1>')

    def test_rubbish(self):
        for content in RUBBISH:
            self.answer(content)
            try:
                found = self.read('a')
            except power_errors.SourceError:
                continue
            # An answer that has the form but not the host.
            self.assertEqual({}, found, content)

    def test_slow(self):
        self.useFixture(fixtures.MockPatchObject(power_readings, 'TIMEOUT_S',
                                                 1))
        self.site.hangs = True
        begin_s = time.monotonic()
        self.fails('timed out')
        self.assertLess(time.monotonic() - begin_s, 20)


class TestKwapi(Faults, SourceTestCase):

    name = 'kwapi'
    request = ('GET', '/v1/probes/')

    def make(self):
        return kwapi.Kwapi(self.conf, self.conf.energy)

    def test_probes(self):
        self.set_hosts(b={'source_names': {'kwapi': 'rack1.17'}})
        self.answer({'probes': {
            'a': {'timestamp': base.NOW_S, 'kwh': 1.5, 'w': 217.5},
            'rack1.17': {'timestamp': base.NOW_S - 9, 'kwh': 0, 'w': 90},
            'other': {'timestamp': base.NOW_S, 'kwh': 0, 'w': 1}}})
        self.assertEqual(
            {'a': (217.5, base.NOW),
             'b': (90, base.NOW - datetime.timedelta(seconds=9))},
            self.read('a', 'b', 'c'))
        self.assertEqual('secret',
                         self.site.requests[0].headers['X-Auth-Token'])

    def test_a_broken_probe_is_no_reading(self):
        self.set(sources=['kwapi'])
        now_s = power_readings.utcnow().timestamp()
        self.answer({'probes': {
            'a': {'timestamp': now_s, 'w': None},
            'b': {'timestamp': 'noon', 'w': 100},
            'c': {'w': 100},
            'd': {'timestamp': now_s, 'w': -1},
            'e': {'timestamp': now_s - 301, 'w': 100},
            'f': {'timestamp': now_s, 'w': 100}}})
        chain = power_readings.PowerReader(self.conf)
        self.assertEqual(['f'], list(chain.read('abcdef')))


class TestPrometheus(Faults, SourceTestCase):

    name = 'prometheus'
    request = ('POST', '/api/v1/query')

    def make(self):
        return prometheus.Prometheus(self.conf, self.conf.energy)

    def vector(self, *series, label='instance'):
        self.answer(vector(*(
            {'metric': {label: host}, 'value': [base.NOW_S, watts]}
            for host, watts in series)))

    def test_hosts_with_and_without_ports(self):
        self.set_hosts(c={'source_names': {'prometheus': 'bmc-c:9290'}})
        self.vector(('a:9290', '217.5'), ('b', '90'), ('bmc-c:9290', '3'),
                    ('bmc-c:9100', '4'), ('d:1', '5'), ('d:2', '5'))
        # Which of the two is d's, nobody knows.
        self.assertEqual(
            {'a': (217.5, base.NOW), 'b': (90.0, base.NOW),
             'c': (3.0, base.NOW)}, self.read('a', 'b', 'c', 'd', 'e'))

    def test_the_query(self):
        self.set(prometheus_host_label='node_name', prometheus_query='kepler')
        self.vector(('a', '1'), label='node_name')
        self.assertEqual(['a'], list(self.read('a')))
        request, = self.site.requests
        self.assertEqual(
            {'query': 'max by (node_name) (kepler_platform_watts)',
             'lookback_delta': '300s', 'timeout': '10s'},
            dict(request.POST))
        self.assertNotIn('Authorization', request.headers)

    def test_a_query_of_ones_own(self):
        self.set(prometheus_query='sum by (instance) (pdu_watts{x="%s"})')
        self.vector()
        self.read('a')
        self.assertEqual('sum by (instance) (pdu_watts{x="%s"})',
                         self.site.requests[0].POST['query'])

    def test_nan_passes_as_no_reading(self):
        self.set(sources=['prometheus'])
        self.vector(('a', 'NaN'), ('b', '+Inf'))
        self.assertEqual({}, power_readings.PowerReader(
            self.conf, clock=base.clock).read(['a', 'b']))

    def test_token(self):
        self.vector()
        path = self.write('token', 'abc\n')
        self.set(prometheus_token_file=path)
        self.read('a')
        self.assertEqual('Bearer abc',
                         self.site.requests[0].headers['Authorization'])
        self.set(prometheus_token_file=path + 'x')
        self.fails('No such file')

    def test_errors_of_prometheus_are_told(self):
        self.answer((400, {'status': 'error', 'errorType': 'bad_data',
                           'error': 'parse error: unexpected character'}))
        self.fails('parse error: unexpected character')
        self.answer({'status': 'success', 'data': {
            'resultType': 'scalar', 'result': [1, '2']}})
        self.fails('the query must return a vector, not a scalar')
        self.vector(('a', '1'), label='job')
        self.fails('without label instance')


class TestGnocchi(Faults, SourceTestCase):

    name = 'gnocchi'
    request = ('POST', '/v1/aggregates')

    def make(self):
        return gnocchi.Gnocchi(self.conf, self.conf.energy, base.clock)

    def groups(self, **series):
        self.answer([{
            'group': {'original_resource_id': host},
            'measures': {'measures': {f'uuid-of-{host}': {
                'hardware.ipmi.node.power': {'mean': points}}}}}
            for host, points in series.items()])

    def test_last_period(self):
        self.set_hosts(b={'source_names': {'gnocchi': 'compute-b'}})
        self.groups(**{
            'a': [['2026-11-20T11:55:00+00:00', 300.0, 190.0],
                  ['2026-11-20T11:55:00+00:00', 60.0, 200.0],
                  ['2026-11-20T11:56:00+00:00', 60.0, 210.0]],
            # Its period is not over yet.
            'compute-b': [['2026-11-20T11:55:00+00:00', 600.0, 90.0]],
            'c': [], 'other': [['2026-11-20T11:55:00+00:00', 60.0, 1.0]]})
        self.assertEqual(
            {'a': (210.0, base.NOW - datetime.timedelta(minutes=3)),
             'b': (90.0, base.NOW)}, self.read('a', 'b', 'c'))

    def test_the_shortest_of_equal_periods(self):
        self.groups(a=[['2026-11-20T11:55:00+00:00', 300.0, 190.0],
                       ['2026-11-20T11:55:00+00:00', 60.0, 200.0]])
        self.assertEqual(200.0, self.read('a')['a'][0])

    def test_the_request(self):
        self.groups()
        self.assertEqual({}, self.read('b', 'a'))
        request, = self.site.requests
        self.assertEqual('secret', request.headers['X-Auth-Token'])
        self.assertEqual({'groupby': 'original_resource_id',
                          'start': '2026-11-20T11:50:00'}, dict(request.GET))
        self.assertEqual(
            {'operations': ['metric', 'hardware.ipmi.node.power', 'mean'],
             'resource_type': 'ipmi',
             'search': {'in': {'original_resource_id': ['a', 'b']}}},
            request.json)
