# SPDX-License-Identifier: Apache-2.0
"""Cores by class of service: T. Menouer, C. Cérin, W. Saad and X. Shi.

"A Resource Allocation Framework with Qualitative and Quantitative SLA
Classes", LNCS 11339, doi 10.1007/978-3-030-10549-5_6, section 6: ninety
containers of three users come to 15 hosts of 32 cores, all at once, three
each three seconds, or as in traces of Google and Prezi.

It is no trace for nova_preempt.simulator.simulation: a container has no size
of its own; it gets a share of the cores that are idle as it is chosen, on one
host for each of its copies, and runs for as much longer as it has fewer cores.
How many cores it gets is core.classes.request_size, as the backlog has it.
"""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import dataclasses
import fractions
import itertools
import random
from typing import NamedTuple

from nova_preempt.core.backlog.backlog_model import SlaPriorities
from nova_preempt.core.backlog.promethee_order import RESPECTS
from nova_preempt.core.classes import promethee
from nova_preempt.core.classes import request_size
from nova_preempt.core.classes.request_size import HostReputation
from nova_preempt.core.classes.request_size import ServiceLevel
from nova_preempt.core.model import SECOND
from nova_preempt.pictures import drawing
from nova_preempt.simulator.events import EventQueue
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers.figures import Figure

PAPER = ('T. Menouer, C. Cérin, W. Saad, X. Shi: A Resource Allocation '
         'Framework with Qualitative and Quantitative SLA Classes (LNCS '
         '11339), section 6')

HOSTS = 5                # of each category
CORES = 32
SEQUENTIAL_S = 300
CONTAINERS = 90
#: How long the containers of a trace come, as we make it up.
TRACE_S = 90

_USERS = {ServiceLevel.PREMIUM: 'premium', ServiceLevel.ADVANCED: 'advanced',
          ServiceLevel.BEST_EFFORT: 'best effort'}


@dataclasses.dataclass(frozen=True)
class Workload:
    """Containers that come, {user: how many}, and when.

    :param name: of the run, and of its figure
    """

    name: str
    counts: dict[ServiceLevel, int]
    how: str


RUNS = (
    Workload('all at once (Figure 2)', dict.fromkeys(_USERS, 30), 'at once'),
    Workload('three each 3 s (Figure 3)', dict.fromkeys(_USERS, 30),
             'in turn'),
    Workload('as in Google (Figure 4)',
             {ServiceLevel.PREMIUM: 2, ServiceLevel.ADVANCED: 88}, 'trace'),
    Workload('as in Prezi (Figure 5)',
             dict(zip(reversed(ServiceLevel), (10, 13, 67), strict=True)),
             'trace'),
)

#: With as many copies as servers have here, and as the text has it at its
#: word: a container, and so many beside it.
_BESIDE = {'copies 3, 2, 1': 0, 'copies 4, 3, 2': 1}


_CRITERIA = tuple(map(promethee.Criterion, RESPECTS))


class Request(NamedTuple):
    """A container that waits."""

    uuid: str
    submitted_us: int
    priorities: SlaPriorities

    @property
    def category(self) -> HostReputation:
        """The category of the hosts that it may go to."""
        level = ServiceLevel(self.priorities.reputation)
        return request_size.CATEGORIES[level]


class Host(NamedTuple):
    uuid: str
    category: HostReputation
    cores: int
    idle_cores: int


class Start(NamedTuple):
    """The start of a container, with its cores on each host."""

    uuid: str
    cores: int
    hosts: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Started:
    """A container that got its cores."""

    at_us: int
    service: ServiceLevel
    submitted_us: int
    cores: int
    hosts: int


def run(scale: float, seed: int, clock: Callable[[], float]
        ) -> figures.PaperEvaluation:
    """Return a figures.PaperEvaluation; all of it takes a few seconds."""
    del scale, clock
    found = {(options, each.name): simulate(each, beside, seed)
             for options, beside in _BESIDE.items() for each in RUNS}
    return figures.PaperEvaluation(
        PAPER, 'as published: 90 containers on 15 hosts of 32 cores',
        'the times at which the traces of Google and Prezi have containers '
        f'come are not public: ours are random within {TRACE_S} s.',
        list(_figures(found)), [_plot(found)])


def submissions(each: Workload, seed: int) -> list[tuple[int, ServiceLevel]]:
    """Return [(microseconds, service)] of a run, in order."""
    services = [service for service, count in each.counts.items()
                for _ in range(count)]
    if each.how == 'at once':
        return [(0, service) for service in services]
    if each.how == 'in turn':
        return [(3 * SECOND * number, service)
                for number in range(CONTAINERS // len(each.counts))
                for service in each.counts]
    chance = random.Random(f'{seed} {each.name}')
    chance.shuffle(services)
    times = sorted(chance.randrange(TRACE_S * SECOND) for _ in services)
    return list(zip(times, services, strict=True))


def simulate(each: Workload, beside: int, seed: int) -> list[Started]:
    """Return [Started] in order: time jumps, and the core decides.

    :param beside: see choose()
    """
    idle = {f'{category.value}-{number}': CORES for category in HostReputation
            for number in range(HOSTS)}
    clock = EventQueue()
    queue: dict[str, Request] = {}
    started: list[Started] = []

    def come(request: Request) -> None:
        queue[request.uuid] = request
        clock.add(clock.now_us, Phase.POLL, look)

    def end(start: Start) -> None:
        for name in start.hosts:
            idle[name] += start.cores
        clock.add(clock.now_us, Phase.POLL, look)

    def look() -> None:
        while (start := choose(queue.values(), _hosts(idle), beside)):
            request = queue.pop(start.uuid)
            for name in start.hosts:
                idle[name] -= start.cores
            started.append(Started(
                clock.now_us, ServiceLevel(request.priorities.cores),
                request.submitted_us, start.cores, len(start.hosts)))
            took = run_time_s(SEQUENTIAL_S, start.cores)
            clock.add(clock.now_us + round(took * SECOND), Phase.END, end,
                      start)

    for number, (at_us, service) in enumerate(submissions(each, seed)):
        clock.add(at_us, Phase.STEP, come, Request(
            f'{number:04}', at_us, SlaPriorities(*[int(service)] * 4)))
    clock.run(CONTAINERS * SEQUENTIAL_S * SECOND)
    return started


def _hosts(idle: Mapping[str, int]) -> list[Host]:
    return [Host(f'{category.value}-{number}', category, CORES,
                 idle[f'{category.value}-{number}'])
            for category in HostReputation for number in range(HOSTS)]


def choose(queue: Collection[Request], hosts: Sequence[Host], beside: int = 0
           ) -> Start | None:
    """Return the next Start, None if no waiting request fits.

    1. The queue is put in order. A request that does not fit stays where it
       is, and the next is tried.
    2. Only hosts of the category of its reputation come into question.
    3. Its cores are its share of what is idle there.
    4. Its copies go to the hosts where they leave the least.

    :param beside: how many copies there are beside those of
        core.classes.request_size
    """
    if not queue or not hosts:
        return None
    limits = request_size.bounds(min(host.cores for host in hosts))
    of_all = dict.fromkeys(HostReputation, 0)
    for request in queue:
        of_all[request.category] += request.priorities.cores
    by_uuid = {request.uuid: request for request in queue}
    for each in promethee.ordered((promethee.Alternative(
            uuid, submitted_us, dataclasses.astuple(levels))
            for uuid, submitted_us, levels in queue), _CRITERIA):
        request = by_uuid[each.uuid]
        there = [host for host in hosts if host.category is request.category]
        wanted = request_size.cores(
            request.priorities.cores, of_all[request.category],
            sum(host.idle_cores for host in there), limits)
        copies = request_size.COPIES[
            ServiceLevel(request.priorities.redundancy)] + beside
        if chosen := best_fit(there, wanted, copies):
            return Start(request.uuid, wanted, chosen)
    return None


def best_fit(hosts: Iterable[Host], wanted: int, copies: int
             ) -> tuple[str, ...]:
    """Return the hosts of all copies, () if they do not all have one.

    On each a copy fits, no two are the same, and those are taken that have
    the fewest idle cores left, for the fewest hosts to be in use.
    """
    fits = sorted((host.idle_cores, host.uuid) for host in hosts
                  if host.idle_cores >= wanted)
    if len(fits) < copies:
        return ()
    return tuple(uuid for _, uuid in fits[:copies])


def run_time_s(sequential_s: int, on_cores: int) -> fractions.Fraction:
    """Return the run time on several cores.

    All of it runs in parallel.
    """
    return fractions.Fraction(sequential_s, on_cores)


def _figures(found: Mapping[tuple[str, str], Sequence[Started]]
             ) -> Iterator[Figure]:
    lost = ('the published table of mean cores is lost from the text; it says '
            'that a user with a better service gets more, in each run')
    for options in _BESIDE:
        for each in RUNS:
            started = found[options, each.name]
            means = {service: _mean_cores(started, service)
                     for service in each.counts}
            for service in each.counts:
                yield Figure(
                    f'{each.name}, {options}: {_USERS[service]}, mean cores',
                    None, means[service], lost)
            ordered = sorted(each.counts, reverse=True)
            yield Figure(
                f'{each.name}, {options}: more cores for a better service',
                'yes', 'yes' if all(
                    means[better] > means[worse] for better, worse
                    in itertools.pairwise(ordered)) else 'no',
                source='section 6.3')
    started = found['copies 3, 2, 1', RUNS[0].name]
    yield Figure('all at once: premium, then advanced, then best effort',
                 'yes', 'yes' if _in_order(started) else 'no',
                 'of those that start at once; each user has hosts of a '
                 'category of his own, so that later starts depend on when '
                 'these have room', 'section 6.1')
    for each in RUNS[1:]:
        started = found['copies 3, 2, 1', each.name]
        yield Figure(f'{each.name}: executions of users overlap', 'yes',
                     'yes' if _overlap(started) else 'no',
                     source='section 6.2')
    yield Figure(
        'run time of 300 s on 9 cores (s)', float(fractions.Fraction(300, 9)),
        float(run_time_s(300, 9)),
        'the text has the rule (SLT / N, section 6) and no such example',
        'computed')


def _mean_cores(started: Sequence[Started], service: ServiceLevel) -> float:
    return figures.mean([one.cores for one in started
                         if one.service is service])


def _in_order(started: Sequence[Started]) -> bool:
    """Return whether better services start first."""
    first = [one.service for one in started if one.at_us == started[0].at_us]
    return first == sorted(first, reverse=True) and set(first) == set(_USERS)


def _overlap(started: Sequence[Started]) -> bool:
    """Return whether a lower service starts before a better one."""
    services = [one.service for one in started]
    return services != sorted(services, reverse=True)


def _plot(found: Mapping[tuple[str, str], Sequence[Started]]) -> drawing.Plot:
    options = 'copies 3, 2, 1'
    return drawing.Plot('sla', [
        drawing.Panel(
            f'Containers that start, {each.name}',
            'time since the first request (s)', 'cores of a container', [
                drawing.FigureSeries(
                    name, [one.at_us / SECOND for one in theirs],
                    [one.cores for one in theirs], 'points', number)
                for number, (service, name) in enumerate(_USERS.items())
                if (theirs := [one for one in found[options, each.name]
                               if one.service is service])])
        for each in RUNS], drawing.one_line(
            'Mean cores of a container, all at once (published: more for a '
            'better class)', (
                (name, figures.text(_mean_cores(
                    found[options, RUNS[0].name], service)))
                for service, name in _USERS.items())))
