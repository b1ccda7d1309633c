# SPDX-License-Identifier: Apache-2.0
"""Frugal hosts first."""

import random
import types
import unittest

import nova.conf
from nova.scheduler import weights as nova_weights
from nova.scheduler.weights import cpu
from nova.scheduler.weights import ram

from nova_preempt.core.energy.efficiency_ranking import Figures
from nova_preempt.scheduler.weights import efficiency_weigher

CONF = nova.conf.CONF


class FixedTable:
    """Table with given figures."""

    def __init__(self, figures):
        self._figures = figures
        self.readings = {}
        self.starts = 0

    def start(self):
        self.starts += 1

    def get(self, host):
        return self._figures.get(host)

    def watts_now(self, host):
        return self.readings.get(host)


def host(name, **values):
    return types.SimpleNamespace(**{
        'host': f'service-{name}', 'nodename': name, 'aggregates': [],
        'vcpus_total': 8, 'vcpus_used': 0, 'cpu_allocation_ratio': 1.0,
        'num_instances': 0, 'free_ram_mb': 0, **values})


class WeigherTestCase(unittest.TestCase):

    def weigher(self, **figures):
        weigher = efficiency_weigher.KWRankingWeigher()
        weigher.figures.stop()
        weigher.figures = FixedTable(figures)
        return weigher

    def option(self, name, value, group='energy'):
        CONF.set_override(name, value, group)
        self.addCleanup(CONF.clear_override, name, group)

    def order(self, weigher, *hosts, vcpus=2, others=()):
        handler = nova_weights.HostWeightHandler()
        return [weighed.obj.nodename for weighed in
                handler.get_weighed_objects(
                    [*others, weigher], list(hosts),
                    types.SimpleNamespace(vcpus=vcpus))]


class TestEfficiency(WeigherTestCase):

    def test_004_i_flops_per_watt(self):
        weigher = self.weigher(b=Figures(100, 50), c=Figures(90, 30))
        self.option('unknown', 'last')
        self.assertEqual(['c', 'b', 'a'], self.order(
            weigher, host('a'), host('b'), host('c')))

    def test_measured_watts_override_those_of_the_benchmark(self):
        weigher = self.weigher(a=Figures(100, 50, 10), b=Figures(90, 50, 10))
        idle = host('a'), host('b')
        self.assertEqual(['a', 'b'], self.order(weigher, *idle))
        weigher.figures.readings = {'a': 13}
        self.assertEqual(['b', 'a'], self.order(weigher, *idle))
        # In full use it draws what it is known to draw.
        weigher.figures.readings = {'a': 50, 'b': 10}
        self.assertEqual(['a', 'b'], self.order(
            weigher, host('a', vcpus_used=8, num_instances=4), idle[1]))

    def test_measured_watts_where_the_benchmark_had_none(self):
        weigher = self.weigher(a=Figures(100), b=Figures(90))
        weigher.figures.readings = {'a': 50, 'b': 30}
        self.assertEqual(['b', 'a'], self.order(
            weigher, host('a'), host('b')))

    def test_an_unknown_host_is_neutral(self):
        weigher = self.weigher(b=Figures(100, 50), c=Figures(90, 30))
        self.assertEqual(['c', 'a', 'b'], self.order(
            weigher, host('a'), host('b'), host('c')))

    def test_no_effect_without_figures(self):
        rng = random.Random(7)
        hosts = [host(f'{number}', free_ram_mb=rng.randrange(9),
                      vcpus_used=rng.randrange(8)) for number in range(50)]
        handler = nova_weights.HostWeightHandler()
        others = [ram.RAMWeigher(), cpu.CPUWeigher()]
        for unknown in ('neutral', 'last'):
            for ranking in ('efficiency', 'marginal'):
                self.option('unknown', unknown)
                self.option('ranking', ranking)
                without, beside = ([
                    (weighed.obj.nodename, weighed.weight) for weighed in
                    handler.get_weighed_objects(
                        weighers, hosts, types.SimpleNamespace(vcpus=1))]
                    for weighers in (others, [*others, self.weigher()]))
                self.assertEqual(without, beside)

    def test_a_weigher_without_figures_takes_no_time(self):
        """Nova looks at each host for each weight, and at none for none."""
        same = self.weigher(a=Figures(1, 1), b=Figures(2, 2))
        for ranking in ('efficiency', 'marginal'):
            self.option('ranking', ranking)
            for weigher in (self.weigher(), same):
                self.assertEqual([], weigher.weigh_objects(
                    [types.SimpleNamespace(obj=host(name)) for name in 'ab'],
                    types.SimpleNamespace(vcpus=1)))

    def test_multiplier(self):
        weigher = self.weigher(a=Figures(1, 1), b=Figures(2, 1))
        hosts = host('a', free_ram_mb=9), host('b')
        # With the default both count the same, and the first one wins.
        self.assertEqual(['a', 'b'], self.order(
            weigher, *hosts, others=[ram.RAMWeigher()]))
        self.option('kw_ranking_weight_multiplier', 2.0, 'filter_scheduler')
        self.assertEqual(['b', 'a'], self.order(
            weigher, *hosts, others=[ram.RAMWeigher()]))

    def test_multiplier_of_an_aggregate(self):
        weigher = self.weigher(a=Figures(1, 1), b=Figures(2, 1))
        aggregate = types.SimpleNamespace(
            metadata={'kw_ranking_weight_multiplier': '-1'})
        self.assertEqual(['b', 'a'],
                         self.order(weigher, host('a'), host('b')))
        self.assertEqual(['a', 'b'], self.order(
            weigher, host('a'), host('b', aggregates=[aggregate])))

    def test_the_thread_is_started(self):
        weigher = self.weigher()
        self.order(weigher, host('a'), host('b'))
        self.assertEqual(1, weigher.figures.starts)


class TestMarginal(WeigherTestCase):

    def setUp(self):
        super().setUp()
        self.option('ranking', 'marginal')

    def weights(self, weigher, *hosts, vcpus=2):
        return weigher.weigh_objects(
            [types.SimpleNamespace(obj=item) for item in hosts],
            types.SimpleNamespace(vcpus=vcpus))

    def test_watts_that_the_request_adds(self):
        weigher = self.weigher(a=Figures(None, 300, 100),
                               b=Figures(None, 300, 100))
        self.assertEqual([-150, -50], self.weights(
            weigher, host('a'), host('b', num_instances=1)))
        self.assertEqual([-125, -25], self.weights(
            weigher, host('a', cpu_allocation_ratio=2.0),
            host('b', num_instances=1, cpu_allocation_ratio=2.0)))

    def test_a_used_host_before_a_more_efficient_idle_one(self):
        weigher = self.weigher(a=Figures(1000, 200, 100),
                               b=Figures(100, 300, 150))
        hosts = host('a'), host('b', num_instances=3)
        self.assertEqual(['b', 'a'], self.order(weigher, *hosts))
        self.option('ranking', 'efficiency')
        self.assertEqual(['a', 'b'], self.order(weigher, *hosts))

    def test_measured_watts(self):
        weigher = self.weigher(a=Figures(None, 300, 100),
                               b=Figures(None, 300, 100))
        weigher.figures.readings = {'a': 120, 'b': 300}
        self.assertEqual([-180, -75], self.weights(
            weigher, host('a'), host('b', num_instances=1, vcpus_used=4)))

    def test_unknown_figures(self):
        weigher = self.weigher(a=Figures(None, 300, 100),
                               b=Figures(None, 200, 100),
                               c=Figures(9, 100), d=Figures(9, 100, 50))
        unknown = host('c'), host('d', vcpus_total=0), host('e')
        self.assertEqual(
            [-150, -125, -137.5, -137.5, -137.5],
            self.weights(weigher, host('a'), host('b'), *unknown))
        self.option('unknown', 'last')
        self.assertEqual(
            [-150, -125, -300, -300, -300],
            self.weights(weigher, host('a'), host('b'), *unknown))
