# SPDX-License-Identifier: Apache-2.0
"""Reservations as users and administrators make, see and end them."""

import datetime
import json

from oslo_utils import timeutils

from nova_preempt.api import reservation_views
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservable_hosts
from nova_preempt.reservation import reservation_scheduler
from tests.unit.api import base
from tests.unit.api.base import make_uuid

ADMIN = 'admin:z'
PATH = '/v1/reservations'
HOUR_S = 3600
# What hosts are called to a member of project p.
NAME = {name: reservation_views.host_id('p', name)
        for name in ('host0', 'host1')}


class ReservationTestCase(base.AnsweringTestCase):
    """Two hosts, and reservations that begin in the next days."""

    microversion = '1.1'

    def setUp(self):
        super().setUp()
        self.inventory.add('host0', vcpus=8)
        self.inventory.add('host1', vcpus=16)
        #: What the day is does not matter, but that it is to come.
        self.day = timeutils.utcnow().replace(
            hour=0, minute=0, second=0, microsecond=0) + datetime.timedelta(2)

    def at(self, hours):
        time = self.day + datetime.timedelta(hours=hours)
        return f'{time.isoformat()}Z'

    def create(self, start=0, end=1, token='u:p', code=201, **values):
        """Reserve a host for these hours of the day, None for no time."""
        times = {name: self.at(hours) for name, hours in (
            ('start_time', start), ('end_time', end)) if hours is not None}
        answer = self.post(PATH, {'reservation': {**times, **values}}, token,
                           code)
        return answer.get('reservation') or answer['error']['message']

    def preview(self, token='u:p', code=200, **values):
        answer = self.post(f'{PATH}/preview', {'reservation': values}, token,
                           code)
        return answer.get('preview') or answer['error']['message']

    def show(self, uuid, token='u:p', code=200):
        return self.get(f'{PATH}/{uuid}', token, code).get('reservation')

    def change(self, uuid, token='u:p', code=200, **values):
        answer = self.patch(f'{PATH}/{uuid}', {'reservation': values}, token,
                            code)
        return answer.get('reservation') or answer['error']['message']

    def ids(self, query='', token='u:p'):
        return [item['id'] for item in self.get(
            f'{PATH}{query}', token)['reservations']]


class TestCreate(ReservationTestCase):

    def test_answer(self):
        made = self.create(
            0, 10, duration=2 * HOUR_S, quantity=2, name='wrf',
            host_properties=['>=', '$vcpus', 8], end_action='delete',
            before_end_s=60)
        host = {'start_at': self.at(0), 'end_at': self.at(2),
                'status': 'assigned', 'reason': ''}
        for name in ('id', 'created_at', 'updated_at'):
            self.assertTrue(made.get(name), name)
        self.assertEqual({
            'id': made['id'], 'created_at': made['created_at'],
            'updated_at': made['updated_at'], 'name': 'wrf',
            'project_id': 'p', 'user_id': 'u', 'status': 'pending',
            'reason': '', 'host_properties': ['>=', '$vcpus', 8],
            'quantity': 2, 'duration': 2 * HOUR_S,
            'start_time': self.at(0), 'end_time': self.at(10),
            'start_at': self.at(0), 'end_at': self.at(2),
            'end_action': 'delete', 'before_end_s': 60, 'ready_at': None,
            'released_at': None,
            'hosts': [{'name': NAME[name], 'host_id': NAME[name], **host}
                      for name in ('host0', 'host1')],
        }, made)
        self.assertEqual(made, self.show(made['id']))

    def test_defaults(self):
        made = self.create()
        self.assertEqual(
            (1, HOUR_S, 'shelve', HOUR_S, '', []),
            tuple(made[name] for name in (
                'quantity', 'duration', 'end_action', 'before_end_s', 'name',
                'host_properties')))

    def test_earliest_start(self):
        self.create(0, 3, quantity=2)
        made = self.create(0, 9, duration=HOUR_S, quantity=2)
        self.assertEqual((self.at(3), self.at(4)),
                         (made['start_at'], made['end_at']))

    def test_now(self):
        for _number in range(2):
            made = self.create(None, None, duration=HOUR_S)
            self.assertEqual(made['start_time'], made['start_at'])
        message = self.create(None, None, duration=HOUR_S, code=409)
        # When others' end is nobody else's business.
        self.assertIn('A preview with a later end_time', message)
        self.assertNotIn('earliest', message)
        self.assertIn('is the earliest time', self.create(
            None, None, ADMIN, duration=HOUR_S, code=409))

    def test_no_more_than_so_many_a_day(self):
        self.conf.set_override('max_created_per_day', 2, 'reservation')
        for _number in range(2):
            self.delete(f'{PATH}/{self.create()["id"]}')
        self.assertIn('max_created_per_day would be exceeded: 2 allowed, 2 '
                      'used, 1 requested', self.create(code=403))
        self.create(token='u:q')

    def test_members_are_not_told_of_others(self):
        made = self.create()
        mine = self.schedule().reservations
        mine.replace_host(made['id'], 'host0', None,
                          'server 1234 of others: No valid host',
                          'a host could not be emptied')
        found = self.show(made['id'])
        said = '1 of 1 hosts are missing'
        self.assertEqual(f'{said}: a host could not be emptied',
                         found['reason'])
        self.assertEqual([(NAME['host0'], 'a host could not be emptied')],
                         [(item['name'], item['reason'])
                          for item in found['hosts']])
        listed, = self.get(PATH)['reservations']
        self.assertEqual(found, listed)
        found = self.show(made['id'], ADMIN)
        self.assertEqual(f'{said}: server 1234 of others: No valid host',
                         found['reason'])
        self.assertEqual([('host0', NAME['host0'])],
                         [(item['name'], item['host_id'])
                          for item in found['hosts']])

    def test_reasons_of_earlier_releases_are_for_administrators(self):
        made = self.create()
        self.schedule().reservations.update(
            made['id'], reason='server 1234', public_reason=None)
        self.assertEqual(['', 'server 1234'], [
            self.show(made['id'], token)['reason']
            for token in ('u:p', ADMIN)])

    def schedule(self):
        return reservation_scheduler.ReservationScheduler(self.conf, self.db,
                                                          None)

    def test_now_needs_vacant_hosts(self):
        self.inventory.hosts['host0']['vacant'] = False
        made = self.create(None, None, duration=HOUR_S)
        self.assertEqual([NAME['host1']],
                         [item['name'] for item in made['hosts']])
        self.create(None, None, duration=HOUR_S, code=409)
        self.create(duration=HOUR_S, quantity=1)

    def test_offsets(self):
        made = self.post(PATH, {'reservation': {
            'start_time': self.at(3)[:-1] + '+02:00', 'duration': 60}},
            code=201)['reservation']
        self.assertEqual(self.at(1), made['start_at'])

    def test_filters(self):
        text = json.dumps(['=', '$vcpus', 16])
        for properties in (['=', '$vcpus', 16], text):
            made = self.create(host_properties=properties)
            self.assertEqual(NAME['host1'], made['hosts'][0]['name'])
            self.assertEqual(['=', '$vcpus', 16], made['host_properties'])
            self.delete(f'{PATH}/{made["id"]}')
        for properties in ([], ''):
            self.assertEqual([], self.create(
                host_properties=properties)['host_properties'])
        self.create(host_properties=['>', '$vcpus', 16], code=409)

    def test_hosts_of_other_reservations(self):
        self.create(0, 2)
        self.create(1, 3, 'u:q')
        self.create(1, 2, 'u:q', 409)
        # One ends where the other starts.
        self.create(2, 3, 'u:q')

    def test_hosts_that_are_not_reservable(self):
        reservable_hosts.set_host(self.db, 'host0', reservable=False)
        self.create(quantity=2, code=409)
        self.assertEqual(NAME['host1'], self.create()['hosts'][0]['name'])


class TestRefusals(ReservationTestCase):

    def test_fields(self):
        for field, start, end, values in (
                ('start_time', -1000, None, {'duration': 60}),
                ('end_time', None, -1000, {'duration': 60}),
                ('end_time', 2, 1, {'duration': 60}),
                ('end_time', 2, 2, {}),
                ('duration', 0, 1, {'duration': HOUR_S + 1}),
                ('duration', None, None, {}), ('duration', 0, None, {}),
                ('duration', 0, 1, {'duration': 0}),
                ('duration', 0, 1, {'duration': 1.5}),
                ('duration', 0, 1, {'duration': '60'}),
                ('duration', 0, 1, {'duration': True}),
                ('quantity', 0, 1, {'quantity': 0}),
                ('quantity', 0, 1, {'quantity': 2 ** 31}),
                ('host_properties', 0, 1, {'host_properties': {}}),
                ('host_properties[0]', 0, 1, {'host_properties': ['gt']}),
                ('host_properties[1][0]', 0, 1,
                 {'host_properties': ['not', ['gt', '$vcpus', 8]]}),
                ('host_properties', 0, 1, {'host_properties': '["="'}),
                ('host_properties', 0, 1,
                 {'host_properties': ['=', '$vcpu', 8]}),
                ('end_action', 0, 1, {'end_action': 'stop'}),
                ('before_end_s', 0, 1, {'before_end_s': -1}),
                ('name', 0, 1, {'name': ''}),
                ('hosts', 0, 1, {'hosts': []})):
            message = self.create(start, end, code=400, **values)
            self.assertIn(f"Invalid field 'reservation.{field}': ", message)
        self.assertEqual([], self.ids())

    def test_no_times(self):
        for time in ('now', '2026-12-01', '2026-12-01T25:00', '', 5, None):
            for field in ('start_time', 'end_time'):
                answer = self.post(PATH, {'reservation': {
                    'duration': 60, field: time}}, code=400)
                self.assertIn(f"'reservation.{field}'",
                              answer['error']['message'])

    def test_the_last_of_all_times(self):
        for name in reservation_scheduler.LIMITS:
            self.conf.set_override(name, -1, 'reservation')
        for time in ('9999-12-31T23:59:59', '8999-12-31T23:59:59',
                     '9999-12-31T23:59:59-12:00'):
            for values in ({'start_time': time}, {'end_time': time}):
                for duration in (1, 2 ** 31 - 1):
                    response = self.request(
                        PATH, 'POST', content_type='application/json',
                        body=json.dumps({'reservation': {
                            'duration': duration, **values}}).encode())
                    self.assertIn(response.status_int, (201, 400, 409),
                                  response.text)

    def test_numbers_that_json_does_not_know(self):
        body = (b'{"reservation": {"duration": 60, "host_properties": '
                b'["=", "$vcpus", 1e999]}}')
        self.post(PATH, body, code=400)

    def test_surrogates(self):
        for properties in (['=', '$vcpus', '\ud800'],
                           ['=', '$\ud800', 1],
                           ['not', ['=', '$vcpus', '\ud800']]):
            self.assertIn('unpaired surrogate', self.create(
                host_properties=properties, code=400))

    def test_hidden_properties(self):
        reservable_hosts.set_hidden(self.db, 'vcpus', True)
        properties = ['=', '$vcpus', 8]
        message = self.create(host_properties=properties, code=400)
        self.assertEqual(
            "Invalid field 'reservation.host_properties': no host has the "
            'property "vcpus".', message)
        self.create(host_properties=properties, token=ADMIN)

    def test_limits(self):
        for name, value, message, values in (
                ('max_hosts', 1, '1 allowed, 0 used, 2 requested', {
                    'quantity': 2}),
                ('max_duration_s', 60, '60 allowed, 0 used, 3600 ', {}),
                ('max_advance_s', 60, '60 allowed, 0 used', {}),
                ('max_reservations', 0, '0 allowed, 0 used, 1 requested', {})):
            reservable_hosts.set_limits(self.db, 'p', {name: value})
            refusal = self.create(code=403, **values)
            self.assertIn(name, refusal)
            self.assertIn(message, refusal)
            self.create(token='u:q', **values)
            for uuid in self.ids('?status=pending', 'u:q'):
                self.delete(f'{PATH}/{uuid}', 'u:q')


class TestPreview(ReservationTestCase):

    def test_possible(self):
        self.create(0, 3, quantity=2)
        self.assertEqual({
            'possible': True, 'start_at': self.at(3), 'end_at': self.at(4),
            'hosts': [NAME['host0']]}, self.preview(
                start_time=self.at(1), end_time=self.at(9), duration=HOUR_S))
        self.assertEqual(1, len(self.ids()))

    def test_impossible(self):
        self.create(0, 3, quantity=2)
        self.assertEqual(
            {'possible': False, 'start_at': None, 'end_at': None,
             'hosts': []},
            self.preview(start_time=self.at(1), end_time=self.at(3)))

    def test_refusals(self):
        self.assertIn('duration', self.preview(code=400))
        self.assertIn("'reservation.host_properties[0]'", self.preview(
            code=400, duration=60, host_properties=['x']))
        reservable_hosts.set_limits(self.db, 'p', {'max_hosts': 1})
        self.assertIn('max_hosts', self.preview(
            code=403, duration=60, quantity=2))


class TestList(ReservationTestCase):

    def test_own(self):
        first = self.create()['id']
        other = self.create(token='u:q')['id']
        self.assertEqual([first], self.ids())
        self.assertEqual([other], self.ids(token='u:q'))
        self.assertEqual([], self.ids(token=ADMIN))
        self.assertEqual({first, other}, set(self.ids(
            '?all_projects=true', ADMIN)))
        self.assertEqual([other], self.ids('?project_id=q', ADMIN))
        self.assertEqual([other], self.ids('?host=host1&all_projects=true',
                                           ADMIN))
        for query in ('all_projects=true', 'project_id=p', 'host=host0'):
            self.get(f'{PATH}?{query}', code=403)

    def test_filters(self):
        early = self.create(0, 1, name='early')['id']
        late = self.create(5, 6, name='late')['id']
        self.delete(f'{PATH}/{late}')
        for query, found in (
                ('name=early', [early]), ('name=x', []),
                ('status=cancelled', [late]), ('status=pending', [early]),
                (f'since={self.at(1)}', [late]),
                (f'until={self.at(5)}', [early]),
                (f'since={self.at(0.5)}&until={self.at(0.6)}', [early]),
                (f'since={self.at(1)}&until={self.at(5)}', [])):
            self.assertEqual(found, self.ids(f'?{query}'), query)
        for query in ('status=x', 'since=x', 'nmae=x', 'limit=0'):
            self.get(f'{PATH}?{query}', code=400)

    def test_pages(self):
        made = {self.create(hour, hour + 1)['id'] for hour in range(5)}
        seen = []
        link = f'{PATH}?limit=2'
        while link:
            answer = self.get(link)
            seen += [item['id'] for item in answer['reservations']]
            link = answer.get('reservations_links', [{}])[0].get('href')
        self.assertEqual((5, made), (len(seen), set(seen)))

    def test_markers(self):
        uuid = self.create(token='u:q')['id']
        for marker in (uuid, make_uuid('none'), 'x'):
            self.get(f'{PATH}?marker={marker}', code=400)
        self.get(f'{PATH}?marker={uuid}&all_projects=true', ADMIN)


class TestOne(ReservationTestCase):

    def test_reservations_of_other_projects_are_not_found(self):
        uuid = self.create()['id']
        for path in (uuid, make_uuid('none'), 'x'):
            self.show(path, 'u:q', 404)
            self.change(path, 'u:q', 404, name='x')
            self.delete(f'{PATH}/{path}', 'u:q', 404)
        self.assertEqual(uuid, self.show(uuid, ADMIN)['id'])
        self.change(uuid, ADMIN, name='x')
        self.delete(f'{PATH}/{uuid}', ADMIN)
        self.assertEqual('cancelled', self.show(uuid)['status'])

    def test_change(self):
        uuid = self.create(name='a')['id']
        changes = {'name': 'b', 'end_action': 'delete', 'before_end_s': 5}
        changed = self.change(uuid, **changes)
        self.assertEqual(changes, {name: changed[name] for name in changes})
        self.assertEqual(changed, self.show(uuid))
        for values in ({}, {'quantity': 2}, {'start_at': self.at(2)},
                       {'end_action': 'x'}, {'name': None}):
            self.change(uuid, code=400, **values)

    def test_end(self):
        uuid = self.create()['id']
        changed = self.change(uuid, end_at=self.at(3))
        self.assertEqual((self.at(3), 3 * HOUR_S),
                         (changed['end_at'], changed['duration']))
        self.create(5, 6, 'u:q', quantity=2)
        self.assertIn('not free', self.change(
            uuid, code=409, end_at=self.at(6)))
        self.assertEqual(self.at(2), self.change(
            uuid, end_at=self.at(2))['end_at'])
        self.assertIn("'reservation.end_at'", self.change(
            uuid, code=400, end_at=self.at(0)))
        reservable_hosts.set_limits(self.db, 'p', {'max_duration_s': 60})
        self.assertIn('max_duration_s', self.change(
            uuid, code=403, end_at=self.at(4)))

    def test_cancel(self):
        uuid = self.create(quantity=2)['id']
        self.delete(f'{PATH}/{uuid}')
        self.assertEqual('cancelled', self.show(uuid)['status'])
        self.create(quantity=2)
        self.assertIn('is cancelled', str(self.delete(f'{PATH}/{uuid}',
                                                      code=409)))
        self.change(uuid, code=409, name='x')

    def test_cancel_while_it_is_active(self):
        made = self.create(None, None, duration=HOUR_S)
        self.services.schedule.reservations.update(
            made['id'], status=reservation_model.ACTIVE)
        self.delete(f'{PATH}/{made["id"]}')
        found = self.show(made['id'])
        self.assertLess(found['end_at'], made['end_at'])

    def test_hosts_show_it(self):
        made = self.create()
        hosts = self.get('/v1/hosts', ADMIN)['hosts']
        self.assertEqual([{
            'id': made['id'], 'project_id': 'p', 'status': 'pending',
            'start_at': self.at(0), 'end_at': self.at(1)}],
            hosts[0]['reservations'])
        self.assertEqual([], hosts[1]['reservations'])

    def test_hosts_show_those_of_a_period(self):
        made = self.create()
        later = self.create(2, 3)

        def listed(query, version='1.10'):
            self.microversion = version
            return [item['id'] for host in self.get(
                f'/v1/hosts?{query}', ADMIN)['hosts']
                for item in host['reservations']]

        self.assertEqual([made['id']], listed(f'until={self.at(1)}'))
        self.assertEqual([later['id']], listed(f'since={self.at(1)}'))
        self.microversion = '1.9'
        self.assertIn('need microversion 1.10', self.get(
            f'/v1/hosts?since={self.at(1)}', ADMIN, 400)['error']['message'])


class TestMicroversion(ReservationTestCase):

    microversion = None

    def test_before_reservations(self):
        for path in (PATH, '/v1/hosts', '/v1/properties',
                     f'{PATH}/{make_uuid("x")}'):
            answer = self.get(path, ADMIN, 404)
            self.assertIn('preemption 1.1" or a later',
                          answer['error']['message'])
        self.get(PATH, headers={'OpenStack-API-Version': 'preemption 1.1'})


class TestNobodyAnswers(base.ApiTestCase):

    microversion = '1.1'
    options = f'{base.ApiTestCase.options}rpc_timeout_s = 1\n'

    def test_timeout(self):
        answer = self.post(PATH, {'reservation': {'duration': 60}}, code=503)
        self.assertEqual('The engine did not answer in time.',
                         answer['error']['message'])
        self.assertEqual([], self.get(PATH)['reservations'])
