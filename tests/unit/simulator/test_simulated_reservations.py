# SPDX-License-Identifier: Apache-2.0
"""Reservations in simulations."""

import collections
import dataclasses
import random
import unittest
from unittest import mock

from nova_preempt.core import eligibility
from nova_preempt.core.model import SECOND
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.core.reservation import cleanup_controller
from nova_preempt.core.reservation import leases
from nova_preempt.core.reservation import reservation_controller
from nova_preempt.simulator import delays
from nova_preempt.simulator import plots
from nova_preempt.simulator import simulation as run
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator import time_series
from nova_preempt.simulator.traces import trace_model
from tests.unit.simulator import small
from tests.unit.simulator import test_simulated_power

#: As by default, but for hosts that anybody may reserve.
RESERVATIONS = simulation_settings.ReservationOptions(
    leases.GuardTime(3600, NoticeRule(30), eligibility.Rules(), 120, 0), 3600,
    reservable_default=True)


def reserve(at_s, id, start_s, for_s, hosts=1, **values):
    return trace_model.Reserve(at_s * SECOND, id, hosts, start_s,
                               duration_s=for_s, **values)


def simulated(*trace, hosts=2, reservations=RESERVATIONS, until_s=40_000,
              terms=None, **values):
    """Return (events, figures of reservations, summary)."""
    cloud = small.cloud(hosts, spread=False, terms=terms)
    cloud = dataclasses.replace(cloud, delays=dataclasses.replace(
        small.DELAYS, migrate=delays.Delay('constant:60')))
    records = []
    simulation = run.Simulation(
        cloud, small.options(reservations=reservations, **values), 0,
        records.append)
    summary = simulation.run(trace, until_s * SECOND)
    return [f'{item["t"]:g} {item["event"]} {item["id"]}'
            for item in records if not item['event'].endswith('asked')], (
        summary.get('reservations', {})), summary


def lines(found, *ids):
    """Return the events of given ids."""
    return [line for line in found if line.rpartition(' ')[2] in ids]


class TestGranted(unittest.TestCase):

    def test_from_its_grant_to_its_end(self):
        found, figures, _ = simulated(
            reserve(0, 'r', 10_000, 5000),
            small.boot(12_000, 'own', 4, reservation='r'))
        self.assertEqual([
            '0 reservation granted r', '10000 reservation started r',
            '12000 placed own', '12010 active own',
            '15000 reservation ended r', '15005 cleared own'], found)
        self.assertEqual({
            'asked': 1, 'granted': 1, 'started': 1, 'ended': 1,
            'late_s': 0.0, 'host_hours': round(5000 / 3600, 3),
            'host_hours_used': round(3005 / 3600, 3)}, figures)

    def test_deleted_at_its_end(self):
        found, _, summary = simulated(
            reserve(0, 'r', 1000, 1000, end_action='delete'),
            small.boot(1500, 'own', 4, reservation='r'),
            small.end(9000, 'own'))
        self.assertEqual('2002 cleared own', found[-1])
        self.assertEqual(502 / 40_000 / 2,
                         summary['used']['normal']['VCPU'])

    def test_a_deleted_reservation_is_cancelled_or_ends(self):
        for at_s, event, hours in ((5000, 'cancelled', 0.0),
                                   (13_600, 'ended', 1.0)):
            with self.subTest(event):
                found, figures, _ = simulated(
                    reserve(0, 'r', 10_000, 5000), small.end(at_s, 'r'),
                    small.boot(14_000, 'other', 4),
                    small.boot(14_000, 'another', 4))
                self.assertIn(f'{at_s} reservation {event} r', found)
                self.assertEqual(1, figures[event])
                self.assertEqual(hours, figures['host_hours'])
                self.assertIn('14000 placed another', found)

    def test_why_it_is_refused(self):
        why = {
            'no 3 of 2 matching hosts': reserve(0, 'r', 1000, 10, hosts=3),
            'in the past': reserve(1000, 'r', 10, 10),
            'max_hosts': reserve(0, 'r', 1000, 10, hosts=2),
            'no 1 of 0 matching': reserve(
                0, 'r', 1000, 10, query=['>', '$inventory.VCPU', 4])}
        limited = dataclasses.replace(RESERVATIONS, limits={
            **RESERVATIONS.limits, 'max_hosts': 1})
        for text, event in why.items():
            with self.subTest(text):
                self.assertIn(text, refusal(
                    event, limited if text == 'max_hosts'
                    else RESERVATIONS))
        self.assertIn('false', refusal(reserve(0, 'r', 1000, 10), None))
        self.assertIn('no 1 of 0', refusal(
            reserve(0, 'r', 1000, 10), dataclasses.replace(
                RESERVATIONS, reservable_default=False)))

    def test_overlapping_reservations_follow_each_other(self):
        """The second starts later or is refused."""
        found, figures, _ = simulated(
            reserve(0, 'a', 1000, 1000, hosts=2),
            reserve(0, 'b', 1500, 1000, hosts=1),
            trace_model.Reserve(0, 'c', 1, 1500, 2200, 600))
        self.assertEqual(
            ['0 reservation granted a', '0 reservation granted b',
             '0 reservation refused c', '1000 reservation started a',
             '2000 reservation ended a', '2000 reservation started b',
             '3000 reservation ended b'], found)
        self.assertEqual(round(3000 / 3600, 3), figures['host_hours'])

    def test_a_plot_is_drawn(self):
        found = time_series.Series()
        summary = run.Simulation(
            small.cloud(1), small.options(reservations=RESERVATIONS), 0, None,
            found).run([reserve(0, 'r', 3600, 3600), small.boot(
                4000, 'own', reservation='r')], 9000 * SECOND)
        (panel,) = (each for picture in plots.plots(
            {'all': (found, summary['capacity'])}) for each in picture.panels
            if each.title == 'Hosts reserved')
        self.assertEqual(['reserved', 'used'],
                         [each.label for each in panel.series])
        self.assertEqual(1.0, max(panel.series[0].y))

    def test_longer_than_the_trace(self):
        found, figures, _ = simulated(
            reserve(0, 'r', 1000, 10**8), until_s=4600)
        self.assertEqual('1000 reservation started r', found[-1])
        self.assertEqual(1.0, figures['host_hours'])

    def test_an_id_is_used_once(self):
        for second in (reserve(10, 'r', 1000, 10), small.boot(10, 'r')):
            with self.assertRaisesRegex(run.SimulationError, 'r, requested'):
                simulated(reserve(0, 'r', 1000, 10), second)


def refusal(event, reservations):
    """Why it is refused."""
    records = []
    run.Simulation(
        small.cloud(2), small.options(reservations=reservations), 0,
        records.append).run([event])
    (why,) = (item['why'] for item in records
              if item['event'] == 'reservation refused')
    return why


class TestWhoMayGoThere(unittest.TestCase):

    def test_other_servers_are_kept_off(self):
        found, _, _ = simulated(
            reserve(0, 'r', 5000, 1000, project='p'),
            # Short of the guard, by what its notice needs, and within it.
            small.boot(1399, 'before', 4, for_s=10),
            small.boot(1400, 'normal', 4, for_s=10),
            small.boot(4810, 'spot', 4, spot=True, for_s=10),
            small.boot(4825, 'late', 4, spot=True, for_s=10),
            small.boot(5500, 'other', 4, project='p', for_s=10),
            small.boot(5600, 'thief', reservation='r', project='q'),
            small.boot(6000, 'after', 4, for_s=10), hosts=1)
        placed = [line.rpartition(' ')[2] for line in found
                  if ' placed ' in line]
        self.assertEqual(['before', 'spot', 'after'], placed)

    def test_the_owner_may_use_an_active_reservation(self):
        found, _, _ = simulated(
            reserve(0, 'r', 5000, 1000),
            small.boot(4999, 'early', reservation='r'),
            small.boot(5000, 'own', reservation='r'),
            small.boot(6000, 'late', reservation='r'))
        self.assertEqual(['4999 refused early'], lines(found, 'early'))
        self.assertEqual('5000 placed own', lines(found, 'own')[0])
        self.assertEqual(['6000 refused late'], lines(found, 'late'))

    def test_an_unknown_reservation_refuses_a_server(self):
        found, figures, _ = simulated(
            small.boot(0, 'one', reservation='r'), reservations=None)
        self.assertEqual(['0 refused one'], found)
        self.assertEqual({}, figures)


class TestEmptied(unittest.TestCase):

    def test_preemptible_servers_get_their_notice(self):
        """It comes late: 30 s notice, 120 s to end, 30 s margin."""
        found, figures, _ = simulated(
            small.boot(0, 'spot', 4, spot=True),
            reserve(10, 'r', 5000, 1000), hosts=1)
        self.assertEqual(
            ['0 placed spot', '10 active spot', '4820 notice spot',
             '4852 deleted spot'], lines(found, 'spot'))
        self.assertIn('5000 reservation started r', found)
        self.assertNotIn('late', figures)

    def test_a_cancelled_reservation_spares_victims(self):
        for at_s, gone in ((4819, None), (4830, '4850 kept spot'),
                           (4851, '4852 deleted spot')):
            with self.subTest(at_s):
                found, figures, _ = simulated(
                    small.boot(0, 'spot', 4, spot=True, for_s=20_000),
                    reserve(10, 'r', 5000, 1000), small.end(at_s, 'r'),
                    hosts=1)
                self.assertEqual(
                    ['0 placed spot', '10 active spot',
                     *(['4820 notice spot', gone] if gone else ()),
                     *(['20010 finished spot'] if at_s != 4851 else ())],
                    lines(found, 'spot'))
                self.assertEqual(1, figures['cancelled'])

    def test_a_spared_server_is_evicted_for_the_next_reservation(self):
        found, _, _ = simulated(
            small.boot(0, 'spot', 4, spot=True),
            reserve(10, 'r', 5000, 1000), small.end(4830, 'r'),
            reserve(4840, 's', 5100, 1000), hosts=1)
        self.assertEqual(
            ['4820 notice spot', '4850 kept spot', '4920 notice spot',
             '4952 deleted spot'], lines(found, 'spot')[2:])
        self.assertIn('5100 reservation started s', found)

    def test_a_replaced_host_spares_its_servers(self):
        records = []
        simulation = run.Simulation(
            small.cloud(2, spread=False),
            small.options(reservations=RESERVATIONS), 0, records.append)
        simulation.run([small.boot(0, 'a', 4, spot=True),
                        small.boot(0, 'b', 4, spot=True),
                        reserve(10, 'r', 5000, 1000)], 4825 * SECOND)
        there = simulation._reservations
        reservation = there._book.find('r')
        (name,) = reservation.held
        other, = {'h-1', 'h-2'} - {name}
        there._executor._carry_out(
            reservation_controller.ReplaceHost(name, (other,), or_lose=True),
                'r')
        simulation.run((), 6000 * SECOND)
        self.assertEqual(['4850 kept', '4862 deleted'], [
            f'{item["t"]:g} {item["event"]}' for item in records
            if item['event'] in ('kept', 'deleted')])
        # The server on the other host has ended.
        self.assertNotEqual(name, next(
            item['host'] for item in records if item['event'] == 'deleted'))

    def test_a_server_that_would_be_stopped_is_shelved(self):
        found, _, _ = simulated(
            small.boot(0, 'spot', 4, spot=True),
            reserve(10, 'r', 5000, 1000), hosts=1,
            terms=simulation_settings.PreemptibleTerms(action='stop',
                                                       restore=True))
        self.assertEqual(['4820 notice spot', '4855 shelved spot'],
                         lines(found, 'spot')[2:4])
        self.assertTrue(found[-1].endswith(' back spot'))

    def test_a_stopped_victim_is_offloaded(self):
        found, _, _ = simulated(
            dataclasses.replace(
                small.boot(0, 'spot', 4, spot=True, for_s=20_000),
                resources={'VCPU': 4, 'MEMORY_MB': 4096, 'DISK_GB': 10}),
            small.boot(100, 'normal', 4, for_s=100),
            reserve(300, 'r', 5000, 1000), hosts=1,
            terms=simulation_settings.PreemptibleTerms(action='stop'))
        self.assertEqual(
            ['133 stopped spot', '4825 shelved spot'],
            [line for line in lines(found, 'spot') if 'ed spot' in line][1:])
        self.assertIn('5000 reservation started r', found)

    def test_a_stopped_victim_without_disk_is_offloaded(self):
        found, _, _ = simulated(
            small.boot(0, 'spot', 4, spot=True),
            small.boot(100, 'normal', 4, for_s=100),
            reserve(300, 'r', 5000, 1000), hosts=1,
            terms=simulation_settings.PreemptibleTerms(action='stop',
                                                       restore=True))
        self.assertEqual(
            ['133 stopped spot', '4825 shelved spot', '6710 back spot'],
            lines(found, 'spot')[3:])

    def test_a_stopped_victim_has_kept_its_minimum_run_time(self):
        found, figures, _ = simulated(
            dataclasses.replace(
                small.boot(0, 'spot', 4, spot=True, for_s=20_000),
                resources={'VCPU': 4, 'MEMORY_MB': 4096, 'DISK_GB': 10}),
            small.boot(100, 'normal', 4, for_s=100),
            reserve(300, 'r', 5000, 1000), hosts=1,
            terms=simulation_settings.PreemptibleTerms(minimum_runtime_s=60,
                                                       action='stop'))
        self.assertIn('133 stopped spot', found)
        self.assertIn('4825 shelved spot', found)
        self.assertIn('5000 reservation started r', found)
        self.assertNotIn('late', figures)

    def test_a_host_with_a_stopped_victim_counts_as_vacant(self):
        """It is preferred to a host whose server would be moved."""
        found, _, _ = simulated(
            small.boot(0, 'normal', 4, for_s=20_000),
            dataclasses.replace(
                small.boot(0, 'spot', 4, spot=True, for_s=20_000),
                resources={'VCPU': 4, 'MEMORY_MB': 4096, 'DISK_GB': 10}),
            small.boot(100, 'other', 4, for_s=100),
            # Sooner than a server could be moved.
            reserve(300, 'r', 1000, 1000), hosts=2,
            terms=simulation_settings.PreemptibleTerms(minimum_runtime_s=60,
                                                       action='stop'))
        self.assertIn('133 stopped spot', found)
        self.assertIn('300 reservation granted r', found)
        self.assertIn('1000 reservation started r', found)

    def test_normal_servers_are_moved(self):
        """Only one host can be reserved, and a server is on it."""
        found, summary = self.moved(small.boot(0, 'one', 2, for_s=20_000))
        self.assertEqual(
            ['0 placed one', '10 active one', '4100 moving one',
             '4160 moved one', '20010 finished one'], lines(found, 'one'))
        self.assertIn('5000 reservation started r', found)
        self.assertEqual(1, summary['classes']['normal']['moved'])

    def test_normal_servers_are_moved_to_a_host_reserved_later(self):
        """Soon enough for that one, too."""
        found, figures, _ = simulated(
            small.boot(0, 'one', 4), reserve(20, 'a', 1000, 1000),
            reserve(20, 'b', 1200, 1800), hosts=3,
            reservations=dataclasses.replace(
                RESERVATIONS, guard=dataclasses.replace(
                    RESERVATIONS.guard, guard_s=800)))
        self.assertEqual(
            ['100 moving one', '160 moved one', '300 moving one',
             '360 moved one'], lines(found, 'one')[2:])
        self.assertIn('1200 reservation started b', found)
        self.assertNotIn('host lost', figures)

    def test_preemptible_servers_are_evicted_for_a_move(self):
        found, _ = self.moved(
            small.boot(0, 'one', 4, for_s=20_000),
            small.boot(50, 'spot', 4, spot=True))
        self.assertEqual(
            ['4100 moving one', '4192 moved one'],
            lines(found, 'one')[2:4])
        self.assertIn('4132 deleted spot', found)
        found, _ = self.moved(
            small.boot(0, 'one', 4, for_s=20_000),
            small.boot(50, 'spot', 4, spot=True), may_migrate=False)
        self.assertIn('4100 not moved one', found)

    def test_the_owner_deletes_a_server_during_its_move(self):
        for at_s in (4120, 4150):
            found, _ = self.moved(
                small.boot(0, 'one', 4),
                small.boot(50, 'spot', 4, spot=True),
                small.end(at_s, 'one'),
                small.boot(9000, 'big', 4, for_s=10))
            self.assertEqual(f'{at_s} ended one', lines(found, 'one')[-1])
            self.assertIn('9000 placed big', found)
            self.assertIn('5000 reservation started r', found)

    def test_a_reservation_is_late_if_no_server_can_be_moved(self):
        """A host that does not become empty is lost in the end."""
        found, figures, _ = simulated(
            small.boot(0, 'one', 4, for_s=20_000),
            reserve(100, 'r', 5000, 10_000), hosts=1)
        self.assertIn('4100 not moved one', found)
        self.assertNotIn('started', figures)
        self.assertEqual(1, figures['never started'])
        self.assertEqual(0.0, figures['host_hours_used'])

    def test_a_host_that_does_not_empty_is_replaced(self):
        """Its minimum run time keeps a server beyond the start."""
        found, figures, _ = simulated(
            small.boot(0, 'a', 4, spot=True),
            small.boot(0, 'b', 4, for_s=300),
            reserve(10, 'r', 1000, 5000), hosts=2,
            terms=simulation_settings.PreemptibleTerms(minimum_runtime_s=3500))
        self.assertIn('1000 reservation started r', found)
        self.assertEqual(1, figures['host replaced'])
        self.assertNotIn('late', figures)

    def test_a_reservation_starts_with_fewer_hosts(self):
        """A host that cannot be emptied is lost and added later."""
        found, figures, _ = simulated(
            small.boot(0, 'one', 4, for_s=20_000),
            small.boot(0, 'two', 4, for_s=6000),
            reserve(100, 'r', 5000, 40_000, hosts=2), hosts=2)
        self.assertEqual(2, figures['host lost'])
        self.assertEqual(2, figures['host added'])
        self.assertEqual(1, figures['started'])
        self.assertEqual(1, figures['late'])
        self.assertEqual(1020.0, figures['late_s'])
        self.assertIn('6020 reservation started r', found)

    def test_sleeping_hosts_are_woken(self):
        found, _ = test_simulated_power.simulated(
            small.boot(1, 'one', 4),
            reserve(1000, 'r', 3000, 1000),
            until_s=4000, reservations=RESERVATIONS)
        self.assertIn('45 asleep h-2', found)
        woken = [line for line in found if ' waking ' in line]
        self.assertEqual(1, len(woken), woken)
        self.assertLess(2000, int(woken[0].split()[0]))
        self.assertIn('3000 reservation started r', found)

    def test_a_host_that_does_not_wake_is_replaced(self):
        found, _ = test_simulated_power.simulated(
            small.boot(1, 'one', 4, for_s=2900),
            reserve(1000, 'r', 3000, 3000), hosts=2, until_s=6000,
            delay='constant:5000', reservations=RESERVATIONS)
        self.assertIn('2680 waking h-1', found)
        # In the time of a boot, and not after all that are tried.
        self.assertIn('3001 reservation host replaced r', found)
        self.assertIn('3010 reservation started r', found)
        self.assertIn('4490 failed h-1', found)

    def test_no_reserved_host_wakes_for_other_servers(self):
        found, _ = test_simulated_power.simulated(
            small.boot(1, 'one', 4), reserve(500, 'r', 3000, 1000),
            small.boot(1000, 'two', 4),
            small.boot(1100, 'three', reservation='r'), hosts=2,
            until_s=2000, reservations=RESERVATIONS)
        self.assertEqual(['1000 refused two'], lines(found, 'two'))
        self.assertEqual(['1100 refused three'], lines(found, 'three'))
        self.assertNotIn(' waking ', ' '.join(found))

    def test_an_unreserved_host_wakes(self):
        found, _ = test_simulated_power.simulated(
            small.boot(1, 'one', 4), reserve(500, 'r', 3000, 1000),
            small.boot(1000, 'two', 4), hosts=3, until_s=2000,
            reservations=RESERVATIONS)
        self.assertIn('1130 placed two', found)

    def moved(self, *trace, **values):
        cloud = small.cloud(1, 4)
        first = dataclasses.replace(cloud.hosts[0], name='a',
                                    reservable=True)
        second = dataclasses.replace(cloud.hosts[0], name='b',
                                     reservable=False)
        cloud = dataclasses.replace(
            cloud, hosts=(first, second), delays=dataclasses.replace(
                small.DELAYS, migrate=delays.Delay('constant:60')))
        records = []
        simulation = run.Simulation(cloud, small.options(
            reservations=RESERVATIONS, **values), 0, records.append)
        trace = sorted((*trace, reserve(100, 'r', 5000, 1000)),
                       key=lambda event: event.at_us)
        summary = simulation.run(trace, 40_000 * SECOND)
        return [f'{item["t"]:g} {item["event"]} {item["id"]}'
                for item in records if item['event'] != 'asked'], summary


class TestCleared(unittest.TestCase):

    def test_servers_that_are_removed_are_no_victims(self):
        for action, gone_s in (('delete', 402), ('shelve', 405)):
            found, _, _ = simulated(
                reserve(0, 'r', 100, 300, end_action=action),
                small.boot(150, 'own', 4, spot=True, reservation='r'),
                small.boot(401, 'early', 4), small.boot(410, 'late', 4),
                hosts=1)
            self.assertEqual(['401 refused early'], lines(found, 'early'))
            self.assertEqual(f'{gone_s} cleared own',
                             lines(found, 'own')[-1])
            self.assertIn('420 active late', found)

    def test_a_waiting_server_gets_the_space_of_a_removed_one(self):
        found, _, _ = simulated(
            reserve(0, 'r', 100, 300),
            small.boot(150, 'own', 4, spot=True, reservation='r'),
            small.boot(380, 'other', 4, reservation='r'), hosts=1)
        self.assertEqual(
            ['380 notice own', '405 cleared own'], lines(found, 'own')[2:])
        self.assertEqual(
            ['380 preempted other', '415 active other', '420 cleared other'],
            lines(found, 'other'))

    def test_a_server_that_returns_is_deleted_at_the_end(self):
        """The limit of simultaneous returns does not change."""
        found, _, _ = simulated(
            reserve(0, 'r', 100, 300, end_action='delete'),
            small.boot(150, 'own', 4, spot=True, reservation='r'),
            small.boot(200, 'other', 4, reservation='r'),
            small.end(375, 'other'), small.boot(900, 'spot', 4, spot=True),
            small.boot(1000, 'normal', 4), small.end(1200, 'normal'),
            hosts=1, restore_at_once=1,
            terms=simulation_settings.PreemptibleTerms(action='shelve',
                                                       restore=True))
        self.assertIn('402 cleared own', found)
        self.assertEqual('1220 back spot', found[-1])


class TestAfterItsReservation(unittest.TestCase):
    """A server keeps its hint after the end of its reservation."""

    def test_a_server_returns_after_its_reservation(self):
        found, figures, _ = simulated(
            reserve(0, 'r', 100, 300),
            small.boot(150, 'own', 4, spot=True, reservation='r'),
            small.boot(200, 'other', 4, reservation='r'),
            small.boot(500, 'new', 4, spot=True, reservation='r'),
            hosts=1,
            terms=simulation_settings.PreemptibleTerms(action='shelve',
                                                       restore=True))
        self.assertEqual(['235 shelved own', '430 back own'],
                         lines(found, 'own')[-2:])
        self.assertEqual(['500 refused new'], lines(found, 'new'))
        # Until other is cleared away.
        self.assertEqual(round(255 / 3600, 3), figures['host_hours_used'])

    @mock.patch.object(cleanup_controller, 'TIMEOUT_S', 1)
    def test_a_server_is_moved_after_its_reservation(self):
        found, figures, _ = simulated(
            reserve(0, 'r', 100, 300),
            small.boot(395, 'own', 4, reservation='r'),
            reserve(500, 'next', 2000, 1000), hosts=2,
            reservations=RESERVATIONS)
        self.assertEqual(
            ['1100 moving own', '1160 moved own'], lines(found, 'own')[2:])
        self.assertIn('2000 reservation started next', found)
        self.assertEqual(1, figures['not cleared'])
        self.assertLess(figures['host_hours_used'], 1)


class TestMany(unittest.TestCase):
    """Random loads."""

    ACTIONS = ('delete', 'shelve', 'stop')

    def test_all_capacity_is_free_in_the_end(self):
        seen = collections.Counter()
        for seed in range(10):
            with self.subTest(seed):
                chance = random.Random(seed)
                seen.update(self.check(chance, chance.random() < 0.5))
        for name in ('granted', 'refused', 'started', 'late', 'ended',
                     'cancelled', 'host replaced', 'host lost'):
            self.assertGreater(seen[name], 0, name)

    def check(self, chance, is_switched):
        terms = simulation_settings.PreemptibleTerms(
            chance.choice((0, 1000)), None, chance.choice((None, 100)),
            chance.choice(self.ACTIONS), chance.random() < 0.5)
        cloud = small.cloud(4, terms=terms, spread=chance.random() < 0.5)
        options = small.options(
            reservations=dataclasses.replace(
                RESERVATIONS, guard=dataclasses.replace(
                    RESERVATIONS.guard,
                    guard_s=chance.choice((0, 900, 3600))),
                evacuation_lead_s=chance.choice((0, 900))),
            power=test_simulated_power.POWER if is_switched else None,
            project_budget=chance.choice((0, 1)), stop_retention_s=100)
        simulation = run.Simulation(
            dataclasses.replace(cloud, delays=delays.Delays(
                shelve=delays.Delay('uniform:1,300'))), options,
            chance.randrange(10**6))
        with mock.patch.object(cleanup_controller, 'TIMEOUT_S',
                               chance.choice((1, 600))):
            figures = simulation.run(self.trace(chance), 92_000 * SECOND)
        state = simulation._world
        there = state.cloud
        self.assertEqual(there.total(), there.free())
        self.assertEqual({}, state.servers)
        self.assertEqual({}, simulation._evictions.decisions.open)
        self.assertEqual({}, simulation._evictions.ending)
        self.assertEqual({}, simulation._moves._moves)
        for level in ('hosts reserved', 'hosts reserved and used'):
            if level in state.report._levels:
                self.assertEqual(0, state.report._levels[level].amount)
        found = figures['reservations']
        self.assertLessEqual(found['host_hours_used'], found['host_hours'])
        return {name: value for name, value in found.items()
                if isinstance(value, int)}

    def trace(self, chance):
        events = []
        for number in range(60):
            at_s = chance.randrange(30_000)
            kind = chance.random()
            if kind < 0.25:
                start_s = at_s + chance.randrange(12_000)
                run_s = chance.randrange(1, 9000)
                events.append(trace_model.Reserve(
                    at_s * SECOND, f'r{number}', chance.randrange(1, 4),
                    start_s, chance.choice((None, start_s + run_s)), run_s,
                    end_action=chance.choice(('', 'delete', 'shelve'))))
                if chance.random() < 0.3:
                    events.append(small.end(
                        at_s + chance.randrange(20_000), f'r{number}'))
                for nth in range(3):
                    events.append(small.boot(
                        at_s + chance.randrange(20_000), f'o{number}.{nth}',
                        chance.randrange(1, 5), chance.random() < 0.3,
                        reservation=f'r{number}'))
                    events.append(small.end(
                        40_000 + chance.randrange(50_000),
                        f'o{number}.{nth}'))
            else:
                events.append(small.boot(
                    at_s, f's{number}', chance.randrange(1, 5), kind < 0.6,
                    for_s=chance.randrange(1, 15_000)))
                events.append(small.end(
                    at_s + chance.randrange(60_000), f's{number}'))
        return sorted(events, key=lambda event: event.at_us)
