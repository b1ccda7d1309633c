# SPDX-License-Identifier: Apache-2.0
"""Our own reservations as leases, on a real database."""

import dataclasses
import datetime
import os
import tempfile
import unittest
from unittest import mock

from oslo_config import cfg

from nova_preempt import db
import nova_preempt.conf
from nova_preempt.core.reservation import calendar as core
from nova_preempt.core.reservation import leases as core_leases
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservation_calendar
from nova_preempt.db import reservations
from nova_preempt.reservation.lease_service import own
from tests import tables

NOW = datetime.datetime(2026, 1, 1, 12)
NOW_S = 1767268800


class TestNative(unittest.TestCase):

    def setUp(self):
        super().setUp()
        conf = cfg.ConfigOpts()
        nova_preempt.conf.register_opts(conf)
        conf([], default_config_files=[])
        path = os.path.join(
            self.enterContext(tempfile.TemporaryDirectory()), 'db.sqlite')
        conf.set_override('connection', f'sqlite:///{path}',
                          'preemption_database')
        conf.set_override('enabled', True, 'reservation')
        self.conf = conf
        database = db.Database(conf)
        self.service = own.NativeLeases(conf)
        tables.make(database)
        self.mine = reservations.Reservations(database, lambda: NOW)

    def grant(self, uuid, *hosts, start_s=NOW_S):
        found = core.FoundWindow(start_s, start_s + 3600, hosts)
        return self.mine.grant(reservation_model.Reservation(
            uuid, 'p', len(hosts), 3600, NOW, 'shelve', 60),
            lambda calendar: found)

    def lease(self, uuid, status, *hosts, start_s=NOW_S):
        return core_leases.HostLease(
            uuid, 'p', status, start_s, start_s + 3600, frozenset(hosts))

    def test_open_reservations(self):
        self.assertEqual((), tuple(self.service.fetch()))
        self.grant('r1', 'h1', 'h2')
        self.grant('r2', 'h1', start_s=NOW_S + 3600)
        self.mine.update('r1', status=reservation_model.ACTIVE)
        self.assertEqual(
            (self.lease('r1', core_leases.ACTIVE, 'h1', 'h2'),
             self.lease('r2', core_leases.PENDING, 'h1',
                        start_s=NOW_S + 3600)),
            tuple(self.service.fetch()))

    def test_ended_reservations(self):
        for status in (reservation_model.ENDED, reservation_model.CANCELLED,
                       reservation_model.ERROR):
            self.grant(status, 'h1')
            self.mine.update(status, status=status)
            self.assertEqual((), tuple(self.service.fetch()))
            self.assertEqual(core_leases.ENDED,
                             self.service.get(status).status)
        self.assertIsNone(self.service.get('none'))

    def test_a_lost_host_is_not_leased(self):
        """It is active as soon as it has started, and not before."""
        self.grant('r1', 'h1', 'h2')
        self.mine.replace_host('r1', 'h1')
        self.assertEqual((self.lease('r1', core_leases.PENDING, 'h2'),),
                         tuple(self.service.fetch()))
        self.assertEqual(self.service.fetch().get('r1'),
                         self.service.get('r1'))
        self.mine.set_host('r1', 'h2', reservation_model.READY)
        self.mine.update('r1', status=reservation_model.DEGRADED, ready_at=NOW)
        self.assertEqual((self.lease('r1', core_leases.ACTIVE, 'h2'),),
                         tuple(self.service.fetch()))
        self.mine.replace_host('r1', 'h2')
        self.assertEqual((self.lease('r1', core_leases.ACTIVE),),
                         tuple(self.service.fetch()))
        self.assertEqual(self.service.fetch().get('r1'),
                         self.service.get('r1'))

    def test_a_completed_reservation_that_has_not_started(self):
        """Its time has come, but its hosts were never empty."""
        self.grant('r1', 'h1', 'h2')
        self.mine.replace_host('r1', 'h1')
        self.mine.replace_host('r1', None, 'h3')
        self.assertEqual((self.lease('r1', core_leases.PENDING, 'h2', 'h3'),),
                         tuple(self.service.fetch()))

    def test_a_new_host_is_leased_once_it_is_empty(self):
        self.grant('r1', 'h1', 'h2')
        for host in ('h1', 'h2'):
            self.mine.set_host('r1', host, reservation_model.READY)
        self.mine.update('r1', status=reservation_model.ACTIVE, ready_at=NOW)
        active = self.lease('r1', core_leases.ACTIVE, 'h1', 'h2')
        self.assertEqual((active,), tuple(self.service.fetch()))
        self.mine.replace_host('r1', 'h1', 'h3')
        waiting = dataclasses.replace(active, hosts=frozenset(('h2', 'h3')),
                                      unready=frozenset(('h3',)))
        for status in (reservation_model.ASSIGNED, reservation_model.EMPTYING):
            self.mine.set_host('r1', 'h3', status)
            self.assertEqual((waiting,), tuple(self.service.fetch()))
            self.assertEqual(waiting, self.service.get('r1'))
        # It is seen at once.
        self.mine.set_host('r1', 'h3', reservation_model.READY)
        ready = dataclasses.replace(waiting, unready=frozenset())
        self.assertEqual((ready,), tuple(self.service.fetch()))
        self.assertEqual(ready, self.service.get('r1'))

    def test_only_active_leases_while_reservations_are_disabled(self):
        self.grant('r1', 'h1')
        self.grant('r2', 'h2')
        self.mine.update('r1', status=reservation_model.ACTIVE)
        active = self.lease('r1', core_leases.ACTIVE, 'h1')
        self.conf.set_override('enabled', False, 'reservation')
        self.assertEqual((active,), tuple(self.service.fetch()))
        self.assertIs(self.service.fetch(), self.service.fetch())
        self.conf.set_override('enabled', True, 'reservation')
        self.assertEqual(
            {active, self.lease('r2', core_leases.PENDING, 'h2')},
            set(self.service.fetch()))

    def test_reads_them_only_where_something_has_changed(self):
        self.grant('r1', 'h1')
        found = self.service.fetch()
        with mock.patch.object(reservation_calendar, 'get_leases',
                               side_effect=AssertionError):
            self.assertIs(found, self.service.fetch())
        self.mine.update('r1', status=reservation_model.ACTIVE)
        self.assertEqual((self.lease('r1', core_leases.ACTIVE, 'h1'),),
                         tuple(self.service.fetch()))
