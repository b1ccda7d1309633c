# SPDX-License-Identifier: Apache-2.0
"""Tests of the roll-back of a preemption."""

import dataclasses
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt.cloud import placement_api
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import preemption_rollback
from nova_preempt.handover import victim_allocations
from tests.unit.handover import roll_back
from tests.unit.handover.roll_back import FakePlacement


class TestRollBack(roll_back.RollBackTestCase):

    def test_a_roll_back_that_another_process_has_taken_over(self):
        """A slow process does not record over its successor."""
        clear = self.nova.get

        def get(uuid):
            self.decisions.decision = dataclasses.replace(
                self.decisions.decision, owner='other')
            return clear(uuid)

        self.nova.get = get
        self.assertEqual({db_decisions.ENDING}, set(self.roll_back().values()))
        self.assertEqual('other', self.decisions.decision.owner)
        self.assertEqual(db_decisions.ROLLING_BACK,
                         self.decisions.decision.status)

    def test_all_victims_are_kept(self):
        self.assertEqual({'a': db_decisions.KEPT, 'b': db_decisions.KEPT},
                         self.roll_back())
        self.assert_space(held=0, a=1, b=1)
        self.assertEqual([], self.nova.calls)
        self.assertEqual(db_decisions.ROLLED_BACK,
                         self.decisions.decision.status)

    def test_allocations_of_a_stand_in_return_to_the_victim(self):
        self.placement.capacity = 3
        self.placement.give('stand-in', 1)
        found = self.roll_back(record={'stand_ins': {'a': 'stand-in'}})
        self.assertEqual({db_decisions.KEPT}, set(found.values()))
        self.assert_space(**{'a': 1, 'b': 1, 'stand-in': 0, 'held': 0})

    def test_a_stand_in_of_a_deleted_victim(self):
        self.placement.capacity = 3
        self.placement.give('stand-in', 1)
        del self.nova.servers['a']
        self.roll_back(record={'stand_ins': {'a': 'stand-in'}})
        self.assert_space(**{'a': 0, 'b': 1, 'stand-in': 0, 'held': 0})

    def test_notices_are_withdrawn(self):
        self.roll_back(notice_s=5)
        self.assertEqual([('clear_notice', 'a'), ('clear_notice', 'b')],
                         self.nova.calls)

    def test_a_notice_that_nova_does_not_withdraw_now_is_followed(self):
        """The server is being resized; found by exploration, seed 9."""
        self.nova.refuses = {'clear_notice'}
        self.assertEqual({db_decisions.ENDING}, set(
            self.roll_back(notice_s=5).values()))

    # -- the server that the space was for -----------------------------

    def test_allocations_of_the_server_stay_if_victims_have_not_left(self):
        """It was placed there without the victims."""
        self.placement.capacity = 4
        self.placement.give('new', 2)
        for status in (db_decisions.CLAIMED, db_decisions.ROLLING_BACK):
            self.assertEqual({db_decisions.KEPT},
                             set(self.roll_back(status=status).values()))
            self.assert_space(held=0, new=2, a=1, b=1)

    def test_resize_that_nova_has_taken_back_already(self):
        self.placement.capacity = 3
        self.placement.give('new', 1)
        self.nova.put('new')
        self.assertEqual({'a': db_decisions.KEPT, 'b': db_decisions.KEPT},
                         self.roll_back())
        self.assert_space(held=0, new=1, a=1, b=1)

    def hand_over(self, before=None, **record):
        """The victims have gone, and the server has the space."""
        self.placement = FakePlacement(2)
        self.nova.servers.pop('a', None)
        self.nova.servers.pop('b', None)
        for allocations in before, {
                **(before or {}), 'rp': {'resources': {'VCPU': 2}}}:
            if allocations:
                self.placement.post_allocations([
                    self.placement.get_consumer('new').with_allocations(
                        allocations)])

    def roll_back_moved(self, **values):
        self.roll_back(victims=db_decisions.GONE, **values)

    def test_a_crash_after_the_hand_over(self):
        self.hand_over()
        self.roll_back_moved()
        self.assert_space(new=0)

    def test_resize_on_the_same_host(self):
        """It was on the host before."""
        self.hand_over()
        self.nova.put('new', task_state='resize_prep')
        self.roll_back_moved(operation='resize')
        self.assert_space(new=0)

    def test_a_server_that_came_there_by_a_retry(self):
        """The victims had left, and the stand-in is empty."""
        self.hand_over()
        self.nova.put('new', 'building')
        self.roll_back_moved()
        self.assert_space(new=2)
        self.nova.put('new', 'error')
        self.roll_back_moved()
        self.assert_space(new=0)

    def test_retries_that_were_aborted_do_not_use_the_claim(self):
        self.hand_over()
        self.roll_back_moved(later=[db_decisions.ABORTED,
                                    db_decisions.ROLLED_BACK])
        self.assert_space(new=0)

    def test_a_later_claim_of_the_same_host_is_kept(self):
        self.hand_over()
        for status in (db_decisions.INTENT, db_decisions.DONE):
            self.roll_back_moved(later=[status])
            self.assert_space(new=2)

    def test_a_claim_changed_by_others(self):
        """An evacuation changes it, for example."""
        self.hand_over()
        self.placement.give('new', 2)
        self.nova.put('new', host='host2')
        self.roll_back_moved()
        self.assert_space(new=0)

    def test_evacuation_with_storage_that_hosts_share(self):
        """Allocations of the failed host and the storage stay."""
        source = {'source': {'resources': {'VCPU': 2}},
                  'shared': {'resources': {'DISK_GB': 20}}}
        both = {**source, 'shared': {'resources': {'DISK_GB': 40}}}
        record = {'allocations': {'rp': {'VCPU': 2},
                                  'shared': {'DISK_GB': 20}},
                  'consumer_generation': 1}
        self.placement.post_allocations([
            self.placement.get_consumer('new').with_allocations(source)])
        self.nova.put('new', host='host2')
        self.roll_back(record)
        self.assertEqual(source,
                         self.placement.get_consumer('new').allocations)
        self.hand_over(before=both)
        self.roll_back_moved(record=record)
        self.assertEqual(source,
                         self.placement.get_consumer('new').allocations)

    # -- a claim of which nothing is seen ------------------------------

    def test_a_claim_that_arrives_after_the_roll_back_is_refused(self):
        self.placement = FakePlacement(2)
        for uuid in 'ab':
            self.placement.give(uuid, 1)
        late = [*(self.placement.get_consumer(uuid).with_allocations({})
                  for uuid in 'ab'),
                placement_api.Consumer(
                    'held', {'rp': {'resources': {'VCPU': 2}}})]
        self.assertEqual({'a': db_decisions.KEPT, 'b': db_decisions.KEPT},
                         self.roll_back(status=db_decisions.INTENT,
                                        victims=db_decisions.PENDING))
        self.assertEqual(db_decisions.ABORTED, self.decisions.decision.status)
        with self.assertRaises(placement_api.Conflict):
            self.placement.post_allocations(late)
        self.assert_space(held=0, a=1, b=1)

    def test_allocations_of_a_victim_that_moved_meanwhile_stay(self):
        """Its consumer was made anew, with the generation of before."""
        self.placement = FakePlacement(2)
        for uuid in 'ab':
            self.placement.give(uuid, 1)

        def move(uuid):
            if uuid == 'a' and 'a' not in moved:
                moved.append('a')
                self.placement.delete_allocations('a')
                self.placement.give('a', 1, 'other')
                self.nova.put('a', host='host2')
            return real(uuid)

        moved, real = [], self.nova.get
        self.nova.get = move
        self.roll_back(status=db_decisions.INTENT,
                       victims=db_decisions.PENDING)
        self.assertEqual(1, self.placement.vcpus('a', 'other'))

    def test_what_a_stopped_victim_would_free_later_is_refused(self):
        """Its eviction is for no server; its process stands still."""
        self.placement = FakePlacement(2)
        for uuid in 'ab':
            self.placement.give(uuid, 1)
        late = self.placement.get_consumer('a').with_allocations({})
        self.nova.put('a', 'stopped', locked_reason=victim_allocations.LOCKED)
        self.roll_back(record={'stand_in': None}, operation='headroom',
                       asked='stop', action='stop')
        with self.assertRaises(placement_api.Conflict):
            self.placement.post_allocations([late])
        self.assert_space(a=1, b=1)

    def roll_back_while_it_arrives(self, after):
        """Roll back while the claim arrives; return whether it did."""
        claim = [*(self.placement.get_consumer(uuid).with_allocations({})
                   for uuid in 'ab'),
                 placement_api.Consumer(
                     'held', {'rp': {'resources': {'VCPU': 2}}})]
        real, read = self.placement.get_consumer, []

        def get(uuid):
            found = real(uuid)
            read.append(uuid)
            if len(read) == after:
                self.placement.post_allocations(claim)
            return found

        with mock.patch.object(self.placement, 'get_consumer', get):
            self.roll_back(status=db_decisions.INTENT,
                           victims=db_decisions.PENDING)
        return after <= len(read)

    def test_a_claim_that_arrives_in_the_middle_is_found(self):
        """The host has free capacity, or has none."""
        for capacity in 2, 4:
            after, arrived = 0, True
            while arrived:
                after += 1
                self.placement = FakePlacement(capacity)
                for uuid in 'ab':
                    self.placement.give(uuid, 1)
                arrived = self.roll_back_while_it_arrives(after)
                self.assert_space(held=0, a=1, b=1)
                self.assertEqual(
                    db_decisions.ROLLED_BACK if arrived
                    else db_decisions.ABORTED, self.decisions.decision.status)
            self.assertEqual(4, after)

    # -- victims that are not what they were ---------------------------

    def test_victims_that_are_gone_or_moved(self):
        del self.nova.servers['a']
        self.nova.put('b', host='host2')
        self.placement.give('b', 1, 'other')
        self.assertEqual({'a': db_decisions.GONE, 'b': db_decisions.MIGRATED},
                         self.roll_back())
        self.assert_space(held=0, a=0, b=0)
        self.assertEqual(1, self.placement.vcpus('b', 'other'))

    def test_deletion_that_never_finishes(self):
        """A victim that is still there needs its space."""
        self.nova.put('a', task_state='deleting')
        self.assertEqual({'a': db_decisions.ENDING, 'b': db_decisions.KEPT},
                         self.roll_back())
        self.assert_space(held=0, a=1, b=1)
        with self.assertRaises(placement_api.Conflict):
            self.placement.give('other', 1)

    def test_notices_of_evictions_possibly_refused_are_withdrawn(self):
        self.nova.put('b', task_state='deleting')
        self.roll_back(asked='force_delete', notice_s=5)
        self.assertEqual([('clear_notice', 'a')],
                         [call for call in self.nova.calls
                          if call[0] == 'clear_notice'])

    def test_an_eviction_that_does_not_show_yet(self):
        """Nova confirms its resize before it deletes it."""
        self.assertEqual({db_decisions.ENDING}, set(
            self.roll_back(asked='force_delete').values()))
        self.assert_space(held=0, a=1, b=1)

    def test_shelving(self):
        self.nova.put('a', task_state='shelving_image_uploading')
        self.assertEqual({'a': db_decisions.ENDING, 'b': db_decisions.KEPT},
                         self.roll_back())
        self.assert_space(held=0, a=1, b=1)

    def offload(self, **values):
        """Nova has done that while its space was given back."""
        self.nova.put('a', 'shelved_offloaded', **values)

    def test_offloaded_while_its_space_is_restored(self):
        self.nova.put('a', task_state='shelving_offloading')
        real = self.placement.post_allocations

        def post(consumers):
            real(consumers)
            self.offload(host=None)

        self.placement.post_allocations = post
        self.assertEqual({'a': db_decisions.SHELVED, 'b': db_decisions.KEPT},
                         self.roll_back(action='shelve'))
        self.assert_space(held=0, a=0, b=1)

    def test_offloaded_and_on_its_way_back(self):
        """Its allocation is the one that it claimed for the unshelve."""
        self.placement = FakePlacement(3)
        self.placement.give('held', 2)
        self.placement.give('a', 1)
        real = self.placement.get_consumer

        def get(uuid):
            if uuid == 'a':
                self.offload(host=None, task_state='unshelving')
            return real(uuid)

        self.offload(host=None)
        self.placement.get_consumer = get
        self.assertEqual(db_decisions.SHELVED, self.roll_back()['a'])
        self.placement.get_consumer = real
        self.assert_space(a=1, b=1)
        self.offload(host=None)
        self.placement.give('a', 1, 'other')
        self.roll_back()
        self.assertEqual(1, self.placement.vcpus('a', 'other'))

    def test_deleted_while_its_space_is_restored(self):
        real = self.placement.post_allocations

        def post(consumers):
            real(consumers)
            del self.nova.servers['a']

        self.placement.post_allocations = post
        self.assertEqual({'a': db_decisions.GONE, 'b': db_decisions.KEPT},
                         self.roll_back())
        self.assert_space(a=0, b=1)

    # -- moved meanwhile -----------------------------------------------

    def move(self, task_state='migrating'):
        """"a" is on its way to "host2", where it has its space already."""
        self.nova.put('a', task_state=task_state)
        self.placement.give('a', 1, 'other')

    def assert_not_yet(self):
        """Assert that this process keeps it and will retry."""
        self.assertEqual((db_decisions.ROLLING_BACK, 'me'), (
            self.decisions.decision.status, self.decisions.decision.owner))
        self.assert_space(held=2, b=0)
        self.assertEqual([], self.nova.calls)

    def test_a_migration_that_succeeds(self):
        for task_state in 'migrating', 'resize_prep':
            self.placement = FakePlacement(2)
            self.placement.give('held', 2)
            self.move(task_state)
            self.roll_back()
            self.assert_not_yet()
            self.nova.put('a', host='host2')
            self.assertEqual(
                {'a': db_decisions.MIGRATED, 'b': db_decisions.KEPT},
                self.again())
            self.assert_space(held=0, a=0, b=1)
            self.assertEqual(1, self.placement.vcpus('a', 'other'))

    def test_a_migration_that_fails(self):
        """Nova does not free its allocation on the other host."""
        self.move()
        self.roll_back()
        self.assert_not_yet()
        self.nova.put('a')
        self.assertEqual({'a': db_decisions.KEPT, 'b': db_decisions.KEPT},
                         self.again())
        self.assert_space(held=0, a=1, b=1)
        self.assertEqual(0, self.placement.vcpus('a', 'other'))

    def test_a_migration_that_begins_meanwhile(self):
        """Its allocations are read again."""
        real, begun = self.placement.get_consumer, []

        def get(uuid):
            found = real(uuid)
            if uuid == 'a' and not begun:
                begun.append(uuid)
                self.move()
            return found

        self.placement.get_consumer = get
        self.roll_back()
        self.assert_not_yet()

    def test_resized_on_the_same_host_meanwhile(self):
        """The claim of Nova is not overwritten."""
        self.placement = FakePlacement(4)
        self.placement.give('held', 2)
        self.placement.give('a', 2)
        self.nova.put('a', 'resized')
        self.assertEqual({db_decisions.KEPT}, set(self.roll_back().values()))
        self.assert_space(held=0, a=2, b=1)

    # -- stopped to give way -------------------------------------------

    def test_stopped_by_us(self):
        self.nova.put('a', 'stopped', locked_reason=victim_allocations.LOCKED)
        # A call may be late: they stay ENDING until none can be.
        self.assertEqual({'a': db_decisions.ENDING, 'b': db_decisions.ENDING},
                         self.roll_back(asked='stop', action='stop'))
        self.assertEqual([('unlock', 'a'), ('start', 'a')], self.nova.calls)

    def test_stopped_by_us_and_then_shelved(self):
        """Its owner can unshelve it."""
        self.offload(host=None, locked_reason=victim_allocations.LOCKED)
        self.assertEqual(db_decisions.SHELVED,
                         self.roll_back(asked='stop', action='stop')['a'])
        self.assertEqual([('unlock', 'a')], self.nova.calls)

    def test_still_being_stopped(self):
        """PreemptorOutcomes starts it once it is stopped."""
        self.nova.put('a', task_state='powering-off')
        self.assertEqual(db_decisions.ENDING,
                         self.roll_back(asked='stop', action='stop')['a'])
        self.assert_space(held=0, a=1, b=1)
        self.assertEqual([], self.nova.calls)

    def test_stopped_by_its_owner(self):
        """We have locked it only."""
        self.nova.put('a', 'stopped', locked_reason=victim_allocations.LOCKED)
        self.nova.put('b', 'stopped', locked_reason='mine')
        self.roll_back(action='stop')
        self.assertEqual([('unlock', 'a')], self.nova.calls)

    def test_switched_off_by_a_failed_shelve(self):
        self.nova.left_off.add('a')
        self.roll_back(asked='')
        self.assertEqual([], self.nova.calls)
        self.roll_back(asked='shelve')
        self.assertEqual([('hard_reboot', 'a')], self.nova.calls)


class TestRepair(roll_back.RollBackTestCase):
    """Tests of logs and records of a repaired decision."""

    def repair(self, **leases):
        """The lines that are logged."""
        with self.assertLogs(preemption_rollback.__name__, 'INFO') as logs:
            self.make_recovery(leases=leases).repair()
        return '\n'.join(logs.output)

    def test_our_decision_that_could_not_be_rolled_back(self):
        """It keeps its reason and this process as its owner."""
        self.nova.put('a', task_state='migrating')
        self.roll_back()
        for _ in range(2):
            self.assertNotIn('rolling it back', self.repair())
            self.assertEqual(
                'test; not yet: server a is still being moved (migrating)',
                self.decisions.decision.reason)
        self.nova.put('a')
        self.repair()
        self.assertEqual((db_decisions.ROLLED_BACK, 'test'), (
            self.decisions.decision.status, self.decisions.decision.reason))

    def leave(self, owner):
        """Leave a claim that no process works on."""
        self.roll_back()
        self.decisions.decision = dataclasses.replace(
            self.decisions.decision, owner=owner, reason='',
            status=db_decisions.CLAIMED)

    def test_a_decision_of_a_dead_scheduler(self):
        self.leave('dead')
        self.assertIn('is still claimed', self.repair(dead=False))
        self.assertEqual('its scheduler stopped',
                         self.decisions.decision.reason)

    def test_a_decision_of_our_failed_request(self):
        self.leave('me')
        self.assertIn('is still claimed', self.repair())
        self.assertEqual('it was not completed',
                         self.decisions.decision.reason)

    def test_a_repair_that_fails_is_given_up(self):
        """Its engine may not be the leader the next time."""
        self.leave('dead')
        found = self.make_recovery(leases={'dead': False})
        with mock.patch.object(self.decisions, 'get_decision',
                               side_effect=db_exc.DBError), (
                self.assertRaises(db_exc.DBError)):
            found.repair()
        self.assertEqual('me', self.decisions.decision.owner)
        found.give_up()
        self.assertEqual('', self.decisions.decision.owner)
        self.assertEqual(db_decisions.CLAIMED, self.decisions.decision.status)
        found.repair()
        self.assertEqual(('it was not completed', db_decisions.ROLLED_BACK), (
            self.decisions.decision.reason, self.decisions.decision.status))

    def test_a_roll_back_that_waits_for_nova_is_given_up(self):
        self.nova.put('a', task_state='migrating')
        self.roll_back()
        self.assertEqual('me', self.decisions.decision.owner)
        self.make_recovery().give_up()
        self.assertEqual('', self.decisions.decision.owner)

    def test_nothing_is_given_up_without_the_database(self):
        self.leave('me')
        with mock.patch.object(self.decisions, 'get_open_decisions',
                               side_effect=db_exc.DBConnectionError):
            self.make_recovery().give_up()
        self.assertEqual('me', self.decisions.decision.owner)

    def test_what_is_not_given_up(self):
        for owner, active in (('other', ()), ('me', {'d'})):
            self.leave(owner)
            found = self.make_recovery()
            found._active = active
            found.give_up()
            self.assertEqual(owner, self.decisions.decision.owner)

    def test_a_failed_repair_does_not_delay_others(self):
        self.leave('me')
        broken = dataclasses.replace(self.decisions.decision, uuid='broken')
        self.decisions.get_open_decisions = lambda: [
            (broken, 0), (self.decisions.decision, 0)]
        real = self.decisions.get_decision

        def get(uuid):
            if uuid == 'broken':
                raise KeyError('stand_in')
            return real(uuid)

        self.decisions.get_decision = get
        self.assertIn('Cannot roll back preemption broken yet',
                      self.repair())
        self.assertEqual(db_decisions.ROLLED_BACK,
                         self.decisions.decision.status)
