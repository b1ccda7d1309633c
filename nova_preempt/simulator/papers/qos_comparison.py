# SPDX-License-Identifier: Apache-2.0
"""Made-up samples of Google's trace in clouds of several sizes.

The comparison of section 5 of "QoS-driven scheduling in the cloud" (M.
Carvalho et al., JISA 11, 2020): which promises are kept by each policy, how
equal the requests of a class fare, and what is given back.
"""

import collections
from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import fractions
import random
from typing import Self

from nova_preempt.core.classes import class_policies
from nova_preempt.core.model import SECOND
from nova_preempt.pictures import drawing
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers import qos_experiment
from nova_preempt.simulator.papers.figures import Figure
from nova_preempt.simulator.traces import generator

PROMISE = 'by promise'
PRIORITY = 'by priority'
POLICIES = {PROMISE: class_policies.PromisePolicy,
    PRIORITY: qos_experiment.PriorityPolicy}

#: {(cores, memory) of a host, in thousandths of the largest: how often}, as
#: machines in the trace of Google are.
_HOSTS = {(500, 500): 54, (500, 250): 31, (500, 750): 8, (1000, 1000): 6,
          (250, 250): 1}

#: {class: (share of the requests, mean run time in seconds)}.
_MIX = {'gold': (0.15, 7200), 'silver': (0.40, 4800), 'bronze': (0.45, 2400)}
_SIGMA = 1.0
_MEAN_SIZE = 40
_LEAST_RUN_S = 60
_LARGEST = 250

#: Parts of the size that would do without anybody waiting; the last is ours:
#: what we make up is at its peak for a short time only.
_PARTS = (1.0, 0.9, 0.8, 0.7)


@dataclasses.dataclass(frozen=True)
class Workload:
    """A made-up sample: requests, and hosts for the most that run at once."""

    requests = 250
    hours = 2

    arrivals: tuple[qos_experiment.Arrival, ...]
    hosts: tuple[tuple[int, int], ...]

    @classmethod
    def make(cls, chance: random.Random) -> Self:
        arrivals = tuple(sorted(
            (_arrival(number, chance) for number in range(cls.requests)),
            key=lambda each: each.at_us))
        peak = generator.peak((each.at_us, each.at_us + (each.run_us or 0),
                               each.resources) for each in arrivals)
        hosts: list[tuple[int, int]] = []
        total: collections.Counter[str] = collections.Counter()
        largest = max(peak, key=lambda name: peak[name])
        while total[largest] < peak[largest]:
            (found,) = chance.choices(list(_HOSTS), list(_HOSTS.values()))
            hosts.append(found)
            total.update({'CPU': found[0], 'MEMORY': found[1]})
        return cls(arrivals, tuple(hosts))

    def part(self, share: float, chance: random.Random
             ) -> dict[str, dict[str, int]]:
        """Return hosts of which some are taken away."""
        hosts = list(self.hosts)
        whole = sum(cpu for cpu, _ in hosts)
        while sum(cpu for cpu, _ in hosts) > share * whole:
            hosts.pop(chance.randrange(len(hosts)))
        return {f'{number:03}': {'CPU': cpu, 'MEMORY': memory}
                for number, (cpu, memory) in enumerate(hosts)}


def _arrival(number: int, chance: random.Random) -> qos_experiment.Arrival:
    (name,) = chance.choices(list(_MIX), [share for share, _ in _MIX.values()])
    run_s = max(_LEAST_RUN_S, generator.lognormal(
        chance, _MIX[name][1], _SIGMA))
    cpu, memory = (
        min(_LARGEST, max(1, round(generator.lognormal(
            chance, _MEAN_SIZE, _SIGMA)))) for _ in range(2))
    return qos_experiment.Arrival(
        round(chance.random() * Workload.hours * 3600 * SECOND),
        f'{number:05}', name, {'CPU': cpu, 'MEMORY': memory},
        run_us=round(run_s * SECOND))


#: What large providers give back, (below which availability, which part of
#: the price), as they say it of EC2 and Compute Engine. These promise more
#: than 0.999 of the time: we take the availabilities as parts of a promise.
CREDITS: dict[str, Sequence[tuple[int | str, int | str]]] = {
    'Amazon': ((1, '.1'), ('.99', '.3'), ('.95', 1)),
    'Google': ((1, '.1'), ('.99', '.25'), ('.95', 1))}
_SCHEDULES = {name: [(fractions.Fraction(below), fractions.Fraction(part))
                     for below, part in steps]
              for name, steps in CREDITS.items()}


def fulfilment(found: Sequence[fractions.Fraction],
               promised: fractions.Fraction) -> fractions.Fraction:
    """Return the share of requests that ran for as long as was promised.

    1 where there are none.
    """
    if not found:
        return fractions.Fraction(1)
    return fractions.Fraction(
        sum(each >= promised for each in found), len(found))


def deficits(found: Sequence[fractions.Fraction], promised: fractions.Fraction
             ) -> list[fractions.Fraction]:
    """Return the shortfall of each broken promise."""
    return [promised - each for each in found if each < promised]


def credit(found: fractions.Fraction, promised: fractions.Fraction,
           schedule: Iterable[tuple[fractions.Fraction, fractions.Fraction]]
           ) -> fractions.Fraction:
    """Return which part of its price a request gets back, the largest."""
    return max((share for below, share in schedule
                if found < below * promised), default=fractions.Fraction(0))


class Comparison:
    """Results of all samples, at all sizes, with both policies."""

    def __init__(self, samples: int, seed: int) -> None:
        self._found: dict[tuple[float, str], list[qos_experiment.Outcome]] = (
            collections.defaultdict(list))
        classes = qos_experiment.published_classes()
        self._promised = {each.name: each.availability for each in classes}
        for number in range(samples):
            # A seed of its own for each sample, whatever their number.
            chance = random.Random(f'{seed} {number}')
            workload = Workload.make(chance)
            for part in _PARTS:
                hosts = workload.part(part, random.Random(
                    f'{seed} {number} hosts'))
                for name, policy in POLICIES.items():
                    self._found[part, name].append(qos_experiment.run(
                        qos_experiment.Experiment(
                            classes, policy(classes), hosts, workload.arrivals,
                            3 * Workload.hours * 3600 * SECOND), number))

    def _values(self, part: float, policy: str, class_name: str
                ) -> list[fractions.Fraction]:
        return [each for outcome in self._found[part, policy]
                for each in outcome.availabilities.get(class_name, ())]

    def fulfilment(self, part: float, policy: str, class_name: str) -> float:
        return float(fulfilment(self._values(
            part, policy, class_name), self._promised[class_name]))

    def deficit(self, policy: str, parts: Sequence[float] = _PARTS[:-1]
                ) -> float:
        """Return the sum of the shortfalls of all classes."""
        return float(sum(
            sum(deficits(self._values(part, policy, name), promised))
            for part in parts for name, promised in self._promised.items()))

    def credits(self, part: float, policy: str, provider: str) -> float:
        """Return the refunds, in units of the price of a request."""
        return float(sum(
            credit(each, promised, _SCHEDULES[provider])
            for name, promised in self._promised.items()
            for each in self._values(part, policy, name)))

    def _more_credits(self) -> list[float]:
        """Return the extra refunds of the order by priority, in percent.

        One for each size and provider with refunds in the order by promise.
        """
        more = []
        for part in _PARTS[:-1]:
            for provider in CREDITS:
                by_promise, by_priority = (
                    self.credits(part, each, provider) for each in POLICIES)
                if by_promise:
                    more.append(100 * (by_priority / by_promise - 1))
        return more

    def _times_gini(self, part: float, class_name: str) -> float | str:
        by_promise, by_priority = (
            self.gini(part, policy, class_name) for policy in POLICIES)
        return (by_promise / by_priority if by_priority
                else 'all are equal by priority')

    def gini(self, part: float, policy: str, class_name: str) -> float:
        found = [float(qos_experiment.gini(values))
                 for outcome in self._found[part, policy]
                 if (values := outcome.availabilities.get(class_name))]
        return figures.mean(found)

    def figures(self) -> Iterator[Figure]:
        """Yield the figures of section 5."""
        lost = ('their figures are in pictures and tables that are not in '
                'the text we have')
        for part in _PARTS:
            why = lost if part > _PARTS[-1] else (
                'smaller than they have it: more is promised than there is, '
                'and those who wait for a promise take from one another')
            for name in self._promised:
                for policy in POLICIES:
                    yield Figure(
                        f'{part:g} N, {policy}: {name}, promises kept', None,
                        self.fulfilment(part, policy, name), why)
        for part in _PARTS:
            for name in self._promised:
                for policy in POLICIES:
                    yield Figure(
                        f'{part:g} N, {policy}: {name}, Gini coefficient',
                        None, self.gini(part, policy, name),
                        'theirs is of requests that are there at about the '
                        'same time, in ways that the text at hand does not '
                        'say; ours is of all of a class')
            if part > _PARTS[-1]:
                yield Figure(
                    f'{part:g} N: bronze, Gini coefficient, by promise / by '
                    'priority', 'much less than 1',
                    self._times_gini(part, 'bronze'),
                    'published: equity is much higher by promise, '
                    'particularly where not all promises are kept', 'abstract')
            for policy in POLICIES:
                yield Figure(
                    f'{part:g} N, {policy}: preemptions of a sample', None,
                    figures.mean([each.preemptions for each
                                  in self._found[part, policy]]), lost)
        yield from self._money()

    def _money(self) -> Iterator[Figure]:
        """Yield the refunds for broken promises."""
        for part in _PARTS[:-1]:
            for provider in CREDITS:
                for policy in POLICIES:
                    yield Figure(
                        f'{part:g} N, {policy}: given back as {provider} does '
                        '(requests)', None,
                        self.credits(part, policy, provider),
                        'their table of what is given back is not in the '
                        'text we have; ours are the steps of the providers '
                        'as parts of what is promised, and all requests '
                        'cost the same')
        more = self._more_credits()
        yield Figure(
            'more money given back by priority than by promise, mean (%)',
            193, figures.mean(more) if more else 'nothing by promise',
            'published: on average as much as that, in the scenarios studied. '
            'Ours is the mean of providers and sizes; where nothing is given '
            'back by promise there is no such figure', 'abstract')
        yield Figure(
            'more money given back by priority than by promise, largest (%)',
            None, max(more, default='nothing by promise'),
            'of providers and sizes')
        by_promise = self.deficit(PROMISE)
        yield Figure(
            'more that lacks by priority than by promise (%)', None,
            100 * (self.deficit(PRIORITY) / by_promise - 1)
            if by_promise else 'nothing lacks',
            'the sum of what lacks of the promised availabilities, over all '
            'samples and the three published sizes')
        for policy in POLICIES:
            yield Figure(f'what lacks in all, {policy} (requests)', None,
                         self.deficit(policy), 'what the line above compares')

    def plot(self) -> drawing.Plot:
        """Plot kept promises, the equality within classes, and refunds."""
        sizes = [f'{part:g} N' for part in _PARTS]
        panels = [
            drawing.Panel(title, 'hosts (N suffice for all)', label,
                          [drawing.FigureSeries(
                              f'{name}, {policy}', sizes,
                              [unit * of(part, policy, name)
                               for part in _PARTS], 'line', colour, dash)
                           for colour, name in enumerate(self._promised)
                           for dash, policy in enumerate(POLICIES)], top)
            for title, label, unit, of, top in (
                ('Promises kept', '% of the requests', 100, self.fulfilment,
                 100),
                ('Inequality of the requests of a class', 'Gini coefficient',
                 1, self.gini, 0))]
        (refunds,) = (each for each in self._money()
                      if each.published is not None)
        panels.append(drawing.Panel(
            'More refunded by priority than by promise, on average', '', '%', [
                drawing.FigureSeries(label, ['refunds'], [value], 'bar',
                                     is_published=label == 'published')
                for label, value in (('ours', refunds.ours),
                                     ('published', refunds.published))
                if isinstance(value, int | float)]))
        return drawing.Plot('qos-comparison', panels, drawing.one_line(
            'Promises of class bronze that are kept with 0.8 N hosts', (
                (policy, f'{100 * kept:.0f} %') for policy in POLICIES
                for kept in (self.fulfilment(0.8, policy, 'bronze'),))))
