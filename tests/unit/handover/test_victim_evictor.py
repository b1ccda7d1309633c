# SPDX-License-Identifier: Apache-2.0
"""Ending victims, in a time of the tests' own."""

import collections
import dataclasses
import datetime
import threading
import types
import unittest
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt.cloud import awaited_servers
from nova_preempt.cloud import clients
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import requester_liveness
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import allocation_claim
from nova_preempt.handover import preemption_notifications
from nova_preempt.handover import process_lease
from nova_preempt.handover import requester_reader
from nova_preempt.handover import victim_evictor
from nova_preempt.scheduler import request_deadline

FREE = placement_api.Consumer('a', {})
HOLDING = placement_api.Consumer(
    'a', {'rp': {'resources': {'VCPU': 1, 'DISK_GB': 9}}}, 1)


#: Calls after which a server is active again.
BACK = ('confirm_resize', 'unrescue', 'unpause', 'resume')

START = datetime.datetime(2030, 1, 1)


def reservation(status):
    """A reservation of one host for an hour."""
    end = START + datetime.timedelta(hours=1)
    return reservation_model.Reservation(
        'r', 'p', 1, 3600, START, 'delete', 0, status=status, start_at=START,
        end_at=end, hosts=(reservation_model.Assignment('node1', START, end),))


class Clock:

    def __init__(self):
        self.now = 100.0

    def sleep(self, seconds):
        self.now = round(self.now + seconds, 6)

    @property
    def now_us(self):
        return round(self.now * 1_000_000)


class FakeCloud:
    """Servers that carry out calls after given delays.

    It is Nova's API and what shows in Nova's records.
    """

    def __init__(self, clock, seconds, refuse=0):
        self.clock = clock
        self.seconds = seconds
        self.refuse = refuse
        self.away_until = 0
        self.refuses_until = 0
        self.host_after = None                       # one is offloaded
        self.asked = collections.defaultdict(list)   # uuid: [(time, what)]
        self.shown = {}                              # uuid: action in notice
        self.vm_states = collections.defaultdict(lambda: 'active')
        self.hosts = collections.defaultdict(lambda: 'host1')
        self._due = {}                               # uuid: (time, what)

    def __getattr__(self, what):
        if what not in ('force_delete', 'shelve', 'shelve_offload', 'stop',
                        'live_migrate', *BACK):
            raise AttributeError(what)

        def ask(uuid):
            self.asked[uuid].append((self.clock.now, what))
            if len(self.asked[uuid]) <= self.refuse:
                raise nova_api.NovaError('409')
            self._due[uuid] = self.clock.now + self.seconds[uuid], what

        return ask

    def check_cell(self, method, uuid):
        if self.clock.now < self.away_until:
            raise nova_api.NovaError('its cell does not answer')

    def lock(self, uuid, reason):
        self.asked[uuid].append((self.clock.now, 'lock'))

    def unlock(self, uuid):
        self.asked[uuid].append((self.clock.now, 'unlock'))

    def abort_migration(self, uuid):
        self.asked[uuid].append((self.clock.now, 'abort'))
        self._due.pop(uuid)

    def set_notice(self, uuid, action, last_resort, deadline, reason,
                   decision_uuid):
        self.shown[uuid] = action, last_resort

    def clear_notice(self, uuid, decision_uuid=''):
        if self.clock.now < self.refuses_until:
            return False
        self.shown.pop(uuid, None)
        return True

    def power_off(self, uuid):
        self.vm_states[uuid] = 'stopped'

    def get(self, uuid, max_age_s=None):
        due, what = self._due.get(uuid, (None, None))
        if what is None:
            return self._state(uuid, None)
        if self.clock.now < due:
            return self._state(uuid, {'force_delete': 'deleting',
                                      'live_migrate': 'migrating'}.get(
                                          what, what))
        if what == 'force_delete':
            return None
        del self._due[uuid]
        if what == 'live_migrate':
            self.hosts[uuid] = 'host2'
        else:
            if what == 'shelve_offload':
                self.hosts[uuid] = self.host_after
            self.vm_states[uuid] = {
                'shelve': 'shelved', 'shelve_offload': 'shelved_offloaded',
                'stop': 'stopped', **dict.fromkeys(BACK, 'active')}[what]
        return self._state(uuid, None)

    def _state(self, uuid, task_state):
        return ObservedServer(
            uuid, self.vm_states[uuid], task_state, self.hosts[uuid],
            read_us=self.clock.now_us)


class TestTerminator(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.clock = Clock()
        self.halted_at = float('inf')
        self.decisions = mock.Mock(spec=db.Decisions)
        self.owner = mock.Mock(spec=process_lease.Lease)
        self.owner.keeps.return_value = True
        self.events = mock.Mock(spec=preemption_notifications.Notifications)
        self.placement = mock.Mock(spec=placement_api.Placement)
        self.placement.get_consumer.return_value = FREE
        self.poller = mock.Mock(spec=awaited_servers.AwaitedServers)
        self.requests = mock.Mock(spec=requester_reader.RequesterReader)
        self.requests.is_gone.return_value = False
        self.requests.now = lambda: START
        self.requests.are_hosts_emptied = lambda: True
        self.options = types.SimpleNamespace(
            termination_timeout_s=60, migrate_timeout_s=30,
            actions=['delete'], honored_locks='admin', minimum_runtime_s=0)
        patch = mock.patch.object(awaited_servers, 'POLL_INTERVAL_S', 1.0)
        patch.start()
        self.addCleanup(patch.stop)
        self.host_is_up = mock.Mock(return_value=True)

    def halt(self, operation):
        """Raise Paused from a given time on."""
        if self.clock.now >= self.halted_at:
            raise exceptions.Paused('a reason')

    def cloud(self, seconds, **kwargs):
        cloud = FakeCloud(self.clock, seconds, **kwargs)
        self.poller.get.side_effect = cloud.get
        return cloud

    def end(self, cloud, *uuids, **values):
        return self.finish(cloud, *uuids, **values).stuck

    def finish(self, cloud, *uuids, **values):
        given = {name: values.pop(name)
                 for name in ('operation', 'check', 'server', 'record',
                              'seen_s')
                 if name in values}
        return self.finish_all(cloud, [db.Victim(uuid, **values)
                                       for uuid in uuids], **given)

    def finish_all(self, cloud, victims, operation='create', check=None,
                   server='s', record=None, seen_s=0):
        decision = db.Decision(
            'd', server, operation=operation, host='host1',
            record=record or {}, victims=tuple(victims))
        return victim_evictor.VictimEvictor(
            clients.Clients(cloud, self.placement, None), self.poller,
            self.requests, self.decisions, self.owner, self.options,
            self.events, lambda: self.clock.now, self.clock.sleep,
            self.halt, self.host_is_up).end(
                [decision], check, self.clock.now - seen_s)

    def assert_soon_after(self, when):
        """Assert that it happens at the next check at the latest."""
        self.assertGreaterEqual(self.clock.now, when)
        self.assertLessEqual(self.clock.now,
                             when + awaited_servers.POLL_INTERVAL_S)

    def statuses(self, uuid):
        return [call.args[2]
                for call in self.decisions.update_victim.mock_calls
                if call.args[1] == uuid]

    def test_no_victim_is_evicted_after_the_request_timed_out(self):
        cloud = self.cloud({'a': 5})

        def check():
            if self.clock.now >= 130:
                raise request_deadline.TimeIsUp

        self.assertRaises(request_deadline.TimeIsUp, self.end, cloud, 'a',
                          notice_s=30, check=check)
        self.assertEqual(130, self.clock.now)
        self.assertEqual([], cloud.asked['a'])

    def test_victims_are_evicted_in_parallel(self):
        cloud = self.cloud({'a': 5, 'b': 7})
        self.assertEqual(set(), self.end(cloud, 'a', 'b'))
        self.assertEqual({'a': [(100.0, 'force_delete')],
                          'b': [(100.0, 'force_delete')]}, cloud.asked)
        self.assert_soon_after(107.0)
        self.assertEqual([db_decisions.ENDING, db_decisions.GONE],
                         self.statuses('a'))
        self.assertEqual(2, self.events.end.call_count)
        self.assertEqual({}, cloud.shown)
        self.poller.remove.assert_called_once_with(['a', 'b'])

    def test_no_victim_is_evicted_after_the_lease_may_have_expired(self):
        """The lease expires during the notice."""
        self.owner.keeps.side_effect = lambda decisions: self.clock.now < 125
        cloud = self.cloud({'a': 1, 'b': 1})
        self.assertRaises(db_decisions.LostDecision, self.end, cloud, 'a', 'b',
                          notice_s=30)
        self.assertEqual({}, cloud.asked)

    def test_a_notice_that_comes_after_the_lease_is_withdrawn(self):
        """Another process may have rolled the decision back before.

        Then, or as soon as the server's cell answers again.
        """
        for refuses_for_s in 0, 50:
            with self.subTest(refuses_for_s=refuses_for_s):
                self.clock = Clock()
                self.withdraw(refuses_for_s)

    def test_a_notice_that_cannot_be_withdrawn_is_logged(self):
        with self.assertLogs(victim_evictor.__name__, 'WARNING') as logs:
            self.withdraw(100, {'a'})
        self.assertIn('notice of server a cannot be withdrawn',
                      *logs.output)
        # It was given for 100 s, and withdrawn for a minute.
        self.assertEqual(260, self.clock.now)

    def withdraw(self, refuses_for_s, shown=frozenset()):
        self.owner.keeps.side_effect = lambda decisions: self.clock.now < 125
        cloud = self.cloud({'a': 1})
        give = cloud.set_notice

        def slow(*args):
            self.clock.sleep(100)
            give(*args)
            cloud.refuses_until = self.clock.now + refuses_for_s

        cloud.set_notice = slow
        self.assertRaises(db_decisions.LostDecision, self.end, cloud, 'a',
                          notice_s=30)
        self.assertEqual(shown, set(cloud.shown))

    def test_a_pause_spares_victims_that_have_notice(self):
        self.halted_at = 129
        cloud = self.cloud({'a': 1, 'b': 1})
        self.assertRaises(exceptions.Paused, self.end, cloud, 'a', 'b',
                          notice_s=30)
        self.assertEqual({}, cloud.asked)
        self.poller.remove.assert_called_once_with(['a', 'b'])

    def test_a_pause_after_the_first_eviction_spares_no_victim(self):
        """Otherwise the first eviction would be useless."""
        self.halted_at = 131
        cloud = self.cloud({'a': 5, 'b': 9})
        self.assertEqual(set(), self.end(cloud, 'a', 'b', notice_s=30))
        self.assertEqual({'a', 'b'}, set(cloud.asked))

    def test_a_pause_while_the_cell_does_not_answer(self):
        """Nothing has begun yet."""
        self.halted_at = 140
        cloud = self.cloud({'a': 5})
        cloud.away_until = 150
        self.assertRaises(exceptions.Paused, self.end, cloud, 'a', notice_s=30)
        self.assertEqual({}, cloud.asked)

    def test_a_failed_record_is_written_again_later(self):
        self.decisions.update_victim.side_effect = [
            db_exc.DBConnectionError, None, db_exc.DBConnectionError, None]
        cloud = self.cloud({'a': 3})
        self.assertEqual(set(), self.end(cloud, 'a'))
        self.assertEqual(1, len(cloud.asked['a']))
        self.assertEqual([db_decisions.ENDING, db_decisions.ENDING,
                          db_decisions.GONE, db_decisions.GONE],
                         self.statuses('a'))

    def test_no_victim_is_evicted_for_a_decision_taken_over(self):
        self.owner.keeps.return_value = False
        cloud = self.cloud({'a': 1})
        self.assertRaises(db_decisions.LostDecision, self.end, cloud, 'a',
                          notice_s=30)
        self.assertEqual({}, cloud.asked)
        self.poller.remove.assert_called_once_with(['a'])

    def test_a_victim_that_never_ends_is_returned_as_stuck(self):
        cloud = self.cloud({'a': 1, 'b': 1000})
        self.assertEqual({'b'}, self.end(cloud, 'a', 'b'))
        self.assert_soon_after(160.0)
        self.assertEqual([db_decisions.ENDING], self.statuses('b'))

    def test_refused_at_first(self):
        cloud = self.cloud({'a': 1}, refuse=2)
        self.assertEqual(set(), self.end(cloud, 'a'))
        self.assertEqual(3, len(cloud.asked['a']))

    def test_a_failed_eviction_is_repeated(self):
        cloud = self.cloud({'a': 1})
        self.poller.get.side_effect = lambda uuid, max_age_s: (
            cloud._state('a', None) if self.clock.now < 112 else None)
        self.assertEqual(set(), self.end(cloud, 'a'))
        self.assertEqual(2, len(cloud.asked['a']))

    def test_records_of_nova_away_for_a_while(self):
        cloud = self.cloud({'a': 1})

        def get(uuid, max_age_s):
            if 100.0 < self.clock.now < 105.0:
                raise nova_api.NovaError('away')
            return cloud.get(uuid)

        self.poller.get.side_effect = get
        self.assertEqual(set(), self.end(cloud, 'a'))
        self.assertEqual(1, len(cloud.asked['a']))
        self.assert_soon_after(105.0)

    # -- notice ------------------------------------------------------------

    def test_notice(self):
        cloud = self.cloud({'a': 1})
        self.assertEqual(set(), self.end(cloud, 'a', notice_s=30))
        self.assertEqual(('delete', 'delete'), cloud.shown['a'])
        self.assertEqual([(130.0, 'force_delete')], cloud.asked['a'])
        self.assertEqual([db_decisions.NOTICED, db_decisions.ENDING,
                          db_decisions.GONE],
                         self.statuses('a'))
        (_decision, noticed), _ = self.events.notice.call_args
        self.assertIsNotNone(noticed.deadline)

    def test_a_slow_call_does_not_shorten_the_notice(self):
        cloud = self.cloud({'a': 1, 'b': 1})
        cloud.set_notice = lambda *_args: self.clock.sleep(20)
        self.finish_all(cloud, [db.Victim('a', notice_s=30),
                                db.Victim('b', notice_s=30)])
        self.assertEqual({'a': [(170.0, 'force_delete')],
                          'b': [(170.0, 'force_delete')]}, cloud.asked)

    def test_a_victim_that_powers_off_is_evicted_at_once(self):
        cloud = self.cloud({'a': 1})
        self.clock.sleep = lambda seconds: self.tick(cloud)
        self.end(cloud, 'a', notice_s=30)
        self.assertEqual([(105.0, 'force_delete')], cloud.asked['a'])

    def tick(self, cloud):
        self.clock.now += 1
        if self.clock.now == 105:
            cloud.power_off('a')

    def test_the_timeout_begins_after_the_notice(self):
        cloud = self.cloud({'a': 50})
        self.assertEqual(set(), self.end(cloud, 'a', notice_s=30))
        cloud = self.cloud({'a': 70})
        self.assertEqual({'a'}, self.end(cloud, 'a', notice_s=30))

    def test_gone_during_its_notice(self):
        cloud = self.cloud({'a': 0})
        cloud.force_delete('a')
        self.assertEqual(set(), self.end(cloud, 'a', notice_s=30))
        self.assertEqual(100.0, self.clock.now)

    def test_a_notice_that_fails_does_not_prevent_the_eviction(self):
        cloud = self.cloud({'a': 1})
        cloud.set_notice = mock.Mock(side_effect=nova_api.NovaError('403'))
        self.assertEqual(set(), self.end(cloud, 'a', notice_s=30))
        self.assertEqual([(130.0, 'force_delete')], cloud.asked['a'])

    def test_no_victim_ends_before_the_longest_notice_is_over(self):
        cloud = self.cloud({'a': 1, 'b': 1})
        self.finish_all(cloud, [db.Victim('a'), db.Victim('b', notice_s=8)])
        self.assertEqual({'a': [(108.0, 'force_delete')],
                          'b': [(108.0, 'force_delete')]}, cloud.asked)

    def test_a_deleted_request_spares_victims_without_notice(self):
        cloud = self.cloud({'a': 1, 'b': 1})
        self.requests.is_gone.side_effect = lambda uuid: (
            self.clock.now >= 103)
        ended = self.finish_all(
            cloud, [db.Victim('a'), db.Victim('b', notice_s=8)])
        self.assertEqual({'d'}, ended.unwanted.keys())
        self.assertEqual({}, cloud.asked)

    def test_looks_seldom_while_others_have_their_notice(self):
        cloud = self.cloud({'a': 1, 'b': 1})
        self.finish_all(cloud, [db.Victim('a'), db.Victim('b', notice_s=30)])
        self.assertLess(self.poller.get.call_count, 300)

    # -- right before each act ---------------------------------------------

    def check(self, when):
        def check():
            if self.clock.now >= when:
                raise request_deadline.TimeIsUp

        return check

    def test_no_victim_is_evicted_after_a_slow_reading(self):
        cloud = self.cloud({'a': 1})

        def get(uuid, max_age_s):
            self.clock.now += 18
            return cloud.get(uuid)

        self.poller.get.side_effect = get
        self.assertRaises(request_deadline.TimeIsUp, self.end, cloud, 'a',
                          check=self.check(114))
        self.assertEqual({}, cloud.asked)

    def test_no_victim_is_evicted_after_a_slow_write(self):
        for hangs, notice_s in ((self.decisions.update_victim, 0),
                                (self.host_is_up, 3)):
            cloud = self.cloud({'a': 1})

            def hang(*args, **kwargs):
                self.clock.now += 18
                return True

            hangs.side_effect = hang
            self.assertRaises(request_deadline.TimeIsUp, self.end, cloud, 'a',
                              notice_s=notice_s,
                              check=self.check(self.clock.now + 14))
            self.assertEqual({}, cloud.asked)
            hangs.side_effect = None

    def test_an_old_reading_is_repeated_before_an_eviction(self):
        """Writing the record takes long."""
        cloud = self.cloud({'a': 1})
        self.meanwhile(cloud, 110, 'shelved_offloaded', host=None)

        def hang(_decision, _uuid, status, owner, **values):
            if status == db_decisions.ENDING:
                self.clock.now += 18

        self.decisions.update_victim.side_effect = hang
        self.assertEqual(set(), self.end(cloud, 'a'))
        self.assertEqual({}, cloud.asked)
        self.assertEqual(db_decisions.SHELVED, self.statuses('a')[-1])

    def test_no_victim_is_evicted_after_a_slow_look_at_the_request(self):
        cloud = self.cloud({'a': 1})

        def is_gone(uuid):
            if self.statuses('a'):
                self.clock.now = 118
            return False

        self.requests.is_gone.side_effect = is_gone
        self.assertRaises(request_deadline.TimeIsUp, self.end, cloud, 'a',
                          check=self.check(114))
        self.assertEqual({}, cloud.asked)

    def test_a_shared_reading_keeps_its_age(self):
        """It was read before this victim was read."""
        cloud = self.cloud({'a': 1})
        old = ObservedServer(
            'a', 'active', None, 'host1', read_us=96_000_000)
        self.poller.get.side_effect = lambda uuid, max_age_s: (
            old if self.clock.now < 102 else ObservedServer(
                'a', 'shelved_offloaded', read_us=self.clock.now_us))

        def hang(_decision, _uuid, status, owner, **values):
            if status == db_decisions.ENDING:
                self.clock.now += 2

        self.decisions.update_victim.side_effect = hang
        self.assertEqual(set(), self.end(cloud, 'a'))
        self.assertEqual({}, cloud.asked)

    def test_no_victim_gets_notice_after_a_slow_claim(self):
        cloud = self.cloud({'a': 1})
        self.assertRaises(request_deadline.TimeIsUp, self.end, cloud, 'a',
                          notice_s=30, check=self.check(100))
        self.assertEqual(({}, []), (cloud.shown, self.statuses('a')))
        self.events.notice.assert_not_called()

    def test_a_lock_during_the_notice_spares_all_victims(self):
        for honored, locked_by in (('admin', 'admin'), ('all', 'owner')):
            self.options.honored_locks = honored
            cloud = self.cloud({'a': 1, 'b': 1})
            self.meanwhile(cloud, self.clock.now + 10, uuids='b',
                           locked_by=locked_by)
            ended = self.finish_all(
                cloud, [db.Victim('a'), db.Victim('b', notice_s=30)])
            self.assertEqual({'b': 'it is locked'}, ended.refusals)
            self.assertEqual({}, cloud.asked)

    def test_a_lock_at_the_end_of_the_notice_spares_all_victims(self):
        """No other victim is evicted needlessly."""
        cloud = self.cloud({'a': 1, 'b': 1})
        self.meanwhile(cloud, 130, uuids='b', locked_by='admin')
        ended = self.finish(cloud, 'a', 'b', notice_s=30)
        self.assertEqual({'b': 'it is locked'}, ended.refusals)
        self.assertEqual({}, cloud.asked)

    def test_a_lock_after_the_eviction_began_has_no_effect(self):
        cloud = self.cloud({'a': 20})
        real = cloud.get
        self.poller.get.side_effect = lambda uuid, max_age_s: (
            dataclasses.replace(real(uuid), locked_by='admin')
            if 100 < self.clock.now < 120 else real(uuid))
        ended = self.finish(cloud, 'a')
        self.assertEqual({}, ended.refusals)
        self.assertEqual(db_decisions.GONE, self.statuses('a')[-1])

    def test_the_host_dies_in_the_notice(self):
        cloud = self.cloud({'a': 1, 'b': 1})
        self.host_is_up.side_effect = lambda uuid, host: self.clock.now < 120
        ended = self.finish_all(
            cloud, [db.Victim('a'), db.Victim('b', notice_s=30)])
        self.assertEqual(['host host1 is down'],
                         list(ended.refusals.values()))
        self.assertEqual({}, cloud.asked)
        self.host_is_up.assert_called_once_with('a', 'host1')

    def test_no_notice_on_a_host_that_is_down(self):
        """For headroom or a reservation no filter checks the host before."""
        cloud = self.cloud({'a': 1})
        self.host_is_up.return_value = False
        ended = self.finish(cloud, 'a', operation='headroom', server='',
                            notice_s=30)
        self.assertEqual({'a': 'host host1 is down'}, ended.refusals)
        self.assertEqual(({}, []), (cloud.shown, self.statuses('a')))
        self.assertEqual(100.0, self.clock.now)

    def test_no_victim_without_notice_ends_once_the_host_is_back(self):
        """It was down when the notices were given."""
        cloud = self.cloud({'a': 1})
        self.host_is_up.side_effect = lambda uuid, host: self.clock.now > 101

        def check():
            self.clock.now = max(102.0, self.clock.now)

        ended = self.finish(cloud, 'a', operation='headroom', server='',
                            notice_s=30, check=check)
        self.assertEqual({'a': 'host host1 is down'}, ended.refusals)
        self.assertEqual(({}, {}), (cloud.shown, cloud.asked))

    def test_the_host_dies_while_its_victims_end(self):
        cloud = self.cloud({'a': 15})
        self.host_is_up.side_effect = lambda uuid, host: self.clock.now < 105
        ended = self.finish(cloud, 'a')
        self.assertEqual(['host host1 is down'],
                         list(ended.refusals.values()))
        self.assertEqual(1, len(cloud.asked['a']))

    def test_victims_of_a_dead_host_that_others_have_deleted(self):
        cloud = self.cloud({'a': 9})
        cloud.force_delete('a')
        self.host_is_up.return_value = False
        self.assertEqual({'d': 'host host1 is down'},
                         self.finish(cloud, 'a', notice_s=30).refusals)

    def test_an_unknown_state_of_the_host_spares_all_victims(self):
        cloud = self.cloud({'a': 1})
        self.host_is_up.side_effect = nova_api.NovaError('away')
        self.assertEqual({'a'}, self.end(cloud, 'a', notice_s=30))
        self.assertEqual({}, cloud.asked)

    def test_a_host_that_was_just_chosen_is_not_read_again(self):
        self.end(self.cloud({'a': 1}), 'a')
        self.host_is_up.assert_not_called()

    def test_a_host_that_fails_during_the_claim_spares_its_victims(self):
        """The scheduler's reading of the host is old."""
        cloud = self.cloud({'a': 1})
        self.host_is_up.return_value = False
        ended = self.finish(cloud, 'a', seen_s=6)
        self.assertEqual({'a': 'host host1 is down'}, ended.refusals)
        self.assertEqual({}, cloud.asked)

    def test_a_host_is_read_again_before_the_hand_over(self):
        cloud = self.cloud({'a': 4.5})
        self.host_is_up.side_effect = lambda uuid, host: self.clock.now < 104
        ended = self.finish(cloud, 'a', seen_s=0.9)
        self.assertEqual({'d': 'host host1 is down'}, ended.refusals)

    def test_a_maximum_run_time_ends_on_a_dead_host_too(self):
        cloud = self.cloud({'a': 1})
        self.host_is_up.return_value = False
        ended = self.finish(cloud, 'a', operation='maximum_runtime', server='')
        self.assertEqual({}, ended.refusals)
        self.assertEqual(db_decisions.GONE, self.statuses('a')[-1])

    # -- actions -----------------------------------------------------------

    def test_shelve(self):
        cloud = self.cloud({'a': 3})
        self.assertEqual(set(), self.end(cloud, 'a', action='shelve'))
        self.assertEqual(['shelve', 'shelve_offload'],
                         [what for _time, what in cloud.asked['a']])
        self.assertEqual([db_decisions.ENDING, db_decisions.SHELVED],
                         self.statuses('a'))

    def test_offloaded_by_a_compute_that_dies_before_it_lets_go(self):
        cloud = self.cloud({'a': 3})
        cloud.host_after = 'host1'
        self.assertEqual(set(), self.end(cloud, 'a', action='shelve'))
        self.assertLess(106 + eviction_steps.ASK_AGAIN_S, self.clock.now)
        self.assertLess(self.clock.now, 110 + eviction_steps.ASK_AGAIN_S)
        self.assertEqual(db_decisions.SHELVED, self.statuses('a')[-1])

    def test_shelved_but_its_space_is_not_free(self):
        self.placement.get_consumer.return_value = HOLDING
        cloud = self.cloud({'a': 3})
        self.assertEqual({'a'}, self.end(cloud, 'a', action='shelve'))

    def test_stop(self):
        self.placement.get_consumer.return_value = HOLDING
        cloud = self.cloud({'a': 3})
        self.assertEqual(set(), self.end(cloud, 'a', action='stop'))
        self.assertEqual(['stop', 'lock'],
                         [what for _time, what in cloud.asked['a']])
        (changes,), _ = self.placement.post_allocations.call_args
        self.assertEqual({'rp': {'resources': {'DISK_GB': 9}}},
                         changes[0].allocations)
        self.assertEqual([db_decisions.ENDING, db_decisions.STOPPED],
                         self.statuses('a'))

    def test_started_by_its_owner_just_before_it_is_locked(self):
        self.placement.get_consumer.return_value = HOLDING
        cloud = self.cloud({'a': 3})
        lock = cloud.lock

        def lock_late(uuid, reason):
            self.placement.post_allocations.assert_not_called()
            lock(uuid, reason)
            cloud.vm_states[uuid] = 'active'

        cloud.lock = lock_late
        self.assertEqual(set(), self.end(cloud, 'a', action='stop'))
        self.assertEqual(['stop', 'lock', 'stop'],
                         [what for _time, what in cloud.asked['a']])
        self.assertEqual('stopped', cloud.vm_states['a'])
        self.assertEqual(db_decisions.STOPPED, self.statuses('a')[-1])
        self.assertEqual(1, self.placement.post_allocations.call_count)

    def test_the_decision_is_lost_as_the_allocations_are_read(self):
        """Another process may roll it back, and rewrites them then."""
        cloud = self.cloud({'a': 3})

        def read(uuid):
            self.owner.keeps.return_value = cloud.vm_states[uuid] != 'stopped'
            return HOLDING

        self.placement.get_consumer.side_effect = read
        self.assertRaises(db_decisions.LostDecision, self.end, cloud, 'a',
                          action='stop')
        self.placement.post_allocations.assert_not_called()

    def test_a_lock_whose_answer_is_lost_counts_as_ours(self):
        """It neither spares the victim nor evicts others needlessly."""
        cloud = self.cloud({'a': 3})
        cloud.power_off('a')
        lock, locked = cloud.lock, []

        def lose_first(uuid, reason):
            lock(uuid, reason)
            locked.append(uuid)
            if len(locked) == 1:
                raise nova_api.NovaError('connection reset')

        cloud.lock = lose_first
        self.poller.get.side_effect = lambda uuid, max_age_s: (
            dataclasses.replace(cloud.get(uuid),
                                locked_by='admin' if locked else ''))
        self.assertEqual({}, self.finish(cloud, 'a', action='stop').refusals)
        self.assertEqual(db_decisions.STOPPED, self.statuses('a')[-1])

    def test_moved_or_shelved_after_it_was_locked(self):
        """Its owner can use it again."""
        for vm_state, host, status in (
                ('active', 'host2', db_decisions.MIGRATED),
                ('shelved_offloaded', None, db_decisions.SHELVED)):
            with self.subTest(vm_state):
                self.setUp()
                cloud = self.cloud({'a': 3})
                lock = cloud.lock

                def lock_late(uuid, reason, vm_state=vm_state, host=host,
                              cloud=cloud, lock=lock):
                    lock(uuid, reason)
                    cloud.hosts[uuid] = host
                    cloud.vm_states[uuid] = vm_state

                cloud.lock = lock_late
                self.end(cloud, 'a', action='stop')
                self.assertEqual(['stop', 'lock', 'unlock'],
                                 [what for _time, what in cloud.asked['a']])
                self.assertEqual(status, self.statuses('a')[-1])

    def test_each_state_set_by_the_owner_leads_to_the_action(self):
        for action, vm_state, calls in (
                ('shelve', 'resized', ['confirm_resize', 'shelve',
                                       'shelve_offload']),
                ('shelve', 'rescued', ['unrescue', 'shelve',
                                       'shelve_offload']),
                ('shelve', 'paused', ['shelve', 'shelve_offload']),
                ('shelve', 'soft-delete', ['force_delete']),
                ('stop', 'resized', ['confirm_resize', 'stop', 'lock']),
                ('stop', 'rescued', ['unrescue', 'stop', 'lock']),
                ('stop', 'paused', ['unpause', 'stop', 'lock']),
                ('stop', 'suspended', ['resume', 'stop', 'lock']),
                ('stop', 'shelved', ['shelve_offload']),
                ('stop', 'soft-delete', ['force_delete']),
                ('delete', 'resized', ['force_delete'])):
            with self.subTest(action=action, vm_state=vm_state):
                cloud = self.cloud({'a': 3})
                cloud.vm_states['a'] = vm_state
                since = self.clock.now
                self.assertEqual(set(), self.end(cloud, 'a', action=action))
                self.assertEqual(calls, [
                    what for _time, what in cloud.asked['a']])
                # One after the other, without a pause.
                self.assertLessEqual(self.clock.now - since,
                                     4 * len(calls))

    def test_notice_in_every_state_in_which_a_guest_may_run(self):
        for vm_state in ('active', 'paused', 'rescued', 'resized'):
            with self.subTest(vm_state=vm_state):
                cloud = self.cloud({'a': 3})
                cloud.vm_states['a'] = vm_state
                since = self.clock.now
                self.end(cloud, 'a', action='delete', notice_s=30)
                self.assertEqual([(since + 30, 'force_delete')],
                                 cloud.asked['a'])

    def test_stop_without_disk(self):
        cloud = self.cloud({'a': 3})
        self.assertEqual(set(), self.end(cloud, 'a', action='stop'))
        self.placement.post_allocations.assert_not_called()

    def test_migrate(self):
        self.options.actions = ['migrate', 'delete']
        cloud = self.cloud({'a': 9})
        self.assertEqual(set(), self.end(cloud, 'a', notice_s=1))
        self.assertEqual(['live_migrate'],
                         [what for _time, what in cloud.asked['a']])
        self.assertEqual(db_decisions.MIGRATED, self.statuses('a')[-1])
        self.assertEqual({}, cloud.shown)

    def test_migration_refused(self):
        self.options.actions = ['migrate', 'delete']
        cloud = self.cloud({'a': 1}, refuse=1)
        self.assertEqual(set(), self.end(cloud, 'a'))
        self.assertEqual(['live_migrate', 'force_delete'],
                         [what for _time, what in cloud.asked['a']])

    def test_a_migration_whose_answer_is_lost_is_waited_for(self):
        """It has begun, so the victim must not be deleted."""
        self.options.actions = ['migrate', 'delete']
        cloud = self.cloud({'a': 9})
        real = cloud.live_migrate

        def migrate(uuid):
            real(uuid)
            raise nova_api.NovaError('connection reset')

        cloud.live_migrate = migrate
        old = ObservedServer(
            'a', 'active', None, 'host1', read_us=self.clock.now_us)
        self.poller.get.side_effect = lambda uuid, max_age_s: (
            old if self.clock.now < 100.5 else cloud.get(uuid))
        self.assertEqual(set(), self.end(cloud, 'a'))
        self.assertEqual(['live_migrate'],
                         [what for _time, what in cloud.asked['a']])
        self.assertEqual(db_decisions.MIGRATED, self.statuses('a')[-1])

    def test_a_migration_that_readings_do_not_show_yet_is_not_repeated(self):
        """Readings from before the request arrive for a while."""
        self.options.actions = ['migrate', 'delete']
        cloud = self.cloud({'a': 20})
        old = ObservedServer(
            'a', 'active', None, 'host1', read_us=self.clock.now_us)
        self.poller.get.side_effect = lambda uuid, max_age_s: (
            old if self.clock.now < 110 else cloud.get(uuid))
        self.assertEqual(set(), self.end(cloud, 'a', action='migrate'))
        self.assertEqual(['live_migrate'],
                         [what for _time, what in cloud.asked['a']])
        self.assertEqual(db_decisions.MIGRATED, self.statuses('a')[-1])

    def test_a_migration_that_runs_is_not_requested_again(self):
        """After a restart Nova would refuse a second request."""
        self.options.actions = ['migrate', 'delete']
        cloud = self.cloud({'a': 20}, refuse=0)
        cloud.live_migrate('a')
        cloud.refuse = 2
        self.assertEqual(set(), self.end(cloud, 'a', action='migrate'))
        self.assertEqual(['live_migrate'],
                         [what for _time, what in cloud.asked['a']])
        self.assertEqual(db_decisions.MIGRATED, self.statuses('a')[-1])

    def test_migration_that_takes_too_long(self):
        self.options.actions = ['migrate', 'delete']
        cloud = self.cloud({'a': 40})
        self.assertEqual(set(), self.end(cloud, 'a'))
        self.assertEqual(['live_migrate', 'abort', 'force_delete'],
                         [what for _time, what in cloud.asked['a']])

    def test_stopped_servers_are_not_migrated(self):
        self.options.actions = ['migrate', 'delete']
        cloud = self.cloud({'a': 1})
        cloud.power_off('a')
        self.end(cloud, 'a')
        self.assertEqual(['force_delete'],
                         [what for _time, what in cloud.asked['a']])

    def test_only_victims_whose_action_is_migrate_are_migrated(self):
        self.options.actions = ['stop', 'migrate']
        for action, expected in (('migrate', ['live_migrate']),
                                 ('stop', ['stop', 'lock'])):
            cloud = self.cloud({'a': 3})
            self.assertEqual(set(), self.end(cloud, 'a', action=action))
            self.assertEqual(expected,
                             [what for _time, what in cloud.asked['a']])

    def test_the_default_follows_a_migration_that_fails(self):
        self.options.actions = ['shelve', 'delete', 'migrate']
        cloud = self.cloud({'a': 1}, refuse=1)
        self.assertEqual(set(), self.end(cloud, 'a', action='migrate',
                                         notice_s=1))
        self.assertEqual(['live_migrate', 'shelve', 'shelve_offload'],
                         [what for _time, what in cloud.asked['a']])
        self.assertEqual(('migrate', 'shelve'), cloud.shown['a'])
        self.assertEqual(db_decisions.SHELVED, self.statuses('a')[-1])

    # -- the space in Placement --------------------------------------------

    def test_waits_until_nova_has_freed_the_space(self):
        self.placement.get_consumer.side_effect = [HOLDING, HOLDING, FREE]
        self.assertEqual(set(), self.end(self.cloud({'a': 1}), 'a'))
        self.assert_soon_after(101.0)
        self.assertEqual(3, self.placement.get_consumer.call_count)
        self.placement.delete_allocations.assert_not_called()

    def test_allocations_that_nova_forgets_are_freed(self):
        self.placement.get_consumer.return_value = HOLDING
        self.assertEqual(set(), self.end(self.cloud({'a': 1}), 'a'))
        self.placement.delete_allocations.assert_called_once_with('a')
        self.assert_soon_after(111.0)

    def test_placement_away(self):
        self.placement.get_consumer.side_effect = (
            placement_api.PlacementError('503'))
        self.assertEqual(set(), self.end(self.cloud({'a': 1}), 'a'))
        self.assertEqual([db_decisions.ENDING, db_decisions.GONE],
                         self.statuses('a'))

    # -- what became of it meanwhile ---------------------------------------

    def meanwhile(self, cloud, when, vm_state='active', task_state=None,
                  host='host1', uuids='ab', locked_by=''):
        """Change the shown state of servers from some time on."""
        real = cloud.get
        self.poller.get.side_effect = lambda uuid, max_age_s: (
            real(uuid) if self.clock.now < when or uuid not in uuids
            else ObservedServer(
                'a', vm_state, task_state, host, locked_by=locked_by,
                read_us=self.clock.now_us))

    def test_shelved_by_its_owner(self):
        cloud = self.cloud({'a': 1})
        self.meanwhile(cloud, 110, 'shelved_offloaded', host=None)
        self.assertEqual(set(), self.end(cloud, 'a', notice_s=30))
        self.assertEqual({}, cloud.asked)
        self.assertEqual(db_decisions.SHELVED, self.statuses('a')[-1])
        self.assert_soon_after(110)

    def test_shelved_by_its_owner_and_not_offloaded_yet(self):
        """[DEFAULT]shelved_offload_time is not 0."""
        cloud = self.cloud({'a': 3})
        shelved_at = self.clock.now + 10
        real = cloud.get

        def get(uuid, max_age_s):
            if self.clock.now < shelved_at or cloud.asked['a']:
                return real(uuid)
            uploading = self.clock.now < shelved_at + 5
            cloud.vm_states['a'] = 'active' if uploading else 'shelved'
            return cloud._state(
                'a', 'shelving_image_uploading' if uploading else None)

        self.poller.get.side_effect = get
        self.assertEqual(set(), self.end(cloud, 'a', notice_s=12))
        self.assertEqual(['shelve_offload'],
                         [what for _time, what in cloud.asked['a']])
        self.assertEqual(db_decisions.SHELVED, self.statuses('a')[-1])

    def test_moved_by_an_administrator(self):
        cloud = self.cloud({'a': 1})
        self.meanwhile(cloud, 110, host='host2')
        self.assertEqual(set(), self.end(cloud, 'a', notice_s=30))
        self.assertEqual({}, cloud.asked)
        self.assertEqual({}, cloud.shown)
        self.assertEqual(db_decisions.MIGRATED, self.statuses('a')[-1])

    def test_a_victim_that_moves_at_the_end_of_its_notice_is_awaited(self):
        for task_state in ('migrating', 'resize_migrated', 'shelving'):
            cloud = self.cloud({'a': 1})
            start = self.clock.now
            self.poller.get.side_effect = (
                lambda uuid, max_age_s: ObservedServer(
                    uuid, 'active',
                    *((task_state, 'host1')           # noqa: B023
                      if self.clock.now < start + 40  # noqa: B023
                      else (None, 'host2')), read_us=self.clock.now_us))
            self.assertEqual(set(), self.end(cloud, 'a', notice_s=30))
            self.assertEqual({}, cloud.asked)

    def test_a_victim_that_moves_for_too_long_is_stuck(self):
        cloud = self.cloud({'a': 1})
        self.meanwhile(cloud, 110, task_state='migrating')
        self.assertEqual({'a'}, self.end(cloud, 'a', notice_s=30))
        self.assertEqual({}, cloud.asked)

    def test_a_cell_that_is_away_for_too_long(self):
        cloud = self.cloud({'a': 1})
        self.poller.get.side_effect = nova_api.NovaError('away')
        self.assertEqual({'a'}, self.end(cloud, 'a', notice_s=30))
        self.assert_soon_after(190)
        self.assertEqual({}, cloud.asked)

    def test_a_server_at_its_maximum_run_time_is_not_migrated(self):
        self.options.actions = ['migrate', 'delete']
        cloud = self.cloud({'a': 1})
        self.finish(cloud, 'a', operation='maximum_runtime', notice_s=5)
        self.assertEqual(['force_delete'],
                         [what for _time, what in cloud.asked['a']])

    def test_an_error_during_its_notice(self):
        """It cannot be shelved, so the next allowed action follows."""
        cloud = self.cloud({'a': 1})
        cloud.vm_states['a'] = 'error'
        self.options.actions = ['stop', 'shelve']
        self.assertEqual({'a'}, self.end(cloud, 'a', action='shelve'))
        self.assertEqual({}, cloud.asked)
        self.options.actions = ['stop', 'shelve', 'delete']
        self.assertEqual(set(), self.end(cloud, 'a', action='shelve'))
        self.assertEqual(['force_delete'],
                         [what for _time, what in cloud.asked['a']])

    def test_stop_keeps_allocations_of_other_classes(self):
        self.placement.get_consumer.return_value = placement_api.Consumer(
            'a', {'rp': {'resources': {'VCPU': 1, 'MEMORY_MB': 9}},
                  'gpu': {'resources': {'VGPU': 1}}}, 1)
        self.end(self.cloud({'a': 3}), 'a', action='stop')
        (changes,), _ = self.placement.post_allocations.call_args
        self.assertEqual({'gpu': {'resources': {'VGPU': 1}}},
                         changes[0].allocations)

    # -- whether it is wanted ----------------------------------------------

    def test_a_deleted_request_spares_victims_during_their_notice(self):
        cloud = self.cloud({'a': 1})
        self.requests.is_gone.side_effect = lambda uuid: (
            self.clock.now >= 120)
        ended = self.finish(cloud, 'a', notice_s=30)
        self.assertEqual((set(), {'d': requester_liveness.SERVER_GONE}),
                         (ended.stuck, ended.unwanted))
        self.assertEqual({}, cloud.asked)
        self.requests.add.assert_called_once_with(['s'])
        self.requests.remove.assert_called_once_with(['s'])

    def test_an_unknown_state_of_the_request_spares_all_victims(self):
        cloud = self.cloud({'a': 1})
        self.requests.is_gone.side_effect = nova_api.NovaError('away')
        self.assertEqual({'a'}, self.end(cloud, 'a'))
        self.assertEqual({}, cloud.asked)

    def test_the_request_goes_while_a_victim_is_looked_at(self):
        """The look itself takes so long that another one is needed."""
        cloud = self.cloud({'a': 1})
        gone_at = float('inf')

        def get(uuid, max_age_s):
            nonlocal gone_at
            if self.clock.now >= 130:
                gone_at = self.clock.now
            return cloud.get(uuid, max_age_s)

        self.poller.get.side_effect = get
        self.requests.is_gone.side_effect = lambda uuid: (
            self.clock.now >= gone_at)
        ended = self.finish(cloud, 'a', notice_s=30)
        self.assertEqual({'d'}, set(ended.unwanted))
        self.assertEqual({}, cloud.asked)

    def test_the_reservation_is_cancelled_during_the_notice(self):
        cloud = self.cloud({'a': 1})
        self.requests.reservation.side_effect = lambda uuid: {
            'r': reservation(reservation_model.CANCELLED
                             if self.clock.now >= 129
                             else reservation_model.PENDING)}[uuid]
        ended = self.finish(
            cloud, 'a', notice_s=30, operation='reservation', server='',
            record={'asked_by': {'reservation_id': 'r'}, 'node': 'node1'})
        self.assertEqual({'d': 'reservation r is cancelled'}, ended.unwanted)
        self.assertEqual({}, cloud.asked)

    # -- whether its space is still held -----------------------------------

    def held(self, held=lambda: True):
        """Have a stand-in, and a server that Placement says this of."""
        def get_consumer(uuid):
            if uuid != 'i':
                return FREE
            self.looked.append(self.clock.now)
            return HOLDING if held() else FREE

        self.looked = []
        self.placement.get_consumer.side_effect = get_consumer
        return {'stand_in': 'i'}

    def test_the_space_is_lost_in_the_notice(self):
        cloud = self.cloud({'a': 1, 'b': 1})
        record = self.held(lambda: self.clock.now < 129)
        self.assertRaisesRegex(
            allocation_claim.ClaimLost,
            'consumer i, which held capacity for server s',
            self.end, cloud, 'a', 'b', notice_s=30, record=record)
        self.assertEqual({}, cloud.asked)
        self.assertNotIn(db_decisions.ENDING, self.statuses('a'))

    def test_the_claim_is_checked_once_before_the_first_eviction(self):
        cloud = self.cloud({'a': 1, 'b': 9})
        record = self.held()
        self.assertEqual(set(), self.end(cloud, 'a', 'b', notice_s=30,
                                         record=record))
        self.assertEqual([130.0], self.looked)

    def test_evictions_wait_until_the_claim_can_be_checked(self):
        cloud = self.cloud({'a': 1})

        def held():
            if self.clock.now < 135:
                raise placement_api.PlacementError('503')
            return True

        self.assertEqual(set(), self.end(cloud, 'a', notice_s=30,
                                         record=self.held(held)))
        (when, what), = cloud.asked['a']
        self.assertEqual('force_delete', what)
        self.assertLessEqual(135, when)
        self.assertLess(len(self.looked), 50)

    def test_a_victim_that_left_by_itself_does_not_begin_evictions(self):
        """An unconfirmed resize is confirmed at once."""
        self.halted_at = 129
        cloud = self.cloud({'a': 1, 'b': 3})
        cloud.vm_states['b'], cloud.hosts['b'] = 'resized', 'host2'
        self.assertRaises(exceptions.Paused, self.end, cloud, 'a', 'b',
                          notice_s=30)
        self.assertEqual({'b': ['confirm_resize']}, {
            uuid: [what for _time, what in asked]
            for uuid, asked in cloud.asked.items()})

    def test_looks_often_at_first(self):
        """An end is seen within 0.05 s, or a tenth of how long it took."""
        for seconds, late_s in ((0.0, 0.051), (0.31, 0.051), (0.66, 0.067),
                                (2.0, 0.21)):
            start = self.clock.now
            self.assertEqual(set(), self.end(self.cloud({'a': seconds}), 'a'))
            self.assertLess(self.clock.now - start, seconds + late_s)
        looks = self.poller.get.call_count
        self.assertEqual(set(), self.end(self.cloud({'a': 50}), 'a'))
        self.assertLess(self.poller.get.call_count - looks, 130)

    def test_handed_over_once_its_guest_is_gone(self):
        """Nova still tells its host and Placement; it needs its devices."""
        for record, left_s in (({'pinned': False}, 0), ({'pinned': True}, 2),
                               ({}, 2)):
            cloud = self.cloud({'a': 1 + left_s})
            start = self.clock.now

            def get(uuid, max_age_s):
                found = cloud.get(uuid)                  # noqa: B023
                if self.clock.now >= start + 1 and found:  # noqa: B023
                    found = dataclasses.replace(
                        found, vm_state='deleted', task_state=None)
                return found

            self.poller.get.side_effect = get
            self.assertEqual(set(), self.end(cloud, 'a', record=record))
            self.assertEqual(1, len(cloud.asked['a']))
            self.assertEqual(1 + left_s, int(self.clock.now - start))

    def test_guests_are_told_at_once(self):
        together = threading.Barrier(3, timeout=10)
        cloud = self.cloud({'a': 0, 'b': 0, 'c': 0})
        told = cloud.set_notice

        def set_notice(*args):
            together.wait()
            told(*args)

        cloud.set_notice = set_notice
        self.end(cloud, 'a', 'b', 'c', notice_s=30)
        self.assertEqual({'a', 'b', 'c'}, set(cloud.shown))

    def test_no_victim_ends_before_its_own_notice_is_over(self):
        """This holds even if writing the notices takes time."""
        cloud = self.cloud({'a': 0, 'b': 0})
        noticed = []

        def update_victim(_uuid, server_uuid, status, owner, **_values):
            if status == db_decisions.NOTICED:
                noticed.append((server_uuid, self.clock.now + 30))
                self.clock.now += 5

        self.decisions.update_victim.side_effect = update_victim
        self.end(cloud, 'a', 'b', notice_s=30)
        for uuid, until in noticed:
            self.assertGreaterEqual(cloud.asked[uuid][0][0], until)
