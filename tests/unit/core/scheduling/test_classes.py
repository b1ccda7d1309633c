# SPDX-License-Identifier: Apache-2.0

"""Requests and servers of classes, as a scheduler decides on them."""

from __future__ import annotations

import dataclasses
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.classes import class_dispatch
from nova_preempt.core.classes.class_dispatch import Claimant
from nova_preempt.core.classes.class_policies import PromisePolicy
from nova_preempt.core.classes.promised_availability import ClassPromiseRules
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.model import SECOND
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.times import microseconds
from tests.unit.core.classes.support import CLASSES
from tests.unit.core.scheduling import world
from tests.unit.core.support import LAW

NOW_US = microseconds(world.NOW)
PREEMPTIBLE = preemption_policy.PREEMPTIBLE


def claimant(uuid: str, name: str, ran_s: int, waited_s: int = 0) -> Claimant:
    """Return one that has run for so long after it waited for so long."""
    qos = CLASSES.find(name)
    assert qos is not None
    begun_us = NOW_US - ran_s * SECOND
    events = [Event(begun_us - waited_s * SECOND, Kind.QUEUED)]
    if ran_s:
        events += [
            Event(begun_us, Kind.ALLOCATING), Event(begun_us, Kind.RUNNING)
        ]
    return Claimant(uuid, qos, ServerClocks(events), {"VCPU": 1})


class World(world.World):
    """World whose servers may have classes."""

    def __init__(self) -> None:
        super().__init__()
        self.claimants: dict[str, Claimant] = {}

    def promise(self, *claimants: Claimant) -> ClassPromiseRules:
        """Let these have a class."""
        self.claimants |= {each.uuid: each for each in claimants}
        found = ClassPromiseRules(CLASSES, self.claimants, NOW_US)
        self.set(classes=found)
        return found

    def rank(self, one: Claimant) -> preemption_policy.PreemptionRight:
        return preemption_policy.PreemptionRight(
            is_preemptible=True,
            claim=ClassPromiseRules(CLASSES, {}, NOW_US).claim(one),
        )


class TestClasses(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.world = World()
        for name, spots in (("a", "gs"), ("b", "bt")):
            self.world.add(
                name, world.amounts(2),
                spots={uuid: (1, world.amounts(1)) for uuid in spots},
            )
        self.claimants = (
            claimant("g", "gold", 5000),
            claimant("s", "silver", 5000, 550),
            claimant("t", "silver", 5000),
            claimant("b", "bronze", 5000),
        )

    def place(
        self, vcpus: int = 1, **kwargs: object
    ) -> list[tuple[str, list[str]]] | None:
        return self.world.placed(
            world.amounts(vcpus),
            make_server=lambda uuid, host: world.server(uuid, host.name),
            **kwargs,
        )

    def test_the_server_with_the_most_margin_is_evicted(self) -> None:
        self.world.promise(*self.claimants)
        rank = self.world.rank(claimant("new", "silver", 0, 60))
        self.assertEqual([("b", ["b"])], self.place(rank=rank))
        # Then the next, and who is near to its promise does not.
        self.assertEqual(
            [("b", ["t"])], self.place(rank=rank, excluded=["b", "new"])
        )

    def test_a_class_does_not_evict_more_important_ones(self) -> None:
        self.world.promise(*self.claimants)
        rank = self.world.rank(claimant("new", "bronze", 0))
        self.assertIsNone(self.place(rank=rank, excluded=["b", "t"]))

    def test_a_preemptible_request_without_class_evicts_none(self) -> None:
        self.world.promise(*self.claimants)
        self.assertIsNone(self.place(rank=PREEMPTIBLE))

    def test_claims_have_no_effect_without_classes(self) -> None:
        rank = self.world.rank(claimant("new", "gold", 0, 60))
        self.assertIsNone(self.place(rank=rank))
        self.assertFalse(self.world.policy.may_preempt_any(rank))
        self.assertTrue(
            self.world.policy.may_preempt_any(preemption_policy.NORMAL))

    def test_a_server_of_a_class_is_never_deleted(self) -> None:
        """This holds even if the operator disallows shelve later."""
        known = world.server("s", action="shelve", class_name="silver")
        for allowed, able in (
            (("delete",), False),
            (("stop", "delete"), False),
            (("delete", "shelve"), True),
        ):
            self.world.set(actions=allowed)
            policy = self.world.policy
            self.assertIs(able, policy.is_able(known), allowed)
            self.assertIs(able, policy.may_be_victim(known, world.NOW))
            self.assertTrue(policy.is_able(world.server("x")))

    def test_unknown_servers_end_for_normal_requests_only(self) -> None:
        self.world.promise(
            *(each for each in self.claimants if each.uuid in "g")
        )
        rank = self.world.rank(claimant("new", "silver", 0, 60))
        self.assertIsNone(self.place(rank=rank))
        self.assertIsNotNone(self.place(rank=preemption_policy.NORMAL))

    def test_a_normal_request_chooses_by_promises_first(self) -> None:
        self.world.promise(*self.claimants)
        # The dearest otherwise, for nobody else would be harmed less.
        self.world.costs["b"] = 10**9
        self.assertEqual(
            [("b", ["b"])], self.world.placed(world.amounts(1))
        )

    def test_costs_are_unchanged_without_promises(self) -> None:
        before = World()
        for other in (self.world, before):
            other.add(
                "c", world.amounts(2),
                spots={"x": (5, world.amounts(1)), "y": (4,
                                                         world.amounts(1))},
            )
        self.world.promise(*self.claimants)
        found = [
            each for each in self.world.considered(world.amounts(1))
            if each[0] == "c"
        ]
        self.assertEqual(before.considered(world.amounts(1)), found)

    def test_incomplete_clocks(self) -> None:
        """It is spared for classes, and the most expensive for others."""
        gap = claimant("s", "silver", 5000)
        gap = dataclasses.replace(
            gap, clocks=ServerClocks((Event(NOW_US, Kind.RUNNING),))
        )
        known = ClassPromiseRules(
            CLASSES,
            {"s": gap,
             "empty": dataclasses.replace(gap, clocks=ServerClocks())},
            NOW_US,
        )
        claim = known.claim(claimant("new", "gold", 0, 60))
        worst = ClassPromiseRules(
            CLASSES, {"x": claimant("x", "silver", 10, 10**9)}, NOW_US
        ).cost(world.server("x"), 0)
        for server in (
            world.server("s"),
            world.server("empty"),
            world.server("new", class_name="silver"),
        ):
            self.assertFalse(known.may_preempt(claim, server))
            self.assertLessEqual(worst, known.cost(server, 0))
            self.assertEqual(
                known.cost(server, 0), known.floor(server, NOW_US)
            )
        # Of a class that there is no more.
        server = world.server("old", class_name="iron")
        self.assertEqual(7, known.cost(server, 7))
        self.assertIsNone(known.floor(server, NOW_US))

    def test_costs_break_ties_of_promises(self) -> None:
        known = ClassPromiseRules(
            CLASSES, {uuid: claimant(uuid, "gold", 9) for uuid in "xy"},
            NOW_US,
        )
        x, y, z = map(world.server, "xyz")
        costs = [known.cost(x, 5), known.cost(y, 7)]
        self.assertLess(*costs)
        self.assertEqual(12, known.other_cost_us(sum(costs)))
        self.assertEqual(3, known.other_cost_us(known.cost(z, 3)))
        # However dear somebody is otherwise, promises come first.
        self.assertLess(known.cost(z, 2**80), min(costs))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, list[class_dispatch.PassHost]]:
    """Draw full hosts of servers that all stand differently."""
    found = World()
    ran_s = iter(draw(st.permutations(range(20, 6000, 97))))
    names = iter("abcdefghijklmnop")
    hosts = []
    for name in "ABC"[: draw(st.integers(1, 3))]:
        there = [
            claimant(
                next(names),
                draw(st.sampled_from(("gold", "silver", "bronze"))),
                next(ran_s),
                draw(st.sampled_from((0, 0, 50, 500))),
            )
            for _ in range(draw(st.integers(1, 4)))
        ]
        size = world.amounts(len(there))
        found.add(
            name, size, uuid=name,
            spots={each.uuid: (0, world.amounts(1)) for each in there},
        )
        hosts.append(class_dispatch.PassHost(name, size, tuple(there)))
        found.promise(*there)
    return found, hosts


class TestLaws(unittest.TestCase):
    @LAW
    @hypothesis.given(
        worlds(), st.sampled_from(("gold", "silver", "bronze")),
        st.integers(0, 500), st.integers(1, 3),
    )
    def test_a_scheduler_decides_as_a_pass_does(
        self,
        drawn: tuple[World, list[class_dispatch.PassHost]],
        name: str,
        waited_s: int,
        vcpus: int,
    ) -> None:
        known, hosts = drawn
        qos = CLASSES.find(name)
        assert qos is not None
        one = Claimant(
            "new", qos,
            ServerClocks((Event(NOW_US - waited_s * SECOND, Kind.QUEUED),)),
            world.amounts(vcpus),
        )
        by_pass = [
            (each.host, list(each.victims))
            for each in class_dispatch.dispatch(
                [one], hosts, CLASSES, PromisePolicy(CLASSES), NOW_US
            )
        ]
        by_scheduler = known.placed(
            world.amounts(vcpus), rank=known.rank(one),
            make_server=lambda uuid, host: world.server(uuid, host.name),
        )
        self.assertEqual(by_pass, by_scheduler or [])


if __name__ == "__main__":
    unittest.main()
