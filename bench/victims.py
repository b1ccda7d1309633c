# SPDX-License-Identifier: Apache-2.0

"""Measure the choice of victims: time, and how often it is proven.

    python bench/victims.py [--cases N] [--seed S] [--candidates K] [CASE...]

Each case draws N hosts with K preemptible servers that use four resource
classes, asks for room, and prints the median, the 99th percentile and the
largest time of ``cheapest_victims`` in milliseconds, and the share of
answers that are proven optimal. Times are those of the processor, so that
other work on the machine matters little. Same seed, same hosts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
import gc
import random
import statistics
import time
from typing import TypeAlias

from nova_preempt.core.classes import victim_harm
from nova_preempt.core.model import (
    SECOND,
    Candidate,
    Host,
    Inventory,
    Provider,
    Request,
    RequestGroup,
    VictimSet,
)
from nova_preempt.core.nested import nested_victims
from nova_preempt.core.victims import SearchLimits
from nova_preempt.core.victims import cheapest_victims

Vector: TypeAlias = tuple[int, ...]
Draw: TypeAlias = Callable[[random.Random, int], list[Vector]]
Price: TypeAlias = Callable[[random.Random, list[Vector]], list[int]]
Ask: TypeAlias = Callable[[random.Random, Vector], Vector]

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "VGPU")
HOUR = 3600 * SECOND

#: The case of hosts that are trees.
TREES = "trees, 8 GPUs, 2 NUMA nodes"

FLAVORS: tuple[Vector, ...] = (
    (1, 512, 10, 0),
    (1, 2048, 20, 0),
    (2, 4096, 40, 0),
    (4, 8192, 80, 0),
    (8, 16384, 160, 0),
    (2, 8192, 20, 0),
    (4, 32768, 40, 0),
    (16, 32768, 100, 0),
    (4, 8192, 100, 1),
    (8, 32768, 200, 2),
)

REQUESTS: tuple[Vector, ...] = (
    (4, 8192, 80, 0),
    (8, 16384, 160, 0),
    (16, 65536, 300, 1),
    (32, 131072, 400, 0),
    (64, 262144, 800, 2),
)


def flavors(rng: random.Random, count: int) -> list[Vector]:
    """Return servers of four to eight flavors."""
    mix = rng.sample(FLAVORS, rng.randint(4, 8))
    return [rng.choice(mix) for _ in range(count)]


def sizes(rng: random.Random, count: int) -> list[Vector]:
    """Return servers of any size."""
    return [
        (
            rng.randint(1, 16),
            rng.randint(1, 128) * 256,
            rng.randint(1, 200),
            rng.choice((0, 0, 0, 1, 2)),
        )
        for _ in range(count)
    ]


def totals(servers: Iterable[Vector]) -> Vector:
    """Return what all of them use."""
    return tuple(map(sum, zip(*servers, strict=True)))


def hourly(rng: random.Random, servers: list[Vector]) -> list[int]:
    """Return costs spread evenly over the hour."""
    return [rng.randrange(HOUR) for _ in servers]


def revenue(rng: random.Random, servers: list[Vector]) -> list[int]:
    """Return costs spread evenly over the hour, for every vCPU."""
    return [vector[0] * rng.randrange(HOUR) for vector in servers]


def by_size(rng: random.Random, servers: list[Vector]) -> list[int]:
    """Return costs in proportion to size, give or take 5 %."""
    host = totals(servers)
    return [
        int(
            HOUR
            * rng.uniform(0.95, 1.05)
            * sum(a / max(1, t) for a, t in zip(vector, host, strict=True))
        )
        for vector in servers
    ]


def by_vcpu(rng: random.Random, servers: list[Vector]) -> list[int]:
    """Return costs that are a multiple of the vCPUs."""
    del rng
    return [vector[0] * SECOND for vector in servers]


def equal(rng: random.Random, servers: list[Vector]) -> list[int]:
    """Return equal costs."""
    del rng
    return [SECOND] * len(servers)


def promises(rng: random.Random, servers: list[Vector]) -> list[int]:
    """Return costs by what is promised to three classes of servers."""
    costs = []
    for _ in servers:
        margin_us = rng.randrange(-600, 3600) * SECOND
        harms = [0, 0, 0]
        harms[rng.randrange(3)] = max(0, -margin_us)
        costs.append(victim_harm.fold([*harms,
                                       victim_harm.HORIZON_US - margin_us]))
    return costs


def request(rng: random.Random, host: Vector) -> Vector:
    """Return what one large request lacks, part of it being free."""
    wanted = rng.choice(REQUESTS)
    return tuple(
        int(min(a, t) * rng.choice((1.0, rng.random())))
        for a, t in zip(wanted, host, strict=True)
    )


def share(low: float, high: float) -> Ask:
    """Return a draw of needs that are such a part of the host."""

    def ask(rng: random.Random, host: Vector) -> Vector:
        part = rng.uniform(low, high)
        return tuple(int(t * part * rng.uniform(0.8, 1.2)) for t in host)

    return ask


def some(ask: Ask, *classes: str) -> Ask:
    """Return a draw of needs in these classes only."""

    def some_of(rng: random.Random, host: Vector) -> Vector:
        return tuple(
            amount * (name in classes)
            for name, amount in zip(CLASSES, ask(rng, host), strict=True)
        )

    return some_of


CASES: dict[str, tuple[Draw, Price, Ask]] = {
    "flavors, one request": (flavors, hourly, request),
    "flavors, 5-50 % of host": (flavors, hourly, share(0.05, 0.5)),
    "flavors, cost by vcpu-hour": (flavors, revenue, share(0.05, 0.5)),
    "flavors, cost by size": (flavors, by_size, share(0.05, 0.5)),
    "flavors, cost = vcpus": (flavors, by_vcpu, share(0.05, 0.5)),
    "flavors, equal cost": (flavors, equal, share(0.05, 0.5)),
    "flavors, promises": (flavors, promises, share(0.05, 0.5)),
    "random, one request": (sizes, hourly, request),
    "random, 5-50 % of host": (sizes, hourly, share(0.05, 0.5)),
    "random, 30-50 % of host": (sizes, hourly, share(0.3, 0.5)),
    "random, cost by vcpu-hour": (sizes, revenue, share(0.05, 0.5)),
    "random, cost by size": (sizes, by_size, share(0.05, 0.5)),
    "random, cost by size, 1 class": (
        sizes,
        by_size,
        some(share(0.05, 0.5), "MEMORY_MB"),
    ),
    "random, cost by size, 2 classes": (
        sizes,
        by_size,
        some(share(0.05, 0.5), "MEMORY_MB", "VCPU"),
    ),
    "random, cost = vcpus": (sizes, by_vcpu, share(0.05, 0.5)),
    "random, equal cost": (sizes, equal, share(0.05, 0.5)),
    "random, promises": (sizes, promises, share(0.05, 0.5)),
}


def measure(
    case: str, cases: int, seed: int, count: int, limits: SearchLimits
) -> str:
    """Return the row of one case."""
    draw, price, ask = CASES[case]
    rng = random.Random(f"{seed} {case}")
    times, proven, steps = [], 0, 0
    for _ in range(cases):
        servers = draw(rng, count)
        costs = price(rng, servers)
        host = totals(servers)
        missing = dict(zip(CLASSES, ask(rng, host), strict=True))
        capacity = dict(zip(CLASSES, host, strict=True))
        candidates = [
            Candidate(
                f"{rng.getrandbits(128):032x}",
                dict(zip(CLASSES, vector, strict=True)),
                cost,
            )
            for vector, cost in zip(servers, costs, strict=True)
        ]
        begin = time.process_time()
        found = cheapest_victims(
            candidates, missing, capacity=capacity, limits=limits
        )
        times.append((time.process_time() - begin) * 1000)
        if found is not None:
            proven += found.optimal
            steps = max(steps, found.steps)
    return row(case, times, proven / cases, steps)


def gpu_host(rng: random.Random) -> Host:
    """Return a host of 8 GPUs on 2 NUMA nodes, with 32 spot servers.

    On half of the hosts servers have 1, 2 or 4 whole GPUs; on the others four
    servers share each of them.
    """
    whole = rng.random() < 0.5
    providers = [("root", "", {"VCPU": 128, "MEMORY_MB": 2**20})]
    providers += [(f"numa{node}", "root", {}) for node in range(2)]
    providers += [
        (f"gpu{n}", f"numa{n // 4}", {"VGPU": 1 if whole else 4})
        for n in range(8)
    ]
    held: dict[str, dict[tuple[str, str], int]] = {}
    for server in range(32):
        held[f"{rng.getrandbits(128):032x}"] = {
            ("root", "VCPU"): 4,
            ("root", "MEMORY_MB"): 2**15,
        } | ({} if whole else {(f"gpu{server // 4}", "VGPU"): 1})
    if whole:
        free, servers = list(range(8)), iter(sorted(held))
        rng.shuffle(free)
        while free:
            size = min(len(free), rng.choice((1, 2, 4)))
            mine = next(servers)
            for number in free[:size]:
                held[mine][f"gpu{number}", "VGPU"] = 1
            del free[:size]
    return Host(
        "host",
        tuple(
            Provider(
                uuid,
                0,
                {name: Inventory(n) for name, n in amounts.items()},
                {
                    consumer: {
                        name: n
                        for (where, name), n in slots.items()
                        if where == uuid
                    }
                    for consumer, slots in held.items()
                },
                parent,
                traits=frozenset(
                    ("CUSTOM_A100" if number % 2 else "CUSTOM_H100",)
                ),
            )
            for number, (uuid, parent, amounts) in enumerate(providers)
        ),
        tuple(
            Candidate(uuid, slots, rng.randrange(HOUR))
            for uuid, slots in sorted(held.items())
        ),
    )


def gpu_request(rng: random.Random) -> Request:
    """Return a request for 1, 2, 4 or 8 GPUs, some of one kind."""
    count = rng.choice((1, 2, 4, 8))
    kind = frozenset(
        ("CUSTOM_A100",) if count < 8 and rng.random() < 0.3 else ()
    )
    return Request(
        (
            RequestGroup({"VCPU": 4 * count, "MEMORY_MB": 2**15 * count}),
            *(
                RequestGroup({"VGPU": 1}, f"_{number}", kind)
                for number in range(count)
            ),
        ),
        isolate=rng.random() < 0.5,
    )


def measure_trees(case: str, cases: int, seed: int) -> str:
    """Return the row of the hosts with GPUs."""
    rng = random.Random(f"{seed} {case}")
    times, proven, steps, asked = [], 0, 0, 0
    while asked < cases:
        host, request = gpu_host(rng), gpu_request(rng)
        begin = time.process_time()
        found = nested_victims.cheapest_victims(request, host)
        times.append((time.process_time() - begin) * 1000)
        asked += 1
        if isinstance(found, VictimSet):
            proven += found.optimal
            steps = max(steps, found.steps)
        else:
            proven += 1
    return row(case, times, proven / cases, steps)


def row(case: str, times: list[float], proven: float, steps: int) -> str:
    """Return a row of the table."""
    times.sort()
    return (
        f"{case:31} {statistics.median(times):8.2f} "
        f"{times[len(times) * 99 // 100]:8.2f} {times[-1]:8.2f} "
        f"{proven:8.3f} {steps:9}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--candidates", type=int, default=64)
    parser.add_argument("--branch-steps", type=int)
    parser.add_argument("--dp-labels", type=int)
    parser.add_argument("case", nargs="*", help="part of a case's name")
    options = parser.parse_args()
    given = {
        "branch_steps": options.branch_steps,
        "dp_labels": options.dp_labels,
    }
    limits = SearchLimits(
        **{name: n for name, n in given.items() if n is not None}
    )
    # A collection of what others left behind is not ours to measure.
    gc.freeze()
    print(
        f"{'case':31} {'median':>8} {'p99':>8} {'max ms':>8} "
        f"{'optimal':>8} {'max steps':>9}"
    )
    for case in CASES:
        if all(part in case for part in options.case):
            print(
                measure(
                    case,
                    options.cases,
                    options.seed,
                    options.candidates,
                    limits,
                ),
                flush=True,
            )
    if all(part in TREES for part in options.case):
        print(measure_trees(TREES, options.cases, options.seed))


if __name__ == "__main__":
    main()
