# SPDX-License-Identifier: Apache-2.0
"""The status, by API, SDK and openstack."""

import datetime
import time
from unittest import mock

from oslo_utils import timeutils

from nova_preempt.api import status_handler
from nova_preempt.db import decision_owners
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from tests.unit.api import base
from tests.unit.client import test_preemption_commands

NOW = base.NOW + datetime.timedelta(hours=1)


class StatusCase:

    def fill(self):
        for name, lease_s in (('ctl1/7-a', 60), ('ctl2/8-b', 60),
                              ('ctl3/9-c', -5)):
            decision_owners.add(self.db, name, lease_s)
        decision_owners.replace_leader(self.db, '', 'ctl2/8-b')
        pauses.pause(self.db, pauses.POWER, 'a fire')
        self.add('a', 'p', [('v1', 'p', 'spot'), ('v2', 'q', 'spot')])
        self.add('b', 'p', [('v3', 'p', 'big')], status=decisions.CLAIMED)
        self.add('c', 'p', [('v4', 'p', 'old')], age_s=86400)
        self.add('d', 'p', [('v5', 'p', 'spot')], age_s=86400)
        self.add('e', 'p', [('v6', 'p', 'gone')], age_s=40 * 86400)
        self.enterContext(mock.patch.object(timeutils, 'utcnow',
                                            return_value=NOW))


class TestStatus(StatusCase, base.AnsweringTestCase):

    microversion = '1.7'

    def status(self, query=''):
        return self.get(f'/v1/status{query}', 'admin:z')['status']

    def test_everything(self):
        self.fill()
        found = self.status()
        self.assertEqual('a fire', found.pop('pauses')[0]['reason'])
        room = found.pop('room')
        # Those with most victims of the last days, in two zones.
        self.assertEqual({'spot', 'big', 'old'},
                         {item['flavor'] for item in room})
        self.assertEqual(
            {'leader': 'ctl2', 'processes': ['ctl1', 'ctl2'],
             'room_reason': '', 'requests_waiting': 0,
             'preemptions_open': 1, 'victims_today': 3}, found)
        self.assertIs(False, self.scheduler.bounded[-1])

    def test_nothing(self):
        found = self.status()
        self.assertIsNone(found['leader'])
        self.assertEqual([], found['room'])
        self.assertEqual('No flavor had a victim within 30 days; name one.',
                         found['room_reason'])

    def test_a_leader_that_is_dead(self):
        decision_owners.add(self.db, 'ctl3/9-c', -5)
        decision_owners.replace_leader(self.db, '', 'ctl3/9-c')
        self.assertIsNone(self.status()['leader'])

    def test_named_flavors(self):
        self.assertEqual(['a', 'a', 'b', 'b'], [
            item['flavor'] for item in self.status(
                '?flavor=a&flavor=b')['room']])
        found = self.status('?flavor=unknown')
        self.assertEqual(([], "There is no flavor 'unknown'."),
                         (found['room'], found['room_reason']))

    def test_a_scheduler_that_is_slow(self):
        self.enterContext(mock.patch.object(
            self.scheduler, 'bound', side_effect=lambda _: time.sleep(2)))
        self.assertLess(status_handler._ROOM_S, 1)
        self.enterContext(mock.patch.object(status_handler, '_ROOM_S', 0.05))
        began = time.monotonic()
        found = self.status('?flavor=a')
        self.assertLess(time.monotonic() - began, 1)
        self.assertEqual('The scheduler did not answer in time.',
                         found['room_reason'])

    def test_for_administrators(self):
        self.get('/v1/status', 'u:p', 403)
        self.microversion = '1.6'
        self.get('/v1/status', 'admin:z', 404)


class TestCommand(StatusCase, test_preemption_commands.ClientTestCase):

    def test_table(self):
        self.fill()
        text = self.openstack('preemption', 'status', token='admin:z')
        for row in (r'why +\| The engine on ctl2 acts; power is paused; 3 s',
                    r'processes +\| ctl1, ctl2 ',
                    r'preemptions_open +\| 1 ',
                    r'room +\| flavor: spot, availability_zone: az1, pre'):
            self.assertRegex(text, rf'\| {row}')
        found = self.json('preemption', 'status', '--flavor', 'a',
                          token='admin:z')
        self.assertEqual(['a', 'a'], [item['flavor']
                                      for item in found['room']])

    def test_nobody_acts(self):
        self.assertIn('No engine acts; nothing is paused; 0 servers were '
                      'evicted today.', self.openstack(
                          'preemption', 'status', token='admin:z'))
