# SPDX-License-Identifier: Apache-2.0
"""Servers that are requested through the backlog."""

import dataclasses
import unittest

from nova_preempt.core.backlog import backlog_controller
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import dominant_fair_share
from nova_preempt.core.backlog import queue_order
from nova_preempt.core.batch import backlog_batch
from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import solver_choice
from nova_preempt.core.model import SECOND
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.simulator import delays
from nova_preempt.simulator import simulation
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator.traces import trace_model
from tests.unit.simulator import small
from tests.unit.simulator import test_simulated_classes
from tests.unit.simulator import test_simulated_power
from tests.unit.simulator import test_simulated_reservations

BACKLOG = simulation_settings.BacklogOptions(
    queue_order.FIFO(queue_order.Options()))


def simulated(*trace, hosts=1, backlog=BACKLOG, waiting=('preemptible',),
              until_s=3000, terms=None, **values):
    return small.simulated(
        small.cloud(hosts, terms=terms, waiting=frozenset(waiting)),
        small.options(backlog=backlog, **values), *trace,
        until_s=until_s)[0]


class TestWaiting(unittest.TestCase):

    def test_a_server_that_fits_starts_with_the_next_pass(self):
        self.assertEqual(
            ['3 queued p', '10 placed p', '20 active p'],
            simulated(small.boot(3, 'p', spot=True)))

    def test_a_server_without_space_waits(self):
        self.assertEqual(
            ['0 placed n', '3 queued p', '10 active n', '110 finished n',
             '110 placed p', '120 active p'],
            simulated(small.boot(0, 'n', 4, for_s=100),
                      small.boot(3, 'p', 4, spot=True)))

    def test_servers_of_other_classes_do_not_wait(self):
        found = simulated(small.boot(0, 'n', 4), small.boot(1, 'm', 4))
        self.assertIn('1 refused m', found)
        self.assertEqual(
            ['3 refused p'],
            simulated(small.boot(3, 'p', 5, spot=True), backlog=None))

    def test_a_request_waits_for_minimum_run_times(self):
        """It starts with the first pass after them."""
        found = simulated(
            small.boot(0, 'p', 4, spot=True), small.boot(15, 'n', 4),
            waiting=('normal',),
            terms=simulation_settings.PreemptibleTerms(minimum_runtime_s=1000))
        self.assertIn('1010 preempted n', found)

    def test_space_kept_by_stopped_victims_does_not_count(self):
        found = simulated(
            trace_model.Boot(0, 'p', {'VCPU': 4, 'DISK_GB': 80}, '',
                             'preemptible'),
            trace_model.Boot(21 * SECOND, 'n', {'VCPU': 4, 'DISK_GB': 30}),
            small.end(515, 'p'),
            waiting=('normal',),
            terms=simulation_settings.PreemptibleTerms(action='stop'))
        self.assertIn('520 placed n', found)

    def test_space_of_victims_that_are_ending_does_not_count(self):
        found = small.simulated(
            small.cloud(delays=dataclasses.replace(
                small.DELAYS, delete=delays.Delay('constant:1000')),
                waiting=frozenset(['waits'])),
            small.options(backlog=BACKLOG), small.boot(0, 'p', 4, spot=True),
            small.boot(100, 'm', 4), small.end(131, 'm'),
            dataclasses.replace(small.boot(131, 'n', 4),
                                class_name='waits'))[0]
        self.assertIn('1130 deleted p', found)
        self.assertIn('1130 placed n', found)

    def test_a_server_that_ends_in_time_may_use_a_kept_host(self):
        """Maximum run times tell their ends."""
        first, last, small_one = (
            dataclasses.replace(small.boot(at_s, id, vcpus), class_name='long')
            for at_s, id, vcpus in (
                (0, 'first', 2), (21, 'last', 4), (31, 'small', 1)))
        for class_name, expected in (
                ('long', ['0 queued first', '10 placed first',
                          '21 queued last', '31 queued small',
                          '360 placed last', '710 placed small']),
                ('short', ['0 queued first', '10 placed first',
                           '21 queued last', '31 queued small',
                           '40 placed small', '360 placed last'])):
            found = small.simulated(
                small.cloud(waiting=frozenset(('long', 'short')), classes={
                    'long': simulation_settings.PreemptibleTerms(
                        maximum_runtime_s=300),
                    'short': simulation_settings.PreemptibleTerms(
                        maximum_runtime_s=100)}),
                small.options(backlog=dataclasses.replace(
                    BACKLOG, options=backlog_controller.Options(
                        dispatch.Options(hold_after_s=0)))),
                first, last,
                dataclasses.replace(small_one, class_name=class_name),
                until_s=900)[0]
            self.assertEqual(expected, [
                line for line in found
                if line.split()[1] in ('queued', 'placed')])

    def test_requests_that_fit_pass_the_oldest(self):
        found = simulated(
            small.boot(0, 'n', 3, for_s=100),
            small.boot(1, 'large', 4, spot=True),
            small.boot(2, 'first', 1, spot=True, for_s=200),
            small.boot(3, 'second', 1, spot=True))
        placed = [line for line in found if 'placed' in line]
        self.assertEqual(['0 placed n', '10 placed first',
                          '110 placed second'], placed)

    def test_space_of_victims_does_not_count_while_disabled(self):
        """A smaller request may use the free space."""
        found = simulated(
            small.boot(0, 'p', 2, spot=True), small.boot(11, 'n', 3),
            small.boot(12, 'q', 2, spot=True),
            waiting=('normal', 'preemptible'), enabled=False)
        self.assertIn('20 placed q', found)

    def test_the_owner_may_cancel_a_waiting_server(self):
        found = simulated(
            small.boot(0, 'n', 4, for_s=100),
            small.boot(1, 'p', 4, spot=True), small.end(50, 'p'))
        self.assertEqual(['1 queued p', '50 ended p'],
                         [line for line in found if line.endswith(' p')])

    def test_waiting_normal_servers_evict_others(self):
        found = simulated(
            small.boot(0, 'p', 4, spot=True), small.boot(15, 'n', 4),
            waiting=('normal',), notice=NoticeRule(0))
        self.assertEqual(
            ['0 placed p', '10 active p', '15 queued n', '20 preempted n',
             '20 notice p', '22 deleted p', '32 active n'], sorted(
                 found, key=lambda line: (int(line.split()[0]),
                                          -len(line.split()[1]))))

    def test_the_request_has_the_terms_of_its_flavor(self):
        """It has all that the API would have stored."""
        asked = []

        class Order(queue_order.FIFO):

            def rank(self, requests, now, shares):
                asked.extend(requests)
                return super().rank(requests, now, shares)

        terms = simulation_settings.PreemptibleTerms(60, 900, 30, 'shelve',
                                                     True, 'gold')
        small.simulated(
            small.cloud(terms=terms, waiting={'preemptible', 'normal'}),
            dataclasses.replace(
                small.options(
                    backlog=simulation_settings.BacklogOptions(Order())),
                classes=simulation_settings.ClassOptions(
                    test_simulated_classes.TABLE)),
            small.boot(3, 'p', spot=True), small.boot(4, 'n'), until_s=100)
        self.assertEqual(
            [(True, 60, 900, 30, 'gold'), (False, 0, None, None, '')],
            [(one.preemptible, one.minimum_run_s, one.run_s, one.notice_s,
              one.class_name)
             for request in asked for one in request.alternatives])

    def test_a_server_that_fits_on_no_host_waits_for_ever(self):
        self.assertEqual(['3 queued p'],
                         simulated(small.boot(3, 'p', 5, spot=True)))

    def test_a_batch_is_placed_together(self):
        """Two hosts of 4; what comes first would take the wrong place."""
        planner = backlog_batch.Planner(lambda: solver_choice.make(
            batch_model.Options()))
        backlog = dataclasses.replace(BACKLOG, planner=planner)
        found = simulated(
            *(small.boot(1, f'p{number}', vcpus, spot=True)
              for number, vcpus in enumerate((2, 1, 3, 2))),
            hosts=2, backlog=backlog)
        self.assertEqual(4, sum('placed' in line for line in found))


class NewestFirst(queue_order.FIFO):
    """Order that ranks the newest request first."""

    def rank(self, requests, now, shares):
        return super().rank(requests, now, shares)[::-1]


class TestLarge(unittest.TestCase):
    """A request for a whole host among many small servers."""

    def placed(self, of, hold_after_s):
        """Return the seconds until placement, None after four hours."""
        backlog = simulation_settings.BacklogOptions(
            of, backlog_controller.Options(
                dispatch.Options(hold_after_s=hold_after_s)))
        trace = [small.boot(at_s, f's{at_s:05}', for_s=395)
                 for at_s in range(0, 14400, 25)]
        trace.insert(40, small.boot(
            trace[40].at_us // SECOND, 'large', 4))
        found = simulated(*trace, hosts=4, backlog=backlog, until_s=14400,
                          waiting=('normal',))
        return next((int(line.split()[0]) for line in found
                     if line.endswith(' placed large')), None)

    def test_a_large_request_starts_in_every_order(self):
        """Nova spreads servers and does not know kept hosts."""
        for of in (queue_order.FIFO(), NewestFirst(),
                   dominant_fair_share.DominantFairShare(queue_order.Options())):
            with self.subTest(of):
                self.assertIsNone(self.placed(of, 10 ** 6))
                self.assertLess(self.placed(of, 1000), 1000 + 2 * 1000 + 400)


class TestChosenHosts(unittest.TestCase):
    """If Nova refuses a chosen host, Nova chooses."""

    BATCH = dataclasses.replace(BACKLOG, planner=backlog_batch.Planner(
        lambda: solver_choice.make(batch_model.Options())))

    def test_no_server_starts_on_a_sleeping_host(self):
        cloud = small.cloud(
            2, spread=False, waiting=frozenset(['normal']),
            delays=dataclasses.replace(
                small.DELAYS, power_on=delays.Delay('constant:120'),
                power_off=delays.Delay('constant:25')))
        for backlog in (BACKLOG, self.BATCH):
            records = []
            simulation.Simulation(
                cloud, small.options(
                    backlog=backlog, power=dataclasses.replace(
                        test_simulated_power.POWER, excluded=('h-2',))),
                write=records.append).run(
                    (small.boot(100, 'a', 4), small.boot(200, 'b', 4)),
                    1000 * SECOND)
            self.assertEqual(
                [(110, 'placed', 'h-2'), (210, 'waking', 'h-1'),
                 (340, 'placed', 'h-1')],
                [(item['t'], item['event'], item['host'])
                 for item in records
                 if item['event'] in ('placed', 'waking')])

    def test_headroom_is_kept(self):
        for backlog in (BACKLOG, self.BATCH):
            self.assertEqual(
                ['3 queued p'],
                simulated(small.boot(3, 'p', 4, spot=True), backlog=backlog,
                          headroom={'VCPU': (2, False)}))


class TestReservations(unittest.TestCase):
    """Reservations of the only host."""

    BATCH = TestChosenHosts.BATCH

    def check(self, line, *trace, **values):
        trace = (test_simulated_reservations.reserve(0, 'r', 1000, 1000),
                 *trace)
        for backlog in (BACKLOG, self.BATCH):
            with self.subTest(is_batch=backlog is self.BATCH):
                found = simulated(
                    *trace, backlog=backlog,
                    reservations=test_simulated_reservations.RESERVATIONS,
                    **values)
                _, event, uuid = line.split()
                self.assertEqual([line], [
                    each for each in found
                    if each.endswith(f' {event} {uuid}')])

    def test_a_request_with_a_hint_starts_on_the_reserved_host(self):
        for line, asked_s in (('1000 placed p', 3), ('1210 placed p', 1203)):
            self.check(line, small.boot(asked_s, 'p', spot=True,
                                        reservation='r'))

    def test_a_request_without_a_hint_waits_for_the_end(self):
        self.check('2000 placed p', small.boot(1203, 'p', spot=True))

    def test_minimum_run_time_and_notice_count_before_a_start(self):
        """A failed start would be followed by a pause."""
        for terms in (
                simulation_settings.PreemptibleTerms(minimum_runtime_s=900),
                simulation_settings.PreemptibleTerms(notice_s=900)):
            with self.subTest(terms):
                self.check('510 placed p', small.boot(3, 'p', spot=True),
                           small.end(505, 'r'), terms=terms)
