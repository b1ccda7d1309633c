# SPDX-License-Identifier: Apache-2.0
"""Tests of the election of the leader and of an engine's tasks."""

import concurrent.futures
import datetime
from unittest import mock

from oslo_db import exception as db_exc
from oslo_utils import timeutils
import testtools

from nova_preempt.db import decision_owners
from nova_preempt.engine import service
from tests import tables
from tests.unit.handover import test_process_lease

LEASE_S = test_process_lease.LEASE_S


class TestLeadership(test_process_lease.OwnerTestCase):

    def setUp(self):
        super().setUp()
        self.owners = [self.make(f'state{number}', f'host{number}')
                       for number in range(2)]
        self.first, self.second = (
            service.Leadership(self.db, owner) for owner in self.owners)

    def holds(self):
        return self.first.holds(), self.second.holds()

    def pass_time(self, seconds):
        """Advance the clocks of the engines and of the database."""
        self.now += seconds
        self.pass_in_database(seconds)

    def renew(self):
        for each in self.owners:
            each.renew()

    def away(self, name='get_leader_and_clock'):
        return mock.patch.object(decision_owners, name,
                                 side_effect=db_exc.DBConnectionError)

    def test_an_engine_leads_until_it_closes(self):
        self.assertEqual((True, False), self.holds())
        self.assertEqual((True, False), self.holds())
        self.first.close()
        self.assertTrue(self.second.holds())
        self.assertFalse(self.first.holds())

    def test_an_engine_leads_while_its_lease_is_renewed(self):
        self.assertTrue(self.first.holds())
        for _ in range(5):
            self.pass_time(LEASE_S - 5)
            self.renew()
            self.assertEqual((True, False), self.holds())

    def test_a_dead_leader_is_replaced_after_its_lease(self):
        self.assertTrue(self.first.holds())
        self.pass_time(LEASE_S - 5)
        self.owners[1].renew()
        self.assertFalse(self.second.holds())
        self.pass_time(6)
        self.assertTrue(self.second.holds())

    def test_a_dead_leader_of_this_host_is_replaced_at_once(self):
        neighbour = self.make('state0', 'host0')
        self.assertTrue(self.first.holds())
        # As the kernel does with the files of a process that has ended.
        self.owners[0]._files._file.close()
        self.assertFalse(self.second.holds())
        self.assertTrue(service.Leadership(self.db, neighbour).holds())

    def test_a_leader_that_stood_still_does_not_act_after_that(self):
        self.assertTrue(self.first.holds())
        self.pass_time(LEASE_S - 1)
        self.owners[1].renew()
        self.pass_time(2)
        self.assertEqual((True, False), (self.second.holds(),
                                         self.first.holds()))
        self.renew()
        self.assertEqual((False, True), self.holds())

    def test_a_leader_that_stood_still_and_was_not_replaced_leads(self):
        """It has a new name, since its lease expired."""
        self.assertTrue(self.first.holds())
        old = self.owners[0].name
        self.pass_time(LEASE_S + 1)
        self.assertEqual((True, False), self.holds())
        self.assertNotEqual(old, self.owners[0].name)

    def test_a_leader_that_cannot_renew_stops_before_it_is_replaced(self):
        self.assertTrue(self.first.holds())
        self.now += LEASE_S
        with self.away('add'):
            self.assertFalse(self.first.holds())

    def test_the_clock_of_the_database_jumps(self):
        """Exactly one engine leads, even if engines' clocks differ."""
        self.assertTrue(self.first.holds())
        self.pass_in_database(3600)
        self.owners[1].renew()
        self.assertEqual((True, False), (self.second.holds(),
                                         self.first.holds()))
        self.pass_in_database(-3600)
        self.renew()
        self.assertEqual((False, True), self.holds())

    def test_an_engine_whose_clock_is_wrong_does_not_lead(self):
        """It would end at once what has to last longer."""
        self.assertTrue(self.first.holds())
        for seconds, sign in (90, '\\+'), (-90, '-'):
            self.set_clock(seconds)
            with self.assertLogs('nova_preempt.engine.service',
                                 'WARNING') as logs:
                self.assertFalse(self.first.holds())
                self.assertFalse(self.first.holds())
            line, = logs.output
            self.assertRegex(line, f'the database by {sign}[0-9]+ s')
            self.set_clock(0)
            self.assertTrue(self.second.holds())
            self.assertFalse(self.first.holds())
            self.second.close()
            self.assertTrue(self.first.holds())
        self.set_clock(10)
        self.assertTrue(self.first.holds())

    def set_clock(self, ahead_s):
        timeutils.set_time_override(
            datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
            + datetime.timedelta(seconds=ahead_s))
        self.addCleanup(timeutils.clear_time_override)

    def test_one_of_two_simultaneous_candidates_leads(self):
        seen = decision_owners.get_leader(self.db)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            won = list(pool.map(
                lambda number: decision_owners.replace_leader(
                    self.db, seen, f'host{number}'), range(8)))
        self.assertEqual(1, won.count(True))
        self.assertEqual(f'host{won.index(True)}',
                         decision_owners.get_leader(self.db))

    def test_two_threads_of_one_engine_ask_simultaneously(self):
        """Both learn that it leads, in either order."""
        self.assertTrue(self.first.holds())
        leader = decision_owners.get_leader(self.db)
        for engine, holds in (self.first, True), (self.second, False):
            with (mock.patch.object(decision_owners, 'get_leader_and_clock',
                                    return_value=('', 0)),
                  mock.patch.object(decision_owners, 'get_leader',
                                    return_value=leader)):
                self.assertIs(holds, engine.holds())

    def test_no_engine_leads_without_the_database(self):
        self.assertTrue(self.first.holds())
        with self.away(), self.assertLogs(
                'nova_preempt.engine.service', 'WARNING') as logs:
            self.assertEqual((False, False), self.holds())
            self.assertFalse(self.first.holds())
        # Once for each of the engines.
        self.assertEqual(2, len(logs.output))
        self.assertEqual((True, False), self.holds())

    def test_no_engine_leads_after_an_unexpected_error(self):
        """The disk is full, for example; the thread continues."""
        with (mock.patch.object(self.owners[0], 'get_leases',
                                side_effect=OSError('no space')),
              self.assertLogs('nova_preempt.engine.service', 'WARNING')):
            self.assertFalse(self.first.holds())
        self.assertTrue(self.first.holds())

    def test_closing_never_fails(self):
        self.first.close()
        with self.away('replace_leader'):
            self.first.close()


class TestLeadershipOnMariaDB(TestLeadership):

    def make_url(self):
        return tables.make_mariadb(self)


class TestEngine(testtools.TestCase):

    def make(self, leadership):
        self.parts = parts = mock.Mock()
        parts.known.refresh.__qualname__ = 'Knowledge.refresh'
        parts.repair.__qualname__ = 'Parts.repair'
        return service.Engine(
            parts, mock.Mock(threads=1, interval_s=3600), mock.Mock(),
            leadership, mock.Mock(), mock.Mock(works=()), mock.Mock(works=()))

    def test_the_audit_is_the_last_task_of_a_round(self):
        """It may wait a minute for a cell that hangs."""
        name, _work, _pause_s = self.make(mock.Mock()).rounds.tasks[-1]
        self.assertEqual('AllocationRepair.clean', name)

    def test_an_engine_that_does_not_lead_gives_up_what_it_owns(self):
        self.make(mock.Mock(holds=lambda: False)).run_once()
        self.parts.handover.recovery.give_up.assert_called_once_with()
        self.parts.repair.assert_not_called()

    def test_an_engine_that_stops_resigns(self):
        leadership = mock.Mock()
        engine = self.make(leadership)
        # They are tested on their own.
        engine._timed = ()
        engine.stop()
        engine.run()
        leadership.close.assert_called_once_with()
