# SPDX-License-Identifier: Apache-2.0
"""Plans come in the same order, whatever earlier requests have left."""

import dataclasses
import datetime
import unittest
from unittest import mock

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.classes import class_dispatch
from nova_preempt.core.classes import promised_availability
from nova_preempt.core.classes import server_clocks
from nova_preempt.core.costs import CostOptions
from nova_preempt.core.model import SECOND, Inventory, Request
from nova_preempt.core.scheduling import cost_bound_cache
from nova_preempt.core.scheduling import cost_bounds
from nova_preempt.core.scheduling import plan_search
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.times import microseconds
from nova_preempt.simulator import memory_cloud
from tests.unit.core.classes.support import CLASSES
from tests.unit.core.scheduling import world
from tests.unit.core.support import LAW

HOSTS = 4
SECONDS = st.integers(0, 7200)

#: (which host, its vCPUs, its memory, seconds since its launch, for how long
#: it was promised to run)
SPOTS = st.tuples(
    st.integers(0, HOSTS - 1), st.integers(1, 4), st.integers(1, 4), SECONDS,
    st.sampled_from((0, 0, 1800)))

STEPS = st.one_of(
    st.tuples(st.just('come'), SPOTS),
    st.tuples(st.just('leave'), st.integers(0, 99)),
    # Clocks are set back, too.
    st.tuples(st.just('wait'), st.integers(-60, 4000)),
    st.tuples(st.just('ask'), st.tuples(
        st.integers(1, 4), st.integers(0, 4), st.integers(0, 9))))


class FullPass(cost_bound_cache.CostBoundCache):
    """A cache without cost bounds: each pass reads all hosts."""

    def floors(self, request, policy, rank):
        return None


CLASS = st.sampled_from(('', 'gold', 'silver', 'bronze'))

#: What happens to a server, which one, and how many seconds ago.
EVENT = st.tuples(st.sampled_from((server_clocks.Kind.EVICTED,
                                   server_clocks.Kind.QUEUED,
                                   server_clocks.Kind.RUNNING)),
                  st.integers(0, 99), st.integers(0, 300))

#: Steps in a cloud with classes; waits are such as floors hold or end in.
STEPS_WITH_CLASSES = st.one_of(
    st.tuples(st.just('wait'), st.integers(-60, 1000)),
    st.tuples(st.just('happens'), EVENT),
    st.tuples(st.just('claim'), st.tuples(
        st.sampled_from((2, 8)), CLASS, st.integers(0, 4000))))


class Cloud(memory_cloud.MemoryCloud):
    """Hosts of 8 vCPUs, and the time."""

    def __init__(self):
        super().__init__(
            memory_cloud.MemoryHost(f'uuid {number}', f'host {number}', {
                'VCPU': Inventory(8), 'MEMORY_MB': Inventory(8)})
            for number in range(HOSTS))
        self.now = world.NOW
        self.serial = 0
        self.claimants = {}

    def come(self, spot):
        number, vcpus, memory_mb, age_s, minimum_s = spot
        host = self.hosts[f'uuid {number}']
        root = host.providers[0]
        if root.free('VCPU') < vcpus or root.free('MEMORY_MB') < memory_mb:
            return
        self.serial += 1
        uuid = f'spot {self.serial:03}'
        host.add(uuid, {'VCPU': vcpus, 'MEMORY_MB': memory_mb}, world.server(
            uuid, host.name, minimum_runtime_s=minimum_s,
            launched_at=self.now - datetime.timedelta(seconds=age_s)))

    def promise(self, name, waited_s):
        """Let the last that came have a class, if any."""
        spots = [(uuid, server) for host in self.hosts.values()
                 for uuid, server in host.servers.items()
                 if uuid == f'spot {self.serial:03}']
        for uuid, server in spots if name else ():
            ran_us = microseconds(server.launched_at)
            self.claimants = {**self.claimants, uuid: class_dispatch.Claimant(
                uuid, CLASSES.find(name), server_clocks.ServerClocks((
                    server_clocks.Event(ran_us - waited_s * SECOND,
                                        server_clocks.Kind.QUEUED),
                    server_clocks.Event(ran_us, server_clocks.Kind.ALLOCATING),
                    server_clocks.Event(ran_us, server_clocks.Kind.RUNNING))),
                    {},
                60 * SECOND)}

    def happens(self, event):
        """Change the clock of a server of a class."""
        kind, nth, ago_s = event
        if self.claimants:
            uuid = sorted(self.claimants)[nth % len(self.claimants)]
            claimant = self.claimants[uuid]
            at_us = microseconds(self.now) - ago_s * SECOND
            self.claimants = {**self.claimants, uuid: dataclasses.replace(
                claimant, clocks=claimant.clocks.applied(
                    server_clocks.Event(at_us, kind)))}

    def promises(self):
        return promised_availability.ClassPromiseRules(CLASSES, self.claimants,
                                                       microseconds(self.now))

    def rank(self, name, waited_s):
        """Return the rank of a request, '' for a normal one."""
        if not name:
            return preemption_policy.NORMAL
        now_us = microseconds(self.now)
        return preemption_policy.PreemptionRight(True, self.promises(
            ).claim(class_dispatch.Claimant(
                'new', CLASSES.find(name),
                server_clocks.ServerClocks((server_clocks.Event(
                    now_us - waited_s * SECOND, server_clocks.Kind.QUEUED),)),
                    {})))

    def leave(self, nth):
        there = [(host, uuid) for host in self.hosts.values()
                 for uuid in sorted(host.servers)]
        if there:
            host, uuid = there[nth % len(there)]
            host.remove(uuid)

    def wait(self, seconds):
        self.now += datetime.timedelta(seconds=seconds)

    def found(self, policy, asked, what_is_left,
              rank=preemption_policy.NORMAL):
        """Return the plans for a request."""
        vcpus, memory_mb, protected = asked
        there = sorted(uuid for host in self.hosts.values()
                       for uuid in host.servers)
        search = plan_search.PlanSearch(
            self.answers(), Request.of(world.amounts(vcpus, memory_mb)),
            policy, self.now, rank, there[:protected], what_is_left)
        return [(plan.key, plan.victim_set) for plan in search.ranked()]


class TestFloors(unittest.TestCase):

    def setUp(self):
        self.cloud = Cloud()
        self.policy = preemption_policy.Policy(
            eligibility.Rules(), ('delete',), costs.partial_hour)
        self.memo = cost_bound_cache.CostBoundCache()

    def work_out(self, vcpus=2):
        """Ask; tell of which hosts something was worked out anew."""
        work_out = cost_bounds.CostBounds.work_out
        hosts = []

        def note(of_all, host, *args):
            hosts.append(host.name)
            return work_out(of_all, host, *args)

        with mock.patch.object(cost_bounds.CostBounds, 'work_out', note):
            self.cloud.found(self.policy, (vcpus, 0, 0), self.memo)
        return sorted(hosts)

    def first(self):
        """Ask for the best host only."""
        with mock.patch.object(
                plan_search.PlanSearch, '_bound', autospec=True,
                side_effect=plan_search.PlanSearch._bound) as bound:
            search = plan_search.PlanSearch(
                self.cloud.answers(), Request.of({'VCPU': 8}), self.policy,
                self.cloud.now, memo=self.memo)
            found = next(search.ranked()).host.name
        return found, bound.call_count

    def fill(self):
        for number in range(HOSTS):
            self.cloud.come((number, 8, 8, 60 * (number + 1), 0))

    @LAW
    @hypothesis.given(
        st.sampled_from(sorted(costs.LOWER_BOUNDS, key=str)),
        st.sampled_from((900, 3600)), st.sampled_from((0, 60)),
        st.lists(SPOTS, max_size=12), st.lists(STEPS, max_size=12))
    def test_same_order_as_of_a_full_pass(self, cost, period_s, minimum_s,
                                          spots, steps):
        cloud, kept = Cloud(), cost_bound_cache.CostBoundCache()
        policy = preemption_policy.Policy(eligibility.Rules(
            minimum_runtime_s=minimum_s), ('delete',), cost,
            CostOptions(period_s))
        for spot in spots:
            cloud.come(spot)
        for step, argument in (*steps, ('ask', (2, 0, 0))):
            if step != 'ask':
                getattr(cloud, step)(argument)
            else:
                self.assertEqual(cloud.found(policy, argument, FullPass()),
                                 cloud.found(policy, argument, kept))

    @LAW
    @hypothesis.given(
        st.sampled_from((costs.count, costs.partial_hour)),
        st.lists(st.tuples(
            st.integers(0, 1500), st.sampled_from((0, 0, 1800)),
            st.sampled_from(('gold', 'silver', 'bronze', 'bronze', '')),
            st.integers(0, 600)), min_size=HOSTS, max_size=2 * HOSTS),
        st.lists(STEPS_WITH_CLASSES, max_size=9))
    def test_same_order_with_classes(self, cost, spots, steps):
        cloud, kept = Cloud(), cost_bound_cache.CostBoundCache()
        size = 8 * HOSTS // len(spots)
        for number, (age_s, minimum_s, name, waited_s) in enumerate(spots):
            cloud.come((number % HOSTS, size, size, age_s, minimum_s))
            cloud.promise(name, waited_s)
        for step, argument in (('claim', (8, '', 0)), *steps,
                               ('claim', (8, '', 0)),
                               ('claim', (2, 'gold', 0))):
            if step != 'claim':
                getattr(cloud, step)(argument)
                continue
            policy = preemption_policy.Policy(
                eligibility.Rules(), ('shelve',), cost,
                classes=cloud.promises())
            vcpus, name, waited_s = argument
            rank = cloud.rank(name, waited_s)
            self.assertEqual(
                cloud.found(policy, (vcpus, 0, 0), FullPass(), rank),
                cloud.found(policy, (vcpus, 0, 0), kept, rank))

    def promised(self, *names):
        """Each host has a server of a class, which has always run."""
        for number, name in enumerate(names):
            self.cloud.come((number, 8, 8, 3600 + 60 * number, 0))
            self.cloud.promise(name, 0)
        self.with_promises()

    def with_promises(self):
        self.policy = dataclasses.replace(
            self.policy, classes=self.cloud.promises())

    def test_hosts_with_changed_clocks_are_evaluated(self):
        self.promised(*HOSTS * ['bronze'])
        self.assertEqual(HOSTS, len(self.work_out(8)))
        # Read anew, and the same.
        self.cloud.claimants = dict(self.cloud.claimants)
        self.with_promises()
        self.assertEqual([], self.work_out(8))
        self.assertEqual('host 3', self.first()[0])
        self.cloud.happens((server_clocks.Kind.EVICTED, 3, 3000))
        self.with_promises()
        self.assertEqual(['host 3'], self.work_out(8))
        self.assertEqual('host 2', self.first()[0])

    def test_floors_by_promises_hold_for_a_while(self):
        self.promised('bronze', 'bronze')
        # The second is on its way to a host: there is less left each second.
        self.cloud.happens((server_clocks.Kind.EVICTED, 1, 0))
        self.cloud.happens((server_clocks.Kind.ALLOCATING, 1, 0))
        self.with_promises()
        known = self.memo.floors(Request.of({'VCPU': 8}), self.policy,
                                 preemption_policy.NORMAL)
        self.work_out(8)
        found = [known.known(f'uuid {number}') for number in range(2)]
        for wait_s in (0, 450, 449):
            self.cloud.wait(wait_s)
            self.with_promises()
            for number, floor in enumerate(found):
                cost = self.policy.classes.cost(
                    world.server(f'spot {number + 1:03}'), 0)
                self.assertLessEqual(floor.cost_us, cost)
                self.assertLess(microseconds(self.cloud.now),
                                floor.until_us)
        self.cloud.wait(1)
        self.assertEqual({microseconds(self.cloud.now)},
                         {floor.until_us for floor in found})

    def test_a_request_of_a_class_has_floors_of_its_own(self):
        self.promised('bronze', '', 'bronze')
        policy = self.policy
        for rank, hosts in ((preemption_policy.NORMAL, {0, 1, 2}),
                            (self.cloud.rank('gold', 60), {0, 2})):
            known = self.memo.floors(Request.of({'VCPU': 8}), policy, rank)
            list(plan_search.PlanSearch(
                self.cloud.answers(), Request.of({'VCPU': 8}), policy,
                self.cloud.now, rank, memo=self.memo).ranked())
            self.assertEqual(hosts, {
                number for number in range(HOSTS)
                if (floor := known.known(f'uuid {number}'))
                and floor.cost_us is not None})

    def test_few_are_looked_at(self):
        self.fill()
        self.assertEqual(('host 0', 1), self.first())
        self.cloud.wait(30)
        # Others have a floor above the cost of the first.
        self.assertEqual(('host 0', 1), self.first())
        # The last one begins a new hour.
        self.cloud.wait(3600 - 30 - 240)
        self.assertEqual(('host 3', 1), self.first())

    def test_changed_hosts_are_evaluated(self):
        self.fill()
        self.work_out(8)
        self.cloud.leave(2)
        self.cloud.come((2, 8, 8, 0, 0))
        self.assertEqual(['host 2'], self.work_out(8))

    def test_a_promise_ends(self):
        self.cloud.come((0, 8, 8, 100, 1800))
        self.assertEqual(['host 0'], self.work_out(8))
        self.assertEqual([], self.work_out(8))
        self.cloud.wait(1700)
        self.assertEqual(['host 0'], self.work_out(8))

    def test_other_options(self):
        self.fill()
        self.work_out(8)
        self.policy = preemption_policy.Policy(
            eligibility.Rules(), ('delete',), costs.youngest_first)
        self.assertEqual(HOSTS, len(self.work_out(8)))

    def test_kinds_of_requests_are_bounded(self):
        self.fill()
        for number in range(cost_bound_cache.MOST_KINDS + 5):
            self.memo.floors(Request.of({'VCPU': number}), self.policy,
                             preemption_policy.NORMAL)
        self.assertEqual(cost_bound_cache.MOST_KINDS, len(self.memo._floors))
        self.assertIs(
            self.memo.floors(Request.of({'VCPU': number}), self.policy,
                             preemption_policy.NORMAL),
            self.memo.floors(Request.of({'VCPU': number}), self.policy,
                             preemption_policy.NORMAL))

    def test_a_cost_of_ones_own(self):
        """Bounds make no assumption on how a custom cost changes."""
        self.policy = preemption_policy.Policy(
            eligibility.Rules(), ('delete',), lambda server, options: 1)
        self.fill()
        self.assertEqual([], self.work_out(8))
        self.assertEqual(('host 0', HOSTS), self.first())
