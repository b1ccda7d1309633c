# SPDX-License-Identifier: Apache-2.0
"""The evaluations of the papers, in small."""

import dataclasses
import fractions
import itertools
import random
import types
import unittest

from nova_preempt.core import capacity
from nova_preempt.core.classes.request_size import ServiceLevel
from nova_preempt.core.model import SECOND
from nova_preempt.simulator.papers import climate
from nova_preempt.simulator.papers import ecsched
from nova_preempt.simulator.papers import ecsched_figures
from nova_preempt.simulator.papers import opie
from nova_preempt.simulator.papers import qos_comparison
from nova_preempt.simulator.papers import sla
from nova_preempt.simulator.traces import generator


class TestOpie(unittest.TestCase):

    def test_the_tables(self):
        self.assertEqual(
            [('host-B', ('BP1',), 11), ('host-C', ('CP1',), 1),
             ('host-A', ('AP2', 'AP3', 'AP4'), 55), ('host-B', ('BP3',), 20)],
            [(host, victims, cost_us // (60 * SECOND)) for
             host, victims, cost_us in map(opie.choose, opie.TABLES)])

    def test_each_figure_of_a_table_is_the_published_one(self):
        found = list(opie._tables())
        self.assertEqual(8, len(found))
        for each in found:
            self.assertEqual(each.published, each.ours, each.name)

    def test_random_testbeds_have_the_cheapest_victims(self):
        chance = random.Random(3)
        self.assertTrue(all(opie._is_best(chance, 'SML') for _ in range(5)))

    def test_a_dearer_choice_would_be_noticed(self):
        chance = random.Random(3)
        dearer = dataclasses.replace(
            opie.POLICY, cost=lambda server, options: 1)
        self.addCleanup(setattr, opie, 'POLICY', opie.POLICY)
        opie.POLICY = dearer
        self.assertFalse(all(opie._is_best(chance, 'M') for _ in range(5)))

    def test_times_are_read_from_the_clock(self):
        ticks = itertools.count()
        times = opie.call_times(1, lambda: next(ticks) / 1000)
        self.assertEqual(7, len(times))
        for values in times.values():
            self.assertEqual(opie.CALLS, len(values))
            self.assertAlmostEqual(1, sum(values) / len(values))


class TestQos(unittest.TestCase):

    def test_a_sample_fits_the_largest_cloud_all_in_all(self):
        workload = qos_comparison.Workload.make(random.Random(1))
        peak = generator.peak(
            (each.at_us, each.at_us + each.run_us, each.resources)
            for each in workload.arrivals)
        total = [sum(column) for column in zip(*workload.hosts, strict=True)]
        self.assertTrue(total[0] >= peak['CPU'] or total[1] >= peak['MEMORY'])
        self.assertEqual(qos_comparison.Workload.requests,
                         len(workload.arrivals))

    def test_the_peak(self):
        """A server that ends frees space for the next."""
        self.assertEqual({'CPU': 7, 'MEMORY': 2}, generator.peak(
            (begin, end, {'CPU': cpu, 'MEMORY': 1})
            for begin, end, cpu in ((0, 10, 3), (5, 15, 2), (10, 15, 5))))

    def test_smaller_clouds_are_parts_of_it(self):
        workload = qos_comparison.Workload.make(random.Random(1))
        whole = sum(cpu for cpu, _ in workload.hosts)
        part = workload.part(0.8, random.Random(2))
        self.assertLessEqual(sum(has['CPU'] for has in part.values()),
                             0.8 * whole)
        self.assertEqual(len(workload.hosts),
                         len(workload.part(1.0, random.Random(2))))


    def test_money(self):
        """Money is returned in steps if a promise is broken."""
        def outcome(*silver):
            return types.SimpleNamespace(availabilities={
                'silver': [fractions.Fraction(each) for each in silver]})

        found = qos_comparison.Comparison.__new__(qos_comparison.Comparison)
        found._promised = {'silver': fractions.Fraction('0.9')}
        found._found = {
            (part, name): [outcome('.9', '1', '.895')
                           if name == 'by promise' else
                           outcome('.88', '.5', '.85')]
            for part in (1.0, 0.9, 0.8, 0.7)
            for name in qos_comparison.POLICIES}
        for provider, by_priority in (('Amazon', 2.3),
                                      ('Google', 2.25)):
            self.assertAlmostEqual(0.1, found.credits(
                1.0, 'by promise', provider))
            self.assertAlmostEqual(by_priority, found.credits(
                1.0, 'by priority', provider))
        self.assertEqual(6, len(found._more_credits()))
        self.assertAlmostEqual(2200, found._more_credits()[0])
        money = {each.name: each for each in found._money()}
        name = 'more money given back by priority than by promise'
        self.assertEqual((193, None), (
            money[f'{name}, mean (%)'].published,
            money[f'{name}, largest (%)'].published))
        self.assertAlmostEqual(2175, money[f'{name}, mean (%)'].ours)
        self.assertAlmostEqual(2200, money[f'{name}, largest (%)'].ours)


class TestSla(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.found = sla.run(1, 1, None)

    def test_better_classes_get_more_cores(self):
        answers = [each for each in self.found.figures
                   if each.published == 'yes']
        self.assertEqual(12, len(answers))
        self.assertEqual({'yes'}, {each.ours for each in answers})

    def test_all_of_them_run(self):
        for each in sla.RUNS:
            started = sla.simulate(each, 0, 2)
            self.assertEqual(sla.CONTAINERS, len(started))
            for service, count in each.counts.items():
                self.assertEqual(count, sum(one.service is service
                                            for one in started))

    def test_copies(self):
        started = sla.simulate(sla.RUNS[0], 1, 1)
        self.assertEqual({(ServiceLevel.PREMIUM, 4),
                          (ServiceLevel.ADVANCED, 3),
                          (ServiceLevel.BEST_EFFORT, 2)},
                         {(one.service, one.hosts) for one in started})


class TestEcsched(unittest.TestCase):

    def test_nothing_is_overfull_and_pairs_are_together(self):
        containers = [dataclasses.replace(each, at_s=0.0)
                      for each in ecsched.make(200, 3)]
        pairs = {each.together for each in containers} - {''}
        self.assertTrue(pairs)
        for name in ecsched_figures.SCHEDULERS:
            cluster, at = ecsched._Cluster(), {}
            for each, machine in ecsched._scheduler(name).place(
                    containers, cluster):
                at[each.number] = machine
                self.assertIn(machine, each.machines or cluster.has)
            self.assertTrue(at)
            for free in cluster.free.values():
                self.assertTrue(capacity.fits({}, free))
                self.assertGreaterEqual(min(free.values()), 0)
            for each in containers:
                if each.together and each.number in at:
                    self.assertEqual({at[each.number]}, {
                        at.get(other.number) for other in containers
                        if other.together == each.together}, name)

    def test_each_container_ends_with_each_scheduler(self):
        containers = ecsched.make(60, 1)
        runs = ecsched.SchedulerRuns(containers)
        for found in runs.completion_s.values():
            self.assertEqual(60, len(found))
            for each in containers:
                self.assertGreaterEqual(found[each.number] + 1e-6, each.run_s)

    def test_the_fullest_and_the_emptiest(self):
        has = {'CPU': 1000, 'MEMORY': 1000}
        full, empty = {'CPU': 100, 'MEMORY': 100}, dict(has)
        needed = {'CPU': 50, 'MEMORY': 50}
        self.assertGreater(ecsched._swarm(needed, full, has),
                           ecsched._swarm(needed, empty, has))
        self.assertLess(ecsched._kubernetes(needed, full, has),
                        ecsched._kubernetes(needed, empty, has))

    def test_time_is_that_of_a_clock(self):
        ticks = itertools.count()
        self.assertEqual(1, ecsched.overhead(
            20, 10, 3, 1, lambda: float(next(ticks))))


class TestClimate(unittest.TestCase):

    def lease(self, asked_h, start_h, run_h=1, hosts=2):
        return climate.LeaseRequest(3600 * asked_h, 3600 * start_h,
                                    3600 * run_h, hosts)

    def test_loads_without_reservations(self):
        # Day 0 is a Monday, of which 10 h is in working hours, 22 h not.
        at_once = climate.on_demand(self.lease(10, 22))
        self.assertEqual((10, 10), (at_once.asked_s / 3600,
                                    at_once.start_s / 3600))
        for asked_h, start_h in ((10, 12), (22, 23), (5 * 24 + 10, 5 * 24)):
            found = climate.on_demand(self.lease(asked_h, start_h))
            self.assertEqual((start_h, start_h), (found.asked_s / 3600,
                                                  found.start_s / 3600))

    def simulate(self, lease, count=4, end_s=86400, **values):
        """(hours of all its cores that were idle, switched off, the Site)."""
        site = climate.simulate([lease], count, end_s, **values)
        return (site.totals.idle_core_s / 8 / 3600,
                site.totals.saved_core_s / 8 / 3600, site)

    def test_all_on(self):
        idle_h, saved_h, site = self.simulate(self.lease(10, 10),
                                              is_switching=False)
        self.assertEqual((4 * 24 - 2, 0), (idle_h, saved_h))
        self.assertEqual(([0.0], []), (site.late_s, site.delays))
        self.assertEqual({32.0}, set(site.cores('hosts on')))
        self.assertEqual({0.0, 16.0}, set(site.cores('hosts reserved')))

    def test_power_draw_of_hosts(self):
        """Reserved hosts draw power as in use, others as idle."""
        *_, site = self.simulate(self.lease(10, 10), 3, is_switching=False)
        (_, *most), *rest = sorted(climate._KINDS, reverse=True)
        drawn_wh = sum(idle for _, _, idle in climate._KINDS) * 24 + sum(
            in_use - idle for in_use, idle in (most, rest[0][1:]))
        self.assertAlmostEqual(drawn_wh / 1000, site.totals.used_kwh, 3)

    def test_requests_on_demand_wait_for_a_boot(self):
        _, saved_h, site = self.simulate(self.lease(10, 10))
        (delay,) = site.delays
        self.assertEqual((16, 3600), (delay.cores, delay.duration_s))
        self.assertLessEqual(climate.BOOT_S, delay.boot_s)
        self.assertLess(delay.boot_s, climate.BOOT_S + 2 * climate.NOTE_S)
        self.assertGreater(saved_h, 0.9 * (4 * 24 - 2))

    def test_requests_in_advance_do_not_wait(self):
        _, saved_h, site = self.simulate(self.lease(10, 12))
        self.assertEqual([], site.delays)
        self.assertGreater(saved_h, 0.9 * (4 * 24 - 2))

    def test_by_rank_the_most_efficient_are_taken(self):
        ranked, by_name = (self.simulate(
            self.lease(10, 10), 6, 39600, is_ranked=is_ranked)[-1]
            for is_ranked in (True, False))
        self.assertLess(ranked.totals.used_kwh, by_name.totals.used_kwh)
