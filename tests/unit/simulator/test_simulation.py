# SPDX-License-Identifier: Apache-2.0
"""Tests of simulations of small clouds."""

import itertools
import random
import unittest
from unittest import mock

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.model import SECOND
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.simulator import delays
from nova_preempt.simulator import indexed_cloud
from nova_preempt.simulator import simulation as run
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator.traces import generator
from nova_preempt.simulator.traces import trace_model
from tests.unit.simulator import small
from tests.unit.simulator.small import boot
from tests.unit.simulator.small import end


class TestSimulation(unittest.TestCase):

    maxDiff = None

    def happens(self, expected, *trace, terms=None, hosts=1, until_s=10_000,
                **options):
        found, summary, simulation = small.simulated(
            small.cloud(hosts, terms=terms), small.options(**options),
            *trace, until_s=until_s)
        self.assertEqual(expected, found)
        return summary, simulation

    def test_boots_and_ends(self):
        summary, _ = self.happens(
            ['0 placed a', '10 active a', '20 placed b', '30 active b',
             '110 finished a', '500 ended b'],
            boot(0, 'a', 2, for_s=100), boot(20, 'b', 2), end(500, 'b'),
            end(501, 'nobody'), until_s=1000)
        # 2 * 110 + 2 * 480 of 4 * 1000
        self.assertEqual(0.295, summary['used']['normal']['VCPU'])
        self.assertEqual(0, summary['used']['preemptible']['VCPU'])
        self.assertEqual(
            {'asked': 2, 'placed': 2, 'active': 2, 'finished': 1, 'ended': 1,
             'lost_s': 0, 'wait_s': {'mean': 10, 'median': 10, '95 %': 10,
                                     'most': 10}},
            summary['classes']['normal'])

    def test_a_full_cloud(self):
        self.happens(
            ['0 placed a', '1 refused b', '2 refused spot', '10 active a',
             '30 ended a', '30 placed c', '40 active c'],
            boot(0, 'a', 4), boot(1, 'b', 1), boot(2, 'spot', 1, spot=True),
            end(30, 'a'), boot(30, 'c', 1))

    def test_victims_get_their_notice(self):
        summary, _ = self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '132 deleted spot', '142 active a'],
            boot(0, 'spot', 3, spot=True), boot(100, 'a', 2))
        self.assertEqual(42, summary['classes']['normal']['wait_s']['most'])
        # It was active from 10 to 130.
        self.assertEqual(120, summary['classes']['preemptible']['lost_s'])
        self.assertEqual({'preemptions': 1, 'cost_us': 90_000_000},
                         summary['decisions'])

    def test_extra_specs_of_a_flavor_count(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '107 stopped spot', '117 active a'],
            boot(0, 'spot', 3, spot=True), boot(100, 'a', 2), until_s=5000,
            terms=simulation_settings.PreemptibleTerms(notice_s=4,
                                                       action='stop'))

    def test_stopped_ones_keep_their_disk_for_a_while(self):
        spot = trace_model.Boot(0, 'spot', {'VCPU': 4, 'MEMORY_MB': 1,
                                            'DISK_GB': 80}, '', 'preemptible')
        large = trace_model.Boot(200 * SECOND, 'large', {'DISK_GB': 30})
        again = trace_model.Boot(2000 * SECOND, 'again', {'DISK_GB': 30})
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '133 stopped spot', '143 active a',
             '200 refused large', '633 deleted spot', '2000 placed again',
             '2010 active again'],
            spot, boot(100, 'a', 2), large, again, until_s=5000,
            terms=simulation_settings.PreemptibleTerms(action='stop'),
            stop_retention_s=500)

    def test_stopped_ones_may_be_deleted_by_their_owners(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '133 stopped spot', '143 active a',
             '300 ended spot'],
            trace_model.Boot(0, 'spot', {'VCPU': 4, 'DISK_GB': 80}, '',
                             'preemptible'),
            boot(100, 'a', 2), end(300, 'spot'),
            terms=simulation_settings.PreemptibleTerms(action='stop'),
            stop_retention_s=500)

    def test_a_promise_is_kept(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 refused a',
             '610 notice spot', '610 preempted b', '642 deleted spot',
             '652 active b'],
            boot(0, 'spot', 4, spot=True), boot(100, 'a'), boot(610, 'b'),
            rules=eligibility.Rules(minimum_runtime_s=600))

    def test_a_server_that_is_being_built_does_not_end(self):
        self.happens(
            ['0 placed spot', '5 refused a', '10 active spot'],
            boot(0, 'spot', 4, spot=True), boot(5, 'a'))

    def test_maximum_run_time(self):
        self.happens(
            ['0 placed spot', '10 active spot', '3610 expired spot',
             '3610 notice spot', '3642 deleted spot'],
            boot(0, 'spot', 4, spot=True), maximum_runtime_s=3600)

    def test_the_flavors_maximum_counts(self):
        self.happens(
            ['0 placed spot', '10 active spot', '60 expired spot',
             '60 notice spot', '95 shelved spot'],
            boot(0, 'spot', 4, spot=True), maximum_runtime_s=3600,
            terms=simulation_settings.PreemptibleTerms(maximum_runtime_s=50,
                                                       action='shelve',
                                                       restore=True))

    def test_the_maximum_run_time_applies_to_kept_servers(self):
        for ended_s, over_s in ((3605, 3610), (3620, 3620)):
            self.happens(
                ['0 placed spot', '10 active spot', '3600 notice spot',
                 '3600 preempted a', f'{ended_s} ended a',
                 f'{ended_s} kept spot', f'{over_s} expired spot',
                 f'{over_s} notice spot', f'{over_s + 32} deleted spot'],
                boot(0, 'spot', 4, spot=True), boot(3600, 'a', 4),
                end(ended_s, 'a'), maximum_runtime_s=3600)

    def test_shelved_ones_come_back_and_run_on(self):
        summary, _ = self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '135 shelved spot', '145 active a',
             '195 finished a', '220 back spot', '300 finished spot'],
            boot(0, 'spot', 4, spot=True, for_s=200), boot(100, 'a', 1,
                                                           for_s=50),
            terms=simulation_settings.PreemptibleTerms(action='shelve',
                                                       restore=True))
        # It had run for 120 of its 200 s.
        self.assertEqual(0, summary['classes']['preemptible']['lost_s'])

    def test_not_without_room(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '135 shelved spot', '145 active a',
             '1140 left spot', '2000 ended spot'],
            boot(0, 'spot', 4, spot=True), boot(100, 'a', 1),
            end(2000, 'spot'), restore_timeout_s=1000,
            terms=simulation_settings.PreemptibleTerms(action='shelve',
                                                       restore=True))

    def test_shelved_ones_may_be_deleted_by_their_owners(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '135 shelved spot', '140 ended spot',
             '145 active a', '150 ended a'],
            boot(0, 'spot', 4, spot=True), boot(100, 'a', 1),
            end(140, 'spot'), end(150, 'a'),
            terms=simulation_settings.PreemptibleTerms(action='shelve',
                                                       restore=True))

    def test_not_all_at_once(self):
        terms = simulation_settings.PreemptibleTerms(action='shelve',
                                                     restore=True)
        self.happens(
            ['0 placed one', '0 placed two', '10 active one',
             '10 active two', '100 notice one', '100 notice two',
             '100 preempted a', '135 shelved one', '135 shelved two',
             '145 active a', '195 finished a', '220 back one',
             '240 back two'],
            boot(0, 'one', 2, spot=True), boot(0, 'two', 2, spot=True),
            boot(100, 'a', 4, for_s=50), terms=terms, restore_at_once=1)

    def test_no_victim_ends_before_the_longest_notice(self):
        found, _summary, _simulation = small.simulated(
            small.cloud(
                1, classes={
                    'preemptible': simulation_settings.PreemptibleTerms(),
                    'soon': simulation_settings.PreemptibleTerms(notice_s=0)}),
            small.options(), boot(0, 'late', 2, spot=True),
            trace_model.Boot(0, 'soon', {'VCPU': 2}, '', 'soon'),
            boot(100, 'a', 4))
        self.assertEqual(
            ['100 notice late', '100 notice soon', '100 preempted a',
             '132 deleted late', '132 deleted soon', '142 active a'],
            found[4:])

    def test_owners_may_be_faster(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '120 ended spot', '130 active a'],
            boot(0, 'spot', 4, spot=True), boot(100, 'a', 1),
            end(120, 'spot'))

    def test_a_victim_finishes_its_work_within_its_notice(self):
        summary, _ = self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '110 finished spot', '120 active a'],
            boot(0, 'spot', 4, spot=True, for_s=100), boot(100, 'a', 1))
        self.assertEqual(0, summary['classes']['preemptible']['lost_s'])

    def test_a_victim_is_deleted_while_it_ends(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '131 ended spot', '145 active a'],
            boot(0, 'spot', 4, spot=True), boot(100, 'a', 1),
            end(131, 'spot'), end(133, 'spot'),
            terms=simulation_settings.PreemptibleTerms(action='shelve',
                                                       restore=True))

    def test_a_deleted_server_spares_its_victims(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '120 ended a', '120 kept spot',
             '500 finished spot'],
            boot(0, 'spot', 4, spot=True, for_s=490), boot(100, 'a', 3),
            end(120, 'a'))

    def test_a_spared_victim_gets_another_notice_later(self):
        """And whoever it gives way to then is there."""
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '110 ended a', '110 kept spot',
             '120 notice spot', '120 preempted b', '152 deleted spot',
             '162 active b'],
            boot(0, 'spot', 4, spot=True), boot(100, 'a', 4), end(110, 'a'),
            boot(120, 'b', 4))

    def test_smaller_requests_join_evictions(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '110 joined b', '132 deleted spot',
             '132 placed b', '142 active a', '142 active b'],
            boot(0, 'spot', 4, spot=True), boot(100, 'a', 1),
            boot(110, 'b', 1))

    def test_a_joined_server_may_be_deleted(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '110 joined b', '120 ended b',
             '132 deleted spot', '142 active a'],
            boot(0, 'spot', 4, spot=True), boot(100, 'a', 1),
            boot(110, 'b', 1), end(120, 'b'))

    def test_no_more_wait_than_may(self):
        self.happens(
            ['0 placed one', '0 placed two', '10 active one',
             '10 active two', '100 notice one', '100 preempted a',
             '101 refused b', '132 deleted one', '142 active a'],
            boot(0, 'one', 4, spot=True), boot(0, 'two', 4, spot=True),
            boot(100, 'a', 3), boot(101, 'b', 3), hosts=2,
            max_waiting_requests=1)

    def test_victims_that_do_not_end_in_time(self):
        slow = small.cloud(2, terms=simulation_settings.PreemptibleTerms(),
                           delays=delays.Delays(
                               **{**{name: getattr(small.DELAYS, name)
                                     for name in (
                                         'boot', 'shelve', 'stop',
                                         'unshelve')},
                                  'delete': delays.Delay(
                                            'constant:500')}))
        found, summary, simulation = small.simulated(
            slow, small.options(max_attempts=2),
            boot(0, 'one', 4, spot=True), boot(1, 'two', 4, spot=True),
            boot(100, 'a', 2), until_s=2000)
        self.assertEqual(
            ['0 placed one', '1 placed two', '10 active one',
             '11 active two', '100 notice two', '100 preempted a',
             '250 notice one', '250 preempted a', '400 refused a',
             '630 deleted two', '780 deleted one'], found)
        self.assertEqual(2, summary['decisions']['given_up'])
        self.assert_empty(simulation)

    def test_budgets(self):
        self.happens(
            ['0 placed one', '0 placed two', '10 active one',
             '10 active two', '100 notice one', '100 preempted a',
             '101 refused b', '132 deleted one', '142 active a',
             '200 notice two', '200 preempted c', '232 deleted two',
             '242 active c'],
            boot(0, 'one', 4, spot=True, project='p'),
            boot(0, 'two', 4, spot=True, project='p'), boot(100, 'a', 4),
            boot(101, 'b', 4), boot(200, 'c', 4), hosts=2, project_budget=1)

    def test_preemption_may_be_off(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 refused a'],
            boot(0, 'spot', 4, spot=True), boot(100, 'a'), enabled=False)

    def test_without_notice(self):
        self.happens(
            ['0 placed spot', '10 active spot', '100 notice spot',
             '100 preempted a', '102 deleted spot', '112 active a'],
            boot(0, 'spot', 4, spot=True), boot(100, 'a'),
            notice=NoticeRule(0))

    def test_spread_or_packed(self):
        for spread, expected in ((True, ['h-1', 'h-2']),
                                 (False, ['h-1', 'h-1'])):
            simulation = run.Simulation(small.cloud(2, spread=spread),
                                        small.options())
            simulation.run([boot(0, 'a'), boot(1, 'b')])
            self.assertEqual(expected, [
                simulation._world.servers[uuid].host.name for uuid in 'ab'])

    def test_flavors(self):
        setup = small.cloud(flavors={
            'plain': simulation_settings.Flavor({'VCPU': 1}),
            'spot': simulation_settings.Flavor(
                {'VCPU': 4},
                simulation_settings.PreemptibleTerms(notice_s=1))})
        found, _, _ = small.simulated(
            setup, small.options(),
            trace_model.Boot(0, 'spot', None, 'spot'),
            trace_model.Boot(100 * SECOND, 'a', None, 'plain'))
        self.assertEqual('103 deleted spot', found[-2])

    def test_unknown_flavor(self):
        with self.assertRaisesRegex(run.SimulationError, "flavor 'x'"):
            small.simulated(small.cloud(), small.options(),
                            trace_model.Boot(0, 'a', None, 'x'))

    def test_asked_for_twice(self):
        with self.assertRaisesRegex(run.SimulationError, 'id that is in use'):
            small.simulated(small.cloud(), small.options(), boot(0, 'a'),
                            boot(1, 'a'))

    def assert_empty(self, simulation):
        state = simulation._world
        self.assertEqual({}, state.servers)
        for host in state.cloud.hosts.values():
            self.assertEqual({}, host.allocations)
            self.assertEqual({}, host.servers)


class TestLaws(unittest.TestCase):
    """No host is ever overcommitted."""

    def test_random_loads(self):
        for seed in range(6):
            with self.subTest(seed):
                self.run_one(seed)

    def run_one(self, seed):
        chance = random.Random(seed)
        terms = simulation_settings.PreemptibleTerms(
            action=chance.choice(('delete', 'shelve', 'stop')),
            restore=chance.random() < 0.7,
            notice_s=chance.choice((0, 30, None)),
            maximum_runtime_s=chance.choice((None, 900)))
        setup = small.cloud(3, 8, terms=terms, delays=delays.Delays(
            shelve=delays.Delay('exponential:60'),
            delete=delays.Delay('uniform:0,200')))
        policy = small.options(
            interval_s=10, restore_at_once=2, termination_timeout_s=100,
            stop_retention_s=600, project_budget=chance.choice((0, 2)))
        simulation = run.Simulation(setup, policy, seed)
        trace = list(generator.generate(generator.Load(3, 60, parts=(
            generator.LoadPart('normal', 1, 900, 1.0),
            generator.LoadPart('preemptible', 1, 1800, 1.0))), seed))
        ends = [trace_model.End(item.at_us
                                + chance.randrange(1, 3600 * SECOND),
                                item.id) for item in trace
                if chance.random() < 0.3]
        events = sorted([*trace, *ends], key=lambda event: event.at_us)
        for event in events:
            simulation.run([event])
            self.check(simulation._world)
        simulation.run([trace_model.End(event.at_us + 10**6 * SECOND, each)
                        for each in list(simulation._world.servers)])
        simulation.run([], 3 * 10**12)
        state = simulation._world
        self.check(state)
        self.assertEqual({}, state.servers)
        self.assertFalse(any(host.allocations
                             for host in state.cloud.hosts.values()))
        asked = sum(each['asked'] for each in state.report.counts.values())
        self.assertEqual(len(trace), asked)

    def check(self, state):
        cloud = state.cloud
        for number, host in enumerate(cloud._in_order):
            provider = host.providers[0]
            for name, row in cloud._row.items():
                free = provider.free(name)
                self.assertGreaterEqual(free, 0)
                self.assertEqual(free, cloud._free[row, number])
                held = sum(host.allocations[uuid].get(name, 0)
                           for uuid in host.servers)
                self.assertEqual(free + held, cloud._at_best[row, number])
            self.assertLessEqual(host.servers.keys(),
                                 host.allocations.keys())


class TestSeeds(unittest.TestCase):

    def test_same_seed_same_events(self):
        trace = list(generator.generate(generator.Load(
            2, 60, parts=(generator.LoadPart('normal'),
                          generator.LoadPart('preemptible'))), 7))
        setup = small.cloud(3, 8, delays=delays.Delays())

        def run_one(seed):
            return small.simulated(setup, small.options(), *trace,
                                   seed=seed)[:2]

        self.assertEqual(run_one(1), run_one(1))
        self.assertNotEqual(run_one(1)[0], run_one(2)[0])


class TestIndex(unittest.TestCase):
    """Neither the selection nor the order of hosts changes a decision."""

    def test_all_hosts_in_any_order(self):
        preemptions = joins = 0
        for seed, cost in itertools.product(range(2), (
                costs.partial_hour, costs.count, costs.youngest_first,
                costs.oldest_first)):
            trace = list(generator.generate(generator.Load(1, 1200, parts=(
                generator.LoadPart('normal', 5, 900, 1.0, {'small': 1}),
                generator.LoadPart('preemptible', 1, 6000, 1.0,
                                   {'large': 1}))), seed))
            setup = small.cloud(30, 8, delays=delays.Delays(), terms=(
                simulation_settings.PreemptibleTerms(minimum_runtime_s=200,
                                                     action='shelve',
                                                     restore=True)))
            policy = small.options(cost=cost, project_budget=30 * seed,
                                   first_batch=1, notice=NoticeRule(200))
            found = small.simulated(setup, policy, *trace, until_s=3600)
            with mock.patch.object(indexed_cloud.IndexedCloud, 'candidates',
                                   _all_hosts):
                expected = small.simulated(setup, policy, *trace,
                                           until_s=3600)
            self.assertEqual(expected[:2], found[:2])
            preemptions += found[1]['decisions']['preemptions']
            joins += found[1]['classes']['normal'].get('joined', 0)
        self.assertGreater(preemptions, 40)
        self.assertGreater(joins, 100)


def _all_hosts(self, request, policy, now_us, releasing=(), where=None):
    found = [host.listing for host in self.hosts.values() if host.servers]
    random.Random(now_us).shuffle(found)
    return found
