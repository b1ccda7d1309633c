# SPDX-License-Identifier: Apache-2.0
"""Leases of a Blazar, in the words of Blazar's own API."""

# By name: up to Nova 2025.2 http.server, asked of the package, can be the one
# that eventlet made for itself.
from http.server import BaseHTTPRequestHandler
from http.server import HTTPServer
import json
import threading
import unittest
from unittest import mock

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from oslo_config import cfg

import nova_preempt.conf
from nova_preempt.conf import reservation_blazar
from nova_preempt.core.reservation import leases as core
from nova_preempt.reservation.lease_service import blazar
from tests.unit.reservation import support


def reservation(reservation_id, status, resource_type='physical:host'):
    return {'id': reservation_id, 'lease_id': 'l', 'status': status,
            'resource_id': '7', 'resource_type': resource_type,
            'missing_resources': False, 'resources_changed': False,
            'min': 1, 'max': 1}


def lease(status, start, end, *reservations, project='p1'):
    return {'id': 'l', 'name': 'l', 'status': status, 'degraded': False,
            'start_date': start, 'end_date': end, 'project_id': project,
            'user_id': 'u', 'trust_id': 't', 'events': [],
            'created_at': '2017-12-27 10:00:00', 'updated_at': None,
            'reservations': list(reservations)}


NEW_YEAR_S = 1514764800

ANSWERS = {
    '/v1/leases': {'leases': [
        lease('ACTIVE', '2018-01-01T00:00:00.000000',
              '2018-01-01T01:00:00.000000',
              reservation('r1', 'active'),
              reservation('r2', 'active', 'virtual:instance')),
        lease('PENDING', '2018-01-02T00:00:00.000000',
              '2018-01-03T00:00:00.000000',
              reservation('r3', 'pending'), project='p2'),
        lease('TERMINATED', '2017-01-02T00:00:00.000000',
              '2017-01-03T00:00:00.000000', reservation('r4', 'deleted')),
        lease('ERROR', '2017-01-02T00:00:00.000000',
              '2017-01-03T00:00:00.000000', reservation('r5', 'error')),
    ]},
    '/v1/os-hosts/allocations': {'allocations': [
        {'resource_id': '1', 'reservations': [
            {'id': 'r1', 'lease_id': 'l',
             'start_date': '2018-01-01T00:00:00.000000',
             'end_date': '2018-01-01T01:00:00.000000'},
            {'id': 'r3', 'lease_id': 'l',
             'start_date': '2018-01-02T00:00:00.000000',
             'end_date': '2018-01-03T00:00:00.000000'}]},
        {'resource_id': '2', 'reservations': [{'id': 'r1'}]},
        {'resource_id': '9', 'reservations': [{'id': 'r1'}]},
        {'resource_id': '3', 'reservations': []},
    ]},
    '/v1/os-hosts': {'hosts': [
        {'id': number, 'hypervisor_hostname': f'host{number}',
         'hypervisor_type': 'QEMU', 'vcpus': 4, 'reservable': True}
        for number in ('1', '2', '3')]},
}


class Handler(BaseHTTPRequestHandler):

    def do_GET(self):
        self.server.seen.append(
            (self.path, self.headers['OpenStack-API-Version']))
        answer = self.server.answers.get(self.path)
        self.send_response(200 if answer else 503)
        self.send_header('Content-Type', 'application/json')
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *args):
        """Say nothing."""


class TestBlazar(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.server = HTTPServer(('127.0.0.1', 0), Handler)
        self.server.answers = dict(ANSWERS)
        self.server.seen = []
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def service(self, path='/v1'):
        conf = cfg.ConfigOpts()
        nova_preempt.conf.register_opts(conf)
        conf([], default_config_files=[])
        for name, value in (
                ('auth_type', 'none'),
                ('endpoint_override',
                 f'http://127.0.0.1:{self.server.server_port}{path}')):
            conf.set_override(name, value, reservation_blazar.GROUP)
        return blazar.BlazarLeases(conf)

    def test_host_leases(self):
        service = self.service()
        self.assertEqual([
            support.lease('r1', NEW_YEAR_S, NEW_YEAR_S + 3600, 'host1',
                          'host2', project='p1', status=core.ACTIVE),
            support.lease('r3', NEW_YEAR_S + 86400, NEW_YEAR_S + 2 * 86400,
                          'host1', project='p2'),
        ], service.fetch())
        self.assertEqual([(path, 'reservation 1.0') for path in ANSWERS],
                         self.server.seen)

    def test_with_and_without_the_version_in_the_address(self):
        for path in ('', '/', '/v1/'):
            self.assertEqual(2, len(self.service(path).fetch()))

    def test_an_ended_one(self):
        service = self.service()
        service.fetch()
        self.assertEqual(core.ENDED, service.get('r4').status)
        self.assertIsNone(service.get('r5'))

    def test_gives_the_same_while_nothing_changes(self):
        service = self.service()
        found = service.fetch()
        self.assertIs(found, service.fetch())
        self.server.answers['/v1/leases'] = {'leases': []}
        self.assertEqual([], service.fetch())

    def test_errors_are_raised(self):
        service = self.service()
        del self.server.answers['/v1/os-hosts']
        self.assertRaises(Exception, service.fetch)  # noqa: B017 (any)

    def test_is_found_once_it_is_in_the_catalog(self):
        service = self.service()
        with mock.patch.object(adapter.Adapter, 'get',
                               side_effect=ks_exc.EndpointNotFound):
            self.assertRaises(ks_exc.EndpointNotFound, service.fetch)
        with mock.patch.object(service, '_connect',
                               side_effect=service._connect) as connect:
            service.fetch()
            service.fetch()
        connect.assert_called_once_with()

    def test_is_not_waited_for_for_ever(self):
        conf = self.service()._conf
        self.assertEqual(10, conf.reservation_blazar.timeout)

    def test_dates(self):
        for date in ('2018-01-01T00:00:00.000000', '2018-01-01T00:00:00',
                     '2018-01-01 00:00:00', '2018-01-01 00:00'):
            self.assertEqual(NEW_YEAR_S, blazar._seconds(date))
        self.assertRaises(ValueError, blazar._seconds, 'soon')
