# SPDX-License-Identifier: Apache-2.0

"""The published evaluation: A. Lopez Garcia et al., FGCS 2019, Tables 3-6.

Four hosts of 8 vCPUs and 16000 MB, servers of three sizes, and run times in
minutes; billed by the hour. The text is at doi
10.1016/j.future.2018.12.057.
"""

import datetime
import unittest

from nova_preempt.core import costs
from nova_preempt.core.model import SECOND
from nova_preempt.core.scheduling import preemption_policy
from tests.unit.core import support
from tests.unit.core.scheduling import world

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


def make(cloud: Cloud) -> world.World:
    """Return the hosts of a table; costs are those of Algorithm 4."""
    found = world.World()
    found.set(cost=costs.partial_hour)
    for name, (normal, preemptible) in cloud.items():
        used: dict[str, int] = {}
        for size in normal:
            used = support.more(used, SIZES[size])
        found.add(name, HOST, used,
                  {uuid: (0, SIZES[size])
                   for uuid, (_, size) in preemptible.items()})
        host = found.hosts[f'uuid of {name}']
        for uuid, (minutes, _) in preemptible.items():
            host.servers[uuid] = world.server(
                uuid, name, launched_at=world.NOW
                - datetime.timedelta(minutes=minutes))
    return found


class TestTables(unittest.TestCase):
    """The published hosts, victims and margins."""

    def assert_plans(self, expected: list[tuple[str, str, int]],
                     cloud: Cloud, size: str) -> world.World:
        """Compare (host, victims, minutes), the best plan first."""
        for order in (cloud, dict(reversed(cloud.items()))):
            found = make(order)
            self.assertEqual(
                expected, [(host, victims, cost // MINUTE) for
                           host, victims, cost in found.considered(
                               SIZES[size])])
            host, victims, _ = expected[0]
            self.assertEqual([(host, victims.split())],
                             found.placed(SIZES[size]))
        return make(cloud)

    def test_003_t3(self) -> None:
        self.assert_plans([
            ("host-B", "BP1", 11),
            ("host-D", "DP2", 19),
            ("host-A", "AP2", 27),
            ("host-C", "CP1", 30),
        ], TABLE_3, "M")

    def test_003_t4(self) -> None:
        self.assert_plans([
            ("host-C", "CP1", 1),
            ("host-A", "AP1", 7),
            ("host-D", "DP1", 24),
            ("host-B", "BP1", 44),
        ], TABLE_4, "M")

    def test_003_t5(self) -> None:
        """Three victims, because together they have lost the least."""
        self.assert_plans([
            ("host-A", "AP2 AP3 AP4", 55),
            ("host-C", "CP1", 57),
            ("host-B", "BP1", 58),
        ], TABLE_5, "L")

    def test_003_t6(self) -> None:
        """A small victim, because some of its host is free."""
        found = self.assert_plans([
            ("host-B", "BP3", 20),
            ("host-D", "DP3", 24),
            ("host-A", "AP1", 52),
        ], TABLE_6, "M")
        plan, *_ = found.cycle(SIZES["M"]).offer(any_victims=True)
        self.assertEqual({("uuid of host-B", "VCPU"): 1,
                          ("uuid of host-B", "MEMORY_MB"): 2000},
                         plan.missing)

    def test_sums_over_hosts_would_be_wrong(self) -> None:
        """Algorithm 4, taken at its word, adds up all preemptible servers
        of a host, and would choose others in Tables 5 and 6."""
        for cloud, size, expected in (
            (TABLE_5, "L", "host-B"),
            (TABLE_6, "M", "host-A"),
        ):
            literal = min(
                (name for name, (_, spots) in cloud.items() if spots),
                key=lambda name: sum(
                    minutes % 60 for minutes, _ in cloud[name][1].values()))
            self.assertEqual(expected, literal)
            self.assertNotEqual(
                literal, make(cloud).placed(SIZES[size])[0][0])


class TestRules(unittest.TestCase):
    """The rules around the tables."""

    def test_003_b(self) -> None:
        """A preemptible server preempts no other server."""
        found = world.World()
        found.add("h", HOST, {}, {"p": (0, HOST)})
        self.assertIsNone(found.placed(SIZES["M"],
                                       rank=preemption_policy.PREEMPTIBLE))
        self.assertEqual([("h", ["p"])], found.placed(SIZES["M"]))

    def test_003_c(self) -> None:
        """No server is evicted if all victims together do not suffice."""
        found = world.World()
        found.add("h", HOST, {"VCPU": 7, "MEMORY_MB": 14000},
                  {"p": (0, SIZES["S"])})
        self.assertIsNone(found.placed(SIZES["L"]))
        self.assertIn("4 requested, 0 of 8 free and 1 held",
                      found.refusals({"VCPU": 4})["h"])
        self.assertIn("p", found.hosts["uuid of h"].servers)

    def test_003_d(self) -> None:
        """A free host wins even over victims that cost nothing."""
        for always in (False, True):
            found = world.World()
            found.set(always=always)
            found.add("a", HOST, {"VCPU": 2}, {"p": (0, {"VCPU": 5})})
            found.add("b", HOST, SIZES["L"])
            self.assertEqual([("b", [])], found.placed({"VCPU": 3}))
        found.hosts["uuid of b"].remove("new")
        self.assertEqual([("b", "", 0), ("a", "p", 0)],
                         found.considered({"VCPU": 3}))
