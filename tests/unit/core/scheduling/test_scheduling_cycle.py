# SPDX-License-Identifier: Apache-2.0

"""Choice of a host and its victims."""

import dataclasses
import itertools
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.model import Request
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.core.scheduling import eviction_budgets
from nova_preempt.core.scheduling import plan_filtering
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.scheduling.scheduling_cycle import SchedulingCycle
from tests.unit.core.scheduling import world
from tests.unit.core.scheduling.world import NOW
from tests.unit.core.support import LAW

CAPACITY = {'VCPU': 8, 'MEMORY_MB': 64}


def spots(*found):
    """(uuid, cost, vCPUs) as World.add() wants them."""
    return {uuid: (cost, {'VCPU': vcpus}) for uuid, cost, vcpus in found}


class TestOrder(unittest.TestCase):

    def test_no_hosts(self):
        found = world.World()
        self.assertEqual([], found.considered({'VCPU': 1}))
        self.assertIsNone(found.placed({'VCPU': 1}))

    def test_the_cheapest_first(self):
        """The order is by cost, then name, then uuid."""
        found = world.World()
        used = {'VCPU': 4}
        found.add('d', CAPACITY, used, spots(('o', 2, 4)))
        found.add('c', CAPACITY, used, spots(('n', 2, 4)))
        found.add('a', CAPACITY, used, spots(('p', 1, 2), ('q', 1, 2)))
        found.add('e', CAPACITY, used, spots(('r', 1, 4)))
        self.assertEqual(
            [('e', 'r', 1), ('a', 'p q', 2), ('c', 'n', 2), ('d', 'o', 2)],
            found.considered({'VCPU': 4}))

    def test_why_not(self):
        found = world.World()
        found.add('a', {}, {}, {'x': (1, {'DISK_GB': 1})})
        found.add('b', {'VCPU': 1}, {}, spots(('y', 1, 1)))
        self.assertEqual(
            {'a': 'VCPU: 2 requested, the host has no inventory of it',
             'b': 'VCPU: 2 requested, 0 of 1 free and 1 held by preemptible '
                  'servers'}, found.refusals({'VCPU': 2}))

    def test_surplus_counts_requested_classes_only(self):
        """Memory is not requested and does not count."""
        found = world.World()
        found.add('h', CAPACITY, {'VCPU': 2}, {
            'a': (1, {'VCPU': 4, 'MEMORY_MB': 8}),
            'b': (1, {'VCPU': 2, 'MEMORY_MB': 40})})
        self.assertEqual([('h', 'b', 1)], found.considered({'VCPU': 2}))
        self.assertEqual([('h', 'a', 1)], found.considered(
            {'VCPU': 2, 'MEMORY_MB': 1}))

    def test_granular_groups_are_not_served(self):
        found = world.World()
        found.add('h', CAPACITY, {}, spots(('a', 1, 8)))
        groups = (*Request.of({'VCPU': 1}).groups,
                  *Request.of({'VGPU': 1}).groups)
        granular = Request((groups[0], type(groups[1])({'VGPU': 1}, '1')))
        cycle = SchedulingCycle(found.answers(), granular, found.policy, NOW)
        self.assertEqual([], cycle.order(found.offered(cycle)))


class TestVictims(unittest.TestCase):

    def test_a_preemptible_request_takes_free_hosts_only(self):
        """Also where hosts are always looked past preemptible servers."""
        found = world.World()
        found.set(always=True)
        found.add('h', CAPACITY, {'VCPU': 4}, spots(('a', 1, 4)))
        preemptible = preemption_policy.PREEMPTIBLE
        self.assertIsNone(found.placed({'VCPU': 2}, rank=preemptible))
        found.add('i', CAPACITY)
        self.assertEqual([('i', [])],
                         found.placed({'VCPU': 2}, rank=preemptible))

    def test_ineligible_servers_are_no_victims(self):
        """Protected servers, ending servers, and servers before their minimum.
        """
        found = world.World()
        found.add('h', CAPACITY, {}, spots(
            ('a', 1, 2), ('b', 2, 2), ('c', 3, 2), ('d', 4, 2)))
        servers = found.hosts['uuid of h'].servers
        servers['c'] = world.server('c', 'h', minimum_runtime_s=7201)
        self.assertEqual(
            [('h', 'b', 2)], found.considered({'VCPU': 2}, excluded=['a']))
        cycle = found.cycle({'VCPU': 2}, excluded=['a'])
        cycle.cloud.ending = lambda: ['b']
        cycle.order(found.offered(cycle))
        self.assertEqual(['d'], world.uuids(
            cycle.plan_of('uuid of h').victims))

    def test_filters_see_the_host_without_the_victims(self):
        """The filter allows two servers, so both cheapest must end."""
        found = world.World(passes=lambda host, without: len(
            host.allocations) - len(without) < 2)
        found.add('h', {'VCPU': 80}, {}, spots(
            ('a', 1, 1), ('b', 2, 1), ('c', 3, 1)))
        self.assertEqual([('h', 'a b', 3)], found.considered({'VCPU': 1}))
        self.assertEqual([('h', ['a', 'b'])], found.placed({'VCPU': 1}))

    def test_no_victim_if_the_filters_refuse_an_empty_host(self):
        found = world.World(passes=lambda host, without: False)
        found.add('h', CAPACITY, {}, spots(('a', 1, 8)))
        self.assertIsNone(found.placed({'VCPU': 1}))

    def test_budgets(self):
        for ending, expected in (({}, [('i', ['c'])]), ({'x': 'p'}, None)):
            found = world.World()
            found.add('h', CAPACITY, {}, spots(('a', 1, 4), ('b', 1, 4)))
            found.add('i', CAPACITY, {}, spots(('c', 9, 8)))
            found.budget = eviction_budgets.EvictionBudgets(1, 0, ending, {})
            self.assertEqual(expected, found.placed({'VCPU': 8}))

    def test_budgets_hold_for_all_servers_of_a_request(self):
        found = world.World()
        ending = {}
        for name in 'hij':
            found.add(name, CAPACITY, {}, spots((f'on {name}', 1, 8)))

        class Answers(type(found.answers())):
            def budgets(self):
                return eviction_budgets.EvictionBudgets(2, 0, dict(ending), {})

        found.answers = lambda objection='': Answers(found, objection)
        claim = found.hosts['uuid of h'].__class__.remove

        def remove(host, uuid):
            ending[uuid] = 'p'
            claim(host, uuid)

        for host in found.hosts.values():
            host.remove = remove.__get__(host)
        self.assertIsNone(found.placed({'VCPU': 8}, 'n1', 'n2', 'n3'))
        ending.clear()
        self.assertEqual(2, len(found.placed({'VCPU': 8}, 'n1', 'n2')))


class TestSeveral(unittest.TestCase):

    def test_several_servers_use_one_or_many_hosts(self):
        found = world.World()
        found.add('h', CAPACITY, {'VCPU': 4}, spots(('a', 1, 2), ('b', 3, 2)))
        found.add('i', CAPACITY, {'VCPU': 4}, spots(('c', 2, 4)))
        found.add('j', CAPACITY, {'VCPU': 6})
        self.assertEqual(
            [('j', []), ('h', ['a']), ('i', ['c']), ('h', ['b'])],
            found.placed({'VCPU': 2}, *'1234'))
        # What c has freed beyond that is for the next request.
        self.assertEqual([('i', [])], found.placed({'VCPU': 2}))

    def test_several_servers_are_placed_together_or_not_at_all(self):
        found = world.World()
        found.add('h', CAPACITY, {}, spots(('a', 1, 8)))
        self.assertIsNone(found.placed({'VCPU': 8}, '1', '2'))
        self.assertEqual({'a': {'VCPU': 8}},
                         found.hosts['uuid of h'].allocations)
        self.assertIn('a', found.hosts['uuid of h'].servers)


class TestConfirm(unittest.TestCase):
    """A host of 8 vCPUs, full, with preemptible servers v1 and v2."""

    def setUp(self):
        self.world = world.World()
        self.world.add('h', {'VCPU': 4}, {},
                       spots(('v1', 10, 2), ('v2', 20, 2)))
        self.host = self.world.hosts['uuid of h']
        self.reads = 0
        self.cycle = self.world.cycle({'VCPU': 2})
        self.cloud = self.cycle.cloud
        read = self.cloud.read

        def count(host):
            self.reads += 1
            return read(host)

        self.cloud.read = count

    def confirm(self, meanwhile=lambda: None):
        """Return the victims of the confirmed plan, None without one."""
        self.cycle.order(self.world.offered(self.cycle))
        meanwhile()
        plan = self.cycle.confirm('uuid of h')
        return plan and world.uuids(plan.victims)

    def test_the_single_cheapest_victim_needs_no_reading(self):
        self.assertEqual(['v1'], self.confirm())
        self.assertEqual(0, self.reads)

    def test_an_old_memory_of_space_reads_the_host_again(self):
        self.cloud.room_age_s = lambda: plan_filtering.LATEST_S + 1
        self.assertEqual(['v1'], self.confirm())
        self.assertEqual(1, self.reads)

    def test_an_equal_cost_reads_the_host_again(self):
        self.world.costs['v2'] = 10
        self.assertEqual(['v1'], self.confirm())
        self.assertEqual(1, self.reads)

    def test_budgets_read_the_host_again(self):
        self.world.budget = eviction_budgets.EvictionBudgets(5, 0, {}, {})
        self.assertEqual(['v1'], self.confirm())
        self.assertEqual(1, self.reads)

    def test_a_changed_victim_is_replaced(self):
        def meanwhile():
            self.host.servers = {**self.host.servers, 'v1': world.server(
                'v1', 'h', task_state='resize_prep')}

        self.assertEqual(['v2'], self.confirm(meanwhile))
        self.assertEqual(1, self.reads)

    def test_new_free_space_refuses_the_plan(self):
        """A new decision needs no victims."""
        self.cloud.room_age_s = lambda: plan_filtering.LATEST_S + 1
        self.assertIsNone(self.confirm(lambda: self.host.remove('v2')))

    def test_a_deleted_host_refuses_the_plan(self):
        self.cloud.room_age_s = lambda: plan_filtering.LATEST_S + 1
        self.assertIsNone(self.confirm(self.world.hosts.clear))

    def test_dearer_than_the_next_best(self):
        self.world.add('i', {'VCPU': 4}, {}, spots(('w', 15, 4)))
        self.cycle = self.world.cycle({'VCPU': 2})
        self.cycle.cloud.room_age_s = lambda: plan_filtering.LATEST_S + 1
        self.world.set(always=True)

        def meanwhile():
            self.host.servers = {**self.host.servers, 'v1': world.server(
                'v1', 'h', task_state='resize_prep')}

        self.assertIsNone(self.confirm(meanwhile))

    def test_the_filters_have_changed_their_mind(self):
        self.cloud.room_age_s = lambda: plan_filtering.LATEST_S + 1

        def meanwhile():
            self.world.passes = lambda host, without: 'v2' in world.uuids(
                without)

        self.assertEqual(['v2'], self.confirm(meanwhile))


class TestOldList(unittest.TestCase):
    """An old list of hosts neither refuses a request nor evicts a server."""

    def setUp(self):
        self.world = world.World()
        self.world.add('h', CAPACITY, {}, spots(('a', 1, 8)))
        self.world.add('i', CAPACITY, {}, spots(('b', 2, 8)))
        self.cycle = self.world.cycle({'VCPU': 2}, list_age_s=60)
        self.cloud = self.cycle.cloud
        self.ages_s = []
        self.unlisted = set()     # uuids of those that the old list lacks
        listed = self.cloud.listed

        def note(max_age_s):
            self.ages_s.append(max_age_s)
            return [item for item in listed(max_age_s)
                    if not max_age_s or item.uuid not in self.unlisted]

        self.cloud.listed = note

    def order(self):
        return self.cycle.order(self.world.offered(self.cycle))

    def test_an_old_list_is_used_first(self):
        self.assertEqual(['uuid of h', 'uuid of i'], self.order())
        self.assertEqual([60], self.ages_s)

    def test_the_list_is_read_again_before_a_refusal(self):
        self.unlisted = {'uuid of h', 'uuid of i'}
        self.assertEqual(['uuid of h', 'uuid of i'], self.order())
        self.assertEqual([60, 0], self.ages_s)

    def test_the_list_is_read_again_if_no_listed_host_passes(self):
        self.unlisted = {'uuid of h'}
        self.world.passes = lambda host, without: host.name == 'h'
        self.assertEqual(['uuid of h'], self.order())
        self.assertEqual([60, 0], self.ages_s)

    def test_a_host_that_was_not_full_then_is_read_again(self):
        """The only host that Placement finds is refused by the filters."""
        self.world.add('down', CAPACITY)
        self.world.passes = lambda host, without: host.name != 'down'
        self.world.begin(self.cycle)
        listed = self.cloud.listed
        self.cloud.listed = lambda max_age_s: [
            dataclasses.replace(item, providers=tuple(
                dataclasses.replace(each, allocations={})
                for each in item.providers), fresh=True)
            for item in listed(max_age_s)]
        self.assertEqual(['uuid of h', 'uuid of i'], self.order())
        self.assertEqual(['a'], [server.uuid for server in (
            self.cycle.plan_of('uuid of h').victims)])

    def test_refused_once_it_is_new(self):
        self.world.passes = lambda host, without: False
        self.assertEqual([], self.order())
        self.assertEqual([60, 0], self.ages_s)

    def test_the_host_may_not_serve_it_any_more(self):
        self.order()
        self.cloud.list_again = lambda host, max_age_s: None
        self.assertIsNone(self.cycle.confirm('uuid of h'))

    def test_the_host_has_changed(self):
        self.order()
        self.world.hosts['uuid of h'].remove('a')
        self.world.hosts['uuid of h'].add('normal', {'VCPU': 8})
        list_again = self.cloud.list_again
        self.cloud.list_again = lambda *args: dataclasses.replace(
            list_again(*args), fresh=False)
        self.assertIsNone(self.cycle.confirm('uuid of h'))

    def test_a_failed_reading_of_the_list_refuses_the_host(self):
        def unanswered(host, max_age_s):
            raise cloud_view.Unanswered('nobody is there')

        self.order()
        self.cloud.list_again = unanswered
        self.assertIsNone(self.cycle.confirm('uuid of h'))
        self.assertEqual('nobody is there', self.cycle.silent.reason)
        # Others are still there.
        self.assertEqual('', self.cycle.refusal)


class TestObjection(unittest.TestCase):

    def test_an_objection_is_read_only_before_evictions(self):
        found = world.World()
        found.add('h', CAPACITY, {}, spots(('a', 1, 7)))
        asked = []
        cycle = found.cycle({'VCPU': 1})
        cycle.cloud.objection = lambda: asked.append(1) or 'not for it'
        self.assertEqual(['uuid of h'], cycle.order(found.offered(cycle)))
        self.assertEqual([], asked)
        cycle = found.cycle({'VCPU': 2})
        cycle.cloud.objection = lambda: asked.append(1) or 'not for it'
        self.assertEqual([], cycle.order(found.offered(cycle)))
        self.assertEqual([1], asked)
        self.assertEqual('not for it', cycle.refusal)


# -- the exhaustive search, which shares no code with the core --------------

@st.composite
def clouds(draw):
    """[(vCPUs, memory used, normal vCPUs, [(cost, vCPUs)], most servers)]."""
    return [
        (draw(st.integers(1, 8)), draw(st.integers(0, 4)),
         draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)),
                       max_size=4)),
         draw(st.integers(1, 5)))
        for _ in range(draw(st.integers(0, 6)))]


def exhaustive(hosts, vcpus):
    """{name of a host: the least cost at which it can serve}."""
    found = {}
    for number, (capacity, normal, servers, most) in enumerate(hosts):
        costs = []
        for size in range(len(servers) + 1):
            for left in itertools.combinations(servers, size):
                used = normal + sum(amount for _, amount in left)
                count = bool(normal) + sum(1 for _, n in left if n)
                if used + vcpus <= capacity and count < most:
                    costs.append(sum(cost for cost, amount in servers
                                     if amount)
                                 - sum(cost for cost, amount in left
                                       if amount))
        if costs:
            found[str(number)] = min(costs)
    return found


def build(hosts, order=None):
    """Return the case as a World, without empty servers."""
    most = {}
    found = world.World(passes=lambda host, without: len(
        host.allocations) - len(without) < most[host.name])
    for number in order or range(len(hosts)):
        capacity, normal, servers, limit = hosts[number]
        most[str(number)] = limit
        found.add(str(number), {'VCPU': capacity},
                  {'VCPU': normal} if normal else {},
                  spots(*((f'{number}-{nth}', cost, amount)
                          for nth, (cost, amount) in enumerate(servers)
                          if amount)))
    return found


class TestLaws(unittest.TestCase):

    @LAW
    @hypothesis.given(clouds(), st.integers(1, 6), st.integers(1, 3),
                      st.booleans(), st.data())
    def test_the_chosen_set_is_the_cheapest(self, hosts, vcpus, first_batch,
                                            always, data):
        """For any size of the first batch and any order of hosts."""
        expected = exhaustive(hosts, vcpus)
        order = data.draw(st.permutations(range(len(hosts))))
        found = build(hosts, order)
        found.set(first_batch=first_batch, always=always)
        placed = found.placed({'VCPU': vcpus})
        if not expected:
            self.assertIsNone(placed)
            return
        ((name, victims),) = placed
        self.assertEqual(min(expected.values()),
                         sum(found.costs[uuid] for uuid in victims))
        self.assertEqual(expected[name],
                         sum(found.costs[uuid] for uuid in victims))
        # Nobody could have been spared.
        host = found.hosts[f'uuid of {name}']
        self.assertLessEqual(host.providers[0].used['VCPU'],
                             host.inventories['VCPU'].capacity)
        again = build(hosts)
        again.set(first_batch=first_batch, always=always)
        self.assertEqual(placed, again.placed({'VCPU': vcpus}))

    @LAW
    @hypothesis.given(clouds(), st.integers(1, 6))
    def test_all_hosts_are_recorded_as_considered(self, hosts, vcpus):
        # Where some pass as they are, those that do not are not looked at.
        hosts = [(*host[:3], 9) for host in hosts]
        self.assertEqual(exhaustive(hosts, vcpus), {
            name: cost for name, _, cost
            in build(hosts).considered({'VCPU': vcpus})})


class TestRoom(unittest.TestCase):
    """Tests of hosts with free space for several servers."""

    def setUp(self):
        self.cycle = world.World().cycle({'VCPU': 2, 'MEMORY_MB': 512})
        self.cycle.found_room({'a': {'VCPU': 4, 'MEMORY_MB': 1024}})

        self.cycle.cloud.order = lambda trials, index: [
            trial.host for trial in trials]

    def hosts(self):
        return self.cycle.order([(host, host) for host in 'abc'])

    def test_a_host_with_space_is_used_until_it_is_full(self):
        for _ in range(2):
            self.assertEqual(['a'], self.hosts())
            self.cycle.claimed('a')
        self.assertEqual([], self.hosts())
        self.assertIn('a', self.cycle.room, 'it had some when it was asked')

    def test_a_host_that_is_not_known(self):
        self.hosts()
        self.cycle.claimed('b')
        self.assertEqual(['a'], list(self.cycle.room))
        self.assertEqual(['a'], self.hosts())

    def test_classes_that_were_not_told(self):
        """Placement has looked at them."""
        self.cycle.found_room({'b': {'VCPU': 2}})
        self.assertEqual(['a', 'b'], self.hosts())

    def test_space_of_another_form_counts_only_for_new_hosts(self):
        """It does not change the space of known hosts."""
        self.cycle.batches.plans['c'] = None
        self.cycle.found_room({'a': {'VCPU': 1}, 'b': {'VCPU': 1},
                               'c': {'VCPU': 1}}, {'VCPU': 1})
        self.assertEqual(['a', 'b'], list(self.cycle.room))
        self.assertEqual(['a', 'b'], self.hosts())
        self.cycle.claimed('b')
        self.assertEqual(['a'], self.hosts())
