# SPDX-License-Identifier: Apache-2.0
"""Records decisions and replays them.

What stands between a decision and the cloud writes down what is asked and
answered; a Replay answers the same, and refuses another question. So a
decision can be looked at, or made by other code, without the cloud.
"""

import contextlib
import dataclasses

from nova_preempt.core.scheduling import cloud_view
from nova_preempt.core.scheduling import scheduling_cycle

#: The questions of core.scheduling.cloud_view.CloudView.
QUESTIONS = frozenset(name for name in vars(cloud_view.CloudView)
                      if not name.startswith('_'))


class Differs(AssertionError):
    """Another question than the first time, or another answer."""


@dataclasses.dataclass
class Record:
    """Record of a scheduling pass.

    :ivar arguments, keywords: of the core's SchedulingCycle, but for the cloud
    :ivar room: [(what was found to have room, what was asked for)]
    :ivar offered: whether there were preemptible servers
    :ivar orders: [(hosts, index, what they were ordered to)]
    :ivar claims: [(uuid of a host, its Plan or None, whether it was claimed)]
    :ivar log: [(question, arguments, answer)]
    """

    arguments: tuple
    keywords: dict
    room: list = dataclasses.field(default_factory=list)
    offered: list = dataclasses.field(default_factory=list)
    orders: list = dataclasses.field(default_factory=list)
    claims: list = dataclasses.field(default_factory=list)
    log: list = dataclasses.field(default_factory=list)


class Recorder:
    """A Cloud that records the answers of another one."""

    def __init__(self, cloud, log):
        self._cloud = cloud
        self._log = log

    def __getattr__(self, name):
        found = getattr(self._cloud, name)
        if name not in QUESTIONS:
            return found

        def asked(*args):
            answer = found(*args)
            self._log.append((name, _frozen(args), _frozen(answer)))
            return answer

        return asked


def _frozen(value):
    """Return a copy of a mutable value."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, tuple):
        return tuple(map(_frozen, value))
    if isinstance(value, list):
        return list(map(_frozen, value))
    return value


class RecordingCycle(scheduling_cycle.SchedulingCycle):
    """The core's SchedulingCycle, which records its inputs and outputs.

    :ivar record: a Record
    """

    def __init__(self, cloud, *args, **kwargs):
        # What others have worked out is no answer of the cloud.
        self.record = Record(args, {name: value for name, value
                                    in kwargs.items() if name != 'memo'})
        super().__init__(Recorder(cloud, self.record.log), *args, **kwargs)

    def found_room(self, room, asked=None):
        self.record.room.append(({uuid: dict(free) for uuid, free
                                  in room.items()}, asked))
        super().found_room(room, asked)

    def offer(self, *, any_victims):
        self.record.offered.append(any_victims)
        return super().offer(any_victims=any_victims)

    def order(self, hosts, index=0):
        hosts = list(hosts)
        ordered = super().order(hosts, index)
        self.record.orders.append((hosts, index, list(ordered)))
        return ordered

    def confirm(self, host):
        plan = super().confirm(host)
        if plan is None:
            self.record.claims.append((host, None, False))
        return plan

    def lost(self, host):
        if self.record.claims[-1:] != [(host, None, False)]:
            self.record.claims.append((host, self.plan_of(host), False))
        super().lost(host)

    def claimed(self, host):
        self.record.claims.append((host, self.plan_of(host), True))
        return super().claimed(host)


class Replay:
    """A Cloud that answers as it was answered before.

    :param log: of a Record
    """

    def __init__(self, log):
        self._log = iter(log)

    def __getattr__(self, name):
        if name not in QUESTIONS:
            raise AttributeError(name)

        def asked(*args):
            expected = next(self._log, None)
            if expected is None or expected[:2] != (name, _frozen(args)):
                raise Differs(f'{name}{args} is asked instead of {expected}')
            return expected[2]

        return asked

    def rest(self):
        """Return the queries that were not repeated."""
        return list(self._log)


class _Over(Exception):
    """The record ends here: nothing was claimed after that."""


class _Again(scheduling_cycle.SchedulingCycle):

    def __init__(self, orders, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._orders = iter(orders)

    def order(self, hosts, index=0):
        found = list(hosts), index, super().order(hosts, index)
        expected = next(self._orders, None)
        if found != expected:
            raise Differs(f'{found} instead of {expected}')
        return found[2]


def again(record, memo=None):
    """Replay the decisions of a Record in a plain loop.

    :param memo: a core CostBoundCache, which knows what those know who
        recorded: one that is given to all of their records in turn
    :returns: [(uuid of a host, its Plan or None)] of what was claimed
    :raises Differs: something else is asked for, or comes of it
    """
    replay = Replay(record.log)
    cycle = _Again(record.orders, replay, *record.arguments,
                   **record.keywords, memo=memo)
    for number, (room, asked) in enumerate(record.room):
        cycle.found_room(room, asked)
        if not number:
            for any_victims in record.offered:
                cycle.offer(any_victims=any_victims)
    claims = _Claims(record.claims)
    if record.orders:
        with contextlib.suppress(_Over):
            cycle.place(record.orders[0][0], claims.claim,
                        len(record.orders))
    rest = replay.rest()
    if rest:
        raise Differs(f'nobody asks for {rest[0]}')
    return claims.claimed


class _Claims:
    """Takes hosts where that could be done the first time."""

    def __init__(self, expected):
        self.claimed = []
        self._expected = iter(expected)

    def claim(self, host, plan):
        expected = next(self._expected, None)
        if expected is None:
            raise _Over
        if expected[:2] != (host, plan):
            raise Differs(f'{host} is claimed by {plan} instead of '
                          f'{expected}')
        if expected[2]:
            self.claimed.append((host, plan))
        return expected[2]
