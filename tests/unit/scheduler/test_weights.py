# SPDX-License-Identifier: Apache-2.0
"""Our weighers beside Nova's."""

import types
import unittest

import hypothesis
from hypothesis import strategies as st
from nova import weights as nova_base
import nova.conf
from nova.scheduler import weights as nova_weights
from nova.scheduler.weights import compute
from nova.scheduler.weights import ram

from nova_preempt.scheduler import host_states
from nova_preempt.scheduler import weights
from nova_preempt.scheduler.weights import preemption_weigher

CONF = nova.conf.CONF


def host(name, victims=(), cost_us=0, **values):
    return types.SimpleNamespace(**{
        'host': name, 'nodename': name,
        'preemption': host_states.PreemptionMark(victims, cost_us),
        'free_ram_mb': 0, 'failed_builds': 0, 'aggregates': [], **values})


class TestWeighers(unittest.TestCase):

    def order(self, *hosts):
        weighers = [preemption_weigher.PreemptionWeigher(),
                    preemption_weigher.PreemptionCostWeigher(),
                    ram.RAMWeigher(), compute.BuildFailureWeigher()]
        handler = nova_weights.HostWeightHandler()
        return [weighed.obj.host for weighed in
                handler.get_weighed_objects(weighers, list(hosts), None)]

    def test_all_weighers_finds_ours(self):
        self.assertEqual(
            {'KWRankingWeigher', 'PreemptionCostWeigher',
             'PreemptionWeigher', 'ReservationFreeTimeWeigher'},
            {weigher.__name__ for weigher in weights.all_weighers()})

    def test_a_weigher_without_weight_takes_no_time(self):
        """Nova looks at each host for each weight, and at none for none."""
        for cls in (preemption_weigher.PreemptionWeigher,
                    preemption_weigher.PreemptionCostWeigher):
            for hosts in ([host('a'), host('b')],
                          [host('a', ('v',), 5), host('b', ('v',), 5)]):
                weigher = cls()
                found = weigher.weigh_objects(
                    [types.SimpleNamespace(obj=item) for item in hosts], None)
                if (hosts[0].preemption.victims
                        and cls is preemption_weigher.PreemptionWeigher):
                    self.assertEqual([1, 1], found)
                else:
                    self.assertEqual([], found)

    @hypothesis.given(st.lists(st.tuples(
        st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)),
        min_size=2, max_size=6))
    def test_weights_equal_those_of_single_hosts(self, values):
        """They equal the weights that Nova computes host by host."""
        class Each:
            weigh_objects = nova_base.BaseWeigher.weigh_objects

        class Needs(Each, preemption_weigher.PreemptionWeigher):
            pass

        class Cost(preemption_weigher.PreemptionCostWeigher):
            def weigh_objects(self, weighed_obj_list, weight_properties):
                costs = [item.obj.preemption.cost_us
                         for item in weighed_obj_list]
                return [-sorted(set(costs)).index(cost) for cost in costs]

        def weights_of(weighers):
            hosts = [
                host(str(number), ('v',) * needs, cost,
                     free_ram_mb=ram_mb, aggregates=[types.SimpleNamespace(
                         metadata={'preemption_weight_multiplier':
                                   str(1000 * needs)})])
                for number, (needs, cost, ram_mb) in enumerate(values)]
            return [(item.obj.host, item.weight) for item in
                    nova_weights.HostWeightHandler().get_weighed_objects(
                        [*weighers, ram.RAMWeigher()], hosts, None)]

        self.assertEqual(
            weights_of([Needs(), Cost()]),
            weights_of([preemption_weigher.PreemptionWeigher(),
                        preemption_weigher.PreemptionCostWeigher()]))

    def test_host_with_room_before_free_victims(self):
        """003-d."""
        self.assertEqual(['b', 'a'], self.order(
            host('a', victims=('v',), free_ram_mb=10 ** 6), host('b')))

    def test_a_second_outweighs_all_the_ram(self):
        dearest = 64 * 3600 * 10 ** 6
        self.assertEqual(['b', 'a', 'c'], self.order(
            host('a', ('v',), 2_000_000, free_ram_mb=10 ** 6),
            host('b', ('v',), 1_000_000),
            host('c', ('v',), dearest, free_ram_mb=10 ** 7)))

    def test_ram_breaks_ties(self):
        self.assertEqual(['b', 'a'], self.order(
            host('a', ('v',), 1_000_000, free_ram_mb=1),
            host('b', ('v',), 1_000_000, free_ram_mb=2)))

    def test_failed_builds_outweigh_the_cost(self):
        self.assertEqual(['b', 'a'], self.order(
            host('a', ('v',), 0, failed_builds=1),
            host('b', ('v',), 10 ** 12)))

    def test_a_thousand_hosts_stay_in_order_of_cost(self):
        hosts = [host(f'{number:04}', ('v',), number, free_ram_mb=number)
                 for number in range(1000)]
        self.assertEqual([item.host for item in hosts],
                         self.order(*reversed(hosts)))

    def test_equal_weights_change_nothing(self):
        """003-g."""
        self.assertEqual(['a', 'b'], self.order(
            host('a', ('v',), 5), host('b', ('v',), 5)))

    def test_multiplier_of_an_aggregate(self):
        """A host whose aggregate does not mind preemption competes."""
        CONF.set_override('preemption_cost_weight_multiplier', 0.0,
                          'filter_scheduler')
        self.addCleanup(CONF.clear_override,
                        'preemption_cost_weight_multiplier',
                        'filter_scheduler')
        aggregate = types.SimpleNamespace(
            metadata={'preemption_weight_multiplier': '0'})
        self.assertEqual(['b', 'a'], self.order(
            host('a', ('v',), 5, free_ram_mb=2), host('b', free_ram_mb=1)))
        self.assertEqual(['a', 'b'], self.order(
            host('a', ('v',), 5, free_ram_mb=2, aggregates=[aggregate]),
            host('b', free_ram_mb=1)))
