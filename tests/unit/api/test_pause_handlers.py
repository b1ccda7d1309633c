# SPDX-License-Identifier: Apache-2.0
"""Stopping, and going on, by API, by openstack and by nova-preempt-manage."""

import contextlib
import io
import json
import types
from unittest import mock

from nova_preempt.cmd import manage
from nova_preempt.db import pauses
from tests.unit.api import base
from tests.unit.client import test_preemption_commands

ALL = list(pauses.ALL)


class TestPauses(base.ApiTestCase):

    microversion = '1.2'

    def pause(self, what, code=200, token='admin:p', reason='because'):
        return self.put(f'/v1/pauses/{what}', {'pause': {'reason': reason}},
                        token, code)

    def test_the_requester_is_stored(self):
        made = self.pause('power')['pause']
        self.assertEqual(('power', 'because', 'admin', 'p'), tuple(
            made[name] for name in ('what', 'reason', 'user_id',
                                    'project_id')))
        self.assertRegex(made['request_id'], '^req-')
        self.assertRegex(made['since'], r'^\d{4}-.*Z$')
        self.assertEqual({'pauses': [made]},
                         self.get('/v1/pauses', 'admin:p'))

    def test_resume(self):
        self.pause('power')
        self.delete('/v1/pauses/power', 'admin:p')
        self.assertEqual({'pauses': []}, self.get('/v1/pauses', 'admin:p'))
        error = self.delete('/v1/pauses/power', 'admin:p', 404)['error']
        self.assertEqual('power is not paused.', error['message'])

    def test_for_administrators(self):
        self.pause('power', 403, 'u:p')
        self.get('/v1/pauses', 'u:p', 403)
        self.delete('/v1/pauses/power', 'u:p', 403)
        self.assertEqual({}, pauses.get(self.db))

    def test_unknown_names_are_refused(self):
        error = self.pause('everything', 404)['error']
        self.assertIn('preemption, reservations, power, backlog',
                      error['message'])
        self.pause('power', 400, reason='')

    def test_in_earlier_versions_there_are_none(self):
        self.microversion = '1.1'
        self.get('/v1/pauses', 'admin:p', 404)


class TestCommands(test_preemption_commands.ClientTestCase):

    def pauses(self):
        return json.loads(self.openstack(
            'preemption', 'pause', 'list', '-f', 'json', token='admin:p'))

    def test_everything_at_once(self):
        self.openstack('preemption', 'pause', '--reason', 'a fire',
                       token='admin:p')
        self.assertEqual(
            [(what, 'a fire', 'admin') for what in ALL],
            [(item['What'], item['Reason'], item['User'])
             for item in self.pauses()])
        self.openstack('preemption', 'resume', '--what', 'power',
                       token='admin:p')
        self.assertEqual(['preemption', 'reservations', 'backlog'],
                         [item['What'] for item in self.pauses()])
        self.openstack('preemption', 'resume', token='admin:p')
        self.assertEqual([], self.pauses())

    def test_one(self):
        self.openstack('preemption', 'pause', '--what', 'reservations',
                       '--reason', 'why', token='admin:p')
        self.assertEqual(['reservations'], list(pauses.get(self.db)))


class TestManage(base.DatabaseTestCase):

    def run_command(self, run, what='all', reason=None):
        output = io.StringIO()
        with mock.patch.object(manage.db, 'Database',
                               return_value=self.db), \
                contextlib.redirect_stdout(output):
            self.assertEqual(0, run(types.SimpleNamespace(
                what=what, reason=reason)))
        return output.getvalue()

    def test_when_the_api_is_down(self):
        printed = self.run_command(manage._pause, reason='a fire')
        self.assertEqual(ALL, list(pauses.get(self.db)))
        self.assertRegex(printed, r'(?m)^power: paused since .*Z by .+@.+: '
                                  'a fire$')
        self.run_command(manage._resume, 'power')
        self.assertEqual([what for what in ALL if what != 'power'],
                         list(pauses.get(self.db)))
        self.assertEqual('Nothing is paused.\n',
                         self.run_command(manage._resume))
