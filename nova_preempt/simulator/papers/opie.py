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
"""Who gives way, and how long a decision takes: A. López García et al.

"An efficient cloud scheduler design supporting preemptible instances", FGCS
2019, doi 10.1016/j.future.2018.12.057, section 4: four states of a testbed,
each with the victims that were chosen there, and the time of a scheduling
call with an empty and with a full testbed.

The decision is that of ``simulator/run.py``, on a ``simulator.memory`` cloud.
A trace would add to it: each testbed is a state, with servers on named hosts
that have run for so long; one decision is looked at, and who could have been
chosen instead.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import functools
import itertools
import random
from typing import Any

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.model import (
    SECOND,
    Inventory,
    Request,
    Resources,
    Server,
)
from nova_preempt.core.scheduling import policy as policies
from nova_preempt.simulator import memory
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers.figures import Figure

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
NOW = datetime.datetime(2018, 12, 1, tzinfo=datetime.timezone.utc)
_MINUTE_US = 60 * SECOND
#: What is not a whole period is not paid.
_PAID_US = 60 * _MINUTE_US


@dataclasses.dataclass(frozen=True)
class Table:
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
    Table('Table 3', {
        'host-A': ('MM', {'AP1': (96, 'M'), 'AP2': (207, 'M')}),
        'host-B': ('MM', {'BP1': (71, 'M'), 'BP2': (91, 'M')}),
        'host-C': ('MM', {'CP1': (210, 'M'), 'CP2': (215, 'M')}),
        'host-D': ('M', {'DP1': (85, 'M'), 'DP2': (199, 'M'),
                         'DP3': (152, 'M')}),
    }, 'M', 'host-B', ('BP1',)),
    Table('Table 4', {
        'host-A': ('', {'AP1': (247, 'M'), 'AP2': (463, 'M'),
                        'AP3': (403, 'M'), 'AP4': (410, 'M')}),
        'host-B': ('MM', {'BP1': (344, 'M'), 'BP2': (476, 'M')}),
        'host-C': ('MM', {'CP1': (181, 'M'), 'CP2': (160, 'M')}),
        'host-D': ('M', {'DP1': (384, 'M'), 'DP2': (168, 'M'),
                         'DP3': (232, 'M')}),
    }, 'M', 'host-C', ('CP1',)),
    Table('Table 5', {
        'host-A': ('', {'AP1': (298, 'L'), 'AP2': (278, 'M'),
                        'AP3': (190, 'S'), 'AP4': (187, 'S')}),
        'host-B': ('L', {'BP1': (178, 'L')}),
        'host-C': ('', {'CP1': (297, 'L'), 'CP2': (296, 'M'),
                        'CP3': (296, 'S')}),
        'host-D': ('MML', {}),
    }, 'L', 'host-A', ('AP2', 'AP3', 'AP4')),
    Table('Table 6', {
        'host-A': ('LM', {'AP1': (172, 'M')}),
        'host-B': ('', {'BP1': (272, 'L'), 'BP2': (212, 'M'),
                        'BP3': (380, 'S')}),
        'host-C': ('SML', {}),
        'host-D': ('', {'DP1': (232, 'L'), 'DP2': (213, 'S'),
                        'DP3': (324, 'M'), 'DP4': (314, 'S')}),
    }, 'M', 'host-B', ('BP3',)),
)

POLICY = policies.Policy(eligibility.Rules(), ('delete',),
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
        ) -> figures.Evaluation:
    """Return a figures.Evaluation.

    :param clock: tells processor time in seconds
    """
    times = call_times(max(2, round(REPETITIONS * scale)), clock)
    testbeds = max(10, round(TESTBEDS * scale))
    return figures.Evaluation(
        PAPER,
        f'the four testbeds as printed; {testbeds} random ones of either '
        f'kind; {CALLS} calls on {CALL_HOSTS} hosts, '
        f'{max(2, round(REPETITIONS * scale))} times',
        'that of the four testbeds is printed in the paper. The random ones '
        'have run times of our own making: theirs are not printed.',
        [*_tables(), *_random(testbeds, seed), *_calls(times)],
        (_plot(times),))


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


def _minutes(table: Table, uuid: str) -> int:
    return next(spots[uuid][0] % 60 for _, spots in table.hosts.values()
                if uuid in spots)


def choose(table: Table) -> tuple[str, tuple[str, ...], int]:
    """Return (host, victims, cost in micro-units) of the core's choice."""
    cloud = memory.MemoryCloud(
        _host(name, normal, spots)
        for name, (normal, spots) in table.hosts.items())
    placed = cloud.place(Request.of(SIZES[table.size]), POLICY, NOW, 'new')
    assert placed is not None
    host, plan = placed
    assert plan is not None
    return host.name, tuple(each.uuid for each in plan.victims), plan.cost_us


def _host(name: str, normal: str, spots: Mapping[str, tuple[int, str]]
          ) -> memory.MemoryHost:
    host = _empty(name)
    for number, size in enumerate(normal):
        host.add(f'{name}-{number}', SIZES[size])
    for uuid, (minutes, size) in spots.items():
        host.add(uuid, SIZES[size], _server(
            uuid, host, NOW - datetime.timedelta(minutes=minutes)))
    return host


def _empty(name: str) -> memory.MemoryHost:
    return memory.MemoryHost(name, name, {
        rc: Inventory(total) for rc, total in HOST.items()})


def _server(uuid: str, host: memory.MemoryHost, launched_at: datetime.datetime
            ) -> Server:
    return Server(uuid, host.name, host.name, 'cell', 'p', 'u', 'f',
                  launched_at, 'active', None, 0, 1, 1, 1)


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
        cloud = memory.MemoryCloud(
            [_empty(f'host-{letter}') for letter in 'ABCD'])
        now = NOW
        for number in itertools.count():
            now += datetime.timedelta(minutes=chance.expovariate(1 / 15))
            size = SIZES[chance.choice(sizes)]
            if chance.random() < 0.5:
                # Nobody ends for one that is preemptible itself.
                cloud.place(Request.of(size), POLICY, now, f'p{number}',
                            functools.partial(_server, launched_at=now),
                            rank=policies.PREEMPTIBLE)
                continue
            least = _least(cloud, size, now)
            found = cloud.place(Request.of(size), POLICY, now,
                                f'n{number}')
            if found is None:
                # Not even all of them make room: another testbed.
                break
            _, plan = found
            if plan is not None and plan.victims:
                return plan.cost_us == least


def _least(cloud: memory.MemoryCloud, resources: Resources,
           now: datetime.datetime) -> int | None:
    """The least cost of any set of servers on any host that makes room."""
    least: int | None = None
    for host in cloud.hosts.values():
        provider = host.providers[0]
        lacks = {name: amount - provider.free(name)
                 for name, amount in resources.items()}
        spots = [(host.allocations[uuid],
                  server.uptime_us(now) % _PAID_US)
                 for uuid, server in host.servers.items()]
        for count in range(len(spots) + 1):
            for chosen in itertools.combinations(spots, count):
                if all(sum(freed[name] for freed, _ in chosen) >= lack
                       for name, lack in lacks.items()):
                    cost = sum(cost for _, cost in chosen)
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
    hosts = [_host(f'{number:02}', '', {
        f's{number:02}{each}': (60 * number + 7 * each, 'M')
        for each in range(4)} if is_full else {})
        for number in range(CALL_HOSTS)]
    cloud = memory.MemoryCloud(hosts)
    request = Request.of(SIZES['M'])
    spot: dict[str, Any] = {
        'rank': policies.PREEMPTIBLE, 'make_server': functools.partial(
            _server, launched_at=NOW)} if is_spot else {}
    # Both states of each host count at once, as published.
    policy = dataclasses.replace(POLICY, always=scheduler == _OURS)
    # A retry looks for a host without victims first.
    passes = ('',) if scheduler == _OURS else ('preemption is off', '')
    for number in range(CALLS):
        start = clock()
        for objection in passes:
            if cloud.place(request, policy, NOW, f'new{number}',
                           objection=objection, **spot) is not None:
                break
        yield 1000 * (clock() - start)


def _calls(times: Mapping[tuple[str, str], Sequence[float]]
           ) -> Iterator[Figure]:
    means = {key: figures.mean(values) for key, values in times.items()}
    stock = means[_UNMODIFIED, 'normal, empty']
    lost = ('the published times are in a picture only; ours are of the '
            'decision alone, without Nova around it')
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


def _plot(times: Mapping[tuple[str, str], Sequence[float]]) -> figures.Plot:
    names = [name for name, _, _ in _SCENARIOS]
    return figures.Plot('opie', [figures.Panel(
        f'Mean time of {CALLS} scheduling calls (Figure 2)', '',
        'milliseconds', [figures.Series(
            scheduler, names, [figures.mean(times.get((scheduler, name), ()))
                               for name in names], 'bar')
            for scheduler in (_UNMODIFIED, _OURS, _RETRY)])])
