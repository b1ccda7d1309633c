# SPDX-License-Identifier: Apache-2.0
"""Tests of reservations that are cancelled long before they start."""

import datetime

from tempest import config
from tempest.lib import decorators
from tempest.lib import exceptions

from nova_preempt_tempest_plugin import base

CONF = config.CONF


class ReservationsTest(base.PreemptionTest):

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.preemption_feature_enabled.reservation:
            raise cls.skipException('reservations are not turned on')

    @classmethod
    def setup_clients(cls):
        super().setup_clients()
        cls.client = cls.os_primary.preemption_v1.ReservationClient()
        cls.admin_client = cls.os_admin.preemption_v1.ReservationClient()

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        if not any(host['reservable']
                   for host in cls.admin_client.list_hosts()['hosts']):
            raise cls.skipException('no host can be reserved')
        # So far away that no host is drained for it.
        start = datetime.datetime.now(datetime.UTC) + datetime.timedelta(
            days=2)
        cls.request = {
            'start_time': start.strftime('%Y-%m-%dT%H:%M:%SZ'),
            'duration': 3600, 'quantity': 1}

    def create_reservation(self):
        reservation = self.client.create_reservation(
            name=self.id().rsplit('.', 1)[-1], **self.request)['reservation']
        self.addCleanup(self.client.delete_reservation, reservation['id'])
        return reservation

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('d5cc29ba-103e-4b60-b498-33a30f635963')
    def test_create_show_list_and_delete(self):
        made = self.client.create_reservation(
            name='tempest', **self.request)['reservation']
        self.assertEqual('pending', made['status'])
        shown = self.client.show_reservation(made['id'])['reservation']
        self.assertEqual(made['id'], shown['id'])
        listed = self.client.list_reservations()['reservations']
        self.assertIn(made['id'], [found['id'] for found in listed])
        self.client.delete_reservation(made['id'])
        self.wait_for('it is not cancelled', lambda: (
            self.client.show_reservation(made['id'])['reservation']['status']
            == 'cancelled'))

    @decorators.idempotent_id('d02b2c4f-1e51-48ef-941e-e8402bbcc8e3')
    def test_a_preview_reserves_nothing(self):
        found = self.client.preview_reservation(
            name='preview', **self.request)
        self.assertIn('preview', found)
        pending = self.client.list_reservations(
            status='pending', name='preview')['reservations']
        self.assertEqual([], pending)

    @decorators.idempotent_id('b0832ad2-679d-4f94-9823-6f7a33de0fe1')
    def test_change_what_happens_at_its_end(self):
        made = self.create_reservation()
        changed = self.client.update_reservation(
            made['id'], end_action='delete')['reservation']
        self.assertEqual('delete', changed['end_action'])

    @decorators.attr(type='negative')
    @decorators.idempotent_id('b3d5f574-5453-47fc-96be-742a21cc9d72')
    def test_more_hosts_than_there_are(self):
        self.assertRaises(
            (exceptions.Conflict, exceptions.Forbidden),
            self.client.create_reservation,
            **{**self.request, 'quantity': 100000})

    @decorators.attr(type='negative')
    @decorators.idempotent_id('8f115a78-f32f-479a-b968-1c218fd45b75')
    def test_limits_hold(self):
        project = self.client.project_id
        self.assertEqual(
            project, self.client.tenant_id)
        self.client.show_limits(project)
        self.admin_client.set_limits(project, max_reservations=0)
        self.addCleanup(self.admin_client.unset_limits, project)
        self.assertRaises(
            exceptions.Forbidden, self.client.create_reservation,
            **self.request)

    @decorators.attr(type='negative')
    @decorators.idempotent_id('296ce0ae-935e-49f3-9ef4-f3542e1b5671')
    def test_a_member_may_not_change_limits_or_hosts(self):
        self.assertRaises(
            exceptions.Forbidden, self.client.set_limits,
            self.client.tenant_id, max_reservations=1000)
        self.assertRaises(exceptions.Forbidden, self.client.list_hosts)

    @decorators.idempotent_id('62d4ffb7-49aa-4195-b639-640a196f7833')
    def test_properties_that_can_be_asked_for(self):
        names = [found['name'] for found
                 in self.client.list_properties()['properties']]
        self.assertIn('vcpus', names)
