# SPDX-License-Identifier: Apache-2.0
"""Roll-backs where the space of a victim was taken meanwhile."""

import contextlib
import dataclasses
import functools
from unittest import mock

from nova_preempt.cloud import placement_api
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import preemption_rollback
from nova_preempt.handover import victim_allocations
from tests.unit.handover import roll_back
from tests.unit.handover.roll_back import FakePlacement

#: Of victims that were asked to end before the roll-back.
SHELVED = {'asked': 'shelve', 'action': 'shelve'}


class TestInParts(roll_back.RollBackTestCase):

    def take(self):
        """The new server is gone, and another one has its capacity."""
        self.placement = FakePlacement(2)
        self.placement.give('other', 1)
        self.nova.calls.clear()

    def test_a_victim_without_space_that_was_asked_to_end_is_evicted(self):
        self.take()
        self.assertEqual({'a': db_decisions.ENDING, 'b': db_decisions.ENDING},
                         self.roll_back(**SHELVED))
        self.assert_space(a=1, b=0)
        self.assertEqual([('shelve', 'b')], self.nova.calls)

    def test_a_victim_without_space_that_was_not_asked_stays(self):
        """It has had no notice; the repair of the engine evicts it."""
        self.take()
        with self.assertLogs(preemption_rollback.__name__, 'ERROR') as logs:
            self.assertEqual({db_decisions.KEPT},
                             set(self.roll_back().values()))
        self.assertIn('it stays without its allocation', logs.output[0])
        self.assert_space(a=1, b=0, held=0)
        self.assertEqual([], self.nova.calls)
        self.assertEqual(db_decisions.ROLLED_BACK,
                         self.decisions.decision.status)

    def test_none_is_evicted_after_its_decision_was_lost(self):
        """Nova takes long to answer."""
        self.take()
        real = self.nova.get

        def get(uuid):
            self.owner_keeps = len(self.placement.consumers) == 1
            return real(uuid)

        self.nova.get = get
        self.roll_back(**SHELVED)
        self.assertEqual([], self.nova.calls)

    def test_none_is_evicted_after_its_decision_was_lost_by_unlocking(self):
        self.nova.put('b', locked_reason=victim_allocations.LOCKED)
        self.take()

        def unlock(uuid):
            self.nova.calls.append(('unlock', uuid))
            self.owner_keeps = False

        self.nova.unlock = unlock
        self.roll_back(**SHELVED)
        self.assertEqual([('unlock', 'b')], self.nova.calls)

    def test_no_space_is_freed_after_the_decision_was_lost_by_locking(self):
        self.nova.put('b', 'stopped')

        def lock(uuid, reason):
            self.owner_keeps = is_kept

        self.nova.lock = lock
        for is_kept in True, False:
            self.owner_keeps = True
            self.take()
            self.placement.give('b', 1, 'other host')
            self.roll_back(asked='stop', action='stop')
            self.assertEqual(int(not is_kept),
                             self.placement.vcpus('b', 'other host'))

    def test_a_victim_without_space_stays_during_a_pause(self):
        """Its call was recorded; it may not have been sent."""
        self.take()
        self.why_paused = 'preemption is paused'
        self.assertEqual({db_decisions.ENDING},
                         set(self.roll_back(**SHELVED).values()))
        self.assertEqual([], self.nova.calls)
        self.assertEqual(db_decisions.ROLLED_BACK,
                         self.decisions.decision.status)

    def test_no_victim_is_evicted_while_placement_is_busy(self):
        """Generations change repeatedly: the next try may succeed."""
        free = FakePlacement(2)
        for code in placement_api.CONCURRENT_UPDATE, '':
            self.placement = FakePlacement(2)
            self.placement.post_allocations = mock.Mock(
                side_effect=placement_api.Conflict('busy', code))
            self.assertEqual({db_decisions.ENDING},
                             set(self.roll_back().values()))
            self.assertEqual([], self.nova.calls)
            self.assertEqual('', self.decisions.decision.owner)
            self.assertEqual(db_decisions.ROLLING_BACK,
                             self.decisions.decision.status)
        self.placement = free
        self.assertEqual({db_decisions.KEPT}, set(self.again().values()))
        self.assert_space(a=1, b=1)

    def test_a_victim_without_space_is_evicted_while_another_is_busy(self):
        self.take()
        real = self.placement.post_allocations

        def post(consumers):
            if [item.uuid for item in consumers] == ['a']:
                raise placement_api.Conflict(
                    'busy', placement_api.CONCURRENT_UPDATE)
            real(consumers)

        self.placement.capacity = 1
        self.placement.post_allocations = post
        self.assertEqual({db_decisions.ENDING},
                         set(self.roll_back(**SHELVED).values()))
        self.assertEqual([('shelve', 'b')], self.nova.calls)

    def test_a_victim_is_evicted_by_its_action(self):
        self.take()
        self.roll_back(asked='live_migrate', action='migrate',
                       last_resort='shelve')
        self.assertEqual([('shelve', 'b')], self.nova.calls)

    def test_a_rescued_victim_is_unrescued_first(self):
        self.take()
        self.nova.put('b', 'rescued')
        self.roll_back(asked='unrescue', action='shelve')
        self.assertEqual([('unrescue', 'b')], self.nova.calls)
        self.assertEqual(db_decisions.ROLLING_BACK,
                         self.decisions.decision.status)
        self.nova.put('b')
        self.again()
        self.assertEqual(('shelve', 'b'), self.nova.calls[-1])
        self.assertEqual(db_decisions.ROLLED_BACK,
                         self.decisions.decision.status)

    def test_a_victim_that_leaves_is_not_evicted(self):
        for state in (('active', 'deleting'), ('active', 'shelving'),
                      ('active', None, 'host2')):
            self.take()
            self.nova.put('b', *state)
            self.roll_back()
            self.assertEqual([], self.nova.calls)

    def test_a_stopped_victim_stays_stopped(self):
        self.take()
        self.nova.put('b', 'stopped')
        self.assertEqual({'a': db_decisions.ENDING, 'b': db_decisions.STOPPED},
                         self.roll_back(asked='stop', action='stop'))
        self.assertEqual([('lock', 'b')], self.nova.calls)

    # -- locked meanwhile ----------------------------------------------

    def test_a_victim_locked_by_an_administrator_stays(self):
        """Then it runs without allocation, which the audit reports."""
        self.take()
        self.nova.put('b', locked_by='admin')
        with self.assertLogs(preemption_rollback.__name__, 'ERROR') as logs:
            self.assertEqual({db_decisions.KEPT}, set(
                self.roll_back(notice_s=60).values()))
        self.assertIn('b was taken', logs.output[0])
        self.assertIn('it stays', logs.output[0])
        self.assert_space(a=1, b=0, held=0)
        self.assertEqual([('clear_notice', 'a'), ('clear_notice', 'b')],
                         self.nova.calls)
        self.assertEqual(db_decisions.ROLLED_BACK,
                         self.decisions.decision.status)

    def test_a_lock_of_the_owner_counts_if_all_locks_do(self):
        for honored_locks, calls in (('admin', [('shelve', 'b')]),
                                     ('all', [])):
            self.take()
            self.nova.put('b', locked_by='owner')
            self.again = functools.partial(
                roll_back.RollBackTestCase.again, self,
                honored_locks=honored_locks)
            self.roll_back(**SHELVED)
            self.assertEqual(calls, self.nova.calls)

    def test_our_own_lock_does_not_protect_a_victim(self):
        self.take()
        self.nova.put('b', locked_reason=victim_allocations.LOCKED,
                      locked_by='admin')
        self.roll_back(**SHELVED)
        # Its owner could not unshelve it with our lock.
        self.assertEqual([('unlock', 'b'), ('shelve', 'b')], self.nova.calls)

    def test_a_stopped_victim_keeps_the_lock_of_an_administrator(self):
        """Otherwise the lock would be ours, and it would be deleted."""
        self.take()
        self.nova.put('b', 'stopped', locked_by='admin')
        self.assertEqual({'a': db_decisions.ENDING, 'b': db_decisions.STOPPED},
                         self.roll_back(asked='stop', action='stop'))
        self.assertEqual([], self.nova.calls)

    # -- claimed for another decision meanwhile ------------------------

    def claim(self, status, *uuids):
        """The decision is closed, and a later one has these victims."""
        self.roll_back()
        self.assertEqual(db_decisions.ROLLED_BACK,
                         self.decisions.decision.status)
        self.decisions.later = [dataclasses.replace(
            self.decisions.decision, uuid='later', status=status,
            victims=tuple(db_decisions.Victim(uuid) for uuid in uuids))]
        for uuid in uuids:
            self.placement.delete_allocations(uuid)
        self.placement.give('held of later', len(uuids))

    def test_a_victim_of_a_later_open_decision_is_left_to_it(self):
        """It has its notice and must not end before."""
        for status in db_decisions.OPEN:
            self.placement = FakePlacement(2)
            self.placement.give('held', 2)
            self.claim(status, 'a')
            self.assertEqual({db_decisions.KEPT},
                             set(self.again(reopen=True).values()))
            self.assertEqual([], self.nova.calls)
            self.assert_space(**{'a': 0, 'b': 1, 'held of later': 1})
            self.assertEqual(db_decisions.ROLLED_BACK,
                             self.decisions.decision.status)

    def test_a_closed_later_decision_does_not_keep_a_victim(self):
        self.claim(db_decisions.ROLLED_BACK, 'a')
        self.placement.delete_allocations('held of later')
        self.again(reopen=True)
        self.assert_space(a=1, b=1)

    # -- what nobody else gets meanwhile -------------------------------

    def race(self, refuse=lambda consumers: None):
        """Let "third" claim the free capacity after each change.

        :param refuse: given the Consumers of a change, the code with which
            it is refused, None if it is not
        """
        real = self.placement.post_allocations

        def post(consumers):
            code = refuse(consumers)
            if code:
                raise placement_api.Conflict('no', code)
            real(consumers)
            with contextlib.suppress(placement_api.Conflict):
                real([placement_api.Consumer(
                    'third', {'rp': {'resources': {'VCPU': 1}}})])

        self.placement.post_allocations = post

    def busy(self, consumers):
        return len(consumers) > 1 and placement_api.CONCURRENT_UPDATE

    def test_the_stand_in_keeps_the_space_while_the_host_is_busy(self):
        """A small change may pass where a large one conflicts each time."""
        real = self.placement.post_allocations
        self.race(self.busy)
        self.assertEqual({db_decisions.ENDING}, set(self.roll_back().values()))
        self.assertEqual((db_decisions.ROLLING_BACK, ''), (
            self.decisions.decision.status, self.decisions.decision.owner))
        self.assert_space(held=2, third=0)
        self.placement.post_allocations = real
        self.race()
        self.assertEqual({db_decisions.KEPT}, set(self.again().values()))
        self.assert_space(held=0, a=1, b=1, third=0)
        self.assertEqual([], self.nova.calls)

    def test_only_the_victim_that_lost_its_space_is_evicted(self):
        """Another server has the space that "new" does not need."""
        self.placement = FakePlacement(2)
        self.placement.give('held', 1)
        self.placement.give('other', 1)
        self.race()
        self.assertEqual({'a': db_decisions.ENDING, 'b': db_decisions.ENDING},
                         self.roll_back(**SHELVED))
        self.assert_space(held=0, a=1, b=0, third=0)
        self.assertEqual([('shelve', 'b')], self.nova.calls)

    def test_the_stand_in_holds_the_rest_until_all_victims_have_space(self):
        real = self.placement.post_allocations

        def refuse(consumers):
            if len(consumers) > 2:
                return placement_api.NO_ROOM
            return (consumers[0].uuid == 'b'
                    and placement_api.CONCURRENT_UPDATE)

        self.race(refuse)
        self.roll_back()
        self.assert_space(held=1, a=1, b=0, third=0)
        self.assertEqual(db_decisions.ROLLING_BACK,
                         self.decisions.decision.status)
        self.placement.post_allocations = real
        self.race()
        self.assertEqual({db_decisions.KEPT}, set(self.again().values()))
        self.assert_space(held=0, a=1, b=1, third=0)

    def test_a_victim_takes_its_own_stand_in_first(self):
        self.placement.give('held', 1)
        self.placement.give('stand-in', 1)
        self.race(lambda consumers: len(consumers) > 3
                  and placement_api.NO_ROOM)
        self.assertEqual({db_decisions.KEPT}, set(self.roll_back(
            record={'stand_ins': {'a': 'stand-in'}}).values()))
        self.assert_space(**{'held': 0, 'stand-in': 0, 'a': 1, 'b': 1,
                             'third': 0})
