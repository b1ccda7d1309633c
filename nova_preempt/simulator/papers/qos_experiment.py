# SPDX-License-Identifier: Apache-2.0
"""Availabilities of requests under passes that see all of them at once.

The experiments of M. Carvalho et al. (JISA 11, 2020): requests come, all at
most once, to hosts that have not room for all of them, and the passes of
core.classes decide who runs.

It is no trace for nova_preempt.simulator.simulation: there each request is
scheduled as it comes, as Nova does, gets a notice, and takes a while to be
built and to end, while the paper has one pass over all requests at each
arrival and each end, which preempts at once and starts at once whoever never
ran. Nor has the core's policy the paper's other scheduler, PriorityPolicy.

Time jumps from event to event. Whoever has given way, and gets a host again,
is a while on its way; how long is drawn from a sample. Equal seeds give equal
results.
"""

import collections
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses
import fractions
import functools
import itertools
import random
from typing import Any

from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes import class_dispatch
from nova_preempt.core.classes import class_policies
from nova_preempt.core.classes.class_policies import Key
from nova_preempt.core.classes.class_policies import RankedRequest
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.model import SECOND, Resources
from nova_preempt.simulator.events import EventQueue
from nova_preempt.simulator.events import Phase

#: {seconds it took to get a container back to a host: how often}, as they
#: measured it.
CONTAINERS_S = {1: 28, 2: 1400, 3: 754, 4: 35, 5: 6, 6: 3}


@dataclasses.dataclass(frozen=True)
class PriorityPolicy:
    """The more important class first, whatever was promised.

    The last that came ends first, and that host is best where the fewest of
    the most important class end.
    """

    classes: availability_margin.QosClasses

    def price(self, standing: availability_margin.Standing) -> int:
        return 0

    def order(self, standing: availability_margin.Standing) -> Key:
        return (standing.qos.importance, standing.admitted_us, standing.uuid)

    def may_preempt(self, one: availability_margin.Standing,
                    other: availability_margin.Standing) -> bool:
        return one.qos.importance < other.qos.importance

    def victims(self, held: Sequence[RankedRequest],
                missing: Resources) -> Sequence[RankedRequest] | None:
        return class_policies.reprieve(held, missing, self.order)

    def cost(self, victims: Iterable[RankedRequest]) -> Key:
        numbers = [0] * len(self.classes)
        for each in victims:
            numbers[self.classes.rank(each.standing.qos)] += 1
        return tuple(numbers)

    def floor(self, held: Sequence[RankedRequest]) -> Key:
        return ()


@dataclasses.dataclass(frozen=True)
class Arrival:
    """The arrival of a request.

    ``life_us``: how long it is there, None for ever. ``run_us``: it ends as
    soon as it has run for so long, None if it does not.
    """

    at_us: int
    uuid: str
    class_name: str
    resources: Resources
    life_us: int | None = None
    run_us: int | None = None


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Setup of an experiment.

    ``hosts``: {uuid: what each has}. ``policy``: a
    core.classes.class_policies.ClassPolicy. ``period_us``: how long after
    a pass there is another one, if nothing happens. ``overheads_s``: {seconds
    to get back to a host: how often}.
    """

    classes: availability_margin.QosClasses
    policy: class_policies.ClassPolicy
    hosts: Mapping[str, Resources]
    arrivals: Sequence[Arrival]
    until_us: int
    period_us: int = 30 * SECOND
    overheads_s: Mapping[int, int] = dataclasses.field(
        default_factory=lambda: CONTAINERS_S)

    @property
    def mean_overhead_us(self) -> int:
        """Return the mean overhead of a request."""
        count = sum(self.overheads_s.values())
        return SECOND * sum(seconds * often for seconds, often
                            in self.overheads_s.items()) // count


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of an experiment.

    ``availabilities``: {class: that of its requests, in order of arrival}.
    """

    availabilities: Mapping[str, Sequence[fractions.Fraction]]
    preemptions: int
    passes: int

    def gini(self, class_name: str) -> float:
        """Return the Gini coefficient of availabilities of a class."""
        return float(gini(self.availabilities[class_name]))


def gini(values: Collection[fractions.Fraction]) -> fractions.Fraction:
    """Return how unequal values are, from 0 (all the same) to 1.

    0 too where there are none, or all are 0.
    """
    total = sum(values, fractions.Fraction())
    if not total:
        return total
    number = len(values)
    return sum((2 * rank - number - 1) * value for rank, value
               in enumerate(sorted(values), start=1)) / (number * total)


def run(experiment: Experiment, seed: int) -> Outcome:
    """Let it happen.

    :param seed: of the overheads
    """
    return _Run(experiment, random.Random(seed)).run()


class _Run:

    def __init__(self, experiment: Experiment, chance: random.Random) -> None:
        self.experiment = experiment
        # In order of their coming.
        self.waiting: dict[str, None] = {}
        # {host: {uuid: number of its stay}}
        self.hosts: dict[str, dict[str, int]] = {
            uuid: {} for uuid in experiment.hosts}
        self.claimants: dict[str, class_dispatch.Claimant] = {}
        self.preemptions = 0
        self.passes = 0
        self._work_us = {each.uuid: each.run_us for each in experiment.arrivals
                         if each.run_us is not None}
        self._draw = functools.partial(
            chance.choices, list(experiment.overheads_s),
            list(experiment.overheads_s.values()))
        self._events = EventQueue()
        self._stays = itertools.count()

    def run(self) -> Outcome:
        for arrival in self.experiment.arrivals:
            self._events.add(arrival.at_us, Phase.STEP, self._arrive, arrival)
        self._events.run(self.experiment.until_us)
        return self._outcome()

    def _in(self, delay_us: int, happen: Callable[..., None], *arguments: Any
            ) -> None:
        self._events.add(self._events.now_us + delay_us, Phase.STEP, happen,
                         *arguments)

    def _note(self, uuid: str, kind: Kind) -> class_dispatch.Claimant:
        claimant = self.claimants[uuid]
        claimant = self.claimants[uuid] = dataclasses.replace(
            claimant, clocks=claimant.clocks.applied(
                Event(self._events.now_us, kind)))
        return claimant

    def _arrive(self, arrival: Arrival) -> None:
        qos = self.experiment.classes.find(arrival.class_name)
        assert qos is not None
        self.claimants[arrival.uuid] = class_dispatch.Claimant(
            arrival.uuid, qos,
            ServerClocks((Event(self._events.now_us, Kind.QUEUED),)),
            arrival.resources, self.experiment.mean_overhead_us)
        self.waiting[arrival.uuid] = None
        if arrival.life_us is not None:
            self._in(arrival.life_us, self._end, arrival.uuid)
        self._want_pass(self.passes)

    def _run_on(self, uuid: str, host: str, stay: int) -> None:
        """Run one that is still there; once its work is done, it ends."""
        if self.hosts[host].get(uuid) != stay:
            return
        clocks = self._note(uuid, Kind.RUNNING).clocks
        if uuid in self._work_us:
            self._in(self._work_us[uuid] - clocks.at(
                self._events.now_us).running_us, self._finish, uuid, host,
                stay)

    def _finish(self, uuid: str, host: str, stay: int) -> None:
        if self.hosts[host].get(uuid) == stay:
            self._end(uuid)

    def _end(self, uuid: str) -> None:
        self._note(uuid, Kind.ENDED)
        self.waiting.pop(uuid, None)
        for there in self.hosts.values():
            there.pop(uuid, None)
        self._want_pass(self.passes)

    def _want_pass(self, number: int) -> None:
        """Have one pass for all that happens now, after the last one."""
        self._events.add(self._events.now_us, Phase.POLL, self._pass, number)

    def _pass(self, number: int) -> None:
        if number != self.passes:
            return
        self.passes += 1
        for placement in self._decide() if self.waiting else ():
            for victim in placement.victims:
                del self.hosts[placement.host][victim]
                self._note(victim, Kind.EVICTED)
                self.waiting[victim] = None
                self.preemptions += 1
            self._allocate(placement)
        self._in(self.experiment.period_us, self._want_pass, self.passes)

    def _decide(self) -> Iterable[class_dispatch.HostAndVictims]:
        return class_dispatch.dispatch([self.claimants[
            uuid] for uuid in self.waiting], [class_dispatch.PassHost(uuid,
            has, tuple(self.claimants[each] for each in self.hosts[uuid]))
            for uuid, has in self.experiment.hosts.items()],
            self.experiment.classes, self.experiment.policy,
            self._events.now_us)

    def _allocate(self, placement: class_dispatch.HostAndVictims) -> None:
        uuid, host = placement.uuid, placement.host
        del self.waiting[uuid]
        is_first = self.claimants[uuid].clocks.kind is Kind.QUEUED
        stay = self.hosts[host][uuid] = next(self._stays)
        self._note(uuid, Kind.ALLOCATING)
        if is_first:
            self._run_on(uuid, host, stay)
        else:
            (seconds,) = self._draw()
            self._in(seconds * SECOND, self._run_on, uuid, host, stay)

    def _outcome(self) -> Outcome:
        found: dict[str, list[fractions.Fraction]] = (
            collections.defaultdict(list))
        for claimant in self.claimants.values():
            times = claimant.clocks.at(self.experiment.until_us)
            found[claimant.qos.name].append(times.availability)
        return Outcome(dict(found), self.preemptions, self.passes)


#: The published classes, and their shares of what comes.
PUBLISHED = (('gold', fractions.Fraction(1)),
             ('silver', fractions.Fraction(9, 10)),
             ('bronze', fractions.Fraction(1, 2)))


def published_classes(safety_margin_s: int = 30, least_run_s: int = 0
                      ) -> availability_margin.QosClasses:
    """Gold, silver and bronze."""
    return availability_margin.QosClasses(*(
        availability_margin.QosClass(name, importance, availability,
                                     safety_margin_s, least_run_s=least_run_s)
        for importance, (name, availability) in enumerate(PUBLISHED, start=1)))


def validation(counts: Mapping[str, int], seed: int, *, policy: Callable[[
        availability_margin.QosClasses],
        class_policies.ClassPolicy] = class_policies.PromisePolicy,
        classes: availability_margin.QosClasses | None = None,
        **options: Any) -> Experiment:
    """Return an experiment of the paper that validates its simulator.

    An hour on 20 hosts with room for ten each. One request comes each second,
    in random order, and stays.

    :param counts: {class: how many requests of it}; 80 gold, 80 silver and 96
        bronze ones, or 221 silver ones
    :param seed: of the order
    :param policy: makes the policy of the classes
    :param options: of Experiment
    """
    classes = classes or published_classes()
    names = [name for name in counts for _ in range(counts[name])]
    random.Random(seed).shuffle(names)
    return Experiment(
        classes, policy(classes),
        # Thousandths of a core, and of a gigabyte.
        {f'{each:02}': {'CPU': 3750, 'MEMORY': 3750} for each in range(20)},
        [Arrival(number * SECOND, f'{number:03}', name,
                 {'CPU': 375, 'MEMORY': 375})
         for number, name in enumerate(names)], 3600 * SECOND, **options)


#: The counts of the two.
VALIDATION_1 = {'gold': 80, 'silver': 80, 'bronze': 96}
VALIDATION_2 = {'silver': 221}
