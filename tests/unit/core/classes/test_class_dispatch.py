# SPDX-License-Identifier: Apache-2.0

"""Tests of a pass over waiting requests."""

from __future__ import annotations

import dataclasses
import fractions
import itertools
import random
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core import capacity
from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes import class_dispatch
from nova_preempt.core.classes import victim_harm
from nova_preempt.core.classes.availability_margin import Standing
from nova_preempt.core.classes.class_dispatch import Claimant
from nova_preempt.core.classes.class_dispatch import HostAndVictims
from nova_preempt.core.classes.class_dispatch import PassHost
from nova_preempt.core.classes.class_policies import ClassPolicy
from nova_preempt.core.classes.class_policies import PromisePolicy
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.model import SECOND
from nova_preempt.simulator.papers.qos_experiment import PriorityPolicy
from tests.unit.core.classes.support import CLASSES
from tests.unit.core.support import LAW

NOW_US = 10_000 * SECOND
POLICIES: tuple[ClassPolicy, ...] = (
    PromisePolicy(CLASSES),
    PromisePolicy(CLASSES, exact=False),
    PriorityPolicy(CLASSES),
)


def claimant(
    uuid: str,
    name: str,
    vcpus: int = 1,
    *,
    waited_s: int = 0,
    ran_s: int | None = None,
) -> Claimant:
    """Return one that waits, or has run for so long after it waited."""
    qos = CLASSES.find(name)
    assert qos is not None
    ran_us = 0 if ran_s is None else ran_s * SECOND
    events = [Event(NOW_US - ran_us - waited_s * SECOND, Kind.QUEUED)]
    if ran_s is not None:
        events += [
            Event(NOW_US - ran_us, Kind.ALLOCATING),
            Event(NOW_US - ran_us, Kind.RUNNING),
        ]
    return Claimant(uuid, qos, ServerClocks(events),
                    {"VCPU": vcpus, "MEMORY_MB": vcpus}, 0,)


def host(uuid: str, vcpus: int, *claimants: Claimant) -> PassHost:
    return PassHost(
        uuid, {"VCPU": vcpus, "MEMORY_MB": vcpus}, claimants
    )


def one_round(
    waiting: list[Claimant], hosts: list[PassHost],
        policy: ClassPolicy = POLICIES[0]
) -> list[HostAndVictims]:
    return list(class_dispatch.dispatch(waiting, hosts, CLASSES, policy,
                                         NOW_US))


def stand(found: Claimant) -> Standing:
    return CLASSES.stand(
        found.uuid, found.qos, found.clocks, NOW_US, found.overhead_us,
    )


class TestPlacement(unittest.TestCase):
    def test_the_best_allocation_score_where_there_is_room(self) -> None:
        hosts = [
            host("a", 4, claimant("x", "gold", 2, ran_s=9)), host("b", 4)
        ]
        for policy in POLICIES:
            self.assertEqual(
                [HostAndVictims("j", "b")],
                one_round([claimant("j", "bronze")], hosts, policy),
            )

    def test_the_most_urgent_gets_the_only_place(self) -> None:
        waiting = [
            claimant("b", "bronze", waited_s=500),
            claimant("g", "gold"),
            claimant("s", "silver", waited_s=20),
            claimant("t", "silver", waited_s=21),
        ]
        for policy, order in zip(POLICIES, ("gtsb",) * 3, strict=True):
            for count in range(5):
                self.assertEqual(
                    list(order[:count]),
                    [each.uuid
                     for each in one_round(
                        waiting, [host("h", count)], policy)],
                )

    def test_the_request_with_the_largest_margin_is_evicted(self) -> None:
        hosts = [
            host("a", 1, claimant("s", "silver", ran_s=1000)),  # +81 s
            host("b", 1, claimant("t", "silver", ran_s=2000)),  # +192 s
            host("c", 1, claimant("u", "silver", ran_s=1500)),
        ]
        for policy in POLICIES[:2]:
            self.assertEqual(
                [HostAndVictims("j", "b", ("t",))],
                one_round([claimant("j", "bronze")], hosts, policy),
            )
        self.assertEqual(
            [], one_round([claimant("j", "bronze")], hosts, POLICIES[2])
        )

    def test_victims_wait_for_the_next_pass(self) -> None:
        hosts = [
            host("a", 1, claimant("s", "silver", ran_s=2000)),
            host("b", 1, claimant("x", "bronze", ran_s=9000)),
        ]
        self.assertEqual(
            [HostAndVictims("j", "b", ("x",))],
            one_round([claimant("j", "silver")], hosts),
        )

    def test_a_request_that_fits_nowhere_does_not_stop_the_next(self) -> None:
        for policy in POLICIES:
            self.assertEqual(
                [HostAndVictims("k", "h")],
                one_round(
                    [claimant("j", "gold", 9), claimant("k", "bronze")],
                    [host("h", 2)],
                    policy,
                ),
            )

    def test_a_request_placed_in_the_pass_keeps_its_host(self) -> None:
        waiting = [claimant("g", "gold"), claimant("h", "gold", waited_s=1)]
        for policy in POLICIES:
            self.assertEqual(
                [HostAndVictims("h", "a")],
                one_round(waiting, [host("a", 1)], policy),
            )

    def test_by_priority_the_last_that_came_ends_first(self) -> None:
        running = [
            claimant("a", "bronze", ran_s=50),
            claimant("b", "bronze", ran_s=40),
            claimant("c", "silver", ran_s=10),
        ]
        hosts = [host("h", 3, *running)]
        for vcpus, victims in ((1, "b"), (2, "ab"), (3, "abc")):
            self.assertEqual(
                [HostAndVictims("j", "h", tuple(victims))],
                one_round([claimant("j", "gold", vcpus)], hosts, POLICIES[2]),
            )

    def test_by_priority_where_the_fewest_important_ones_end(self) -> None:
        hosts = [
            host("a", 2, claimant("s", "silver", 2, ran_s=9)),
            host("b", 2, claimant("t", "bronze", ran_s=9),
                 claimant("u", "bronze", ran_s=9)),
        ]
        self.assertEqual(
            [HostAndVictims("j", "b", ("t", "u"))],
            one_round([claimant("j", "gold", 2)], hosts, POLICIES[2]),
        )


class TestForemost(unittest.TestCase):
    def test_the_number_of_equal_requests_is_limited(self) -> None:
        waiting = [
            claimant(f"{name} {number}", name, waited_s=100 - number)
            for name in ("bronze", "gold")
            for number in range(4)
        ]
        large = claimant("large", "gold", waited_s=1, vcpus=2)
        found = class_dispatch.first_requests(
            [*waiting, large], CLASSES, PromisePolicy(CLASSES), NOW_US, 2
        )
        self.assertEqual(
            ["gold 0", "gold 1", "large", "bronze 0", "bronze 1"],
            [one.uuid for one in found],
        )


class TestScore(unittest.TestCase):
    def test_the_mean_of_two_scores(self) -> None:
        has = {"VCPU": 8, "MEMORY_MB": 100}
        for wanted, free, expected in (
            ({"VCPU": 4, "MEMORY_MB": 50}, has, fractions.Fraction(15, 2)),
            ({"VCPU": 8, "MEMORY_MB": 100}, has, 5),
            ({"VCPU": 4, "MEMORY_MB": 100}, has, fractions.Fraction(15, 4)),
            ({"VCPU": 2, "MEMORY_MB": 25}, {"VCPU": 4, "MEMORY_MB": 50},
             fractions.Fraction(25, 4)),
            ({"VCPU": 0}, {}, 10),
        ):
            self.assertEqual(
                expected, class_dispatch.allocation_score(wanted, free, has)
            )


@st.composite
def clouds(
    draw: st.DrawFn,
) -> tuple[list[Claimant], list[PassHost]]:
    """Draw waiting servers, and hosts with running servers."""
    serial = itertools.count()

    def some(runs: bool, vcpus: int) -> Claimant:
        return claimant(
            f"{next(serial):02}",
            draw(st.sampled_from(("gold", "silver", "bronze"))),
            draw(st.integers(1, min(3, vcpus))),
            waited_s=draw(st.sampled_from((0, 5, 100, 1000))),
            ran_s=draw(st.sampled_from((0, 5, 100, 1000))) if runs else None,
        )

    hosts = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        size = free = draw(st.integers(1, 5))
        there = []
        while free and draw(st.integers(0, 4)):
            there.append(some(True, free))
            free -= there[-1].resources["VCPU"]
        hosts.append(host(name, size, *there))
    waiting = [some(False, 5) for _ in range(draw(st.integers(0, 4)))]
    return waiting, hosts


def after(
        waiting: list[Claimant], hosts: list[PassHost],
        placed: list[HostAndVictims]) -> tuple[list[Claimant], list[PassHost]]:
    """Carry a pass out, at its instant."""
    known = {each.uuid: each for each in waiting}
    there = {each.uuid: {one.uuid: one for one in each.claimants}
             for each in hosts}

    def told(found: Claimant, *kinds: Kind) -> Claimant:
        return dataclasses.replace(
            found,
            clocks=found.clocks.applied(
                *(Event(NOW_US, kind) for kind in kinds)
            ),
        )

    for placement in placed:
        for victim in placement.victims:
            found = there[placement.host].pop(victim)
            known[victim] = told(found, Kind.EVICTED)
        there[placement.host][placement.uuid] = told(
            known.pop(placement.uuid), Kind.ALLOCATING
        )
    return list(known.values()), [
        dataclasses.replace(
            each, claimants=tuple(there[each.uuid].values())
        )
        for each in hosts
    ]


class TestLaws(unittest.TestCase):
    @LAW
    @hypothesis.given(clouds(), st.randoms(use_true_random=False))
    def test_the_order_of_input_does_not_matter(
        self,
        cloud: tuple[list[Claimant], list[PassHost]],
        chance: random.Random,
    ) -> None:
        waiting, hosts = cloud
        for policy in POLICIES:
            placed = one_round(waiting, hosts, policy)
            mixed = [
                dataclasses.replace(
                    each,
                    claimants=tuple(chance.sample(each.claimants,
                                                  len(each.claimants))),
                )
                for each in chance.sample(hosts, len(hosts))
            ]
            self.assertEqual(
                placed,
                one_round(chance.sample(waiting, len(waiting)), mixed, policy),
            )

    @LAW
    @hypothesis.given(clouds())
    def test_a_pass_keeps_every_promise_of_its_own(
        self, cloud: tuple[list[Claimant], list[PassHost]]
    ) -> None:
        waiting, hosts = cloud
        known = {each.uuid: each for each in waiting}
        known |= {
            one.uuid: one for each in hosts for one in each.claimants
        }
        sizes = {each.uuid: each.capacity for each in hosts}
        for policy in POLICIES:
            there = {
                each.uuid: {one.uuid for one in each.claimants}
                for each in hosts
            }
            for placement in one_round(waiting, hosts, policy):
                here = there[placement.host]
                one = known[placement.uuid]

                def fits(
                    uuids: set[str],
                    one: Claimant = one,
                    size: dict[str, int] = sizes[placement.host],
                ) -> bool:
                    used = capacity.total(
                        known[uuid].resources for uuid in uuids
                    )
                    return capacity.fits(
                        capacity.total((used, one.resources)), size
                    )

                # All victims are there, may be preempted, and are needed.
                for victim in placement.victims:
                    self.assertIn(victim, here)
                    self.assertTrue(
                        policy.may_preempt(stand(one), stand(known[victim]))
                    )
                    rest = set(placement.victims) - {victim}
                    self.assertFalse(fits(here - rest))
                here -= set(placement.victims)
                self.assertTrue(fits(here))
                here.add(placement.uuid)

    @LAW
    @hypothesis.given(clouds())
    def test_one_request_gets_the_best_of_all_sets_of_all_hosts(
        self, cloud: tuple[list[Claimant], list[PassHost]]
    ) -> None:
        waiting, hosts = cloud
        hypothesis.assume(waiting)
        one = waiting[0]
        sets: list[tuple[int, ...]] = []
        for each in hosts:
            for count in range(len(each.claimants) + 1):
                for gone in itertools.combinations(each.claimants, count):
                    used = capacity.total(
                        other.resources
                        for other in (*each.claimants, one)
                        if other not in gone
                    )
                    if capacity.fits(used, each.capacity) and all(
                        availability_margin.may_preempt(stand(one),
                                                        stand(other))
                        for other in gone
                    ):
                        of_each = [victim_harm.levels(CLASSES, stand(other))
                                   for other in gone]
                        sets.append(
                            tuple(map(sum, zip(*of_each, strict=True)))
                            or (0,) * 4
                        )
        found = one_round([one], hosts)
        self.assertEqual(bool(sets), bool(found))
        for placement in found:
            of_each = [
                victim_harm.levels(CLASSES, stand(other))
                for each in hosts
                for other in each.claimants
                if other.uuid in placement.victims
            ]
            self.assertEqual(
                min(sets), tuple(map(sum, zip(*of_each, strict=True)))
                or (0,) * 4
            )

    @LAW
    @hypothesis.given(clouds())
    def test_passes_of_one_instant_come_to_an_end(
        self, cloud: tuple[list[Claimant], list[PassHost]]
    ) -> None:
        for policy in POLICIES:
            waiting, hosts = cloud
            count = len(waiting) + sum(len(each.claimants) for each in hosts)
            for _ in range(count + 1):
                placed = one_round(waiting, hosts, policy)
                if not placed:
                    break
                waiting, hosts = after(waiting, hosts, placed)
            self.assertEqual([], placed)


if __name__ == "__main__":
    unittest.main()
