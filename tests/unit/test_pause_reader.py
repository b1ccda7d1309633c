# SPDX-License-Identifier: Apache-2.0
"""Tests of pauses."""

import unittest
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt import exceptions
from nova_preempt import pause_reader
from nova_preempt.db import pauses as db


class TestPauses(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.rows = {}
        patch = mock.patch.object(db, 'get',
                                  side_effect=lambda database: self.rows)
        self.read = patch.start()
        self.addCleanup(patch.stop)
        self.pauses = pause_reader.PauseReader(None, lambda: self.now)

    def pause(self, *names):
        self.rows = {what: db.Pause(what, None, 'a reason')
                     for what in names}

    def test_why(self):
        self.pause('preemption', 'reservations')
        self.assertEqual('Preemption is paused: a reason',
                         self.pauses.why('preemption'))
        self.assertEqual('Reservations are paused: a reason',
                         self.pauses.why('reservations'))
        self.assertEqual('', self.pauses.why('power'))

    def test_after_a_second_at_most(self):
        self.assertEqual('', self.pauses.why('power'))
        self.pause('power')
        self.now += 0.9
        self.pauses.why('power')
        self.assertEqual(1, self.read.call_count)
        self.now += 0.1
        self.assertRaisesRegex(exceptions.Paused, 'Power control is paused',
                               self.pauses.check, 'power')
        self.pause()
        self.now += 1
        self.pauses.check('power')

    def test_a_database_that_is_away_changes_nothing(self):
        self.pause('power')
        self.assertTrue(self.pauses.why('power'))
        self.now += 1
        self.read.side_effect = db_exc.DBConnectionError
        self.assertTrue(self.pauses.why('power'))

    def test_pauses_and_the_evictions_they_stop(self):
        self.assertEqual(
            ['preemption', 'preemption', 'preemption', 'reservations'],
            [pause_reader.of_operation(name) for name in (
                'create', 'headroom', 'maximum_runtime', 'reservation')])
