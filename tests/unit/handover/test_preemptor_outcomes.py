# SPDX-License-Identifier: Apache-2.0
"""Tests of the outcomes of servers for which others were evicted."""

import datetime
import os
import unittest
from unittest import mock

from nova_preempt import db
from nova_preempt import metrics
from nova_preempt.cloud import clients
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import observed_server
from nova_preempt.core.eviction import closing_rules
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.db import pending_outcomes
from nova_preempt.db import preemption_queries
from nova_preempt.handover import preemptor_outcomes
from nova_preempt.handover import victim_allocations
from tests.unit.db import test_decisions

RAN = datetime.datetime(2026, 1, 1)


class TestOutcomes(test_decisions.TestSQLite):
    """Inherits the database only, see load_tests."""

    def setUp(self):
        super().setUp()
        self.homeless = set()
        self.now_s = 0.0
        self.servers = {}
        self.broken = False
        self.placement = mock.Mock(spec=placement_api.Placement)
        self.placement.get_consumer.side_effect = lambda uuid: (
            placement_api.Consumer(uuid, {
                'rp': {'resources': {'VCPU': 1}}}, 1))
        self.nova = mock.Mock(spec=nova_api.NovaAPI)
        self.nova.get.side_effect = self.show
        self.nova.is_left_off.return_value = False
        self.outcomes = preemptor_outcomes.PreemptorOutcomes(
            self.db, clients.Clients(self.nova, self.placement, None),
            self.look, lambda: self.now_s)

    def look(self, uuids, attrs, deleted):
        if self.broken:
            return {}, dict.fromkeys(uuids, OSError('away'))
        return {uuid: self.servers[uuid] for uuid in uuids
                if uuid in self.servers}, dict.fromkeys(
                    uuids & self.homeless)

    def show(self, uuid):
        server = self.servers[uuid]
        return observed_server.ObservedServer(
            uuid, server.vm_state, server.task_state, server.host, status='',
            locked_reason=server.locked_reason)

    def add(self, uuid, status=decisions.DONE, server_uuid=None, **victims):
        self.decisions.create_decision(db.Decision(
            uuid, f's-{uuid}' if server_uuid is None else server_uuid,
            status=status, host='h', operation='create',
            record={'flavor': 'f'}, victims=tuple(
                db.Victim(f'{uuid}-{name}', status=victim, notice_s=5,
                          allocations={'rp': {'resources': {'VCPU': 1}}})
                for name, victim in victims.items())))

    def put(self, uuid, vm_state='active', task_state=None, host='h',
            **values):
        self.homeless.discard(uuid)
        self.servers[uuid] = ObservedServer(
            uuid, vm_state, task_state, host, flavor='f', launched_at=RAN,
            **values)

    def test_outcomes_of_recent_decisions(self):
        for uuid in ('known', 'new', 'old'):
            self.add(uuid)
        self.add('claimed', decisions.CLAIMED)
        self.add('headroom', server_uuid='')
        pending_outcomes.set_outcome(self.db, 'known',
                                     closing_rules.SERVED)
        with self.db.writer() as session:
            session.get(models.Decision, 'old').updated_at -= (
                datetime.timedelta(seconds=90))
        self.assertEqual({'s-new': 'h'},
                         pending_outcomes.get_placed(self.db, 60))
        self.assertEqual({'s-new': 'h', 's-old': 'h'},
                         pending_outcomes.get_placed(self.db, 120))

    def outcome(self, uuid):
        self.outcomes.note()
        return preemption_queries.get_preemption(self.db, uuid).outcome

    def counted(self, found):
        return metrics.OUTCOMES.labels('create', found)._value.get()

    def test_noted_once_it_is_known(self):
        before = self.counted('served')
        self.add('d')
        self.homeless.add('s-d')
        self.assertIsNone(self.outcome('d'))
        self.put('s-d', 'building', 'spawning')
        self.assertIsNone(self.outcome('d'))
        self.put('s-d')
        self.broken = True
        self.assertIsNone(self.outcome('d'))
        self.broken = False
        for _ in range(2):
            self.assertEqual('served', self.outcome('d'))
        self.assertEqual(before + 1, self.counted('served'))
        self.assertEqual([], pending_outcomes.get_unresolved(self.db))

    def test_a_server_in_error(self):
        before = metrics.IN_VAIN._value.get()
        self.add('d', a=decisions.GONE, b=decisions.MIGRATED,
                 c=decisions.SHELVED)
        self.put('s-d', 'error', host=None)
        self.assertEqual('failed', self.outcome('d'))
        self.assertEqual(before + 2, metrics.IN_VAIN._value.get())

    def test_a_decision_that_was_rolled_back(self):
        before = metrics.IN_VAIN._value.get()
        self.add('d', decisions.ROLLED_BACK, a=decisions.GONE,
                 b=decisions.KEPT)
        self.put('s-d')
        self.assertEqual('', self.outcome('d'))
        self.assertEqual(before + 1, metrics.IN_VAIN._value.get())

    def test_no_outcome_of_evictions_for_no_server(self):
        before = metrics.IN_VAIN._value.get()
        self.add('d', server_uuid='', a=decisions.GONE)
        self.add('e', decisions.REFUSED)
        self.add('f', decisions.CLAIMED, a=decisions.ENDING)
        self.assertEqual('', self.outcome('d'))
        self.assertEqual('', self.outcome('e'))
        self.assertIsNone(self.outcome('f'))
        self.assertEqual(before, metrics.IN_VAIN._value.get())

    def test_a_victim_that_has_gone_at_last(self):
        self.add('d', decisions.ROLLED_BACK, a=decisions.ENDING)
        self.put('d-a', task_state='deleting')
        self.assertEqual(['ending'], self.statuses('d'))
        self.put('d-a', 'deleted', deleted=True)
        self.assertEqual(['gone'], self.statuses('d'))

    def test_a_victim_that_stays_after_all(self):
        self.add('d', decisions.ROLLED_BACK, a=decisions.ENDING)
        for _ in range(2):
            # For a moment it looks as before while Nova deletes it.
            self.put('d-a')
            self.assertEqual(['ending'], self.statuses('d'))
            self.put('d-a', task_state='deleting')
            self.assertEqual(['ending'], self.statuses('d'))
        self.put('d-a')
        self.assertEqual(['ending'], self.statuses('d'))
        self.now_s += 59
        self.assertEqual(['ending'], self.statuses('d'))
        self.now_s += 1
        self.nova.clear_notice.assert_not_called()
        self.nova.clear_notice.side_effect = nova_api.NoAnswer('away')
        self.assertEqual(['ending'], self.statuses('d'))
        self.put('d-a')
        self.nova.clear_notice.side_effect = None
        # It is resized: Nova refuses to change its metadata.
        self.nova.clear_notice.return_value = False
        for _ in range(2):
            self.assertEqual(['ending'], self.statuses('d'))
        self.nova.clear_notice.return_value = True
        for _ in range(2):
            found = self.statuses('d')
        self.assertEqual(['kept'], found)
        self.nova.clear_notice.assert_called_with('d-a')

    def test_a_victim_that_a_late_call_stops(self):
        """Its process died in the call; the roll-back saw it running."""
        self.add('d', decisions.ROLLED_BACK, a=decisions.ENDING)
        self.decisions.update_victim('d', 'd-a', decisions.ENDING,
                                     asked='stop')
        self.put('d-a')
        self.assertEqual(['ending'], self.statuses('d'))
        self.put('d-a', task_state='powering-off')
        self.assertEqual(['ending'], self.statuses('d'))
        self.nova.start.assert_not_called()
        self.put('d-a', 'stopped')
        self.assertEqual(['kept'], self.statuses('d'))
        self.nova.start.assert_called_once_with('d-a')

    def test_a_victim_that_a_late_call_switches_off(self):
        """The shelve fails after the roll-back saw the victim running."""
        self.add('d', decisions.ROLLED_BACK, a=decisions.ENDING)
        self.decisions.update_victim('d', 'd-a', decisions.ENDING,
                                     asked='shelve')
        self.put('d-a', task_state='shelving')
        self.assertEqual(['ending'], self.statuses('d'))
        self.put('d-a')
        self.nova.is_left_off.return_value = True
        self.assertEqual(['ending'], self.statuses('d'))
        self.now_s += 60
        self.assertEqual(['kept'], self.statuses('d'))
        self.nova.hard_reboot.assert_called_once_with('d-a')

    def test_a_victim_that_a_late_call_locks(self):
        """The roll-back has started it; the lock of a dead process is late."""
        self.add('d', decisions.ROLLED_BACK, a=decisions.ENDING)
        self.put('d-a')
        self.assertEqual(['ending'], self.statuses('d'))
        self.put('d-a', locked_reason=victim_allocations.LOCKED)
        self.now_s += 60
        self.assertEqual(['kept'], self.statuses('d'))
        self.nova.unlock.assert_called_once_with('d-a')

    def add_later(self):
        """A victim that the first preemption stops gets a later one, too."""
        self.add('d', decisions.ROLLED_BACK, a=decisions.ENDING)
        self.decisions.update_victim('d', 'd-a', decisions.ENDING,
                                     asked='stop')
        self.decisions.create_decision(db.Decision(
            'later', 's-later', status=decisions.CLAIMED, host='h',
            operation='create', record={'flavor': 'f'}, victims=(
                db.Victim('d-a', status=decisions.ENDING, notice_s=5,
                          allocations={}),)))
        with self.db.writer() as session:
            session.get(models.Decision, 'd').created_at -= (
                datetime.timedelta(seconds=30))

    def test_a_victim_of_a_later_preemption_stays_its_victim(self):
        """That one has stopped and locked it, and has given it notice."""
        self.add_later()
        self.put('d-a', 'stopped', locked_reason=victim_allocations.LOCKED)
        self.assertEqual(['ending'], self.statuses('d'))
        self.decisions.update_victim('later', 'd-a', decisions.STOPPED)
        self.assertEqual(['kept'], self.statuses('d'))
        self.nova.start.assert_not_called()
        self.nova.unlock.assert_not_called()
        self.nova.clear_notice.assert_not_called()

    def test_a_victim_that_a_later_preemption_keeps(self):
        """That one has found it stopped, and does not start it."""
        self.add_later()
        self.put('d-a', 'stopped')
        self.assertEqual(['ending'], self.statuses('d'))
        self.nova.start.assert_not_called()
        self.decisions.update_victim('later', 'd-a', decisions.KEPT)
        self.assertEqual(['kept'], self.statuses('d'))
        self.nova.start.assert_called_once_with('d-a')

    def test_a_victim_that_an_earlier_preemption_has_stopped(self):
        """Its owner must not start it: others have its space."""
        self.add_later()
        self.decisions.update_victim('d', 'd-a', decisions.STOPPED)
        self.put('d-a', 'stopped', locked_reason=victim_allocations.LOCKED)
        self.decisions.update_decision('later', '', decisions.ROLLED_BACK)
        self.outcomes.note()
        self.now_s += 60
        self.assertEqual(['kept'], self.statuses('later'))
        self.nova.unlock.assert_not_called()
        self.nova.start.assert_not_called()

    def test_a_victim_that_is_just_being_deleted(self):
        self.add('d', decisions.ROLLED_BACK, a=decisions.ENDING)
        self.put('d-a', 'deleted')
        self.assertEqual(['gone'], self.statuses('d'))

    def test_a_victim_that_is_offloaded_at_last(self):
        """Allocations restored while Nova freed them are freed again."""
        self.add('d', decisions.ROLLED_BACK, a=decisions.ENDING)
        self.put('d-a', task_state='shelving_offloading')
        self.assertEqual(['ending'], self.statuses('d'))
        self.put('d-a', 'shelved_offloaded', host=None)
        self.placement.post_allocations.side_effect = [
            placement_api.Conflict(), None]
        self.assertEqual(['ending'], self.statuses('d'))
        self.assertEqual(['shelved'], self.statuses('d'))
        (changes,), _ = self.placement.post_allocations.call_args
        self.assertEqual([('d-a', {}, 1)], [
            (item.uuid, item.allocations, item.generation)
            for item in changes])
        self.assertIsNotNone(
            self.decisions.get_decision('d').victims[0].ended_at)

    def statuses(self, uuid):
        self.outcomes.note()
        return [victim.status for victim
                in self.decisions.get_decision(uuid).victims]


def load_tests(loader, tests, pattern):
    """Return the tests on each database, without inherited ones."""
    suite = unittest.TestSuite()
    for url in (None, *os.environ.get('OS_TEST_DATABASES', '').split()):
        for name in vars(TestOutcomes):
            if name.startswith('test_'):
                case = TestOutcomes(name)
                case.url = url
                suite.addTest(case)
    return suite
