# SPDX-License-Identifier: Apache-2.0
"""Placement of many at once, and one by one: Y. Hu et al.

"ECSched: Efficient Container Scheduling on Heterogeneous Clusters", Euro-Par
2018, doi 10.1007/978-3-319-96983-1_26, section 4: containers as in Google's
trace come to thirty machines of three kinds, over hours or all at once, and
100 to 300 wait for 1,000 and 5,000 machines.

It is no trace for ``simulator/simulation.py``: what is compared are schedulers
of which the service has none, the paper's own (ecsched_flow.py) and those of
Kubernetes and Swarm, which look at their queues at each heartbeat.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import fractions
import functools
import heapq
import math
import random

from nova_preempt.core import capacity
from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import solver_choice
from nova_preempt.core.classes import class_dispatch
from nova_preempt.core.model import Resources
from nova_preempt.simulator.papers import ecsched_figures
from nova_preempt.simulator.papers import ecsched_flow
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.traces import generator

PAPER = ('Y. Hu, H. Zhou, C. de Laat, Z. Zhao: ECSched: Efficient Container '
         'Scheduling on Heterogeneous Clusters (Euro-Par 2018), section 4')

CONTAINERS = 8300
HOURS = 5
MEAN_S = 764
AFFINITY = 0.06
#: Seconds from one heartbeat to the next: how long theirs is they do not say.
#: How many are looked at then, and placed one by one, as in their prototype.
HEARTBEAT_S = 10
BATCH = 100
ONE_BY_ONE = 50
#: Shares of the largest machine, in thousandths.
MACHINES = ((250, 10), (500, 10), (1000, 10))
#: In thousandths: so that there is just not enough for all who come.
_MEAN_SIZE = {'CPU': 57, 'MEMORY': 50}
_SIGMA = 1.0
_SIGMA_S = 1.5
#: So that two that have to be together fit on the largest machine.
_MOST_SIZE = 500
_MOST_OF_THEM = 0.9

#: So many come where the baselines wait for the first of their queue: enough
#: for them to fall behind.
_IN_ORDER = 1500


@dataclasses.dataclass(frozen=True)
class Container:
    """A container, with its arrival and run time in seconds.

    :param machines: its machine affinity, None for any
    :param together: the group of those that have to be on one machine
    """

    number: int
    at_s: float
    run_s: float
    resources: dict[str, int]
    machines: frozenset[str] | None = None
    together: str = ''


def run(scale: float, seed: int, clock: Callable[[], float]
        ) -> figures.PaperEvaluation:
    """Return a figures.PaperEvaluation.

    :param clock: tells processor time in seconds
    """
    count = max(100, round(CONTAINERS * scale))
    online = SchedulerRuns(make(count, seed))
    at_once = SchedulerRuns([dataclasses.replace(each, at_s=0.0)
                             for each in make(count, seed)])
    in_order = SchedulerRuns(make(min(count, _IN_ORDER), seed), in_order=True)
    repetitions = max(1, round(10 * scale))
    overheads = {(machines, requests): overhead(
        machines, requests, repetitions, seed, clock)
        for machines in (1000, 5000) for requests in (100, 200, 300)}
    one_by_one = {machines: overhead(
        machines, 300, repetitions, seed, clock, one_by_one=True)
        for machines in (1000, 5000)}
    return figures.PaperEvaluation(
        PAPER,
        f'{count} containers within {HOURS * count / CONTAINERS:.1f} hours on '
        f'30 machines, the first {min(count, _IN_ORDER)} of them where '
        'baselines keep the order of their queue; 100, 200 and 300 on 1,000 '
        f'and 5,000, {repetitions} times',
        'in place of the first five hours of the trace of Google (2011): '
        'Poisson arrivals, log-normal run times with the published mean and '
        'log-normal sizes, such that just not all have room. In place of 19 '
        'machines of EC2: sizes of 1 to 96 cores with 2 to 8 GB each.',
        [*ecsched_figures.quality(online),
         *ecsched_figures.in_order(in_order), *ecsched_figures.use(at_once),
         *ecsched_figures.speed(overheads, one_by_one)],
        [ecsched_figures.plot(online, overheads)])


# -- containers and machines -------------------------------------------------

def make(count: int, seed: int) -> list[Container]:
    """Return Containers in order of time."""
    chance = random.Random(seed)
    names = _machines()
    at_s = 0.0
    found: list[Container] = []
    for number in range(count):
        at_s += chance.expovariate(CONTAINERS / (3600 * HOURS))
        resources = {name: min(_MOST_SIZE, max(1, round(generator.lognormal(
            chance, mean, _SIGMA)))) for name, mean in _MEAN_SIZE.items()}
        run_s = generator.lognormal(chance, MEAN_S, _SIGMA_S)
        machines: frozenset[str] | None = None
        together = ''
        if chance.random() < AFFINITY:
            if chance.random() < 0.5:
                machines = frozenset(chance.sample(sorted(
                    name for name, size in names.items()
                    if max(resources.values()) <= size), 1))
            elif found and not found[-1].together and (
                    found[-1].machines is None):
                together = f'g{number}'
                found[-1] = dataclasses.replace(found[-1], together=together)
        found.append(Container(
            number, found[-1].at_s if together else at_s, run_s, resources,
            machines, together))
    return found


@functools.cache
def _machines() -> dict[str, int]:
    """Return {name of a machine: size}."""
    return {f'm{size:04}-{number}': size for size, count in MACHINES
            for number in range(count)}


# -- one run -----------------------------------------------------------------

class _Cluster:
    """Machines and their containers."""

    def __init__(self) -> None:
        self.has = {name: dict.fromkeys(_MEAN_SIZE, size)
                    for name, size in _machines().items()}
        self.free = {name: dict(has) for name, has in self.has.items()}

    def take(self, name: str, resources: Resources, sign: int = 1) -> None:
        free = self.free[name]
        for item, amount in resources.items():
            free[item] -= sign * amount

    def states(self) -> list[batch_model.HostState]:
        return [batch_model.HostState(name, free, self.has[name])
                for name, free in self.free.items()]


def _request(container: Container) -> batch_model.Request:
    return batch_model.Request(
        f'{container.number:06}', container.number,
        container.resources, hosts=container.machines,
        together=container.together)


class _Batches:
    """ECSched: rounds of a flow with bounded batches."""

    def __init__(self, score: str) -> None:
        self._placer = ecsched_flow.placer(score)

    def place(self, waiting: Sequence[Container], cluster: _Cluster
              ) -> Iterator[tuple[Container, str]]:
        """Yield (container, machine)."""
        batch = list(waiting[:BATCH])
        # Who belongs together is not cut apart.
        if len(waiting) > BATCH and batch[-1].together and (
                waiting[BATCH].together == batch[-1].together):
            batch.pop()
        by_uuid = {f'{each.number:06}': each for each in batch}
        found = self._placer.place(map(_request, batch), cluster.states())
        for uuid, hosts in found.placed.items():
            (name,) = hosts
            cluster.take(name, by_uuid[uuid].resources)
            yield by_uuid[uuid], name


class _OneByOne:
    """Scheduler that places the queue in order, by a weight.

    :param in_order: whether all wait for the first that has no room
    """

    def __init__(self,
                 weigh: Callable[[Resources, Resources, Resources],
                                 fractions.Fraction | float],
                 in_order: bool) -> None:
        self._weigh = weigh
        self._in_order = in_order

    def place(self, waiting: Sequence[Container], cluster: _Cluster
              ) -> Iterator[tuple[Container, str]]:
        """Yield (container, machine)."""
        placed = 0
        chosen: dict[str, str] = {}
        for each in waiting[:BATCH]:
            if placed == ONE_BY_ONE:
                return
            name = self._best(each, waiting, cluster, chosen)
            if name is not None:
                placed += 1
                chosen[each.together] = name
                cluster.take(name, each.resources)
                yield each, name
            elif self._in_order:
                return

    def _best(self, each: Container, waiting: Sequence[Container],
              cluster: _Cluster, chosen: Mapping[str, str]) -> str | None:
        # Those that belong together are a pair, one after the other.
        needed = each.resources
        if each.together in chosen and each.together:
            return chosen[each.together]
        if each.together:
            needed = capacity.total(
                other.resources for other in waiting
                if other.together == each.together)
        fits = [name for name in each.machines or cluster.free
                if capacity.fits(needed, cluster.free[name])]
        return max(fits, default=None, key=lambda name: (
            self._weigh(needed, cluster.free[name], cluster.has[name]), name))


def _kubernetes(needed: Resources, free: Resources, has: Resources
                ) -> fractions.Fraction:
    return class_dispatch.allocation_score(needed, free, has)


def _swarm(needed: Resources, free: Resources, has: Resources) -> float:
    """Return the load of a machine after placement; most first."""
    return sum((has[item] - free[item] + needed[item]) / has[item]
               for item in has)


def _scheduler(name: str, in_order: bool = False) -> _Batches | _OneByOne:
    if name in ecsched_figures.OURS:
        return _Batches(batch_model.DP if name.endswith('dp')
                        else batch_model.ML)
    return _OneByOne(_kubernetes if name == 'kubernetes' else _swarm, in_order)


class SchedulerRuns:
    """Runs of each scheduler with the same containers.

    :param in_order: whether baselines wait for the first of their queue
    :ivar completion_s: {scheduler: {container: from its request to its end}}
    :ivar use: {scheduler: mean share of the machines in use, until most of
        them have got one: some wait for a long time for theirs}
    """

    def __init__(self, containers: Sequence[Container], in_order: bool = False
                 ) -> None:
        self.completion_s: dict[str, dict[int, float]] = {}
        self.use: dict[str, float] = {}
        for name in ecsched_figures.SCHEDULERS:
            self._run(name, containers, in_order)

    def _run(self, name: str, containers: Sequence[Container], in_order: bool
             ) -> None:
        scheduler, cluster = _scheduler(name, in_order), _Cluster()
        coming = list(reversed(containers))
        waiting: list[Container] = []
        ending: list[tuple[float, int, str]] = []
        found: dict[int, float] = {}
        self.completion_s[name] = found
        area, held, now_s, full_s = 0.0, 0.0, 0.0, 0.0
        total = sum(sum(has.values()) for has in cluster.has.values())
        while coming or waiting:
            if not waiting:
                now_s = max(now_s, HEARTBEAT_S * math.ceil(
                    coming[-1].at_s / HEARTBEAT_S))
            while coming and coming[-1].at_s <= now_s:
                waiting.append(coming.pop())
            while ending and ending[0][0] <= now_s:
                _, number, machine = heapq.heappop(ending)
                cluster.take(machine, containers[number].resources, -1)
                held -= sum(containers[number].resources.values())
            for each, machine in list(scheduler.place(waiting, cluster)):
                found[each.number] = now_s + each.run_s - each.at_s
                heapq.heappush(ending, (now_s + each.run_s, each.number,
                                        machine))
                held += sum(each.resources.values())
            waiting = [each for each in waiting if each.number not in found]
            if len(found) < _MOST_OF_THEM * len(containers):
                area += held * HEARTBEAT_S
                full_s += HEARTBEAT_S
            now_s += HEARTBEAT_S
        self.use[name] = area / (total * full_s) if full_s else 0.0

    def improvements(self, baseline: str, name: str) -> list[float]:
        """Return the speedup of each container over a baseline."""
        before, after = self.completion_s[baseline], self.completion_s[name]
        return [before[number] / after[number] for number in before]

    def mean_s(self, name: str) -> float:
        """Return the mean time from request to end, in seconds."""
        return figures.mean(list(self.completion_s[name].values()))


# -- how long a decision takes -----------------------------------------------

def overhead(machines: int, requests: int, repetitions: int, seed: int,
             clock: Callable[[], float], one_by_one: bool = False) -> float:
    """Return the mean processor seconds of one batch."""
    took = []
    placer = (solver_choice.make(batch_model.Options(mode=batch_model.GREEDY))
              if one_by_one else ecsched_flow.placer(batch_model.DP, rounds=1))
    for number in range(repetitions):
        chance = random.Random(f'{seed} {number}')
        hosts = [_large(f'h{each:05}', chance) for each in range(machines)]
        kinds = [_flavor(chance) for _ in range(requests)]
        batch = [batch_model.Request(f'r{each:04}', each, kind)
                 for each, kind in enumerate(kinds)]
        start = clock()
        placer.place(batch, hosts)
        took.append(clock() - start)
    return figures.mean(took)


def _large(name: str, chance: random.Random) -> batch_model.HostState:
    cores = chance.choice((1, 2, 4, 8, 16, 32, 48, 64, 96))
    has = {'CPU': 1000 * cores, 'MEMORY': 1000 * cores * chance.choice(
        (2, 4, 8))}
    return batch_model.HostState(
        name, {item: amount // 2 for item, amount in has.items()}, has)


def _flavor(chance: random.Random) -> dict[str, int]:
    """Containers differ from one another, as in a trace."""
    return {
        'CPU': max(1, round(generator.lognormal(chance, 500, _SIGMA))),
        'MEMORY': max(1, round(generator.lognormal(chance, 1000, _SIGMA)))}
