# SPDX-License-Identifier: Apache-2.0

import unittest

from nova_preempt.core import fit_and_victims
from nova_preempt.core.model import (
    Candidate,
    Host,
    Inventory,
    Placement,
    Provider,
    Refusal,
    Request,
    RequestGroup,
)

ROOT = Provider("h", 0, {"VCPU": Inventory(4)}, {"a": {"VCPU": 4}})
GPU = Provider("g", 0, {"GPU": Inventory(1)}, {"a": {"GPU": 1}}, "h")
SPOT = Candidate("a", {("h", "VCPU"): 4, ("g", "GPU"): 1}, 5)


class TestOneProvider(unittest.TestCase):
    """Resources of the host's own provider are taken only there."""

    request = Request.of({"VCPU": 2})

    def test_placements_of_a_host_of_which_no_candidates_are_named(
        self,
    ) -> None:
        host = Host("h", (ROOT,))
        freed = {("h", "VCPU"): 4}
        self.assertEqual(
            [Placement((("", ("h",)),), {("h", "VCPU"): 2})],
            fit_and_victims.placements(self.request, host, freed),
        )
        self.assertTrue(fit_and_victims.fits(self.request, host, freed))
        self.assertFalse(
            fit_and_victims.fits(self.request, host, {("h", "VCPU"): 1})
        )

    def test_victims(self) -> None:
        found = fit_and_victims.cheapest_victims(
            self.request, Host("h", (ROOT,), (SPOT,))
        )
        assert found is not None
        assert not isinstance(found, Refusal)
        self.assertEqual((SPOT,), found.victims)

    def test_processors_for_pinning(self) -> None:
        """VCPU takes their place where the host has none, and only there."""
        request = Request(
            (RequestGroup({"PCPU": 2}),), unpinned=Request.of({"VCPU": 2})
        )
        for name in ("VCPU", "PCPU"):
            root = Provider(
                "h",
                0,
                {name: Inventory(2), "VCPU": Inventory(2)},
                {"a": {name: 2}},
            )
            spot = Candidate("a", {("h", name): 2}, 5)
            host = Host("h", (root,), (spot,))
            found = fit_and_victims.cheapest_victims(request, host)
            assert found is not None
            assert not isinstance(found, Refusal)
            self.assertEqual((spot,), found.victims)
            self.assertEqual(5, fit_and_victims.lower_bound(request, host))
            self.assertEqual(
                {("h", name): 2},
                fit_and_victims.taken(request, host, spot.resources),
            )
            self.assertEqual(1, fit_and_victims.count(request, host,
                                                      spot.resources))

    def test_less_than_may_be_had(self) -> None:
        root = Provider("h", 0, {"VCPU": Inventory(4, min_unit=3)}, {})
        self.assertEqual(
            [],
            fit_and_victims.placements(self.request, Host("h", (root,)), {})
        )


class TestTree(unittest.TestCase):
    """Other resources are taken from the whole tree."""

    request = Request((RequestGroup(
        {"VCPU": 1}), RequestGroup({"GPU": 1}, "1")))

    def test_placements_of_a_host_of_which_no_candidates_are_named(
        self,
    ) -> None:
        host = Host("h", (ROOT, GPU))
        self.assertEqual(
            [
                Placement(
                    (("", ("h",)), ("1", ("g",))),
                    {("h", "VCPU"): 1, ("g", "GPU"): 1},
                )
            ],
            fit_and_victims.placements(self.request, host, SPOT.resources),
        )
        self.assertFalse(fit_and_victims.fits(self.request, host,
                                              {("g", "GPU"): 1}))

    def test_a_class_that_is_below_the_root(self) -> None:
        request = Request.of({"VCPU": 1, "GPU": 1})
        host = Host("h", (ROOT, GPU), (SPOT,))
        found = fit_and_victims.cheapest_victims(request, host)
        assert found is not None
        assert not isinstance(found, Refusal)
        self.assertEqual((SPOT,), found.victims)
        self.assertEqual(5, fit_and_victims.lower_bound(request, host))
        self.assertEqual(0, fit_and_victims.count(request, host, {}))
        self.assertEqual(1, fit_and_victims.count(request, host,
                                                  SPOT.resources))

    def test_a_class_that_is_nowhere(self) -> None:
        found = fit_and_victims.lower_bound(
            Request.of({"FPGA": 1}), Host("h", (ROOT, GPU), (SPOT,))
        )
        assert isinstance(found, Refusal)
        self.assertEqual(
            "FPGA: 1 requested, the host has no inventory of it", found.text
        )
