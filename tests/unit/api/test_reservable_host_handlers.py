# SPDX-License-Identifier: Apache-2.0
"""Hosts, properties and limits, as administrators and users see them."""

from unittest import mock

from nova_preempt.api import reservation_schemas
from nova_preempt.db import reservable_hosts
from nova_preempt.reservation import reservation_scheduler
from tests.unit.api import base

ADMIN = 'admin:z'


class ReservableTestCase(base.AnsweringTestCase):

    microversion = '1.1'

    def setUp(self):
        super().setUp()
        for number in range(3):
            self.inventory.add(f'host{number}', vcpus=8 * number)


class TestProperties(ReservableTestCase):

    def names(self, token='u:p'):
        return {item['name']: item['hidden'] for item in self.get(
            '/v1/properties', token)['properties']}

    def test_list(self):
        found = self.get('/v1/properties')['properties']
        self.assertEqual(
            {'name': 'vcpus', 'type': 'text', 'values': [0, 8, 16],
             'hidden': False}, found[1])

    def test_hidden(self):
        path = '/v1/properties/vcpus'
        self.assertEqual({'traits': False, 'vcpus': False}, self.names())
        answer = self.patch(path, {'property': {'hidden': True}}, ADMIN)
        self.assertTrue(answer['property']['hidden'])
        self.assertEqual({'traits': False}, self.names())
        self.assertEqual({'traits': False, 'vcpus': True}, self.names(ADMIN))
        self.patch(path, {'property': {'hidden': False}}, ADMIN)
        self.assertEqual({'traits': False, 'vcpus': False}, self.names())

    def test_a_property_without_hosts_can_be_unhidden(self):
        reservable_hosts.set_hidden(self.db, 'extra.rack', True)
        path = '/v1/properties/extra.rack'
        body = {'property': {'hidden': False}}
        self.assertEqual([], self.patch(path, body, ADMIN)['property']
                         ['values'])
        self.assertEqual(set(), reservable_hosts.get_hidden(self.db))
        self.patch(path, body, ADMIN, 404)

    def test_refusals(self):
        path = '/v1/properties/vcpus'
        body = {'property': {'hidden': True}}
        self.patch(path, body, code=403)
        self.patch('/v1/properties/none', body, ADMIN, 404)
        for bad in ({'hidden': True}, {'property': {}},
                    {'property': {'hidden': 'yes'}},
                    {'property': {'hidden': True, 'name': 'x'}}):
            self.patch(path, bad, ADMIN, 400)


class TestHosts(ReservableTestCase):

    def test_list(self):
        hosts = self.get('/v1/hosts', ADMIN)['hosts']
        self.assertEqual(['host0', 'host1', 'host2'],
                         [host['name'] for host in hosts])
        self.assertEqual({
            'name': 'host1', 'service_host': 'host1-service', 'state': 'up',
            'status': 'enabled', 'vacant': True, 'running_servers': 0,
            'flops_per_watt': None, 'reservable': True, 'extra': {},
            'properties': {'vcpus': 8, 'traits': []}, 'reservations': []},
            hosts[1])

    def test_pages(self):
        answer = self.get('/v1/hosts?limit=2', ADMIN)
        self.assertEqual(2, len(answer['hosts']))
        link = answer['hosts_links'][0]['href']
        self.assertIn('marker=host1', link)
        answer = self.get(link, ADMIN)
        self.assertEqual(['host2'], [host['name'] for host
                                     in answer['hosts']])
        self.assertNotIn('hosts_links', answer)

    def test_show(self):
        self.assertEqual('host2', self.get('/v1/hosts/host2', ADMIN)
                         ['host']['name'])
        for name in ('none', '%ff', 'x' * 256, '%00'):
            self.get(f'/v1/hosts/{name}', ADMIN, 404)

    def test_names_are_utf_8(self):
        self.inventory.add('h\u00f6st')
        self.assertEqual('h\u00f6st', self.get(
            '/v1/hosts/h%c3%b6st', ADMIN)['host']['name'])

    def change(self, code=200, token=ADMIN, **values):
        return self.patch('/v1/hosts/host1', {'host': values}, token,
                          code).get('host')

    def test_reservable(self):
        self.assertFalse(self.change(reservable=False)['reservable'])
        self.conf.set_override('reservable_default', False, 'reservation')
        self.assertTrue(self.change(reservable=True)['reservable'])
        self.assertFalse(self.change(reservable=None)['reservable'])

    def test_extra_properties(self):
        host = self.change(extra={'rack': 'r1', 'gpus': ['a', 'b'], 'u': 4})
        self.assertEqual({'rack': 'r1', 'gpus': ['a', 'b'], 'u': 4},
                         host['extra'])
        self.assertEqual('r1', host['properties']['extra.rack'])
        host = self.change(extra={'rack': None, 'u': 5, 'ssd': True})
        self.assertEqual({'gpus': ['a', 'b'], 'u': 5, 'ssd': True},
                         host['extra'])
        self.assertTrue(self.change(reservable=True)['extra']['ssd'])
        self.assertEqual(
            host['extra'],
            self.get('/v1/hosts/host1', ADMIN)['host']['extra'])

    def test_simultaneous_changes_of_extra_properties(self):
        write = reservable_hosts.set_host

        def somebody_is_faster(database, host, **values):
            write(database, host, extra={'rack': 'r1'})
            return write(database, host, **values)

        with mock.patch.object(reservable_hosts, 'set_host',
                               somebody_is_faster):
            host = self.change(extra={'u': 4})
        self.assertEqual({'rack': 'r1', 'u': 4}, host['extra'])

    def test_refusals(self):
        for values in ({}, {'name': 'x'}, {'reservable': 'yes'},
                       {'extra': []}, {'extra': {'a b': 1}},
                       {'extra': {'': 1}}, {'extra': {'a': {}}},
                       {'extra': {'a': [[1]]}}, {'extra': {'a': 1e300}},
                       {'extra': {'a': 'x' * 256}}):
            self.change(400, **values)
        self.patch('/v1/hosts/host1', b'{"host": {"extra": {"a": 1e999}}}',
                   ADMIN, 400)
        self.patch('/v1/hosts/none', {'host': {'reservable': True}}, ADMIN,
                   404)

    def test_users_see_no_hosts(self):
        self.get('/v1/hosts', code=403)
        self.get('/v1/hosts/host1', code=403)
        self.change(403, 'u:p', reservable=False)


class TestLimits(ReservableTestCase):

    path = '/v1/reservation-limits/p'
    default = {'max_reservations': 10, 'max_hosts': 4,
               'max_duration_s': 7 * 86400, 'max_advance_s': 90 * 86400,
               'max_created_per_day': 100}

    def test_defaults(self):
        self.assertEqual({
            'project_id': 'p', 'limits': self.default, 'own': {}},
            self.get(self.path)['reservation_limits'])

    def test_there_are_no_others(self):
        self.assertEqual(set(reservation_scheduler.LIMITS),
                         self.default.keys())
        self.assertEqual(set(reservation_scheduler.LIMITS),
                         set(reservation_schemas.LIMITS))

    def test_own_limits(self):
        own = {'max_hosts': 3, 'max_advance_s': -1}
        answer = self.put(self.path, {'reservation_limits': own}, ADMIN)
        self.assertEqual({
            'project_id': 'p', 'limits': {**self.default, **own},
            'own': own}, answer['reservation_limits'])
        self.assertEqual(answer, self.get(self.path))
        # What is not named again is as for everybody.
        self.put(self.path, {'reservation_limits': {'max_hosts': 5}}, ADMIN)
        self.assertEqual({**self.default, 'max_hosts': 5}, self.get(
            self.path)['reservation_limits']['limits'])
        self.delete(self.path, ADMIN)
        self.delete(self.path, ADMIN)
        self.assertEqual({}, self.get(self.path)['reservation_limits']['own'])

    def test_limits_of_other_projects(self):
        self.get(self.path, 'u:q', 403)
        self.get(self.path, ADMIN)
        self.put(self.path, {'reservation_limits': {}}, code=403)
        self.delete(self.path, code=403)

    def test_refusals(self):
        for own in ({'max_hosts': -2}, {'max_hosts': '3'},
                    {'max_duration': 3}, {'max_hosts': None}):
            self.put(self.path, {'reservation_limits': own}, ADMIN, 400)
        self.get('/v1/reservation-limits/%00', ADMIN, 404)


class TestNamesOfHosts(ReservableTestCase):

    def test_only_administrators_see_and_ask_for_them(self):
        self.inventory.add('h9', hypervisor_hostname='h9')
        wanted = {'reservation': {
            'duration': 60,
            'host_properties': ['=', '$hypervisor_hostname', 'h9']}}
        self.assertNotIn('hypervisor_hostname', {
            item['name'] for item in self.get('/v1/properties')[
                'properties']})
        self.post('/v1/reservations', wanted, code=400)
        shown = {item['name']: item for item in self.get(
            '/v1/properties', ADMIN)['properties']}
        self.assertTrue(shown['hypervisor_hostname']['hidden'])
        self.post('/v1/reservations', wanted, ADMIN, 201)
        # Not by mistake.
        answer = self.patch('/v1/properties/hypervisor_hostname', {
            'property': {'hidden': False}}, ADMIN, 409)
        self.assertIn('hidden_properties', answer['error']['message'])


class TestReservationsAreOff(base.ApiTestCase):

    microversion = '1.1'

    def test_the_answer_says_so(self):
        self.conf.set_override('enabled', False, 'reservation')
        for path in ('/v1/reservations', '/v1/reservations/preview'):
            answer = self.post(path, {'reservation': {
                'quantity': 500, 'duration': 2592000}}, code=403)
            self.assertIn('[reservation]enabled is false',
                          answer['error']['message'])
        self.assertEqual([], self.get('/v1/reservations')['reservations'])


class TestNobodyAnswers(base.ApiTestCase):

    microversion = '1.1'
    options = f'{base.ApiTestCase.options}rpc_timeout_s = 1\n'

    def test_timeout(self):
        for path in ('properties', 'hosts', 'hosts/x'):
            answer = self.get(f'/v1/{path}', ADMIN, 503)
            self.assertEqual('The engine did not answer in time.',
                             answer['error']['message'])
