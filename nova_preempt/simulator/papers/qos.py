# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Promised availabilities, by promise and by priority: M. Carvalho et al.

"QoS-driven scheduling in the cloud", JISA 11, 2020, doi
10.1186/s13174-020-00129-0: the two validations of section 4.4, and the
comparison of section 5, in which ten samples of Google's trace come to
clouds of three sizes.
"""

import collections
import dataclasses
import fractions
import functools
import math
import random

from nova_preempt.core.classes import measures
from nova_preempt.core.classes import rules
from nova_preempt.core.model import SECOND
from nova_preempt.simulator import availability
from nova_preempt.simulator.availability import VALIDATION_1
from nova_preempt.simulator.availability import VALIDATION_2
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers.figures import Figure

PAPER = ('M. Carvalho, F. Brasileiro, R. Lopes, G. Farias, A. Fook, J. Mafra, '
         'D. Turull: QoS-driven scheduling in the cloud (JISA 11, 2020), '
         'sections 4.4 and 5')

_PROMISE = 'by promise'
_PRIORITY = 'by priority'
#: As the text chooses victims where all are alike.
_AS_PRINTED = functools.partial(rules.ByPromise, exact=False)
_RULES = {_PROMISE: rules.ByPromise, _PRIORITY: rules.ByPriority}

#: Seeds of each validation, and samples of a trace, at full scale.
SEEDS = 10
SAMPLES = 10

_SEED = ('the order of the requests and the times to resume are drawn, so '
         'that seeds differ by about so much')
_THIRTY = ('the text says that the safety margin and the period are 10 s; '
           'the logs that were published with it have 30 s each, and so have '
           'we')


def run(scale, seed, clock):
    """Return a figures.Evaluation."""
    del clock
    seeds = [seed + number for number in range(max(1, round(SEEDS * scale)))]
    samples = max(1, round(SAMPLES * scale))
    first = {name: _validations(VALIDATION_1, rule, seeds)
             for name, rule in _RULES.items()}
    second = {name: _validations(VALIDATION_2, rule, seeds)
              for name, rule in ((_PROMISE, _AS_PRINTED),
                                 (_PRIORITY, rules.ByPriority))}
    compared = Comparison(samples, seed)
    return figures.Evaluation(
        PAPER,
        f'the validations as published (20 hosts, an hour), {len(seeds)} '
        f'times each; {samples} samples of {Workload.requests} requests each '
        'at the three sizes of the cloud, and at a smaller one',
        'the orders of the published validations are not public: ours are '
        'random. In place of ten samples of the trace of Google (2011) there '
        'are made-up ones, with its classes, its kinds of hosts and '
        'log-normal run times and sizes; a sample is some hundred requests '
        'instead of some hundred thousand.',
        [*_first(first), *_second(second), *compared.figures()],
        (_plot('qos-validation-1', first), _plot('qos-validation-2', second),
         compared.plot()))


# -- the validations ---------------------------------------------------------

def _validations(counts, rule, seeds):
    return [availability.run(availability.validation(counts, seed, rule=rule),
                             seed) for seed in seeds]


def _all(outcomes, name):
    return [float(each) for outcome in outcomes
            for each in outcome.availabilities[name]]


def _preemptions(outcomes):
    return figures.mean([outcome.preemptions for outcome in outcomes])


def _gini(outcomes, name):
    return figures.mean([outcome.gini(name) for outcome in outcomes])


def _ranges(title, outcomes, name, published, reason):
    found = _all(outcomes, name)
    for what, value, ours in zip(
            ('least', 'mean', 'largest'), published,
            (min(found), figures.mean(found), max(found)), strict=True):
        yield Figure(f'{title}: {name}, {what}', value, ours, reason)


def _first(found):
    """Yield what came of the first; published: of their simulator."""
    ours = found[_PROMISE]
    yield Figure('first validation, by promise: gold, mean', 0.9997,
                 figures.mean(_all(ours, 'gold')),
                 'theirs wait for a moment before they have a host at all; '
                 'ours are decided when they come')
    title = 'first validation, by promise'
    yield from _ranges(title, ours, 'silver', (0.9003, 0.9051, 0.9082),
                       f'{_SEED}; {_THIRTY}')
    yield from _ranges(title, ours, 'bronze', (0.4680, 0.4718, 0.4749),
                       f'{_SEED}; {_THIRTY}')
    yield Figure(f'{title}: preemptions', 5600, _preemptions(ours), _SEED)
    for name in VALIDATION_1:
        yield Figure(f'{title}: {name}, Gini coefficient', None,
                     _gini(ours, name), 'not in the text')
    yield Figure('first validation, real cluster: silver, mean',
                 '0.911 to 0.915',
                 figures.mean(_all(ours, 'silver')),
                 'ours is a simulation; so far off is theirs, too')
    yield Figure('first validation, real cluster: bronze, mean',
                 '0.476 to 0.490',
                 figures.mean(_all(ours, 'bronze')),
                 'ours is a simulation; so far off is theirs, too')
    by_priority = found[_PRIORITY]
    title = 'first validation, by priority'
    for name in ('gold', 'silver'):
        yield Figure(f'{title}: {name}, least', 1.0,
                     min(_all(by_priority, name)))
    bronze = _all(by_priority, 'bronze')
    count = len(by_priority)
    yield Figure(f'{title}: bronze that run all the time', 40,
                 sum(each >= 0.99 for each in bronze) / count)
    yield Figure(f'{title}: bronze that hardly run', 56,
                 sum(each < 0.99 for each in bronze) / count)
    yield Figure(f'{title}: the most any of these runs', 0.065,
                 max(each for each in bronze if each < 0.99),
                 'it depends on when the last that give way have come; of '
                 'several seeds this is the most')
    yield Figure(f'{title}: bronze, Gini coefficient', None,
                 _gini(by_priority, 'bronze'), 'not in the text')


def _second(found):
    ours = found[_PROMISE]
    title = 'second validation, by promise'
    yield from _ranges(title, ours, 'silver', (0.8964, 0.8997, 0.9053), _SEED)
    yield Figure(f'{title}: preemptions', 2545, _preemptions(ours), _SEED)
    yield Figure('second validation, real cluster: silver, mean', 0.899,
                 figures.mean(_all(ours, 'silver')))
    by_priority = _all(found[_PRIORITY], 'silver')
    count = len(found[_PRIORITY])
    title = 'second validation, by priority'
    yield Figure(f'{title}: silver that run all the time', 200,
                 sum(each >= 0.999 for each in by_priority) / count)
    yield Figure(f'{title}: silver that never run', 21,
                 sum(not each for each in by_priority) / count)
    yield Figure(f'{title}: preemptions', 0,
                 _preemptions(found[_PRIORITY]))


def _plot(name, found):
    """Figures 4 and 5: the availability of each request."""
    panels = []
    for title, outcomes in found.items():
        series, begin = [], 0
        for class_name, values in sorted(
                outcomes[0].availabilities.items(),
                key=lambda item: -sum(item[1]) / len(item[1])):
            series.append(figures.Series(
                class_name, range(begin, begin + len(values)),
                [float(each) for each in values], 'points'))
            begin += len(values)
        panels.append(figures.Panel(title, 'request', 'availability', series))
    return figures.Plot(name, panels)


# -- the comparison ----------------------------------------------------------

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

    arrivals: tuple[availability.Arrival, ...]
    hosts: tuple[tuple[int, int], ...]

    @classmethod
    def make(cls, chance):
        arrivals = tuple(sorted(
            (_arrival(number, chance) for number in range(cls.requests)),
            key=lambda each: each.at_us))
        peak = _peak(arrivals)
        hosts, total = [], collections.Counter()
        largest = max(peak, key=lambda name: peak[name])
        while total[largest] < peak[largest]:
            (found,) = chance.choices(list(_HOSTS), list(_HOSTS.values()))
            hosts.append(found)
            total.update({'CPU': found[0], 'MEMORY': found[1]})
        return cls(arrivals, tuple(hosts))

    def part(self, share, chance):
        """Return hosts of which some are taken away."""
        hosts = list(self.hosts)
        whole = sum(cpu for cpu, _ in hosts)
        while sum(cpu for cpu, _ in hosts) > share * whole:
            hosts.pop(chance.randrange(len(hosts)))
        return {f'{number:03}': {'CPU': cpu, 'MEMORY': memory}
                for number, (cpu, memory) in enumerate(hosts)}


def _arrival(number, chance):
    (name,) = chance.choices(list(_MIX), [share for share, _
                                          in _MIX.values()])
    run_s = max(_LEAST_RUN_S, _lognormal(_MIX[name][1], chance))
    cpu, memory = (
        min(_LARGEST, max(1, round(_lognormal(_MEAN_SIZE, chance))))
        for _ in range(2))
    return availability.Arrival(
        round(chance.random() * Workload.hours * 3600 * SECOND),
        f'{number:05}', name, {'CPU': cpu, 'MEMORY': memory},
        run_us=round(run_s * SECOND))


def _lognormal(mean, chance):
    return chance.lognormvariate(math.log(mean) - _SIGMA ** 2 / 2, _SIGMA)


def _peak(arrivals):
    """The most of each that is in use at once where nobody waits."""
    changes = []
    for each in arrivals:
        changes += [(each.at_us, each.resources, 1),
                    (each.at_us + each.run_us, each.resources, -1)]
    held, peak = collections.Counter(), collections.Counter()
    for _, resources, sign in sorted(changes, key=lambda item: item[0]):
        for name, amount in resources.items():
            held[name] += sign * amount
            peak[name] = max(peak[name], held[name])
    return peak


#: What large providers give back, (below which availability, which part of
#: the price), as they say it of EC2 and Compute Engine. These promise more
#: than 0.999 of the time: we take the availabilities as parts of a promise.
CREDITS = {
    'Amazon': ((1, '.1'), ('.99', '.3'), ('.95', 1)),
    'Google': ((1, '.1'), ('.99', '.25'), ('.95', 1)),
}
_SCHEDULES = {name: [tuple(map(fractions.Fraction, each)) for each in steps]
              for name, steps in CREDITS.items()}


class Comparison:
    """All samples at all sizes, by both rules."""

    def __init__(self, samples, seed):
        self._found = collections.defaultdict(list)
        classes = availability.published_classes()
        self._promised = {each.name: each.availability for each in classes}
        for number in range(samples):
            # A seed of its own for each sample, whatever their number.
            chance = random.Random(f'{seed} {number}')
            workload = Workload.make(chance)
            for part in _PARTS:
                hosts = workload.part(part, random.Random(
                    f'{seed} {number} hosts'))
                for name, rule in _RULES.items():
                    self._found[part, name].append(availability.run(
                        availability.Experiment(
                            classes, rule(classes), hosts, workload.arrivals,
                            3 * Workload.hours * 3600 * SECOND), number))

    def _values(self, part, rule, class_name):
        return [each for outcome in self._found[part, rule]
                for each in outcome.availabilities.get(class_name, ())]

    def fulfilment(self, part, rule, class_name):
        return float(measures.fulfilment(
            self._values(part, rule, class_name),
            self._promised[class_name]))

    def deficit(self, rule, parts=_PARTS[:-1]):
        """The sum of what lacks, of all classes."""
        return float(sum(sum(measures.deficits(
            self._values(part, rule, name), promised))
            for part in parts for name, promised in self._promised.items()))

    def credits(self, part, rule, provider):
        """What is given back, in prices of a request: all cost the same."""
        return float(sum(
            measures.credit(each, promised, _SCHEDULES[provider])
            for name, promised in self._promised.items()
            for each in self._values(part, rule, name)))

    def _more_credits(self):
        """By how much more is given back by priority: of the largest size
        and provider, in percent; None where nothing is by promise."""
        more = []
        for part in _PARTS[:-1]:
            for provider in CREDITS:
                by_promise, by_priority = (
                    self.credits(part, rule, provider) for rule in _RULES)
                if by_promise:
                    more.append(100 * (by_priority / by_promise - 1))
        return max(more, default=None)

    def gini(self, part, rule, class_name):
        found = [float(measures.gini(values))
                 for outcome in self._found[part, rule]
                 if (values := outcome.availabilities.get(class_name))]
        return figures.mean(found)

    def figures(self):
        """Yield those of section 5."""
        lost = ('their figures are in pictures and tables that are not in '
                'the text we have')
        for part in _PARTS:
            why = lost if part > _PARTS[-1] else (
                'smaller than they have it: more is promised than there is, '
                'and those who wait for a promise take from one another')
            for name in self._promised:
                for rule in _RULES:
                    yield Figure(
                        f'{part:g} N, {rule}: {name}, promises kept', None,
                        self.fulfilment(part, rule, name), why)
        for part in _PARTS:
            for name in self._promised:
                for rule in _RULES:
                    yield Figure(
                        f'{part:g} N, {rule}: {name}, Gini coefficient',
                        'much lower' if rule == _PROMISE
                        and name == 'bronze' and part < 0.9 else None,
                        self.gini(part, rule, name),
                        'theirs is of requests that are there at about the '
                        'same time, in ways that the text at hand does not '
                        'say; ours is of all of a class')
            for rule in _RULES:
                yield Figure(
                    f'{part:g} N, {rule}: preemptions of a sample', None,
                    figures.mean([each.preemptions
                                  for each in self._found[part, rule]]), lost)
        yield from self._money()

    def _money(self):
        """Yield what is given back where promises are broken."""
        for part in _PARTS[:-1]:
            for provider in CREDITS:
                for rule in _RULES:
                    yield Figure(
                        f'{part:g} N, {rule}: given back as {provider} does '
                        '(requests)', None,
                        self.credits(part, rule, provider),
                        'their table of what is given back is not in the '
                        'text we have; ours are the steps of the providers '
                        'as parts of what is promised, and all requests '
                        'cost the same')
        more = self._more_credits()
        yield Figure(
            'more money given back by priority than by promise (%)', 193,
            'nothing by promise' if more is None else more,
            'both are the largest, of providers and sizes; where nothing is '
            'given back by promise ours has no such figure')
        by_promise = self.deficit(_PROMISE)
        yield Figure(
            'more that lacks by priority than by promise (%)', None,
            100 * (self.deficit(_PRIORITY) / by_promise - 1)
            if by_promise else 'nothing lacks',
            'the sum of what lacks of the promised availabilities, over all '
            'samples and the three published sizes')
        for rule in _RULES:
            yield Figure(
                f'what lacks in all, {rule} (requests)', None,
                self.deficit(rule), 'what the line above compares')

    def plot(self):
        """Promises kept, and how equal those of a class fare."""
        names = [f'{part:g} N, {name}' for part in _PARTS
                 for name in self._promised]
        return figures.Plot('qos-comparison', [
            figures.Panel(title, '', label, [figures.Series(
                rule, names, [of(part, rule, name) for part in _PARTS
                              for name in self._promised], 'bar')
                for rule in _RULES])
            for title, label, of in (
                ('Promises kept', 'share of the requests', self.fulfilment),
                ('Gini coefficient', 'coefficient', self.gini))])
