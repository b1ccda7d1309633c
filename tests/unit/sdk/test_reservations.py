# SPDX-License-Identifier: Apache-2.0

import datetime
from unittest import mock

from openstack import exceptions
from openstack.identity.v3 import project
from oslo_utils import timeutils

from nova_preempt.api import pagination
from nova_preempt.db import reservable_hosts
from nova_preempt.db import reservations
from tests.unit.sdk import base


class ReservationTestCase(base.SdkTestCase):

    microversion = '1.2'

    def setUp(self):
        super().setUp()
        self.inventory.add('host0', vcpus=8)
        self.inventory.add('host1', vcpus=16)
        day = timeutils.utcnow().replace(microsecond=0)
        self.times = [f'{(day + datetime.timedelta(number)).isoformat()}Z'
                      for number in range(1, 5)]

    def create(self, **values):
        return self.member.create_reservation(
            start_time=self.times[0], end_time=self.times[1], **values)

    def set_status(self, uuid, status):
        reservations.Reservations(self.db).update(uuid, status=status)


class TestReservations(ReservationTestCase):

    def test_life(self):
        made = self.create(name='wrf', quantity=2,
                           host_properties=['>=', '$vcpus', 8])
        self.assertEqual(('wrf', 'pending', 86400, 2), (
            made.name, made.status, made.duration, len(made.hosts)))
        path = f'/v1/reservations/{made.id}'
        self.assertEqual(self.get(path)['reservation'], made.answer())
        found, = self.member.reservations(status='pending')
        self.assertEqual(made.answer(), found.answer())
        changed = self.member.update_reservation(
            found, name='b', end_at=self.times[2])
        self.assertEqual(('b', self.times[2]), (changed.name, changed.end_at))
        self.member.delete_reservation(changed)
        self.assertEqual('cancelled',
                         self.member.get_reservation(made.id).status)

    def test_find(self):
        self.assertIsNone(self.member.find_reservation('a'))
        self.raised(exceptions.NotFoundException,
                    self.member.find_reservation, 'a', ignore_missing=False)
        made = self.create(name='a')
        for name in ('a', made.id):
            self.assertEqual(made.id, self.member.find_reservation(name).id)
        self.create(name='a')
        self.raised(exceptions.DuplicateResource,
                    self.member.find_reservation, 'a')

    def test_preview(self):
        found = self.member.preview_reservation(
            start_time=self.times[0], end_time=self.times[1])
        self.assertEqual((True, self.times[0], 1), (
            found.possible, found.start_at, len(found.hosts)))
        self.assertEqual({'possible', 'start_at', 'end_at', 'hosts'},
                         set(found.answer()))
        self.assertEqual([], list(self.member.reservations()))

    def test_refusals(self):
        for error, message, values in (
                (exceptions.BadRequestException, 'reservation.quantity',
                 {'quantity': 0}),
                (exceptions.BadRequestException, 'quantitty',
                 {'quantitty': 1}),
                (exceptions.ConflictException, '3 hosts are requested',
                 {'quantity': 3}),
                (exceptions.ForbiddenException, 'max_hosts',
                 {'quantity': 99})):
            self.assertIn(message, self.raised(error, self.create, **values))
        made = self.create()
        self.raised(exceptions.BadRequestException,
                    self.member.update_reservation, made)
        self.raised(exceptions.NotFoundException,
                    self.connect('u:q').preemption.delete_reservation, made,
                    ignore_missing=False)

    def test_wait(self):
        made = self.create()
        self.soon(self.set_status, made.id, 'active')
        found = self.member.wait_for_reservation(made, interval=0.05, wait=20)
        self.assertEqual('active', found.status)
        for status in ('active', 'ended'):
            self.set_status(made.id, 'cancelled')
            self.assertIn('cancelled', self.raised(
                exceptions.ResourceFailure, self.member.wait_for_reservation,
                made.id, status, interval=0.05, wait=20))
        self.member.wait_for_reservation(made, 'cancelled', wait=20)


class TestHosts(ReservationTestCase):

    def test_list(self):
        self.create()
        self.enterContext(mock.patch.object(pagination, 'MOST_ITEMS', 1))
        found = list(self.admin.hosts())
        self.assertEqual(['host0', 'host1'], [host.id for host in found])
        host = self.admin.get_host('host0')
        self.assertEqual(found[0].answer(), host.answer())
        self.assertEqual(self.get('/v1/hosts/host0', 'admin:z')['host'],
                         host.answer())
        self.assertEqual(1, len(host.reservations))

    def test_change(self):
        host = self.admin.get_host('host0')
        # As it is by default; now it stays so.
        self.assertTrue(self.admin.update_host(
            host, reservable=True, extra={'rack': 'r1'}).reservable)
        self.assertEqual((True, {'rack': 'r1'}),
                         self.inventory.settings()['host0'])
        host = self.admin.update_host('host0', reservable=None,
                                      extra={'rack': None})
        self.assertEqual({}, host.extra)
        self.assertEqual((None, {}), self.inventory.settings()['host0'])
        self.raised(exceptions.BadRequestException, self.admin.update_host,
                    host)
        self.raised(exceptions.NotFoundException, self.admin.get_host, 'a/b')


class TestProperties(ReservationTestCase):

    def test_list(self):
        found = {item.name: item for item in self.member.properties()}
        self.assertEqual([8, 16], found['vcpus'].known_values)
        hidden = self.admin.update_property(found['vcpus'], hidden=True)
        self.assertEqual({'name': 'vcpus', 'type': 'text', 'values': [8, 16],
                          'hidden': True}, hidden.answer())
        self.assertEqual(1, len(list(self.member.properties())))


class TestLimits(ReservationTestCase):

    def test_set_and_show(self):
        limits = self.admin.set_reservation_limits('q', max_hosts=3)
        self.assertEqual(('q', {'max_hosts': 3}, 3), (
            limits.project_id, limits.own, limits.limits['max_hosts']))
        self.assertEqual(
            self.get('/v1/reservation-limits/q', 'admin:z')[
                'reservation_limits'], limits.answer())
        for who in ('q', project.Project(id='q'), limits):
            self.assertEqual(limits.answer(),
                             self.admin.get_reservation_limits(who).answer())
        self.admin.delete_reservation_limits(limits)
        self.assertEqual({}, reservable_hosts.get_limits(self.db, 'q'))
        self.assertIn('id of the ReservationLimits is missing', self.raised(
            exceptions.InvalidRequest, self.member.get_reservation_limits))
