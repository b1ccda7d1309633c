# SPDX-License-Identifier: Apache-2.0

import unittest

from nova_preempt.core.model import (
    Candidate,
    Host,
    Inventory,
    Provider,
    VictimSet,
)
from nova_preempt.core.scheduling.preemption_plan import Plan

HELD = {
    ("h", "VCPU"): 2,
    ("g0", "GPU"): 1,
    ("g1", "GPU"): 1,
}


def plan(*traits: str) -> Plan:
    """Return one by which a victim of two GPUs gives up one."""
    victim = Candidate("a", HELD, 1)
    host = Host(
        "host",
        (
            Provider("h", 0, {"VCPU": Inventory(4)}, {"a": {"VCPU": 2}}),
            *(
                Provider(
                    f"g{number}",
                    0,
                    {"GPU": Inventory(1)},
                    {"a": {"GPU": 1}},
                    "h",
                    f"gpu{number}",
                    frozenset(traits),
                )
                for number in range(2)
            ),
        ),
        (victim,),
    )
    victims = VictimSet((victim,), 1, optimal=True, steps=0)
    return Plan(host, {("g1", "GPU"): 1}, victims, {})


class TestPlan(unittest.TestCase):
    """Tests of plans on a host with nested providers."""

    def test_the_rest_stays_the_victims(self) -> None:
        self.assertEqual(
            {"a": {("h", "VCPU"): 2, ("g0", "GPU"): 1}}, plan().retained()
        )

    def test_a_victim_that_loses_pci_devices_keeps_nothing(self) -> None:
        found = plan("COMPUTE_MANAGED_PCI_DEVICE")
        self.assertEqual(plan().retained(), found.retained())
        self.assertEqual({"a"}, found.displaced())
        self.assertEqual(frozenset(), plan().displaced())

    def test_a_victim_without_lost_devices_keeps_the_rest(self) -> None:
        found = plan("COMPUTE_MANAGED_PCI_DEVICE").taking({("h", "VCPU"): 3})
        assert found is not None
        self.assertEqual({("h", "VCPU"): 1}, found.missing)
        self.assertEqual(frozenset(), found.displaced())

    def test_devices_have_names(self) -> None:
        self.assertEqual({"gpu1": {"GPU": 1}}, plan().devices())

    def test_another_device_is_taken(self) -> None:
        other = plan().taking({("h", "VCPU"): 1, ("g0", "GPU"): 1})
        assert other is not None
        self.assertEqual({("g0", "GPU"): 1}, other.missing)

    def test_a_provider_that_is_gone(self) -> None:
        self.assertIsNone(plan().taking({("g0", "GPU"): 1, ("g2", "GPU"): 1}))

    def test_more_is_taken_than_becomes_free(self) -> None:
        self.assertIsNone(plan().taking({("h", "VCPU"): 5}))
