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

"""Which host."""

from __future__ import annotations

import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.capacity import missing
from nova_preempt.core.decide import decide
from nova_preempt.core.model import Candidate, Host, Refusal, RefusalCode
from nova_preempt.core.victims import SearchLimits
from tests.unit.core import support
from tests.unit.core.support import LAW
from tests.unit.core.support import candidate

CAPACITY = {"VCPU": 8, "MEMORY_MB": 64}


@st.composite
def clouds(draw: st.DrawFn) -> tuple[list[Host], dict[str, int]]:
    """Draw hosts, some alike, and a request."""
    hosts = []
    for number in range(draw(st.integers(0, 6))):
        candidates = [
            Candidate(
                f"{number}-{nth}",
                {"VCPU": vcpus, "MEMORY_MB": 8 * vcpus},
                cost,
            )
            for nth, (vcpus, cost) in enumerate(
                draw(
                    st.lists(
                        st.tuples(st.integers(0, 4), st.integers(0, 3)),
                        max_size=4,
                    )
                )
            )
        ]
        made = support.host(
            draw(st.sampled_from("ab")),
            CAPACITY,
            {"VCPU": draw(st.integers(0, 8))},
            candidates,
        )
        hosts.append(
            Host(
                f"{number}",
                made.name,
                made.inventories,
                made.used,
                made.candidates,
            )
        )
    request = {
        "VCPU": draw(st.integers(0, 9)),
        "MEMORY_MB": draw(st.integers(0, 70)),
    }
    return hosts, request


class TestDecide(unittest.TestCase):
    """The cheapest host of all."""

    def test_no_hosts(self) -> None:
        decision = decide([], {"VCPU": 1})
        self.assertEqual(
            (None, (), ()),
            (decision.plan, decision.considered, decision.refusals),
        )

    def test_order(self) -> None:
        """Cost, then number of victims, then name, then uuid."""
        used = {"VCPU": 4}
        one = [candidate("o", 2, VCPU=4)]
        two = [candidate("p", 1, VCPU=2), candidate("q", 1, VCPU=2)]
        hosts = [
            support.host("d", CAPACITY, used, one),
            support.host("c", CAPACITY, used, one),
            support.host("a", CAPACITY, used, two),
            support.host("e", CAPACITY, used, [candidate("r", 1, VCPU=4)]),
        ]
        hosts.append(
            Host("0", "d", hosts[0].inventories, hosts[0].used, tuple(one))
        )
        found = decide(hosts, {"VCPU": 4}).considered
        self.assertEqual(
            [
                ("e", "uuid of e"),
                ("c", "uuid of c"),
                ("d", "0"),
                ("d", "uuid of d"),
                ("a", "uuid of a"),
            ],
            [(plan.host.name, plan.host.uuid) for plan in found],
        )

    def test_refusals(self) -> None:
        hosts = [
            support.host("b", {"VCPU": 1}, {}),
            support.host("a", {}, {}),
            support.host("c", CAPACITY, {}),
        ]
        decision = decide(hosts, {"VCPU": 2})
        self.assertEqual(
            [
                ("uuid of a", RefusalCode.NO_INVENTORY),
                ("uuid of b", RefusalCode.NO_ROOM),
            ],
            [(uuid, refusal.code) for uuid, refusal in decision.refusals],
        )

    def test_surplus_is_a_share_of_the_host(self) -> None:
        """4 of 8 vCPUs weigh more than 8 of 64 MB."""
        candidates = [
            candidate("a", 1, VCPU=4, MEMORY_MB=8),
            candidate("b", 1, VCPU=2, MEMORY_MB=16),
        ]
        only = support.host("h", CAPACITY, {"VCPU": 2}, candidates)
        plan = decide([only], {"VCPU": 2}).plan
        assert plan is not None
        self.assertEqual(["b"], support.uuids(plan.victim_set.victims))

    def test_limits(self) -> None:
        candidates = [
            candidate(f"{n:02}", 50 + n * 7 % 11, VCPU=3 + n * 5 % 8)
            for n in range(20)
        ]
        only = support.host("h", {"VCPU": 150}, {}, candidates)
        plan = decide([only], {"VCPU": 60}, SearchLimits(0, 0)).plan
        assert plan is not None
        self.assertFalse(plan.victim_set.optimal)

    @LAW
    @hypothesis.given(clouds(), st.data())
    def test_laws(
        self, cloud: tuple[list[Host], dict[str, int]], data: st.DataObject
    ) -> None:
        hosts, request = cloud
        decision = decide(hosts, request)
        # The order of hosts and candidates does not matter.
        shuffled = [
            Host(
                host.uuid,
                host.name,
                host.inventories,
                host.used,
                host.candidates[::-1],
            )
            for host in data.draw(st.permutations(hosts))
        ]
        again = decide(shuffled, request)
        self.assertEqual(
            [(p.host.uuid, p.victim_set) for p in decision.considered],
            [(p.host.uuid, p.victim_set) for p in again.considered],
        )
        self.assertEqual(decision.refusals, again.refusals)
        # Every host is either considered or refused, and rightly so.
        by_uuid = {host.uuid: missing(request, host) for host in hosts}
        self.assertEqual(
            {u: r for u, r in by_uuid.items() if isinstance(r, Refusal)},
            dict(decision.refusals),
        )
        self.assertEqual(
            {u: r for u, r in by_uuid.items() if not isinstance(r, Refusal)},
            {p.host.uuid: p.missing for p in decision.considered},
        )
        keys = []
        for plan in decision.considered:
            victims = plan.victim_set.victims
            self.assertTrue(support.frees_enough(victims, plan.missing))
            self.assertEqual(bool(plan.missing), bool(victims))
            keys.append(
                (
                    bool(plan.missing),
                    plan.victim_set.cost,
                    len(victims),
                    plan.host.name,
                    plan.host.uuid,
                )
            )
        self.assertEqual(sorted(keys), keys)
        # Who stops early gets the beginning.
        first = decide(hosts, request, at_most=2)
        self.assertEqual(decision.considered[:2], first.considered)
        self.assertEqual(decision.plan, first.plan)
