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

"""Cores, hosts and copies by class of service."""

from __future__ import annotations

import dataclasses
import fractions
import random
import statistics
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.backlog.model import Priorities
from nova_preempt.core.classes import priorities
from nova_preempt.core.classes import sla
from nova_preempt.core.classes.sla import Bounds
from nova_preempt.core.classes.sla import Category
from nova_preempt.core.classes.sla import Service
from nova_preempt.core.classes.sla import SlaHost
from nova_preempt.core.classes.sla import SlaOptions
from nova_preempt.core.classes.sla import SlaRequest
from nova_preempt.core.classes.sla import Start
from tests.unit.core.support import LAW

ONE_COPY = SlaOptions(replicas=dict.fromkeys(Service, 1))


def request(
    uuid: str,
    time: int = 1,
    reputation: int = 3,
    cores: int = 1,
    redundancy: int = 1,
    submitted_us: int = 0,
) -> SlaRequest:
    return SlaRequest(
        uuid, submitted_us, Priorities(time, reputation, cores, redundancy)
    )


def high(uuid: str, idle_cores: int, cores: int = 9) -> SlaHost:
    return SlaHost(uuid, Category.HIGH, cores, idle_cores)


def take(hosts: list[SlaHost], start: Start) -> list[SlaHost]:
    """Return the hosts once this is started."""
    return [
        dataclasses.replace(host, idle_cores=host.idle_cores - start.cores)
        if host.uuid in start.hosts
        else host
        for host in hosts
    ]


class TestBounds(unittest.TestCase):
    def of(self, smallest: int) -> list[tuple[int, int]]:
        found = sla.bounds(smallest)
        return [
            (found[service].least, found[service].most) for service in Service
        ]

    def test_000_b_thirds_of_the_smallest_host(self) -> None:
        for smallest, expected in (
            (3, [(1, 1), (2, 2), (3, 3)]),
            (4, [(1, 1), (2, 2), (3, 4)]),
            (8, [(1, 2), (3, 5), (6, 8)]),
            (9, [(1, 3), (4, 6), (7, 9)]),
            (16, [(1, 5), (6, 10), (11, 16)]),
            (32, [(1, 10), (11, 21), (22, 32)]),
        ):
            self.assertEqual(expected, self.of(smallest), smallest)

    def test_000_c_a_host_without_three_thirds(self) -> None:
        self.assertEqual([(1, 1)] * 3, self.of(1))
        self.assertEqual([(1, 1), (2, 2), (2, 2)], self.of(2))

    def test_of_nothing(self) -> None:
        with self.assertRaisesRegex(ValueError, "smallest host has 0 cores"):
            sla.bounds(0)

    @LAW
    @hypothesis.given(st.integers(3, 10**6))
    def test_the_better_service_never_gets_less(self, smallest: int) -> None:
        low, middle, top = self.of(smallest)
        self.assertEqual((1, smallest), (low[0], top[1]))
        self.assertEqual((low[1] + 1, middle[1] + 1), (middle[0], top[0]))
        for least, most in (low, middle, top):
            self.assertLessEqual(least, most)


class TestCores(unittest.TestCase):
    def test_000_a_the_published_example(self) -> None:
        """But for its end, where the text forgets the bound of 3."""
        hosts = [high("node1", 9), high("node2", 6), high("node3", 6)]
        queue = [
            request("c1", time=3, cores=3),
            request("c2", time=2, cores=2),
            request("c3", time=1, cores=1),
        ]
        started = []
        while queue:
            start = sla.run_once(queue, hosts, ONE_COPY, 0)
            assert start is not None
            started.append(start)
            hosts = take(hosts, start)
            queue = [each for each in queue if each.uuid != start.uuid]
        self.assertEqual(
            [
                Start("c1", 9, ("node1",)),
                Start("c2", 6, ("node2",)),
                Start("c3", 3, ("node3",)),
            ],
            started,
        )

    def test_a_share_is_rounded_down_and_cut_to_its_bounds(self) -> None:
        limits = sla.bounds(32)
        for priority, of_all, idle, expected in (
            (3, 6, 63, 31),
            (3, 6, 21, 22),
            (3, 3, 99, 32),
            (2, 6, 45, 15),
            (1, 10, 55, 5),
            (1, 10, 3, 1),
        ):
            self.assertEqual(
                expected, sla.cores(priority, of_all, idle, limits)
            )

    def test_000_i_run_time_in_parallel(self) -> None:
        self.assertEqual(
            fractions.Fraction(100, 3), sla.run_time_s(300, 9)
        )

    def test_the_largest_flavor_that_is_not_too_large(self) -> None:
        ladder = {"web.1": 1, "web.4": 4, "also.4": 4, "web.8": 8}
        for most, expected in (
            (0, None), (1, "web.1"), (3, "web.1"), (7, "also.4"), (9, "web.8")
        ):
            self.assertEqual(expected, sla.rung(ladder, most), most)


class TestCopies(unittest.TestCase):
    def test_as_many_as_the_redundancy_says(self) -> None:
        self.assertEqual([1, 2, 3], [SlaOptions().copies(p) for p in Service])

    def test_the_text_has_them_beside_the_server(self) -> None:
        options = SlaOptions(replicas_include_primary=False)
        self.assertEqual([2, 3, 4], [options.copies(p) for p in Service])

    def test_000_j_all_copies_or_none(self) -> None:
        hosts = [high("a", 9), high("b", 9)]
        queue = [request("three", redundancy=3)]
        self.assertIsNone(sla.run_once(queue, hosts, SlaOptions(), 0))
        found = sla.run_once(queue, [*hosts, high("c", 9)], SlaOptions(), 0)
        assert found is not None
        self.assertEqual(("a", "b", "c"), found.hosts)

    def test_the_fullest_hosts_first(self) -> None:
        hosts = [high("d", 5), high("c", 4), high("b", 4), high("a", 3)]
        self.assertEqual(("b", "c", "d"), sla.best_fit(hosts, 4, 3))
        self.assertEqual((), sla.best_fit(hosts, 4, 4))

    @LAW
    @hypothesis.given(
        st.lists(st.integers(0, 9), max_size=6),
        st.integers(1, 9),
        st.integers(1, 4),
        st.randoms(use_true_random=False),
    )
    def test_a_choice_keeps_every_promise(
        self, idle: list[int], wanted: int, copies: int, chance: random.Random
    ) -> None:
        hosts = [high(f"{number}", free) for number, free in enumerate(idle)]
        chosen = sla.best_fit(hosts, wanted, copies)
        self.assertEqual(
            copies if sum(free >= wanted for free in idle) >= copies else 0,
            len(set(chosen)),
        )
        self.assertTrue(all(idle[int(uuid)] >= wanted for uuid in chosen))
        chance.shuffle(hosts)
        self.assertEqual(chosen, sla.best_fit(hosts, wanted, copies))


class TestRunOnce(unittest.TestCase):
    def test_000_g_the_next_is_tried_where_the_first_does_not_fit(
        self,
    ) -> None:
        hosts = [high("a", 3), SlaHost("low", Category.LOW, 9, 9)]
        queue = [
            request("first", time=3, cores=2),
            request("second", time=1, cores=1),
        ]
        self.assertEqual(
            Start("second", 1, ("a",)),
            sla.run_once(queue, hosts, ONE_COPY, 0),
        )
        self.assertIsNone(sla.run_once(queue[:1], hosts, ONE_COPY, 0))

    def test_each_goes_to_hosts_of_its_category(self) -> None:
        hosts = [
            SlaHost(category.value, category, 9, 9) for category in Category
        ]
        for reputation, expected in ((1, "low"), (2, "average"), (3, "high")):
            start = sla.run_once(
                [request("r", reputation=reputation)], hosts, ONE_COPY, 0
            )
            assert start is not None
            self.assertEqual((expected,), start.hosts)

    def test_others_of_the_category_alone_share_its_cores(self) -> None:
        hosts = [high("a", 9), SlaHost("low", Category.LOW, 9, 9)]
        queue = [
            request("r", time=3, cores=3),
            *(request(f"{n}", reputation=1) for n in range(9)),
        ]
        start = sla.run_once(queue, hosts, ONE_COPY, 0)
        self.assertEqual(Start("r", 9, ("a",)), start)

    def test_a_host_that_is_not_active_counts_as_the_smallest_only(
        self,
    ) -> None:
        hosts = [high("a", 9), SlaHost("b", Category.HIGH, 3, 3, active=False)]
        start = sla.run_once([request("r", cores=3)], hosts, ONE_COPY, 0)
        self.assertEqual(Start("r", 3, ("a",)), start)

    def test_nothing_to_do(self) -> None:
        self.assertIsNone(sla.run_once([], [high("a", 9)], ONE_COPY, 0))
        self.assertIsNone(sla.run_once([request("r")], [], ONE_COPY, 0))

    def test_requests_age_where_that_is_wanted(self) -> None:
        queue = [
            request("poor", submitted_us=0),
            request("rich", time=3, submitted_us=60_000_000),
        ]
        ageing = SlaOptions(patience_s=60)
        for options, now_us, first in (
            (ONE_COPY, 60_000_000, "rich"),
            (ageing, 60_000_000, "poor"),
            (dataclasses.replace(ageing, patience_s=3600), 0, "rich"),
        ):
            self.assertEqual(
                first, sla.in_order(queue, options, now_us)[0].uuid
            )

    def test_whoever_comes_from_the_future_has_not_waited(self) -> None:
        self.assertEqual(0, priorities.waited_s(5_000_000, 1))
        self.assertEqual(2, priorities.waited_s(5_000_000, 7_999_999))


class TestPublishedSetting(unittest.TestCase):
    """15 hosts of 32 cores, five of each category; SLT is 300 s."""

    def run_all(self, services: list[int]) -> dict[int, list[int]]:
        """Submit all at once; return the cores that each service got."""
        hosts = [
            SlaHost(f"{number:02}", category, 32, 32)
            for number, category in enumerate(
                [category for category in Category for _ in range(5)]
            )
        ]
        queue = [
            SlaRequest(f"{number:03}", 0, Priorities(*[service] * 4))
            for number, service in enumerate(services)
        ]
        by_uuid = dict(zip([each.uuid for each in queue], services,
                           strict=True))
        running: list[tuple[fractions.Fraction, Start]] = []
        now = fractions.Fraction(0)
        got: dict[int, list[int]] = {service: [] for service in Service}
        while queue:
            start = sla.run_once(queue, hosts, SlaOptions(), 0)
            if start is None:
                running.sort(key=lambda each: (each[0], each[1].uuid))
                now, ended = running.pop(0)
                hosts = take(
                    hosts, dataclasses.replace(ended, cores=-ended.cores)
                )
                continue
            hosts = take(hosts, start)
            queue = [each for each in queue if each.uuid != start.uuid]
            got[by_uuid[start.uuid]].append(start.cores)
            running.append((now + sla.run_time_s(300, start.cores), start))
        return got

    def test_the_better_the_service_the_more_cores(self) -> None:
        chance = random.Random(1)
        for mix in ((30, 30, 30), (67, 13, 10)):
            services = [
                service
                for service, count in zip(Service, mix, strict=True)
                for _ in range(count)
            ]
            chance.shuffle(services)
            got = self.run_all(list(map(int, services)))
            self.assertEqual(list(mix), [len(got[each]) for each in Service])
            means = [statistics.mean(got[each]) for each in Service]
            self.assertEqual(sorted(set(means)), means)


class TestRefusals(unittest.TestCase):
    def test_a_request_without_a_service(self) -> None:
        with self.assertRaisesRegex(ValueError, "priority time is 0, it"):
            request("r", time=0)

    def test_a_priority_that_there_is_not(self) -> None:
        with self.assertRaisesRegex(
            ValueError, "priority cores is 4, it must be 1"
        ):
            sla.check(Priorities(1, 2, 4, 3))

    def test_a_host_that_cannot_be(self) -> None:
        with self.assertRaisesRegex(ValueError, "idle_cores of a is 10, it"):
            high("a", 10)
        with self.assertRaisesRegex(ValueError, "cores of a is 0, it must"):
            high("a", 0, cores=0)

    def test_replicas_that_cannot_be(self) -> None:
        with self.assertRaisesRegex(
            ValueError, "replicas of ADVANCED is None, it must be 1 or more"
        ):
            SlaOptions(replicas={Service.BEST_EFFORT: 1})
        none = dict.fromkeys(Service, 0)
        with self.assertRaisesRegex(ValueError, "of BEST_EFFORT is 0, it"):
            SlaOptions(replicas=none)
        options = SlaOptions(none, replicas_include_primary=False)
        self.assertEqual(1, options.copies(3))
        with self.assertRaisesRegex(ValueError, "patience_s is 0"):
            SlaOptions(patience_s=0)

    def test_bounds_hold_what_they_are_given(self) -> None:
        self.assertEqual([2, 3, 4], [Bounds(2, 4).clamp(n) for n in (1, 3, 9)])


if __name__ == "__main__":
    unittest.main()
