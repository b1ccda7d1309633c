# SPDX-License-Identifier: Apache-2.0
"""Leases of owners, by the clock of the database.
"""

import datetime
import os
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from oslo_db import exception as db_exc
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_preempt import db
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import observed_server
from nova_preempt.core import requester_liveness
from nova_preempt.db import decision_owners
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.handover import preemption_rollback
from nova_preempt.handover import process_lease
from tests import tables
from tests.unit.db import test_decisions

LEASE_S = process_lease.INTENT_TIMEOUT_S

CHILD = """
import sys
from nova_preempt.handover import process_lease
files = process_lease.LockFiles(sys.argv[1])
files.hold('host1/child')
print('held', flush=True)
sys.stdin.read()
"""


class TestOrphans(unittest.TestCase):

    def is_orphan(self, owner, age_s=0, working_on=(), **leases):
        return requester_liveness.is_orphan('d', owner, age_s, me='me',
                                        working_on=working_on, leases=leases,
                                        timeout_s=60)

    def test_our_decision_is_an_orphan_if_no_thread_works_on_it(self):
        self.assertTrue(self.is_orphan('me', me=True))
        self.assertFalse(self.is_orphan('me', 1e6, {'d'}, me=False))

    def test_a_lease_decides_whatever_the_age(self):
        self.assertFalse(self.is_orphan('you', 1e6, you=True))
        self.assertTrue(self.is_orphan('you', -1e6, you=False))

    def test_without_a_lease_the_age_decides(self):
        for name in ('', 'earlier version'):
            self.assertFalse(self.is_orphan(name, 59.9))
            self.assertTrue(self.is_orphan(name, 60))


class OwnerTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.now = 1000.0
        self.db = test_decisions.make_database(self.make_url())
        self.decisions = db.Decisions(self.db)
        self.engine = self.db.engine
        tables.make(self.db)
        self.addCleanup(self.engine.dispose)

    def make_url(self):
        return f'sqlite:///{self.directory}/test.sqlite'

    def make(self, state_path='state', host='host1'):
        made = process_lease.Lease(self.db, host,
                                   os.path.join(self.directory, state_path),
                                   LEASE_S, lambda: self.now)
        self.addCleanup(made.close)
        return made

    def pass_in_database(self, seconds):
        """Age all leases, as if the database's clock advanced."""
        row = models.Owner
        for name, expires_at in self.db.read(sa.select(
                row.name, row.expires_at)):
            self.db.write(sa.update(row).where(row.name == name).values(
                expires_at=expires_at - datetime.timedelta(seconds=seconds)))

    def decide(self, owner_name, uuid='d1'):
        decision = db.Decision(
            uuid, 's', owner=owner_name, status=decisions.CLAIMED,
            victims=(db.Victim(f'v-{uuid}'),))
        self.decisions.create_decision(decision)
        return decision


class TestOwner(OwnerTestCase):

    def test_names_are_unique(self):
        first, second = self.make(), self.make()
        self.assertNotEqual(first.name, second.name)
        self.assertIn(f'host1/{os.getpid()}-', first.name)
        self.assertEqual({first.name: True, second.name: True},
                         first.get_leases())

    def test_same_host_and_another_state_path(self):
        """Processes in containers do not declare each other dead."""
        first, second = self.make('one'), self.make('two')
        self.assertTrue(first.get_leases()[second.name])
        self.assertTrue(second.get_leases()[first.name])

    def test_a_lease_runs_out(self):
        first, second = self.make(), self.make()
        self.pass_in_database(LEASE_S - 5)
        self.assertTrue(first.get_leases()[second.name])
        self.pass_in_database(6)
        self.assertFalse(first.get_leases()[second.name])

    def test_renewed_it_lasts(self):
        first, second = self.make(), self.make()
        decision = self.decide(second.name)
        for _ in range(5):
            self.pass_in_database(LEASE_S - 5)
            self.now += LEASE_S - 5
            second.renew()
        self.assertTrue(second.keeps([decision]))
        self.assertTrue(first.get_leases()[second.name])

    def test_an_expired_lease_is_never_renewed(self):
        """Other processes may have taken over."""
        mine = self.make()
        old = mine.name
        decision = self.decide(old)
        self.pass_in_database(LEASE_S + 1)
        self.assertTrue(mine.keeps([decision]))
        mine.renew()
        self.assertNotEqual(old, mine.name)
        self.assertFalse(mine.keeps([decision]))
        self.assertEqual({old: False, mine.name: True}, mine.get_leases())

    def test_no_decision_is_kept_after_the_lease_may_have_expired(self):
        mine = self.make()
        decision = self.decide(mine.name)
        self.now += LEASE_S - 3
        self.assertTrue(mine.keeps([decision]))
        self.now += 1
        self.assertFalse(mine.keeps([decision]))

    def test_acquire_returns_a_name_with_a_lease(self):
        mine = self.make()
        self.assertEqual(mine.name, mine.acquire())
        old = mine.name
        self.now += LEASE_S
        self.assertNotEqual(old, mine.acquire())
        self.assertTrue(mine.keeps([self.decide(mine.name)]))

    def test_one_renewal_serves_all_decisions(self):
        mine, other = self.make(), self.make()
        for uuid, name in (('d1', mine.name), ('d2', mine.name),
                           ('d3', other.name)):
            self.decide(uuid=uuid, owner_name=name)
        with self.engine.begin() as connection:
            connection.execute(sa.update(models.Decision.__table__).values(
                updated_at=datetime.datetime(2026, 1, 1)))
        mine.renew()
        self.assertEqual(
            {'d1': True, 'd2': True, 'd3': False},
            {decision.uuid: age_s < 3600 for decision, age_s
             in self.decisions.get_open_decisions()})

    def test_a_closed_owner_is_replaced_without_waiting(self):
        first, second = self.make(), self.make()
        second.close()
        self.assertFalse(first.get_leases()[second.name])

    def test_rows_of_dead_processes_are_deleted(self):
        first = self.make()
        self.pass_in_database(2 * 86_400)
        second = self.make()
        self.assertEqual([second.name],
                         list(decision_owners.get_leases(self.db)))
        self.assertNotEqual(first.name, second.name)

    def test_clocks_of_hosts_are_no_matter(self):
        """An hour's difference between hosts makes no decision an orphan."""
        mine = self.make()
        now = timeutils.utcnow()
        for hours in (-1, 1):
            with mock.patch('oslo_utils.timeutils.utcnow',
                            return_value=now + datetime.timedelta(
                                hours=hours)):
                self.decide('', f'd{hours}')
        for _decision, age_s in self.decisions.get_open_decisions():
            self.assertLess(abs(age_s), 60)
        self.assertTrue(self.make().get_leases()[mine.name])


class TestLockFiles(OwnerTestCase):

    def test_a_killed_process_is_dead_at_once(self):
        """Other processes need not wait for the end of its lease."""
        state = os.path.join(self.directory, 'state')
        with subprocess.Popen(
                [sys.executable, '-c', CHILD, state],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True) as child:
            child.stdout.readline()
            decision_owners.add(self.db, 'host1/child', LEASE_S)
            mine = self.make()
            self.assertTrue(mine.get_leases()['host1/child'])
            child.kill()
            child.wait()
            self.assertFalse(mine.get_leases()['host1/child'])
        self.assertFalse(decision_owners.get_leases(self.db)['host1/child'])
        # What is of no use any more is removed.
        mine.get_leases()
        self.assertEqual(1, len(os.listdir(state)))

    def leave(self, boot_id, name='host1/other'):
        """A file as a process leaves it that is killed."""
        state = os.path.join(self.directory, 'state')
        left = process_lease.LockFiles(state, boot_id)
        left.hold(name)
        left._file.close()
        return state

    def find_dead(self, state, boot_id='this', **leases):
        files = process_lease.LockFiles(state, boot_id)
        self.addCleanup(files.close)
        return files.find_dead({'host1/other': True, **leases})

    def test_a_file_of_this_machine(self):
        self.assertEqual(['host1/other'],
                         self.find_dead(self.leave('this')))

    def test_a_file_of_another_machine_proves_nothing(self):
        """The directory may be shared, and its locks may be not."""
        self.assertEqual([], self.find_dead(self.leave('that')))

    def test_an_unknown_machine_proves_nothing(self):
        self.assertEqual([], self.find_dead(self.leave(''), ''))

    def test_a_file_that_says_nothing(self):
        state = self.leave('this')
        with open(os.path.join(state, 'cut-off.lock'), 'w') as file:
            file.write('{"owner": "host')
        self.assertEqual(['host1/other'], self.find_dead(state))


class TestHeartbeat(OwnerTestCase):
    """A database that is down for less than the lease changes nothing."""

    def setUp(self):
        super().setUp()
        self.owner = self.make()
        self.heart = process_lease.Heartbeat(self.owner)

    def beat(self, seconds, away=False):
        """Beat for this long, as the thread does."""
        until = self.now + seconds
        with mock.patch.object(
                decision_owners, 'renew', wraps=decision_owners.renew,
                side_effect=db_exc.DBConnectionError if away else None):
            while self.now < until:
                self.now += self.heart.beat()

    def test_renewals_are_tried_until_the_lease_expires(self):
        decision = self.decide(self.owner.name)
        self.beat(30)
        self.beat(LEASE_S - 15, away=True)
        self.assertTrue(self.owner.keeps([decision]))
        self.beat(5)
        self.assertTrue(self.owner.keeps([decision]))
        self.beat(LEASE_S, away=True)
        self.assertFalse(self.owner.keeps([decision]))

    def test_a_new_lease_begins_once_the_database_is_back(self):
        self.beat(LEASE_S * 2, away=True)
        old = self.owner.name
        with mock.patch.object(decision_owners, 'add',
                               side_effect=db_exc.DBConnectionError):
            self.beat(5)
        self.assertEqual(old, self.owner.name)
        self.beat(5)
        self.assertTrue(self.owner.keeps([self.decide(self.owner.name)]))

    def test_a_lease_is_renewed_several_times(self):
        self.assertEqual(10, self.heart.beat())

    def test_in_a_thread(self):
        self.heart._interval_s = 0.001
        renewed = mock.Mock(side_effect=self.heart._stop.set)
        with mock.patch.object(self.owner, 'renew', renewed):
            self.heart.start()
            self.heart._thread.join()
        renewed.assert_called_once_with()


class TestRecovery(OwnerTestCase):
    """Tests of decisions that are taken over."""

    def setUp(self):
        super().setUp()
        self.placement = mock.Mock(spec=placement_api.Placement)
        self.placement.get_consumer.side_effect = lambda uuid: (
            placement_api.Consumer(uuid, {}))
        self.nova = mock.Mock(spec=nova_api.NovaAPI)
        self.nova.get.return_value = None
        self.active = set()

    def recovery(self, owner):
        return preemption_rollback.PreemptionRollback(
            self.placement, self.nova, self.decisions, owner,
            types.SimpleNamespace(), self.active)

    def test_two_containers_leave_each_other_alone(self):
        """They have the same [DEFAULT]host and different state paths."""
        first, second = self.make('one'), self.make('two')
        self.decide(first.name, 'd1')
        self.decide(second.name, 'd2')
        self.active |= {'d1', 'd2'}
        self.assertEqual(0, self.recovery(first).repair())
        self.assertEqual(0, self.recovery(second).repair())

    def test_a_decision_that_waits_for_a_thread_is_no_orphan(self):
        """Its process is alive."""
        waiting, other = self.make('one'), self.make('two')
        self.decide(waiting.name)
        heart = process_lease.Heartbeat(waiting)
        for _ in range(20):
            self.pass_in_database(10)
            self.now += 10
            heart.beat()
        self.assertEqual(0, self.recovery(other).repair())

    def test_a_decision_of_a_dead_process_is_taken_over(self):
        dead, other = self.make('one'), self.make('two')
        self.decide(dead.name)
        self.pass_in_database(LEASE_S + 1)
        self.now += 10
        other.renew()
        self.assertEqual(1, self.recovery(other).repair())
        self.assertEqual(decisions.ROLLED_BACK,
                         self.decisions.get_decision('d1').status)

    def test_allocations_return_to_their_project(self):
        """The project may be one for allocations only."""
        had = {'p': {'resources': {'VCPU': 2}}}
        self.nova.get.return_value = observed_server.ObservedServer(
            'a', '', None, 'h', status='ACTIVE')
        mine = self.make()
        self.decisions.create_decision(db.Decision(
            'd1', '', host='h', owner=mine.name, status=decisions.CLAIMED,
            victims=(
                db.Victim('v', 'own', 'me', allocations=had,
                          consumer_project_id='shared',
                          consumer_user_id='you'),
                db.Victim('w', 'own', 'me', allocations=had))))
        self.assertTrue(self.recovery(mine).roll_back('d1', 'why'))
        (posted,), _ = self.placement.post_allocations.call_args
        self.assertEqual(
            [('v', had, 'shared', 'you'), ('w', had, 'own', 'me')],
            [(item.uuid, item.allocations, item.project_id, item.user_id)
             for item in posted])

    def test_a_process_without_lease_rolls_nothing_back(self):
        """Another process may roll it back."""
        mine = self.make()
        self.decide(mine.name)
        self.now += LEASE_S
        self.assertFalse(self.recovery(mine).roll_back('d1', 'late'))
        self.assertEqual([], self.placement.mock_calls)
        # It is found in the end, under the new name.
        mine.renew()
        self.pass_in_database(LEASE_S + 1)
        mine = self.make()
        self.assertEqual(1, self.recovery(mine).repair())


class TestLostConnections(OwnerTestCase):
    """Tests of lost connections to the database."""

    def setUp(self):
        super().setUp()
        sleep = mock.patch('time.sleep')
        sleep.start()
        self.addCleanup(sleep.stop)

    def lose(self, times=1, committed=False):
        """The next transactions lose their connections."""
        real = self.db.writer
        left = [times]

        def writer():
            scope = real()
            if not left[0]:
                return scope
            left[0] -= 1
            return _Lost(scope, committed)

        patch = mock.patch.object(self.db, 'writer', writer)
        patch.start()
        self.addCleanup(patch.stop)

    def test_writes_are_repeated(self):
        decision = self.decide('me')
        self.lose(3)
        self.assertTrue(self.decisions.update_decision('d1', 'me',
                                                       decisions.DONE))
        self.lose(3)
        self.decisions.update_victim('d1', 'v-d1', decisions.GONE)
        found = self.decisions.get_decision(decision.uuid)
        self.assertEqual((decisions.DONE, decisions.GONE),
                         (found.status, found.victims[0].status))

    def test_writes_are_repeated_a_limited_number_of_times(self):
        self.decide('me')
        self.lose(100)
        self.assertRaises(db_exc.DBConnectionError,
                          self.decisions.update_decision,
                          'd1', 'me', decisions.DONE)

    def test_a_change_that_was_committed(self):
        self.decide('me')
        self.lose(committed=True)
        self.assertTrue(self.decisions.update_decision(
            'd1', 'me', decisions.DONE, from_status=decisions.CLAIMED,
            new_owner=''))

    def test_a_change_by_another_process_is_detected(self):
        self.decide('me')
        self.decisions.update_decision('d1', 'me', decisions.CLAIMED,
                                       new_owner='you')
        self.lose()
        self.assertFalse(self.decisions.update_decision('d1', 'me',
                                                        decisions.CLAIMED))

    def test_a_new_decision_that_was_committed(self):
        self.lose(committed=True)
        self.decide('me')
        self.assertEqual('me', self.decisions.get_decision('d1').owner)

    def test_a_decision_with_a_duplicate_victim_fails(self):
        victim = db.Victim('v')
        self.assertRaises(
            db_exc.DBDuplicateEntry, self.decisions.create_decision,
            db.Decision('d1', 's', victims=(victim, victim)))


class _Lost:
    """A transaction whose connection is lost at its end."""

    def __init__(self, scope, committed):
        self._scope = scope
        self._committed = committed

    def __enter__(self):
        return self._scope.__enter__()

    def __exit__(self, *exc_info):
        if self._committed:
            self._scope.__exit__(*exc_info)
        else:
            lost = db_exc.DBConnectionError()
            self._scope.__exit__(type(lost), lost, None)
        raise db_exc.DBConnectionError
