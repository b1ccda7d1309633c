# SPDX-License-Identifier: Apache-2.0
"""Reproduces victims and times of decisions: A. López García et al.

"An efficient cloud scheduler design supporting preemptible instances", FGCS
2019, doi 10.1016/j.future.2018.12.057, section 4: four states of a testbed,
each with the victims that were chosen there, and the time of a scheduling
call with an empty and with a full testbed.

Each testbed is a trace for ``simulator/simulation.py``. Its servers have come
as long before the request as they have run by then; to each host of a table
they are bound by a resource class that no other host has.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools
import math
import random
from typing import Any

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.model import SECOND, Inventory
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.pictures import drawing
from nova_preempt.simulator import delays
from nova_preempt.simulator import simulation
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers.figures import Figure
from nova_preempt.simulator.simulation_settings import CloudSetting
from nova_preempt.simulator.simulation_settings import HostKind
from nova_preempt.simulator.simulation_settings import Options
from nova_preempt.simulator.traces.trace_model import Boot

PAPER = ('A. López García, E. Fernández-del-Castillo, I. Campos Plasencia: '
         'An efficient cloud scheduler design supporting preemptible '
         'instances (FGCS 2019), section 4')

#: Their disk does not count: four medium servers fill a host, as they say.
SIZES = {
    'S': {'VCPU': 1, 'MEMORY_MB': 2000},
    'M': {'VCPU': 2, 'MEMORY_MB': 4000},
    'L': {'VCPU': 4, 'MEMORY_MB': 8000},
}
HOST = {'VCPU': 8, 'MEMORY_MB': 16000}
_MINUTE_US = 60 * SECOND
#: What is not a whole period is not paid.
_PAID_US = 60 * _MINUTE_US
#: When requests come to servers of which each has run for a time of its own.
NOW_US = 100 * _PAID_US
#: Servers run once they have a host, and end once they are asked to.
_AT_ONCE = delays.Delays(*[delays.Delay('constant:0')] * 8)


@dataclasses.dataclass(frozen=True)
class TestbedState:
    """A testbed, a request that comes to it, and who was ended for it.

    :param hosts: {host: (sizes of normal servers, {preemptible server:
        (minutes that it has run, size)})}
    """

    name: str
    hosts: dict[str, tuple[str, dict[str, tuple[int, str]]]]
    size: str
    host: str
    victims: tuple[str, ...]


TABLES = (
    TestbedState('Table 3', {
        'host-A': ('MM', {'AP1': (96, 'M'), 'AP2': (207, 'M')}),
        'host-B': ('MM', {'BP1': (71, 'M'), 'BP2': (91, 'M')}),
        'host-C': ('MM', {'CP1': (210, 'M'), 'CP2': (215, 'M')}),
        'host-D': ('M', {'DP1': (85, 'M'), 'DP2': (199, 'M'),
                         'DP3': (152, 'M')}),
    }, 'M', 'host-B', ('BP1',)),
    TestbedState('Table 4', {
        'host-A': ('', {'AP1': (247, 'M'), 'AP2': (463, 'M'),
                        'AP3': (403, 'M'), 'AP4': (410, 'M')}),
        'host-B': ('MM', {'BP1': (344, 'M'), 'BP2': (476, 'M')}),
        'host-C': ('MM', {'CP1': (181, 'M'), 'CP2': (160, 'M')}),
        'host-D': ('M', {'DP1': (384, 'M'), 'DP2': (168, 'M'),
                         'DP3': (232, 'M')}),
    }, 'M', 'host-C', ('CP1',)),
    TestbedState('Table 5', {
        'host-A': ('', {'AP1': (298, 'L'), 'AP2': (278, 'M'),
                        'AP3': (190, 'S'), 'AP4': (187, 'S')}),
        'host-B': ('L', {'BP1': (178, 'L')}),
        'host-C': ('', {'CP1': (297, 'L'), 'CP2': (296, 'M'),
                        'CP3': (296, 'S')}),
        'host-D': ('MML', {})}, 'L', 'host-A', ('AP2', 'AP3', 'AP4')),
    TestbedState('Table 6', {
        'host-A': ('LM', {'AP1': (172, 'M')}),
        'host-B': ('', {'BP1': (272, 'L'), 'BP2': (212, 'M'),
                        'BP3': (380, 'S')}),
        'host-C': ('SML', {}),
        'host-D': ('', {'DP1': (232, 'L'), 'DP2': (213, 'S'),
                        'DP3': (324, 'M'), 'DP4': (314, 'S')}),
    }, 'M', 'host-B', ('BP3',)))

POLICY = preemption_policy.Policy(eligibility.Rules(), ('delete',),
                                  costs.partial_hour)

#: Of the times of a call: one size of servers, and so many of them.
CALLS = 130
#: Enough for them; how many hosts the testbed had is lost.
CALL_HOSTS = 33
#: How often each scenario is repeated at full scale, and how many testbeds
#: of either kind are filled.
REPETITIONS = 20
TESTBEDS = 200


def run(scale: float, seed: int, clock: Callable[[], float]
        ) -> figures.PaperEvaluation:
    """Return a figures.PaperEvaluation.

    :param clock: tells processor time in seconds
    """
    times = call_times(max(2, round(REPETITIONS * scale)), clock)
    testbeds = max(10, round(TESTBEDS * scale))
    return figures.PaperEvaluation(
        PAPER,
        f'the four testbeds as printed; {testbeds} random ones of either '
        f'kind; {CALLS} calls on {CALL_HOSTS} hosts, '
        f'{max(2, round(REPETITIONS * scale))} times',
        'that of the four testbeds is printed in the paper. The random ones '
        'have run times of our own making: theirs are not printed.',
        [*_tables(), *_random(testbeds, seed), *_calls(times)],
        (_plot(times),))


class Testbed:
    """A simulation of a few hosts, NAME-1 for each of these names.

    On each host servers may take something that the others do not have.
    """

    def __init__(self, names: Iterable[str], *, always: bool = False,
                 enabled: bool = True) -> None:
        self._records: list[dict[str, Any]] = []
        self._simulation = simulation.Simulation(
            CloudSetting(tuple(HostKind(name, 1, {
                rc: Inventory(total) for rc, total
                in {**HOST, name: HOST['VCPU']}.items()}) for name in names),
                delays=_AT_ONCE),
            Options(dataclasses.replace(POLICY, always=always),
                    enabled=enabled), write=self._records.append)

    def come(self, *boots: Boot) -> dict[str, dict[str, Any]]:
        """Simulate requests; return {event: its last record}."""
        self._records.clear()
        self._simulation.run(boots)
        return {record['event']: record for record in self._records}

    @property
    def cost_us(self) -> int:
        """Return the cost of all victims."""
        return int(self._simulation.summary()['decisions']['cost_us'])


def _spot(at_us: int, uuid: str, size: str, host: str | None = None) -> Boot:
    """Return the request of a preemptible server, which may name its host."""
    return Boot(at_us, uuid, SIZES[size] | ({host: 1} if host else {}),
                class_name='preemptible')


# -- the four tables ---------------------------------------------------------

def _tables() -> Iterator[Figure]:
    for table in TABLES:
        host, victims, cost_us = choose(table)
        yield Figure(
            f'{table.name}: who ends',
            f'{table.host}: {" ".join(table.victims)}',
            f'{host}: {" ".join(victims)}', source=table.name)
        yield Figure(
            f'{table.name}: minutes that nobody pays',
            sum(_minutes(table, uuid) for uuid in table.victims),
            cost_us // _MINUTE_US,
            'the numbers behind the choice are not legible in the text; '
            'computed from the run times in the table, of those who ended '
            'there', 'computed')


def _minutes(table: TestbedState, uuid: str) -> int:
    return next(spots[uuid][0] % 60 for _, spots in table.hosts.values()
                if uuid in spots)


def choose(table: TestbedState) -> tuple[str, tuple[str, ...], int]:
    """Return (host, victims, cost in micro-units) of the core's choice."""
    boots = []
    for host, (normal, spots) in table.hosts.items():
        boots += [Boot(0, f'{host} {number}', {**SIZES[size], host: 1})
                  for number, size in enumerate(normal)]
        boots += [_spot(NOW_US - minutes * _MINUTE_US, uuid, size, host)
                  for uuid, (minutes, size) in spots.items()]
    testbed = Testbed(table.hosts)
    found = testbed.come(*sorted(boots, key=lambda boot: boot.at_us), Boot(
        NOW_US, 'new', SIZES[table.size]))['preempted']
    return (found['host'].removesuffix('-1'), tuple(found['victims']),
            testbed.cost_us)


# -- random testbeds ---------------------------------------------------------

def _random(count: int, seed: int) -> Iterator[Figure]:
    for what, sizes in (('one size', 'M'), ('three sizes', 'SML')):
        chance = random.Random(seed)
        best = sum(_is_best(chance, sizes) for _ in range(count))
        yield Figure(
            f'random testbeds, {what}: share with the best victims',
            'as expected', best / count,
            'published of two testbeds of either kind. Ours are checked '
            'against all hosts and all sets of victims, one by one.',
            'section 6')


def _is_best(chance: random.Random, sizes: str) -> bool:
    """Fill a testbed until somebody has to end; whether it is the cheapest."""
    while True:
        there: dict[str, list[Boot]] = {f'{name}-1': [] for name in 'ABCD'}
        testbed = Testbed('ABCD')
        now_us = 0
        for number in itertools.count():
            now_us += round(chance.expovariate(1 / 15) * _MINUTE_US)
            size = chance.choice(sizes)
            boot = Boot(now_us, f'{number}', SIZES[size], size)
            if chance.random() < 0.5:
                # Nobody ends for one that is preemptible itself.
                boot = dataclasses.replace(boot, class_name='preemptible')
            found = testbed.come(boot)
            if 'placed' in found:
                there[found['placed']['host']].append(boot)
            elif 'preempted' in found:
                return testbed.cost_us == _least(there.values(), boot)
            elif boot.class_name == 'normal':
                # Not even all of them make room: another testbed.
                break


def _least(hosts: Iterable[Sequence[Boot]], new: Boot) -> int | None:
    """Return the least cost of sufficient victims on any host."""
    least: int | None = None
    for there in hosts:
        lacks = {name: sum(SIZES[boot.flavor][name]
                           for boot in (*there, new)) - total
                 for name, total in HOST.items()}
        spots = [boot for boot in there if boot.class_name == 'preemptible']
        for count in range(len(spots) + 1):
            for chosen in itertools.combinations(spots, count):
                if all(sum(SIZES[boot.flavor][name] for boot in chosen)
                       >= lack for name, lack in lacks.items()):
                    cost = sum((new.at_us - boot.at_us) % _PAID_US
                               for boot in chosen)
                    least = cost if least is None else min(cost, least)
    return least


# -- how long a call takes ---------------------------------------------------

_UNMODIFIED = 'unmodified'
_OURS = 'preemptible'
_RETRY = 'retry'
_SCENARIOS = (('normal, empty', False, False),
              ('preemptible, empty', True, False),
              ('normal, full', False, True))


def call_times(repetitions: int, clock: Callable[[], float]
               ) -> dict[tuple[str, str], list[float]]:
    """Return {(scheduler, scenario): milliseconds of each call}."""
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(repetitions):
        for scheduler in (_UNMODIFIED, _OURS, _RETRY):
            for name, is_spot, is_full in _SCENARIOS:
                if scheduler == _UNMODIFIED and (is_spot or is_full):
                    continue
                found.setdefault((scheduler, name), []).extend(
                    _scenario(scheduler, is_spot, is_full, clock))
    return found


def _scenario(scheduler: str, is_spot: bool, is_full: bool,
              clock: Callable[[], float]) -> Iterator[float]:
    names = [f'{number:02}' for number in range(CALL_HOSTS)]
    # A retry looks for a host without victims first. The other counts both
    # states of each host at once, as published.
    testbeds = [Testbed(names, enabled=False)] * (scheduler != _OURS)
    if scheduler != _UNMODIFIED:
        testbeds.append(Testbed(names, always=scheduler == _OURS))
    spots = [_spot(NOW_US - (60 * number + 7 * each) * _MINUTE_US,
                   f'{name} {each}', 'M', name)
             for number, name in reversed([*enumerate(names)])
             for each in reversed(range(4))] if is_full else []
    for testbed in testbeds:
        testbed.come(*spots)
    for number in range(CALLS):
        boot = (_spot(NOW_US, f'{number}', 'M') if is_spot
                else Boot(NOW_US, f'{number}', SIZES['M']))
        start = clock()
        for testbed in testbeds:
            if 'refused' not in testbed.come(boot):
                break
        yield 1000 * (clock() - start)


def _calls(times: Mapping[tuple[str, str], Sequence[float]]
           ) -> Iterator[Figure]:
    means = {key: figures.mean(values) for key, values in times.items()}
    stock = means[_UNMODIFIED, 'normal, empty']
    lost = ('the published times are in a picture only; ours are of a '
            'simulated request, without Nova around it')
    yield Figure('Figure 2: unmodified, normal, empty (ms)', None, stock,
                 lost, is_time=True)
    for name, _, _ in _SCENARIOS:
        for scheduler, said in ((_OURS, 'somewhat longer'),
                                (_RETRY, 'as long')):
            is_lost = name == 'normal, full'
            yield Figure(
                f'Figure 2: {scheduler}, {name} (times unmodified)',
                None if is_lost else said, means[scheduler, name] / stock,
                source='' if is_lost else 'section 4.5', is_time=True)
    yield Figure(
        'Figure 2: retry, normal, full (times preemptible)',
        'significantly longer',
        means[_RETRY, 'normal, full'] / means[_OURS, 'normal, full'],
        'the first pass of a retry is in vain', 'section 4.5', is_time=True)


def _plot(times: Mapping[tuple[str, str], Sequence[float]]) -> drawing.Plot:
    means = {key: figures.mean(values) for key, values in times.items()}
    return drawing.Plot('opie', [drawing.Panel(
        f'Mean time of {CALLS} scheduling calls (Figure 2, published as a '
        'drawing only)', '', 'milliseconds', [
            drawing.FigureSeries(
                label, [f'{name} hosts' for name, _, _ in _SCENARIOS],
                [means.get((scheduler, name), math.nan)
                 for name, _, _ in _SCENARIOS], 'bar')
            for scheduler, label in (
                (_UNMODIFIED, 'unmodified'), (_OURS, 'one pass'),
                (_RETRY, 'with a retry'))])],
        f'On full hosts a call takes {means[_OURS, "normal, full"]:.3g} ms in '
        f'one pass, {means[_RETRY, "normal, full"]:.3g} ms with a retry '
        '(published: significantly longer)')
