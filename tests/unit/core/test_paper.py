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

"""The published evaluation: A. Lopez Garcia et al., FGCS 2019, Tables 3-6.

Four hosts of 8 vCPUs and 16000 MB, servers of three sizes, and run times in
minutes; billed by the hour. The text is at doi
10.1016/j.future.2018.12.057.
"""

from __future__ import annotations

import unittest

from nova_preempt.core import costs
from nova_preempt.core.decide import Decision
from nova_preempt.core.decide import decide
from nova_preempt.core.model import (
    SECOND,
    Candidate,
    CostOptions,
    Host,
    PreemptibleServer,
)
from tests.unit.core import support

SIZES = {
    "S": {"VCPU": 1, "MEMORY_MB": 2000},
    "M": {"VCPU": 2, "MEMORY_MB": 4000},
    "L": {"VCPU": 4, "MEMORY_MB": 8000},
}
HOST = {"VCPU": 8, "MEMORY_MB": 16000}
MINUTE = 60 * SECOND

#: {host: (sizes of normal servers, {uuid: (minutes, size)} of the others)}
Cloud = dict[str, tuple[str, dict[str, tuple[int, str]]]]

TABLE_3: Cloud = {
    "host-A": ("MM", {"AP1": (96, "M"), "AP2": (207, "M")}),
    "host-B": ("MM", {"BP1": (71, "M"), "BP2": (91, "M")}),
    "host-C": ("MM", {"CP1": (210, "M"), "CP2": (215, "M")}),
    "host-D": (
        "M",
        {"DP1": (85, "M"), "DP2": (199, "M"), "DP3": (152, "M")},
    ),
}
TABLE_4: Cloud = {
    "host-A": (
        "",
        {
            "AP1": (247, "M"),
            "AP2": (463, "M"),
            "AP3": (403, "M"),
            "AP4": (410, "M"),
        },
    ),
    "host-B": ("MM", {"BP1": (344, "M"), "BP2": (476, "M")}),
    "host-C": ("MM", {"CP1": (181, "M"), "CP2": (160, "M")}),
    "host-D": (
        "M",
        {"DP1": (384, "M"), "DP2": (168, "M"), "DP3": (232, "M")},
    ),
}
TABLE_5: Cloud = {
    "host-A": (
        "",
        {
            "AP1": (298, "L"),
            "AP2": (278, "M"),
            "AP3": (190, "S"),
            "AP4": (187, "S"),
        },
    ),
    "host-B": ("L", {"BP1": (178, "L")}),
    "host-C": (
        "",
        {"CP1": (297, "L"), "CP2": (296, "M"), "CP3": (296, "S")},
    ),
    "host-D": ("MML", {}),
}
TABLE_6: Cloud = {
    "host-A": ("LM", {"AP1": (172, "M")}),
    "host-B": (
        "",
        {"BP1": (272, "L"), "BP2": (212, "M"), "BP3": (380, "S")},
    ),
    "host-C": ("SML", {}),
    "host-D": (
        "",
        {
            "DP1": (232, "L"),
            "DP2": (213, "S"),
            "DP3": (324, "M"),
            "DP4": (314, "S"),
        },
    ),
}


def hosts(cloud: Cloud) -> list[Host]:
    """Return the hosts of a table; costs are those of Algorithm 4."""
    found = []
    for name, (normal, preemptible) in cloud.items():
        used: dict[str, int] = {}
        for size in normal:
            used = support.more(used, SIZES[size])
        candidates = [
            Candidate(
                uuid,
                SIZES[size],
                costs.partial_hour(
                    PreemptibleServer(uuid, minutes * MINUTE, SIZES[size]),
                    CostOptions(),
                ),
            )
            for uuid, (minutes, size) in preemptible.items()
        ]
        found.append(support.host(name, HOST, used, candidates))
    return found


class TestTables(unittest.TestCase):
    """The host and the victims that were published, and by what margin."""

    def decision(self, cloud: Cloud, size: str) -> Decision:
        decision = decide(hosts(cloud), SIZES[size])
        self.assertEqual(decision, decide(hosts(cloud)[::-1], SIZES[size]))
        return decision

    def assert_plans(
        self, expected: list[tuple[str, str, int]], decision: Decision
    ) -> None:
        """Compare (host, victims, minutes), the best plan first."""
        self.assertEqual(
            expected,
            [
                (
                    plan.host.name,
                    " ".join(support.uuids(plan.victim_set.victims)),
                    plan.victim_set.cost // MINUTE,
                )
                for plan in decision.considered
            ],
        )
        self.assertEqual(decision.considered[0], decision.plan)
        for plan in decision.considered:
            self.assertTrue(plan.victim_set.optimal)

    def test_003_t3(self) -> None:
        self.assert_plans(
            [
                ("host-B", "BP1", 11),
                ("host-D", "DP2", 19),
                ("host-A", "AP2", 27),
                ("host-C", "CP1", 30),
            ],
            self.decision(TABLE_3, "M"),
        )

    def test_003_t4(self) -> None:
        self.assert_plans(
            [
                ("host-C", "CP1", 1),
                ("host-A", "AP1", 7),
                ("host-D", "DP1", 24),
                ("host-B", "BP1", 44),
            ],
            self.decision(TABLE_4, "M"),
        )

    def test_003_t5(self) -> None:
        """Three victims, because together they have lost the least."""
        decision = self.decision(TABLE_5, "L")
        self.assert_plans(
            [
                ("host-A", "AP2 AP3 AP4", 55),
                ("host-C", "CP1", 57),
                ("host-B", "BP1", 58),
            ],
            decision,
        )
        self.assertEqual(
            ["uuid of host-D"], [uuid for uuid, _ in decision.refusals]
        )

    def test_003_t6(self) -> None:
        """A small victim, because some of its host is free."""
        decision = self.decision(TABLE_6, "M")
        self.assert_plans(
            [
                ("host-B", "BP3", 20),
                ("host-D", "DP3", 24),
                ("host-A", "AP1", 52),
            ],
            decision,
        )
        assert decision.plan is not None
        self.assertEqual({"VCPU": 1, "MEMORY_MB": 2000}, decision.plan.missing)

    def test_sums_over_hosts_would_be_wrong(self) -> None:
        """Algorithm 4, taken at its word, adds up all preemptible servers
        of a host, and would choose others in Tables 5 and 6."""
        for cloud, size, expected in (
            (TABLE_5, "L", "host-B"),
            (TABLE_6, "M", "host-A"),
        ):
            decision = self.decision(cloud, size)
            plans = decision.considered
            literal = min(
                plans, key=lambda p: sum(c.cost for c in p.host.candidates)
            )
            self.assertEqual(expected, literal.host.name)
            self.assertNotEqual(literal, decision.plan)


class TestRules(unittest.TestCase):
    """The rules around the tables."""

    def test_003_b(self) -> None:
        """A preemptible server preempts nobody: it sees no candidates."""
        full = support.host("h", HOST, HOST)
        decision = decide([full], SIZES["M"])
        self.assertEqual((None, ()), (decision.plan, decision.considered))
        [(uuid, refusal)] = decision.refusals
        self.assertEqual("uuid of h", uuid)
        self.assertIn("0 of 16000 free and 0 held", refusal.text)

    def test_003_c(self) -> None:
        """Where not even all of them make room, nobody has to leave."""
        candidates = [Candidate("p", SIZES["S"], 0)]
        used = {"VCPU": 7, "MEMORY_MB": 14000}
        full = support.host("h", HOST, used, candidates)
        decision = decide([full], SIZES["M"])
        self.assertEqual((None, ()), (decision.plan, decision.considered))

    def test_003_d(self) -> None:
        """A free host wins even over victims that cost nothing."""
        candidates = [Candidate("p", SIZES["L"], 0)]
        used = SIZES["L"]
        full = support.host("a", HOST, used, candidates)
        free = support.host("b", HOST, used)
        decision = decide([full, free], SIZES["L"])
        self.assertEqual(
            [("b", 0), ("a", 1)],
            [
                (plan.host.name, len(plan.victim_set.victims))
                for plan in decision.considered
            ],
        )
