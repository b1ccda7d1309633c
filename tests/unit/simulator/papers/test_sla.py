# SPDX-License-Identifier: Apache-2.0
"""Tests of the choice of containers, their hosts and their cores."""

from __future__ import annotations

import fractions
import random
import statistics
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.backlog.backlog_model import SlaPriorities
from nova_preempt.core.classes.request_size import HostReputation
from nova_preempt.core.classes.request_size import ServiceLevel
from nova_preempt.simulator.papers import sla
from tests.unit.core.support import LAW


def request(
    uuid: str,
    time: int = 1,
    reputation: int = 3,
    cores: int = 1,
    redundancy: int = 1,
    submitted_us: int = 0,
) -> sla.Request:
    return sla.Request(
        uuid, submitted_us, SlaPriorities(time, reputation, cores, redundancy)
    )


def high(uuid: str, idle_cores: int, cores: int = 9) -> sla.Host:
    return sla.Host(uuid, HostReputation.HIGH, cores, idle_cores)


def take(hosts: list[sla.Host],
         start: sla.Start) -> list[sla.Host]:
    """Return the hosts once this is started."""
    return [
        host._replace(idle_cores=host.idle_cores - start.cores)
        if host.uuid in start.hosts
        else host
        for host in hosts
    ]


class TestPublishedExample(unittest.TestCase):
    def test_000_a_the_published_example(self) -> None:
        """The end differs, where the text forgets the bound of 3."""
        hosts = [high("node1", 9), high("node2", 6), high("node3", 6)]
        queue = [
            request("c1", time=3, cores=3),
            request("c2", time=2, cores=2),
            request("c3", time=1, cores=1),
        ]
        started = []
        while queue:
            start = sla.choose(queue, hosts)
            assert start is not None
            started.append(start)
            hosts = take(hosts, start)
            queue = [each for each in queue if each.uuid != start.uuid]
        self.assertEqual(
            [
                sla.Start("c1", 9, ("node1",)),
                sla.Start("c2", 6, ("node2",)),
                sla.Start("c3", 3, ("node3",)),
            ],
            started,
        )

    def test_000_i_run_time_in_parallel(self) -> None:
        self.assertEqual(
            fractions.Fraction(100, 3), sla.run_time_s(300, 9)
        )


class TestCopies(unittest.TestCase):
    def test_000_j_all_copies_or_none(self) -> None:
        hosts = [high("a", 9), high("b", 9)]
        queue = [request("three", redundancy=3)]
        self.assertIsNone(sla.choose(queue, hosts))
        found = sla.choose(queue, [*hosts, high("c", 9)])
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
        hosts = [high("a", 3), sla.Host("low", HostReputation.LOW, 9, 9)]
        queue = [
            request("first", time=3, cores=2),
            request("second", time=1, cores=1),
        ]
        self.assertEqual(
            sla.Start("second", 1, ("a",)),
            sla.choose(queue, hosts),
        )
        self.assertIsNone(sla.choose(queue[:1], hosts))

    def test_each_goes_to_hosts_of_its_category(self) -> None:
        hosts = [
            sla.Host(category.value, category, 9, 9)
            for category in HostReputation
        ]
        for reputation, expected in ((1, "low"), (2, "average"), (3, "high")):
            start = sla.choose(
                [request("r", reputation=reputation)], hosts
            )
            assert start is not None
            self.assertEqual((expected,), start.hosts)

    def test_cores_are_shared_within_a_category(self) -> None:
        hosts = [high("a", 9), sla.Host("low", HostReputation.LOW, 9, 9)]
        queue = [
            request("r", time=3, cores=3),
            *(request(f"{n}", reputation=1) for n in range(9)),
        ]
        start = sla.choose(queue, hosts)
        self.assertEqual(sla.Start("r", 9, ("a",)), start)

    def test_nothing_to_do(self) -> None:
        self.assertIsNone(sla.choose([], [high("a", 9)]))
        self.assertIsNone(sla.choose([request("r")], []))


class TestPublishedSetting(unittest.TestCase):
    """15 hosts of 32 cores, five of each category; SLT is 300 s."""

    def run_all(self, services: list[int]) -> dict[int, list[int]]:
        """Submit all at once; return the cores that each service got."""
        hosts = [
            sla.Host(f"{number:02}", category, 32, 32)
            for number, category in enumerate(
                [category for category in HostReputation for _ in range(5)]
            )
        ]
        queue = [
            sla.Request(f"{number:03}", 0, SlaPriorities(*[service] * 4))
            for number, service in enumerate(services)
        ]
        by_uuid = dict(zip([each.uuid for each in queue], services,
                           strict=True))
        running: list[tuple[fractions.Fraction, sla.Start]] = []
        now = fractions.Fraction(0)
        got: dict[int, list[int]] = {service: [] for service in ServiceLevel}
        while queue:
            start = sla.choose(queue, hosts)
            if start is None:
                running.sort(key=lambda each: (each[0], each[1].uuid))
                now, ended = running.pop(0)
                hosts = take(
                    hosts, ended._replace(cores=-ended.cores)
                )
                continue
            hosts = take(hosts, start)
            queue = [each for each in queue if each.uuid != start.uuid]
            got[by_uuid[start.uuid]].append(start.cores)
            running.append((now + sla.run_time_s(300, start.cores),
                            start))
        return got

    def test_the_better_the_service_the_more_cores(self) -> None:
        chance = random.Random(1)
        for mix in ((30, 30, 30), (67, 13, 10)):
            services = [
                service
                for service, count in zip(ServiceLevel, mix, strict=True)
                for _ in range(count)
            ]
            chance.shuffle(services)
            got = self.run_all(list(map(int, services)))
            self.assertEqual(list(mix),
                             [len(got[each]) for each in ServiceLevel])
            means = [statistics.mean(got[each]) for each in ServiceLevel]
            self.assertEqual(sorted(set(means)), means)


if __name__ == "__main__":
    unittest.main()
