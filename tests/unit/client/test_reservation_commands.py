# SPDX-License-Identifier: Apache-2.0
"""openstackclient's commands for reservations, against the API."""

import datetime
from unittest import mock

from oslo_utils import timeutils

from nova_preempt.api import pagination
from nova_preempt.api import reservation_views
from nova_preempt.db import reservable_hosts
from tests.unit.client import test_preemption_commands

ADMIN = 'admin:z'
# What hosts are called to a member of project p.
NAME = {name: reservation_views.host_id('p', name)
        for name in ('host0', 'host1')}


class ReservationTestCase(test_preemption_commands.ClientTestCase):

    def setUp(self):
        super().setUp()
        self.inventory.add('host0', vcpus=8)
        self.inventory.add('host1', vcpus=16)
        day = timeutils.utcnow().replace(microsecond=0)
        self.times = [f'{(day + datetime.timedelta(number)).isoformat()}Z'
                      for number in range(1, 5)]

    def reservation(self, *arguments, **values):
        return self.json('reservation', *arguments, **values)

    def create(self, *arguments, token='u:p'):
        return self.reservation('create', '--start', self.times[0],
                                '--end', self.times[1], *arguments,
                                token=token)

    def refused(self, message, *arguments, token='u:p'):
        self.assertIn(message, self.openstack(
            'reservation', *arguments, token=token, code=1))

    def misused(self, message, *arguments):
        """Check that the parser refuses the arguments with a message."""
        with mock.patch('argparse.ArgumentParser.exit',
                        side_effect=SystemExit(2)) as leave, \
                self.assertRaises(SystemExit):
            self.openstack('reservation', *arguments)
        self.assertIn(message, str(leave.call_args))


class TestReservations(ReservationTestCase):

    def test_create(self):
        path = self.directory / 'filter.json'
        path.write_text('[">=", "$vcpus",\n 8]')
        made = self.create(
            '--name', 'wrf', '--quantity', '2', '--duration', '1h30m',
            '--host-properties', f'@{path}', '--end-action', 'delete',
            '--before-end', '5m')
        self.assertEqual(
            ('wrf', 2, 5400, ['>=', '$vcpus', 8], 'delete', 300,
             self.times[0], [NAME['host0'], NAME['host1']]),
            (*(made[name] for name in (
                'name', 'quantity', 'duration', 'host_properties',
                'end_action', 'before_end_s', 'start_at')),
             [host['name'] for host in made['hosts']]))

    def test_now(self):
        made = self.reservation('create', '--duration', '2d')
        self.assertEqual((2 * 86400, 1), (made['duration'],
                                          made['quantity']))

    def test_preview(self):
        arguments = ('preview', '--start', self.times[0], '--duration', '1d',
                     '--end', self.times[2], '--quantity', '2')
        self.create()
        self.assertEqual({
            'possible': True, 'start_at': self.times[1],
            'end_at': self.times[2], 'hosts': [NAME['host0'], NAME['host1']]},
            self.reservation(*arguments))
        self.assertEqual(1, len(self.reservation('list')))

    def test_list(self):
        first = self.create('--name', 'a')
        other = self.create('--name', 'b', token='u:q')
        self.assertEqual([{
            'ID': first['id'], 'Name': 'a', 'Status': 'pending',
            'Start': self.times[0], 'End': self.times[1], 'Quantity': 1}],
            self.reservation('list'))
        found = self.reservation('list', '--all-projects', '--long',
                                 '--host', 'host1', token=ADMIN)
        self.assertEqual(
            (other['id'], ['host1'], [], 'shelve', 'q', ''),
            tuple(found[0][name] for name in (
                'ID', 'Hosts', 'Host Properties', 'End Action', 'Project',
                'Reason')))
        for arguments, number in (
                (('--status', 'pending', '--name', 'a'), 1),
                (('--status', 'ended'), 0), (('--since', self.times[1]), 0),
                (('--until', self.times[1]), 1), (('--limit', '1'), 1),
                (('--marker', first['id']), 0)):
            self.assertEqual(number, len(self.reservation(
                'list', *arguments)), arguments)
        self.assertEqual(1, len(self.reservation(
            'list', '--project', 'q', token=ADMIN)))
        self.enterContext(mock.patch.object(pagination, 'MOST_ITEMS', 1))
        self.assertEqual(2, len(self.reservation(
            'list', '--all-projects', token=ADMIN)))

    def test_by_name(self):
        made = self.create('--name', 'a')
        for name in ('a', made['id']):
            self.assertEqual(made, self.reservation('show', name))
        self.refused("There is no reservation 'b'", 'show', 'b')
        self.create('--name', 'a')
        self.refused('have the name', 'show', 'a')
        self.refused('There is no reservation', 'show', made['id'],
                     '--os-token', 'u:q')

    def test_set(self):
        made = self.create('--name', 'a')
        self.assertEqual('', self.openstack(
            'reservation', 'set', 'a', '--name', 'b', '--end', self.times[2],
            '--end-action', 'delete', '--before-end', '1m'))
        changed = self.reservation('show', made['id'])
        self.assertEqual(
            ('b', self.times[2], 'delete', 60),
            tuple(changed[name] for name in (
                'name', 'end_at', 'end_action', 'before_end_s')))
        self.refused('at least one option', 'set', 'b')

    def test_delete(self):
        names = ('a', 'b', 'c')
        for name in names[:2]:
            self.create('--name', name)
        text = self.openstack('reservation', 'delete', *names, code=1)
        self.assertIn("There is no reservation 'c'", text)
        self.assertIn('1 of 3', text)
        self.assertEqual({'cancelled'}, {
            item['Status'] for item in self.reservation('list')})

    def test_refusals(self):
        start = ('create', '--start', self.times[0], '--duration', '1d')
        self.refused('[0]\': unknown operator "gt"', *start,
                     '--host-properties', '["gt", "$vcpus", 8]')
        self.refused('no host has the property "cpus"', *start,
                     '--host-properties', '[">", "$cpus", 8]')
        self.refused('3 hosts are requested', *start, '--quantity', '3')
        self.refused('max_duration_s', *start[:-1], '60d')
        self.refused('reservation.duration', 'create')

    def test_misuse(self):
        for message, arguments in (
                ('90m, 4h, 2d', ('--duration', '4 hours')),
                ('is not valid JSON', ('--host-properties', '$vcpus > 4')),
                ('cannot be read', ('--host-properties', '@/none')),
                ('argument --start: \'now\' must be a time',
                 ('--start', 'now', '--duration', '1d')),
                ('must be 1 or more', ('--quantity', '0'))):
            self.misused(message, 'create', *arguments)


class TestHosts(ReservationTestCase):

    def test_list(self):
        made = self.create()
        found = self.reservation('host', 'list', token=ADMIN)
        self.assertEqual({
            'Name': 'host0', 'Reservable': True, 'State': 'up',
            'Status': 'enabled', 'Vacant': True,
            'Reservations': [f'{made["start_at"]}/{made["end_at"]}']},
            found[0])
        found = self.reservation('host', 'list', '--long', '--marker',
                                 'host0', '--limit', '5', token=ADMIN)
        self.assertEqual([{'vcpus': 16, 'traits': []}],
                         [item['Properties'] for item in found])
        self.refused('Policy does not allow', 'host', 'list')

    def test_set(self):
        def change(*arguments):
            self.assertEqual('', self.openstack(
                'reservation', 'host', 'set', 'host0', *arguments,
                token=ADMIN))
            return self.reservation('host', 'show', 'host0', token=ADMIN)

        self.assertFalse(change('--not-reservable')['reservable'])
        self.assertTrue(change('--reservable')['reservable'])
        self.conf.set_override('reservable_default', False, 'reservation')
        self.assertFalse(change('--default-reservable')['reservable'])
        host = change('--property', 'rack=r1', '--property',
                      'disks=["a", "b"]')
        self.assertEqual({'rack': 'r1', 'disks': ['a', 'b']}, host['extra'])
        host = change('--unset-property', 'rack', '--property', 'u=4')
        self.assertEqual({'disks': ['a', 'b'], 'u': '4'}, host['extra'])
        self.refused('at least one option', 'host', 'set', 'host0',
                     token=ADMIN)
        self.refused('The path is unknown', 'host', 'show', 'a/b', token=ADMIN)


class TestProperties(ReservationTestCase):

    def test_list_and_hide(self):
        self.assertEqual(
            {'Name': 'vcpus', 'Type': 'text', 'Values': ['8', '16'],
             'Hidden': False}, self.reservation('property', 'list')[1])
        self.openstack('reservation', 'property', 'set', '--hidden', 'vcpus',
                       token=ADMIN)
        hidden = self.reservation('property', 'list', token=ADMIN)
        self.assertEqual({'traits': False, 'vcpus': True}, {
            item['Name']: item['Hidden'] for item in hidden})
        self.assertEqual(1, len(self.reservation('property', 'list')))
        self.openstack('reservation', 'property', 'set', '--visible', 'vcpus',
                       token=ADMIN)
        self.assertEqual(2, len(self.reservation('property', 'list')))


class TestLimits(ReservationTestCase):

    def test_set_and_show(self):
        def change(*arguments):
            self.assertEqual('', self.openstack(
                'reservation', 'limits', 'set', 'p', *arguments,
                token=ADMIN))
            return self.reservation('limits', 'show', 'p')['own']

        self.assertEqual({'max_hosts': -1},
                         change('--max-hosts', '-1'))
        self.assertEqual(
            {'max_hosts': -1, 'max_reservations': 3,
             'max_duration_s': 86400, 'max_advance_s': -1},
            change('--max-reservations', '3', '--max-duration', '1d',
                   '--max-advance', '-1'))
        found = self.reservation('limits', 'show', 'p')
        self.assertEqual(3, found['limits']['max_reservations'])
        self.openstack('reservation', 'limits', 'unset', 'p', token=ADMIN)
        self.assertEqual({}, reservable_hosts.get_limits(self.db, 'p'))
        self.refused('at least one option', 'limits', 'set', 'p', token=ADMIN)
        self.refused('Name a project', 'limits', 'show')

    def test_own(self):
        """Keystone tells which project that is."""
        found = self.json('reservation', 'limits', 'show',
                          auth=self.catalog(self.url))
        self.assertEqual(('p', 10), (
            found['project_id'], found['limits']['max_reservations']))


class TestHelp(ReservationTestCase):

    def test_all_commands(self):
        text = self.openstack('complete')
        self.assertIn('reservation', text)
        for name in ('create', 'delete', 'host list', 'host set',
                     'host show', 'limits set', 'limits show', 'limits unset',
                     'list', 'preview', 'property list', 'property set',
                     'set', 'show'):
            text = self.openstack('help', 'reservation', *name.split())
            self.assertIn(f' reservation {name} [-h]', text)
