# SPDX-License-Identifier: Apache-2.0
"""Tests of power decisions in a world without Nova."""

import datetime
from unittest import mock

from oslo_db import exception as db_exc
from prometheus_client import REGISTRY

from nova_preempt import pause_reader
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import placement_api
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import calendar_changes
from nova_preempt.db import energy_store
from nova_preempt.db import pauses as db_pauses
from nova_preempt.db import reservation_rows as rows
from nova_preempt.db import sleeping_host_claims
from nova_preempt.power import compute_hosts
from nova_preempt.power import energy_loop
from nova_preempt.power import energy_options
from tests.unit.power import world

NAMES = ('a', 'b', 'c', 'd')
EPOCH = datetime.datetime(2000, 1, 1)
EFFICIENCIES = {'a': 4.0, 'b': 3.0, 'c': 2.0}


class ControlTestCase(world.WorldTestCase):

    def setUp(self):
        super().setUp()
        self.start(world.World(*NAMES), efficiencies=lambda: EFFICIENCIES)

    def in_state(self, state):
        return {name for name, found in self.states().items()
                if found == state}

    def until_asleep(self, *names):
        self.tick(0)
        self.minutes(5)
        self.tick()
        self.tick()
        self.assertEqual(set(names), self.in_state('asleep'))

    def reserve(self, hosts, start_s, end_s=7200):
        start = self.world.naive() + datetime.timedelta(seconds=start_s)
        end = self.world.naive() + datetime.timedelta(seconds=end_s)
        uuid = f'{hosts[0]} {start}'
        with self.db.writer() as session:
            calendar_changes.raise_generation(session, reservations=(uuid,))
            rows.insert(session, reservation_model.Reservation(
                uuid=uuid, project_id='p', quantity=1,
                duration_s=end_s - start_s, window_start=start,
                end_action='delete', before_end_s=0, start_at=start,
                end_at=end, created_at=start, updated_at=start,
                hosts=tuple(reservation_model.Assignment(host, start, end)
                            for host in hosts)))


class TestControl(ControlTestCase):

    def test_least_efficient_sleep_first(self):
        self.forecast = lambda now: 2
        self.until_asleep('c', 'd')

    def test_most_efficient_wake_first(self):
        self.until_asleep(*NAMES)
        self.forecast = lambda now: 2
        self.minutes(5)
        self.assertEqual({'a', 'b'}, self.in_state('waking'))
        self.tick()
        self.assertEqual({'c', 'd'}, self.states().keys())

    def test_busy_hosts(self):
        self.world.change('a', servers=1)
        self.world.coming = {'b'}
        self.until_asleep('c', 'd')

    def test_a_server_resets_the_idle_counter(self):
        self.tick(0)
        self.minutes(4)
        self.world.change('a', servers=1)
        self.minutes(1)
        self.world.change('a', servers=0)
        self.minutes(3)
        self.assertNotIn('a', self.states())
        self.minutes(2)
        self.assertEqual('emptying', self.states()['a'])

    def test_excluded_hosts_are_not_switched(self):
        self.set(excluded_hosts=['[ab]'])
        self.until_asleep('c', 'd')
        self.set(excluded_hosts=['c'])
        self.forecast = lambda now: 4
        self.minutes(6)
        self.assertEqual({'c': 'asleep'}, self.states())

    def test_minimum_of_an_aggregate(self):
        for name in 'cd':
            self.world.change(name, aggregates=frozenset(('warm',)))
        self.world.minimum_of = {'warm': 1}
        self.until_asleep('a', 'b', 'd')

    def test_limits_of_a_minute(self):
        self.set(max_sleeps_per_minute=1, max_wakes_per_minute=1)
        self.tick(0)
        numbers = []
        for _ in range(9):
            self.minutes(1)
            numbers.append(len(self.states()))
        self.assertEqual([0, 0, 0, 0, 1, 2, 3, 4, 4], numbers)
        self.forecast = lambda now: 4
        self.world.broken = set(NAMES)
        for number in range(1, 5):
            self.minutes(1)
            while not self.in_state('waking'):
                self.minutes(1)
            self.assertEqual(number, len(self.in_state('waking')))

    def test_failed_host_is_replaced(self):
        self.until_asleep(*NAMES)
        self.forecast = lambda now: 1
        self.world.broken = {'a'}
        self.minutes(5 + 15)
        self.assertEqual('failed', self.states()['a'])
        self.tick()
        self.assertEqual({'b'}, self.in_state('waking'))

    def test_reservations(self):
        self.until_asleep(*NAMES)
        self.reserve(['c'], 3600)
        self.tick(3600 - 330)
        self.assertEqual(set(NAMES), self.in_state('asleep'))
        self.tick(10)
        self.assertEqual({'c'}, self.in_state('waking'))
        self.tick(100)
        self.tick()
        self.assertEqual({'a', 'b', 'd'}, self.in_state('asleep'))
        # Its last boot tells how long the next one takes.
        self.assertEqual(100, energy_store.get_power(self.db)['c'].boot_s)
        self.minutes(60)
        self.assertEqual({'a', 'b', 'd'}, self.in_state('asleep'))
        # After the end it is a host like others.
        self.minutes(70)
        self.assertEqual(set(NAMES), self.in_state('asleep'))
        self.reserve(['c'], 600, 1200)
        self.tick(600 - 150)
        self.assertEqual(set(NAMES), self.in_state('asleep'))
        self.tick(10)
        self.assertEqual({'c'}, self.in_state('waking'))

    def test_a_reserved_host_wakes_while_another_cell_is_down(self):
        self.until_asleep(*NAMES)
        self.reserve(['a'], 60)
        self.reserve(['c'], 60)
        self.world.dark = {'a'}
        for _ in range(2):
            # Nothing is decided by half of the hosts.
            self.assertRaises(compute_hosts.CellsUnreadable, self.tick)
        self.assertIn(('on', 'c'), self.world.calls)
        self.assertEqual({'a', 'b', 'd'}, self.in_state('asleep'))
        self.world.dark = set()
        self.tick()
        self.assertIn('a', self.in_state('waking'))

    def test_reservations_of_more_hosts_than_wake_in_a_minute(self):
        names = [f'host{number:02}' for number in range(25)]
        self.start(world.World(*names))
        self.until_asleep(*names)
        self.set(max_wakes_per_minute=10)
        self.reserve(names[:13], 3600)
        self.reserve(names[13:], 3630)
        self.tick(3600 - 440)
        self.assertEqual(set(names), self.in_state('asleep'))
        # The last five have to wait for two minutes, each of which is seen to
        # be over up to a step later.
        woken = []
        for _ in range(15):
            self.tick(10)
            woken.append(25 - len(self.in_state('asleep')))
        self.assertEqual([10] * 7 + [20] * 7 + [25], woken)

    def test_spare_hosts_are_on_besides_reserved_ones(self):
        self.reserve(['c', 'd'], 900)
        self.set(spare_hosts=1)
        self.until_asleep('b')
        self.world.change('a', servers=1)
        self.minutes(5)
        self.assertEqual({'b'}, self.in_state('waking'))
        # Another one does not wake beside it, nor when it has just come up.
        self.minutes(9)
        self.assertEqual({}, self.states())

    def test_no_more_spare_ones_than_asked_for(self):
        self.until_asleep(*NAMES)
        self.set(spare_hosts=1, switch_interval_s=10)
        self.tick()
        self.assertEqual({'a'}, self.in_state('waking'))
        for _ in range(12):
            self.tick()
            self.assertEqual({'b', 'c', 'd'}, self.in_state('asleep'))

    def test_reserved_hosts_disabled_by_an_operator(self):
        """They do not keep other hosts from waking."""
        self.until_asleep(*NAMES)
        self.set(max_wakes_per_minute=1)
        for name in 'ab':
            self.world.change(name, disabled_reason='waits for a fan')
        self.reserve(['a', 'b', 'c'], 60)
        self.tick()
        self.tick()
        self.assertEqual({'c'}, {name for call, name in self.world.calls
                                 if call == 'on'})
        self.assertLessEqual({'a', 'b'}, self.in_state('asleep'))
        self.minutes(5)
        self.assertLessEqual({'a', 'b'}, self.in_state('asleep'))

    def test_reserved_soon_stays_on(self):
        self.reserve(['d'], 900)
        self.until_asleep('a', 'b', 'c')

    def test_unreadable_hosts_are_not_switched(self):
        is_empty = self.world.is_empty
        failures = {'a': placement_api.PlacementError('500'),
                    'b': cell_calls.CellDown(cell='one', limit=5),
                    'c': db_exc.DBConnectionError('away')}

        def fail(host):
            if host.name in failures:
                raise failures[host.name]
            return is_empty(host)

        self.world.is_empty = fail
        self.set(spare_hosts=0, minimum_hosts=0)
        self.until_asleep('d')
        self.assertFalse(failures.keys() & self.states().keys())

    def test_disabled_by_us_and_forgotten(self):
        self.world.change('a', disabled=True,
                          disabled_reason='nova-preempt-engine: once')
        self.forecast = lambda now: 4
        self.tick(0)
        self.tick()
        self.assertEqual({}, self.states())
        self.assertFalse(self.world.hosts['a'].disabled)

    def test_lost_states_wake_hosts_within_the_limit(self):
        """The database is empty; the limit of a minute holds."""
        names = [f'host{number:02}' for number in range(30)]
        self.start(world.World(*names))
        self.set(max_wakes_per_minute=5)
        for name in names:
            self.world.change(name, disabled=True, up=False, disabled_reason=(
                'nova-preempt-engine: once'))
            self.world.on[name] = False
        self.world.broken = set(names)
        self.forecast = lambda now: 30
        self.tick(0)
        self.assertEqual(25, len(self.in_state('asleep')))
        self.minutes(1)
        self.assertEqual(20, len(self.in_state('asleep')))
        self.assertEqual(10, len({name for call, name in self.world.calls
                                  if call == 'on'}))

    def test_hosts_that_are_gone(self):
        self.until_asleep(*NAMES)
        del self.world.hosts['a'], self.world.on['a']
        self.minutes(1)
        self.assertEqual({'b', 'c', 'd'}, self.states().keys())

    def fail_once(self, owner, name):
        """Have a function fail at its next call, and do its work then."""
        mocked = mock.patch.object(owner, name,
                                   side_effect=db_exc.DBConnectionError())
        mocked.start()
        self.assertRaises(db_exc.DBConnectionError, self.tick, 60)
        mocked.stop()

    def test_idle_hosts_that_could_not_be_noted_are_noted_at_once(self):
        self.tick(0)
        self.fail_once(energy_store, 'note_idle')
        self.tick()
        self.assertEqual(2,
                         energy_store.get_power(self.db)['a'].idle_intervals)
        self.tick()
        self.assertEqual(2,
                         energy_store.get_power(self.db)['a'].idle_intervals)

    def test_a_decision_that_could_not_be_carried_out_is_made_at_once(self):
        self.tick(0)
        self.minutes(4)
        self.fail_once(self.switcher, 'put_to_sleep')
        self.assertEqual({}, self.states())
        self.tick()
        self.assertEqual(set(NAMES), self.in_state('emptying'))

    def test_clock_that_is_turned_back(self):
        self.until_asleep(*NAMES)
        self.forecast = lambda now: 1
        self.world.now -= datetime.timedelta(hours=1)
        self.tick(0)
        self.assertEqual({'a'}, self.in_state('waking'))


class TestRequests(ControlTestCase):

    def setUp(self):
        super().setUp()
        self.until_asleep(*NAMES)
        self.seconds = 0
        self.requests = energy_loop.PowerEndpoint(
            self.control,
            lambda: pause_reader.PauseReader(
                self.db, lambda: self.seconds).why(
                db_pauses.POWER))
        self.room = dict.fromkeys(NAMES, 2)

    def test_nothing_wakes_while_power_is_paused(self):
        db_pauses.pause(self.db, db_pauses.POWER, 'a fire in the hall')
        self.assertEqual({'hosts': [], 'boot_s': 0.0}, self.wake('r'))
        self.assertEqual(set(NAMES), self.in_state('asleep'))
        db_pauses.resume(self.db, db_pauses.POWER)
        self.seconds += 1
        self.assertEqual(1, len(self.wake('r')['hosts']))

    def wake(self, request, servers=1, room=None):
        return self.requests.wake(None, request, servers,
                                  self.room if room is None else room)

    def test_most_efficient(self):
        self.assertEqual({'hosts': ['a'], 'boot_s': 300}, self.wake('r1'))
        self.assertEqual({'a'}, self.in_state('waking'))

    def test_no_more_than_needed(self):
        for request in ('r1', 'r2', 'r2'):
            self.assertEqual(['a'], self.wake(request)['hosts'])
        self.assertEqual(['b'], self.wake('r3')['hosts'])
        self.assertEqual(['b', 'c', 'd'], self.wake('r4', 6)['hosts'])
        # All have room for one less than asked: what there is, is on its way.
        self.assertEqual([], self.wake('r5')['hosts'])

    def test_a_host_that_is_up_does_not_count_as_promised(self):
        self.wake('r1', 2)
        self.tick()
        self.tick()
        self.assertNotIn('a', self.states())
        self.assertEqual(['b'], self.wake('r2')['hosts'])

    def test_only_sleeping_hosts_are_woken(self):
        self.set(excluded_hosts=['a'])
        energy_store.set_power(self.db, 'b', 'failed', self.world.naive(),
                               from_states=('asleep',))
        self.assertEqual(['c'], self.wake('r1', 1)['hosts'])
        self.assertEqual([], self.wake('r2', 1, {'e': 4, 'a': 4})['hosts'])

    def test_limit_of_a_minute(self):
        self.set(max_wakes_per_minute=1)
        # Both are on their way; one of them has to wait for its turn.
        self.assertEqual({'hosts': ['a', 'b'], 'boot_s': 370},
                         self.wake('r1', 4))
        self.assertEqual({'a'}, self.in_state('waking'))
        self.assertEqual(['c'], self.wake('r2', 1)['hosts'])
        self.world.broken = set(NAMES)
        woken = []
        for _ in range(14):
            self.tick(10)
            woken.append(''.join(sorted(self.in_state('waking'))))
        self.assertEqual(['a'] * 5 + ['ab'] * 6 + ['abc'] * 3, woken)

    def test_many_simultaneous_requests(self):
        names = [f'host{number:02}' for number in range(40)]
        self.start(world.World(*names))
        self.until_asleep(*names)
        self.requests = energy_loop.PowerEndpoint(
            self.control, lambda: False)
        self.set(max_wakes_per_minute=10)
        room = dict.fromkeys(names, 2)
        found = [self.wake(f'r{number}', 1, room) for number in range(30)]
        self.assertEqual([names[number // 2: number // 2 + 1]
                          for number in range(30)],
                         [answer['hosts'] for answer in found])
        self.assertEqual(10, len(self.in_state('waking')))
        self.assertEqual([300, 370], sorted({
            answer['boot_s'] for answer in found}))
        self.minutes(2)
        self.assertEqual(25, len(self.in_state('asleep')))
        # They are on, and no more of them wake.
        self.minutes(3)
        self.assertEqual(25, len(self.in_state('asleep')))
        self.assertEqual(300, self.wake('r', 1, room)['boot_s'])

    def test_on_until_the_request_is_served(self):
        """The first is no use without the second, which takes long."""
        for serve in (lambda: sleeping_host_claims.release(self.db, 'r1'),
                      lambda: self.minutes(40)):
            self.world.hanging = {'b'}
            self.assertEqual(['a', 'b'], self.wake('r1', 4)['hosts'])
            self.minutes(8)
            self.assertEqual({'b'}, self.in_state('waking'))
            self.assertNotIn('a', self.states())
            self.world.hanging = set()
            self.minutes(1)
            self.assertFalse({'a', 'b'} & self.states().keys())
            self.minutes(8)
            self.assertFalse({'a', 'b'} & self.states().keys())
            serve()
            self.minutes(8)
            self.assertEqual(set(NAMES), self.in_state('asleep'))

    def test_woken_hosts_are_kept_for_a_repeated_request(self):
        self.world.broken = {'b'}
        self.wake('r1', 4)
        self.minutes(3)
        self.assertNotIn('a', self.states())
        # The first is of use with another in place of the second.
        self.assertEqual(['c'], self.wake('r1', 2, {'c': 2})['hosts'])
        self.assertEqual(['a', 'c'], sorted(
            item.host for item in sleeping_host_claims.get(self.db, EPOCH)))

    def test_promises_of_excluded_hosts_are_deleted(self):
        self.wake('r1', 4)
        self.set(excluded_hosts=['a'])
        self.tick()
        self.assertEqual(['b'], [
            item.host for item in sleeping_host_claims.get(self.db, EPOCH)])

    def test_hosts_that_shut_down_are_woken_after_that(self):
        for name in NAMES:
            energy_store.set_power(self.db, name, 'sleeping',
                                   self.world.naive(), from_states=('asleep',))
        self.world.on = dict.fromkeys(NAMES, True)
        self.assertEqual(['a'], self.wake('r1', 2)['hosts'])
        self.assertEqual(set(NAMES), self.in_state('sleeping'))
        self.tick()
        self.tick()
        self.assertEqual({'a'}, self.in_state('waking'))
        self.assertEqual({'b', 'c', 'd'}, self.in_state('asleep'))

    def test_a_stuck_shutdown_is_not_waited_for(self):
        """The controller of the first host has died in its shutdown."""
        for age_s, name in ((600, 'a'), (1200, 'b')):
            energy_store.set_power(
                self.db, 'a', 'sleeping', self.world.naive()
                - datetime.timedelta(seconds=age_s),
                from_states=('asleep', 'sleeping'))
            self.assertEqual([name], self.wake(f'r{age_s}')['hosts'])

    def test_a_host_whose_boot_hangs_comes_last(self):
        self.world.hanging = {'a'}
        self.assertEqual(['a'], self.wake('r1')['hosts'])
        self.minutes(8)
        self.assertEqual({'a'}, self.in_state('waking'))
        self.assertEqual(['b', 'c', 'd', 'a'], self.wake('r2', 8)['hosts'])

    def test_promises_are_shared_by_two_engines(self):
        other = energy_loop.PowerEndpoint(
            self.control, lambda: False)
        self.wake('r1', 2)
        self.assertEqual(['b'], other.wake(None, 'r2', 1,
                                           self.room)['hosts'])

    def test_servers_of_another_size(self):
        self.assertEqual(['a'], self.wake('r1', 1, {'a': 1})['hosts'])
        self.assertEqual(['b'], self.wake('r2', 1)['hosts'])
        # Half of it is left.
        self.assertEqual(['b'], self.wake('r3', 2, {'b': 4})['hosts'])
        self.assertEqual(['c'], self.wake('r4', 1)['hosts'])

    def test_hosts_disabled_by_operators_are_not_woken(self):
        for name in 'ab':
            self.world.change(name, disabled_reason='waits for a fan')
        self.set(max_wakes_per_minute=1)
        self.assertEqual(['c'], self.wake('r1', 2)['hosts'])
        self.world.change('d', disabled_reason='and another')
        self.assertEqual([], self.wake('r2')['hosts'])

    def test_released_promises_wake_no_host(self):
        self.set(max_wakes_per_minute=1)
        self.wake('r1', 2)
        self.wake('r2', 2)
        sleeping_host_claims.release(self.db, 'r2')
        self.minutes(3)
        self.assertEqual({'b', 'c', 'd'}, self.in_state('asleep'))
        # Nor for one whose scheduler is gone.
        self.world.broken = set(NAMES)
        self.wake('r3', 2)
        self.wake('r4', 2)
        self.world.now += datetime.timedelta(hours=1)
        self.tick()
        self.assertEqual({'c', 'd'}, self.in_state('asleep'))


class TestForecast(world.WorldTestCase):

    def test_history_of_the_forecast(self):
        now = world.World().naive()
        for ago, busy in ((datetime.timedelta(0), 2),
                          (datetime.timedelta(hours=2), 4),
                          (datetime.timedelta(weeks=1, minutes=-30), 7),
                          (datetime.timedelta(weeks=1, hours=-2), 9)):
            energy_store.add_sample(self.db, energy_store.EnergySample(
                now - ago, 10, busy, 0, 0, 0, 0))
        for name, hosts in (('max_window', 2), ('seasonal', 7)):
            self.set(forecast=name)
            self.start(world.World('a'),
                       by_history=energy_options.load_forecast(
                           self.conf.energy))
            self.tick(0)
            self.assertEqual(hosts, REGISTRY.get_sample_value(
                'nova_preempt_power_required_hosts'), name)

    def test_no_such_forecast(self):
        self.set(forecast='fortune')
        self.assertRaisesRegex(
            Exception, 'ewma, max_window, seasonal',
            energy_options.load_forecast, self.conf.energy)
