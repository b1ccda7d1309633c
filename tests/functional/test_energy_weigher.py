# SPDX-License-Identifier: Apache-2.0
"""Servers gather on frugal hosts, and without figures where they always did.
"""

import datetime
import pathlib
import random
from unittest import mock

from nova import service
from nova.conf import CONF
from nova.scheduler import manager as nova_manager

from nova_preempt.db import energy_store
from nova_preempt.scheduler.weights import efficiency_weigher
from tests.functional import base

HOSTS = ('host1', 'host2', 'host3', 'host4')
STOCK = 'nova.scheduler.manager.SchedulerManager'


class WeigherTestCase(base.PreemptionTestCase):
    """Four hosts of two slots each."""

    def setUp(self):
        super().setUp()
        # More than Nova's own weighers, which spread servers, together.
        self.flags(group='filter_scheduler',
                   kw_ranking_weight_multiplier=100.0)
        self.add_hosts(*HOSTS)

    def learn(self, **figures):
        """Measure hosts: (flops, watts, idle watts) each."""
        energy_store.put_figures(self.db, [energy_store.HostEfficiency(
                                               host, *values,
                                               measured_at=datetime.datetime(
                                                   2026, 1, 1)) for host,
                                           values in figures.items()])
        # What the thread does before long.
        self.figures.refresh()

    @property
    def figures(self):
        weigher, = (weigher for weigher in self.scheduler.host_manager.weighers
                    if isinstance(weigher,
                                  efficiency_weigher.KWRankingWeigher))
        return weigher.figures

    def boot_many(self, number, **kwargs):
        """Boot servers one after the other; return their hosts."""
        return [self.boot_normal(f'n{index}', **kwargs)[
            'OS-EXT-SRV-ATTR:host'] for index in range(number)]


class TestFigures(WeigherTestCase):

    def test_the_most_efficient_first(self):
        """Unknown hosts come last; an aggregate sets the multiplier."""
        self.flags(group='energy', unknown='last')
        self.learn(host1=(2e12, 1000, None), host2=(9e12, 1000, None),
                   host4=(3e12, 1000, None))
        aggregate = self.add_aggregate('indifferent', ['host2'],
                                       kw_ranking_weight_multiplier='0')
        self.assertEqual(['host4', 'host1'],
                         self.boot_many(2, flavor=self.big))
        self.set_metadata(aggregate, kw_ranking_weight_multiplier='100')
        self.assertEqual(['host2', 'host3'],
                         self.boot_many(2, flavor=self.big))
        self.assert_consistent()

    def test_figures_in_a_file_that_the_thread_reads(self):
        path = pathlib.Path(CONF.state_path, 'figures.yaml')
        path.write_text('host3: {flops: 4e12, watts: 400}\n'
                        'host1: {flops: 3e12, watts: 400}\n')
        self.flags(group='energy', figures_file=str(path), unknown='last')
        self.restart_scheduler()
        self.wait_for(lambda: self.figures.get('host3'), 'the first reading')
        self.assertEqual(['host3', 'host1'],
                         self.boot_many(2, flavor=self.big))

    def test_victims_end_on_frugal_hosts_only_if_they_are_cheap(self):
        """The cost of victims goes before efficiency, and ties are its."""
        self.learn(host1=(2e12, 1000, None), host2=(9e12, 1000, None),
                   host3=(3e12, 1000, None), host4=(1e12, 1000, None))
        large = self.create_flavor('large-spot', 2, 2048, 20,
                                   preemptible=True)
        spots = {host: self.boot_spot(host, host, uptime_s, large)
                 for host, uptime_s in (('host1', 10), ('host2', 1000),
                                        ('host3', 10), ('host4', 10))}
        server = self.boot_normal()
        self.assertEqual('host3', server['OS-EXT-SRV-ATTR:host'])
        self.assertEqual({spots['host3']}, self.last_victims())


class TestMarginal(WeigherTestCase):

    def test_running_hosts_before_idle_ones(self):
        self.flags(group='energy', ranking='marginal')
        self.learn(host1=(9e12, 300, 100), host2=(2e12, 400, 150),
                   host3=(1e12, 300, 90), host4=(1e12, 380, 140))
        # 100 + 100, 150 + 125, 90 + 105, 140 + 120 watts for the first.
        self.boot_normal('running', host='host4')
        self.assertEqual(['host4', 'host3', 'host3', 'host1'],
                         self.boot_many(4))


class TestWithoutFigures(WeigherTestCase):

    def choices(self):
        """Return the hosts of servers of fixed sizes, with a fixed seed."""
        hosts = []
        seeded = random.Random(20)
        with mock.patch.object(nova_manager, 'random', seeded):
            for index, flavor in enumerate(
                    (self.small, self.small, self.big)):
                server = self.boot_normal(f's{index}', flavor=flavor)
                hosts.append(server['OS-EXT-SRV-ATTR:host'])
        for server in self.servers():
            self.delete(server['id'])
        return hosts

    def test_the_same_hosts_as_stock(self):
        self.flags(group='filter_scheduler', host_subset_size=2,
                   shuffle_best_same_weighed_hosts=True)
        self.restart_scheduler()
        ours = [self.choices()]
        self.flags(group='energy', unknown='last', ranking='marginal')
        ours.append(self.choices())
        host = self.scheduler_service.host
        self.scheduler_service.stop()
        self.flags(group='filter_scheduler', weight_classes=[
            'nova.scheduler.weights.all_weighers'])
        with mock.patch.dict(service.SERVICE_MANAGERS,
                             {'nova-scheduler': STOCK}):
            self.scheduler_service = self.start_service('scheduler',
                                                        host=host)
        self.assertIs(nova_manager.SchedulerManager,
                      type(self.scheduler_service.manager))
        stock = self.choices()
        self.assertEqual([stock, stock], ours)
        # Not because there was nothing to choose.
        self.assertLess(1, len(set(stock)))
