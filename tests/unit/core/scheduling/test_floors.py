# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Plans come in the same order, whatever earlier requests have left."""

import datetime
import unittest
from unittest import mock

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.model import CostOptions, Inventory, Request
from nova_preempt.core.scheduling import floors
from nova_preempt.core.scheduling import memo
from nova_preempt.core.scheduling import plans
from nova_preempt.core.scheduling import policy as policies
from nova_preempt.simulator import memory
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


class FullPass(memo.Memo):
    """Leaves nothing for other requests."""

    def floors(self, request, policy):
        return None


class Cloud(memory.MemoryCloud):
    """Hosts of 8 vCPUs, and the time."""

    def __init__(self):
        super().__init__(
            memory.MemoryHost(f'uuid {number}', f'host {number}', {
                'VCPU': Inventory(8), 'MEMORY_MB': Inventory(8)})
            for number in range(HOSTS))
        self.now = world.NOW
        self.serial = 0

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

    def leave(self, nth):
        there = [(host, uuid) for host in self.hosts.values()
                 for uuid in sorted(host.servers)]
        if there:
            host, uuid = there[nth % len(there)]
            host.remove(uuid)

    def wait(self, seconds):
        self.now += datetime.timedelta(seconds=seconds)

    def found(self, policy, asked, what_is_left):
        """What is found for a request, plan by plan."""
        vcpus, memory_mb, protected = asked
        there = sorted(uuid for host in self.hosts.values()
                       for uuid in host.servers)
        search = plans.Search(
            self.answers(), Request.of(world.amounts(vcpus, memory_mb)),
            policy, self.now, excluded=there[:protected],
            memo=what_is_left)
        return [(plan.key, plan.victim_set) for plan in search.ranked()]


class TestFloors(unittest.TestCase):

    def setUp(self):
        self.cloud = Cloud()
        self.policy = policies.Policy(
            eligibility.Rules(), ('delete',), costs.partial_hour)
        self.memo = memo.Memo()

    def work_out(self, vcpus=2):
        """Ask; tell of which hosts something was worked out anew."""
        work_out = floors.Floors.work_out
        hosts = []

        def note(of_all, host, *args):
            hosts.append(host.name)
            return work_out(of_all, host, *args)

        with mock.patch.object(floors.Floors, 'work_out', note):
            self.cloud.found(self.policy, (vcpus, 0, 0), self.memo)
        return sorted(hosts)

    def first(self):
        """Ask for the best host only."""
        with mock.patch.object(plans.Search, '_bound', autospec=True,
                               side_effect=plans.Search._bound) as bound:
            search = plans.Search(
                self.cloud.answers(), Request.of({'VCPU': 8}), self.policy,
                self.cloud.now, memo=self.memo)
            found = next(search.ranked()).host.name
        return found, bound.call_count

    def fill(self):
        for number in range(HOSTS):
            self.cloud.come((number, 8, 8, 60 * (number + 1), 0))

    @LAW
    @hypothesis.given(
        st.sampled_from(sorted(costs.FLOORS, key=str)),
        st.sampled_from((900, 3600)), st.sampled_from((0, 60)),
        st.lists(SPOTS, max_size=12), st.lists(STEPS, max_size=12))
    def test_same_order_as_of_a_full_pass(self, cost, period_s, minimum_s,
                                          spots, steps):
        cloud, kept = Cloud(), memo.Memo()
        policy = policies.Policy(eligibility.Rules(
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

    def test_few_are_looked_at(self):
        self.fill()
        self.assertEqual(('host 0', 1), self.first())
        self.cloud.wait(30)
        # Others have a floor above the cost of the first.
        self.assertEqual(('host 0', 1), self.first())
        # The last one begins a new hour.
        self.cloud.wait(3600 - 30 - 240)
        self.assertEqual(('host 3', 1), self.first())

    def test_what_has_changed_is_looked_at(self):
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
        self.policy = policies.Policy(
            eligibility.Rules(), ('delete',), costs.youngest_first)
        self.assertEqual(HOSTS, len(self.work_out(8)))

    def test_kinds_of_requests_are_bounded(self):
        self.fill()
        for number in range(memo.MOST_KINDS + 5):
            self.memo.floors(Request.of({'VCPU': number}), self.policy)
        self.assertEqual(memo.MOST_KINDS, len(self.memo._floors))
        self.assertIs(
            self.memo.floors(Request.of({'VCPU': number}), self.policy),
            self.memo.floors(Request.of({'VCPU': number}), self.policy))

    def test_a_cost_of_ones_own(self):
        """Nothing is known of how it changes."""
        self.policy = policies.Policy(
            eligibility.Rules(), ('delete',), lambda server, options: 1)
        self.fill()
        self.assertEqual([], self.work_out(8))
        self.assertEqual(('host 0', HOSTS), self.first())
