# SPDX-License-Identifier: Apache-2.0
"""Promised availabilities, by promise and by priority: M. Carvalho et al.

"QoS-driven scheduling in the cloud", JISA 11, 2020, doi
10.1186/s13174-020-00129-0: the two validations of section 4.4, and the
comparison of section 5, in which ten samples of Google's trace come to
clouds of three sizes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import functools
from typing import Any

from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes import class_policies
from nova_preempt.core.model import SECOND
from nova_preempt.pictures import drawing
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers import qos_comparison
from nova_preempt.simulator.papers import qos_experiment
from nova_preempt.simulator.papers.figures import Figure
from nova_preempt.simulator.papers.qos_comparison import POLICIES
from nova_preempt.simulator.papers.qos_comparison import PRIORITY
from nova_preempt.simulator.papers.qos_comparison import PROMISE
from nova_preempt.simulator.papers.qos_experiment import VALIDATION_1
from nova_preempt.simulator.papers.qos_experiment import VALIDATION_2
from nova_preempt.simulator.papers.qos_experiment import Outcome

PAPER = ('M. Carvalho, F. Brasileiro, R. Lopes, G. Farias, A. Fook, J. Mafra, '
         'D. Turull: QoS-driven scheduling in the cloud (JISA 11, 2020), '
         'sections 4.4 and 5')

#: As the text chooses victims where all are alike.
_AS_PRINTED = functools.partial(class_policies.PromisePolicy, exact=False)
#: Seeds of each validation, and samples of a trace, at full scale.
SEEDS = 10
SAMPLES = 10

_SEED = ('the order of the requests and the times to resume are drawn, so '
         'that seeds differ by about so much')
_THIRTY = ('the text says that the safety margin and the period are 10 s; '
           'the logs that were published with it have 30 s each, and so have '
           'we')
#: What the authors have published beside the paper: what each validation
#: did, by their simulator and on their cluster.
_LOGS = 'logs of the authors'
_RESULTS = 'section 4.4.3'


def run(scale: float, seed: int, clock: Callable[[], float]
        ) -> figures.PaperEvaluation:
    """Return a figures.PaperEvaluation."""
    del clock
    seeds = [seed + number for number in range(max(1, round(SEEDS * scale)))]
    samples = max(1, round(SAMPLES * scale))
    first = {name: _validations(VALIDATION_1, policy, seeds)
             for name, policy in POLICIES.items()}
    as_in_text = _validations(
        VALIDATION_1, POLICIES[PROMISE], seeds, period_us=10 * SECOND,
        classes=qos_experiment.published_classes(safety_margin_s=10))
    second = {name: _validations(VALIDATION_2, policy, seeds)
              for name, policy in ((PROMISE, _AS_PRINTED),
                                   (PRIORITY, qos_experiment.PriorityPolicy))}
    compared = qos_comparison.Comparison(samples, seed)
    compared_first, compared_second = list(_first(first)), list(
        _second(second))
    return figures.PaperEvaluation(
        PAPER,
        f'the validations as published (20 hosts, an hour), {len(seeds)} '
        f'times each; {samples} samples of '
        f'{qos_comparison.Workload.requests} requests each at the three '
        'sizes of the cloud, and at a smaller one',
        'the orders of the published validations are not public: ours are '
        'random. In place of ten samples of the trace of Google (2011) there '
        'are made-up ones, with its classes, its kinds of hosts and '
        'log-normal run times and sizes; a sample is some hundred requests '
        'instead of some hundred thousand.',
        [*compared_first, *_as_in_text(as_in_text), *compared_second,
         *compared.figures()],
        (_plot('qos-validation-1', first, compared_first),
         _plot('qos-validation-2', second, compared_second),
         compared.plot()))


# -- the validations ---------------------------------------------------------

def _validations(counts: Mapping[str, int], policy: Callable[[
        availability_margin.QosClasses], class_policies.ClassPolicy],
        seeds: Sequence[int], **options: Any) -> list[Outcome]:
    return [qos_experiment.run(qos_experiment.validation(
        counts, seed, policy=policy, **options), seed) for seed in seeds]


def _all(outcomes: Sequence[Outcome], name: str) -> list[float]:
    return [float(each) for outcome in outcomes
            for each in outcome.availabilities[name]]


def _preemptions(outcomes: Sequence[Outcome]) -> float:
    return figures.mean([outcome.preemptions for outcome in outcomes])


def _gini(outcomes: Sequence[Outcome], name: str) -> float:
    return figures.mean([outcome.gini(name) for outcome in outcomes])


def _ranges(title: str, outcomes: Sequence[Outcome], name: str,
            published: tuple[float, float, float], reason: str
            ) -> Iterator[Figure]:
    found = _all(outcomes, name)
    for what, value, ours in zip(
            ('least', 'mean', 'largest'), published,
            (min(found), figures.mean(found), max(found)), strict=True):
        yield Figure(f'{title}: {name}, {what}', value, ours, reason, _LOGS)


def _first(found: Mapping[str, Sequence[Outcome]]) -> Iterator[Figure]:
    """Yield the figures of the first validation."""
    ours = found[PROMISE]
    yield Figure('first validation, by promise: gold, mean', 0.9997,
                 figures.mean(_all(ours, 'gold')),
                 'theirs wait for a moment before they have a host at all; '
                 'ours are decided when they come', _LOGS)
    title = 'first validation, by promise'
    yield from _ranges(title, ours, 'silver', (0.9003, 0.9051, 0.9082),
                       f'{_SEED}; {_THIRTY}')
    yield from _ranges(title, ours, 'bronze', (0.4680, 0.4718, 0.4749),
                       f'{_SEED}; {_THIRTY}')
    yield Figure(f'{title}: preemptions', 5600, _preemptions(ours), _SEED,
                 _LOGS)
    for name in VALIDATION_1:
        yield Figure(f'{title}: {name}, Gini coefficient', None,
                     _gini(ours, name), 'not in the text')
    yield Figure('first validation, real cluster: silver, mean',
                 '0.911 to 0.915', figures.mean(_all(ours, 'silver')),
                 'ours is a simulation; so far off is theirs, too', _LOGS)
    yield Figure('first validation, real cluster: bronze, mean',
                 '0.476 to 0.490', figures.mean(_all(ours, 'bronze')),
                 'ours is a simulation; so far off is theirs, too', _LOGS)
    by_priority = found[PRIORITY]
    title = 'first validation, by priority'
    for name in ('gold', 'silver'):
        yield Figure(f'{title}: {name}, least', 1.0,
                     min(_all(by_priority, name)), source=_RESULTS)
    bronze = _all(by_priority, 'bronze')
    count = len(by_priority)
    yield Figure(f'{title}: bronze that run all the time', 40,
                 sum(each >= 0.99 for each in bronze) / count, source=_RESULTS)
    yield Figure(f'{title}: bronze that hardly run', 56,
                 sum(each < 0.99 for each in bronze) / count,
                 source='section 4.4.2')
    yield Figure(f'{title}: the most any of these runs', 0.065,
                 max(each for each in bronze if each < 0.99),
                 'it depends on when the last that give way have come; of '
                 'several seeds this is the most', _LOGS)
    yield Figure(f'{title}: bronze, Gini coefficient', None,
                 _gini(by_priority, 'bronze'), 'not in the text')


def _as_in_text(outcomes: Sequence[Outcome]) -> Iterator[Figure]:
    """Yield the same with the margin and the period that the text has."""
    title = 'first validation, by promise, 10 s and 10 s'
    reason = ('the text has this margin and this period (section 4.1.3), and '
              'draws its results; with them ours preempts so often that '
              'bronze stays below its promise')
    for name, promised in (('silver', 0.9), ('bronze', 0.5)):
        yield Figure(f'{title}: {name}, mean', f'very close to {promised}',
                     figures.mean(_all(outcomes, name)), reason, _RESULTS)
    yield Figure(f'{title}: preemptions', None, _preemptions(outcomes), reason)


def _second(found: Mapping[str, Sequence[Outcome]]) -> Iterator[Figure]:
    ours = found[PROMISE]
    title = 'second validation, by promise'
    yield from _ranges(title, ours, 'silver', (0.8964, 0.8997, 0.9053), _SEED)
    yield Figure(f'{title}: preemptions', 2545, _preemptions(ours), _SEED,
                 _LOGS)
    yield Figure('second validation, real cluster: silver, mean', 0.899,
                 figures.mean(_all(ours, 'silver')), source=_LOGS)
    by_priority = _all(found[PRIORITY], 'silver')
    count = len(found[PRIORITY])
    title = 'second validation, by priority'
    yield Figure(f'{title}: silver that run all the time', 200,
                 sum(each >= 0.999 for each in by_priority) / count,
                 source='section 4.4.2')
    yield Figure(f'{title}: silver that never run', 21,
                 sum(not each for each in by_priority) / count,
                 source=_RESULTS)
    yield Figure(f'{title}: preemptions', 0,
                 _preemptions(found[PRIORITY]), source=_LOGS)


def _plot(name: str, found: Mapping[str, Sequence[Outcome]],
          compared: Sequence[Figure]) -> drawing.Plot:
    """Figures 4 and 5: the availability of each request."""
    panels = []
    for policy, outcomes in found.items():
        shares = {
            class_name: sorted(map(float, values), reverse=True)
            for class_name, values in sorted(
                outcomes[0].availabilities.items(),
                key=lambda item: -sum(item[1]) / len(item[1]))}
        ours = [each for each in compared if f' {policy}: ' in each.name]
        series, published, begin = [], [], 0
        for class_name, values in shares.items():
            series.append(drawing.FigureSeries(
                class_name, range(begin, begin + len(values)),
                [100 * each for each in values], 'points'))
            published += [
                (begin + len(values) / 2, 100 * each.published)
                for each in ours if each.name.endswith(
                    (f': {class_name}, mean', f': {class_name}, least'))
                and isinstance(each.published, float)][-1:]
            begin += len(values)
        if published:
            series.append(drawing.FigureSeries(
                'published', [middle for middle, _ in published],
                [value for _, value in published], 'points',
                is_published=True))
        counts = [f'{each.published:g} {each.name.rpartition(": ")[-1]}'
                  for each in ours if ' that ' in each.name]
        panels.append(drawing.Panel(
            f'Requests {policy}' + (
                f' (published: {", ".join(counts)})' if counts else ''),
            'request, ordered by class and availability',
            '% of its time that it runs', series, 100))
    worst, values = [*shares.items()][-1]
    promised = _all(found[PROMISE][:1], worst)
    return drawing.Plot(
        name, panels,
        f'By promise requests of class {worst} run '
        f'{100 * min(promised):.0f} to {100 * max(promised):.0f} % of their '
        'time; by priority '
        f'{sum(each < 0.1 for each in values)} of {len(values)} run less than '
        '10 %')
