# SPDX-License-Identifier: Apache-2.0

"""Shortfall of a host."""

from __future__ import annotations

import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core import capacity
from nova_preempt.core.capacity import by_class
from nova_preempt.core.capacity import count
from nova_preempt.core.capacity import missing
from nova_preempt.core.model import (
    Candidate,
    Host,
    Inventory,
    Provider,
    Refusal,
    RefusalCode,
    Request,
    RequestGroup,
    Resources,
)
from tests.unit.core import support


def lack(
    amount: int,
    inventory: Inventory,
    used: int = 0,
    held: int = 0,
) -> dict[str, int] | Refusal:
    """Return what is missing of the only class, of which ``held`` of the
    used amount is held by a candidate."""
    provider = Provider("h", 0, {"VCPU": inventory}, {
        "u": {"VCPU": held}, "others": {"VCPU": used - held}})
    candidates = (Candidate("u", {("h", "VCPU"): held}, 0),) if held else ()
    return lacks({"VCPU": amount}, Host("h", (provider,), candidates))


def lacks(resources: Resources, host: Host) -> dict[str, int] | Refusal:
    """Return the shortfall by class."""
    found = missing(Request.of(resources), host)
    return found if isinstance(found, Refusal) else by_class(found)


class TestCapacity(unittest.TestCase):
    """The capacity of an inventory is Placement's."""

    def test_cases(self) -> None:
        for expected, inventory in (
            (8, Inventory(8)),
            (6, Inventory(8, reserved=2)),
            (0, Inventory(8, reserved=8)),
            (0, Inventory(8, reserved=9)),
            (12, Inventory(8, allocation_ratio=1.5)),
            (10, Inventory(7, allocation_ratio=1.5)),
            (9, Inventory(8, reserved=2, allocation_ratio=1.5)),
            (128, Inventory(8, allocation_ratio=16.0)),
            (0, Inventory(8, allocation_ratio=0.0)),
            (9, Inventory(10, allocation_ratio=0.9)),
            (171, Inventory(190, allocation_ratio=0.9)),
            (77, Inventory(70, allocation_ratio=1.1)),
            (3, Inventory(3, allocation_ratio=1.1)),
        ):
            self.assertEqual(expected, inventory.capacity, inventory)

    def test_rounds_like_the_float(self) -> None:
        """0.57 * 100 is a little less than 57, 1.1 * 100 more than 110."""
        self.assertEqual(56, Inventory(100, allocation_ratio=0.57).capacity)
        self.assertEqual(110, Inventory(100, allocation_ratio=1.1).capacity)

    @support.LAW
    @hypothesis.given(
        st.integers(0, 10**6),
        st.integers(0, 10**3),
        st.floats(0, 64, allow_nan=False),
        st.integers(0, 10**6),
        st.integers(1, 10**6),
    )
    def test_grants_what_placement_grants(
        self, total: int, reserved: int, ratio: float, used: int, amount: int
    ) -> None:
        """Placement compares the float, the core its integer part."""
        inventory = Inventory(total, reserved, allocation_ratio=ratio)
        granted = (total - reserved) * ratio >= used + amount
        self.assertEqual(granted, lack(amount, inventory, used) == {})


class TestMissing(unittest.TestCase):
    """The shortfall is the amount that has to be freed."""

    def test_nothing_is_missing_if_it_fits(self) -> None:
        self.assertEqual({}, lack(4, Inventory(8), used=4))

    def test_nothing_asked_for(self) -> None:
        self.assertEqual({}, lack(0, Inventory(8), used=20))
        self.assertEqual({}, lacks({"NONE": 0}, support.host("h", {}, {})))

    def test_negative_amounts_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "negative"):
            lack(-1, Inventory(8))

    def test_the_shortfall_is_missing(self) -> None:
        self.assertEqual({"VCPU": 2}, lack(4, Inventory(8), used=6, held=3))

    def test_all_of_the_request_can_be_freed(self) -> None:
        self.assertEqual({"VCPU": 4}, lack(4, Inventory(8), used=8, held=4))

    def test_used_beyond_capacity(self) -> None:
        """The excess has to be freed as well."""
        self.assertEqual({"VCPU": 6}, lack(4, Inventory(8), used=10, held=7))

    def test_free_amounts_are_not_named(self) -> None:
        only = support.host(
            "h",
            {"VCPU": 8, "MEMORY_MB": 100},
            {"VCPU": 4},
            [support.candidate("u", VCPU=4, MEMORY_MB=10)],
        )
        self.assertEqual(
            {"VCPU": 1}, lacks({"MEMORY_MB": 90, "VCPU": 1}, only)
        )

    def test_an_unused_class(self) -> None:
        only = Host("h", (Provider("h", 0, {"VGPU": Inventory(1)}, {}),))
        self.assertEqual({}, lacks({"VGPU": 1}, only))


class TestRefusals(unittest.TestCase):
    """Refusals that no eviction could change, with numbers."""

    def refused(
        self, code: RefusalCode, text: str, found: dict[str, int] | Refusal
    ) -> None:
        self.assertEqual(Refusal(code, text), found)

    def test_no_inventory(self) -> None:
        self.refused(
            RefusalCode.NO_INVENTORY,
            "VGPU: 1 requested, the host has no inventory of it",
            lacks({"VGPU": 1}, support.host("h", {"VCPU": 8}, {})),
        )

    def test_min_unit(self) -> None:
        inventory = Inventory(8, min_unit=4)
        self.assertEqual({}, lack(4, inventory))
        self.refused(
            RefusalCode.BELOW_MIN_UNIT,
            "VCPU: 3 requested, min_unit is 4",
            lack(3, inventory),
        )

    def test_max_unit(self) -> None:
        inventory = Inventory(8, max_unit=4)
        self.assertEqual({}, lack(4, inventory))
        self.refused(
            RefusalCode.ABOVE_MAX_UNIT,
            "VCPU: 5 requested, max_unit is 4",
            lack(5, inventory),
        )

    def test_step_size(self) -> None:
        inventory = Inventory(8, step_size=2)
        self.assertEqual({}, lack(4, inventory))
        self.refused(
            RefusalCode.STEP_SIZE,
            "VCPU: 3 requested, not a multiple of step_size 2",
            lack(3, inventory),
        )

    def test_no_space(self) -> None:
        self.refused(
            RefusalCode.NO_ROOM,
            "VCPU: 5 requested, 2 of 8 free and 2 held by preemptible servers",
            lack(5, Inventory(8), used=6, held=2),
        )

    def test_no_space_on_an_empty_host(self) -> None:
        self.refused(
            RefusalCode.NO_ROOM,
            "VCPU: 9 requested, 8 of 8 free and 0 held by preemptible servers",
            lack(9, Inventory(8)),
        )

    def test_lasting_reasons_come_first(self) -> None:
        only = support.host("h", {"A": 1}, {})
        found = lacks({"A": 2, "B": 1}, only)
        assert isinstance(found, Refusal)
        self.assertIs(RefusalCode.NO_INVENTORY, found.code)

    def test_granular(self) -> None:
        """A numbered group is not served, even with space."""
        found = missing(
            Request((RequestGroup(
                {"VCPU": 1}), RequestGroup({"VGPU": 1}, "1"))),
            support.host("h", {"VCPU": 8, "VGPU": 8}, {}),
        )
        assert isinstance(found, Refusal)
        self.assertIs(RefusalCode.GRANULAR, found.code)
        self.assertIn("group 1:", found.text)


class TestCount(unittest.TestCase):
    """Tests of the number of servers that fit."""

    def test_the_scarcest_counts(self) -> None:
        only = support.host("h", {"VCPU": 8, "MEMORY_MB": 100}, {"VCPU": 2})
        asked = Request.of({"VCPU": 2, "MEMORY_MB": 30, "VGPU": 0})
        self.assertEqual(3, count(asked, only, {}))
        self.assertEqual(3, count(asked, only, {(only.uuid, "VCPU"): 2}))
        self.assertEqual(
            4,
            count(
                asked,
                only,
                {(only.uuid, "VCPU"): 2, (only.uuid, "MEMORY_MB"): 20},
            ),
        )

    def test_no_server_fits(self) -> None:
        only = support.host("h", {"VCPU": 8}, {"VCPU": 9})
        self.assertEqual(0, count(Request.of({"VCPU": 1}), only, {}))
        self.assertEqual(0, count(Request.of({"VGPU": 1}), only, {}))
        self.assertEqual(0, count(Request.of({}), only, {}))


class TestAmounts(unittest.TestCase):
    def test_total(self) -> None:
        self.assertEqual(
            {"VCPU": 3, "DISK_GB": 5},
            capacity.total([{"VCPU": 1}, {}, {"VCPU": 2, "DISK_GB": 5}]),
        )

    def test_subtract(self) -> None:
        self.assertEqual(
            {"VCPU": 3, "DISK_GB": -5, "VGPU": 0},
            capacity.subtract(
                {"VCPU": 4, "VGPU": 1}, {"VCPU": 1, "DISK_GB": 5, "VGPU": 1}
            ),
        )

    def test_fits(self) -> None:
        free = {"VCPU": 2, "VGPU": -1}
        for wanted, expected in (
            ({}, True),
            ({"VCPU": 2}, True),
            ({"VCPU": 3}, False),
            ({"VCPU": 1, "DISK_GB": 1}, False),
            ({"DISK_GB": 0}, True),
            ({"VGPU": 0}, False),
        ):
            with self.subTest(wanted=wanted):
                self.assertIs(expected, capacity.fits(wanted, free))

    def test_rooms_are_sums_of_trees(self) -> None:
        """Sums over trees and shared providers."""
        def summary(root: str | None, **amounts: tuple[int, int]) -> object:
            return {
                "root_provider_uuid": root,
                "resources": {
                    name: {"capacity": capacity, "used": used}
                    for name, (capacity, used) in amounts.items()
                },
            }

        self.assertEqual(
            {"h": {"VCPU": 3, "CUSTOM_GPU": 3}, "s": {"DISK_GB": -1}},
            capacity.free_by_root({
                "h": summary("h", VCPU=(4, 1)),
                "g": summary("h", CUSTOM_GPU=(1, 0)),
                "k": summary("h", CUSTOM_GPU=(4, 2)),
                "s": summary(None, DISK_GB=(10, 11)),
            }),
        )


class TestSlots(unittest.TestCase):

    def test_amounts_of_several_providers(self):
        self.assertEqual(
            {('p', 'VCPU'): 1, ('p', 'MEMORY_MB'): 2, ('q', 'VCPU'): 3},
            capacity.by_slot({'p': {'VCPU': 1, 'MEMORY_MB': 2},
                              'q': {'VCPU': 3}}))


class TestMostUsed(unittest.TestCase):

    def test_amounts_reserved_since_they_are_in_use(self):
        for inventory, expected in (
                (Inventory(4), 4), (Inventory(4, reserved=1), 3),
                (Inventory(4, reserved=1, allocation_ratio=2.0), 6),
                (Inventory(1, reserved=1), 1)):
            self.assertEqual(expected, capacity.most_used(inventory))
