# SPDX-License-Identifier: Apache-2.0

"""Classes of service, and the availability margin of their requests.

M. Carvalho et al., "QoS-driven scheduling in the cloud" (JISA 11, 2020, doi
10.1186/s13174-020-00129-0): a class promises that its requests run for a share
of the time, and a request may be preempted for as long as that breaks no
promise. The rest of that time is its

    Q = R / availability - (R + W + B) - e

where R, W and B are its clocks (server_clocks.py) and e is the overhead: how
long it takes to get it back to a host. Q is negative where the promise is
broken. The margin is Q less the safety margin of the class; a request without
one is urgent.

Where a host needs milliseconds to resume a container, it takes a minute to
resume a server, and the ratio of that to the time between two passes decides
what can be promised. With 60 s and a pass each 30 s half of the time goes into
resuming. So by default (class_table.py) a request that would break its promise
before the next pass is urgent, and none is preempted before its time on a host
has paid for the overhead. In the published validation, with 60 s to resume and
a pass each 300 s, this margin keeps all silver requests above their 0.9 (0.98
on average) and leaves 0.40 of 0.5 to bronze ones; the published margin of 30 s
gives silver 0.896 and bronze 0.446.

All comparisons are of whole numbers: times are multiplied by a scale of the
table of classes, which makes R / availability one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
import dataclasses
import fractions
import math
from typing import TypeAlias

from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.classes.server_clocks import Times
from nova_preempt.core.model import SECOND

#: Default time to get a server back to a host, until one was measured.
OVERHEAD_S = 60
#: Default of least_run_s: five times the overhead.
LEAST_RUN_S = 300
#: How often to look for victims. So seldom that a resumed server runs for
#: most of the time in between: with a pass each 30 s, servers
#: of a class of 0.9 would run for less than 0.8 of the time, so for 0.88.
PASS_PERIOD_S = 300
#: The weight of the last sample in a mean overhead.
WEIGHT = fractions.Fraction(3, 10)
#: The costs of so many classes can be folded, see victim_harm.py.
MOST_CLASSES = 8

RUNNING = "running"
WAITING = "waiting"
STARTING = "starting"
ASIDE = "aside"

_STATES: Mapping[Kind, str] = {
    Kind.QUEUED: WAITING,
    Kind.ALLOCATING: STARTING,
    Kind.RUNNING: RUNNING,
    Kind.EVICTED: WAITING,
    Kind.ASIDE: ASIDE}
STATES = (RUNNING, WAITING, STARTING, ASIDE)


@dataclasses.dataclass(frozen=True, slots=True)
class QosClass:
    """A class of service.

    ``importance``: 1 is the most important. ``availability``: the share of
    time that its requests are promised to run. ``safety_margin_s``: a request
    is urgent so long before its promise breaks. ``overhead_limit``: the share
    of time on hosts that getting there may take before an urgent request is
    preempted no more by its own class or a less important one; never more than
    1 - availability. ``least_run_s``: how long it may run each time before
    only more important classes preempt it.

    :raises ValueError: a value is not allowed
    """

    name: str
    importance: int
    availability: fractions.Fraction
    safety_margin_s: int = 10
    overhead_limit: fractions.Fraction = fractions.Fraction(1)
    least_run_s: int = 0

    def __post_init__(self) -> None:
        limit = self.overhead_limit
        for field, right, allowed in (
            ("name", bool(self.name), "a text that is not empty"),
            ("importance", self.importance >= 1, "1 or more"),
            (
                "availability", 0 < self.availability <= 1,
                "more than 0 and at most 1"),
            ("safety_margin_s", self.safety_margin_s >= 0, "0 or more"),
            ("overhead_limit", 0 <= limit <= 1, "from 0 to 1"),
            ("least_run_s", self.least_run_s >= 0, "0 or more"),
        ):
            if not right:
                raise ValueError(
                    f"{field} of class {self.name or '(without a name)'} is "
                    f"{getattr(self, field)!s}; it must be {allowed}")

    @property
    def limit(self) -> fractions.Fraction:
        """Return the allowed share of overhead, see ``overhead_limit``."""
        return min(1 - self.availability, self.overhead_limit)


#: Smaller is more urgent: ((0, importance, Q) or (1, 0, Q)).
Precedence: TypeAlias = tuple[int, int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """The claim of a request to a host at one time.

    ``q`` and ``margin`` are in microseconds times the scale of the table of
    classes. ``precedence``: smaller comes first. ``yields``: whether a request
    of the same or a less important class may preempt it.
    """

    uuid: str
    qos: QosClass
    admitted_us: int
    q: int
    margin: int
    precedence: Precedence
    yields: bool

    @property
    def order(self) -> tuple[Precedence, int, str]:
        """Return the key by which waiting requests are ranked."""
        return (self.precedence, self.admitted_us, self.uuid)


def may_preempt(one: Standing, other: Standing) -> bool:
    """Tell whether a request may preempt a running one.

    It must come first by precedence, and the other must yield or be less
    important. This is a part of a strict order: at a given time, no victim may
    in turn preempt its preemptor, not even by way of further requests.
    """
    if one.precedence >= other.precedence:
        return False
    return other.yields or one.qos.importance < other.qos.importance


@dataclasses.dataclass(frozen=True, slots=True)
class _Terms:
    """A class in whole numbers.

    ``factor`` converts run time divided by availability to scaled time;
    ``part`` of ``whole`` is the limit of overhead.
    """

    factor: int
    safety_margin: int
    least_run_us: int
    part: int
    whole: int

    def allow(self, times: Times) -> bool:
        """Tell whether the overhead is within the limit."""
        on_hosts_us = times.binding_us + times.running_us
        return times.binding_us * self.whole <= self.part * on_hosts_us


class QosClasses:
    """The immutable table of classes.

    :ivar scale: the factor of microseconds
    :raises ValueError: a duplicate name or importance, no class, or too many
    """

    __slots__ = ("_by_name", "_ordered", "_ranks", "_terms", "scale")

    def __init__(self, *classes: QosClass) -> None:
        if not 0 < len(classes) <= MOST_CLASSES:
            raise ValueError(
                f"{len(classes)} classes are defined; there must be 1 to "
                f"{MOST_CLASSES}")
        self._by_name = {qos.name: qos for qos in classes}
        by_importance: dict[int, QosClass] = {}
        for qos in classes:
            if self._by_name[qos.name] is not qos:
                raise ValueError(
                    f"two classes have the name {qos.name}")
            other = by_importance.setdefault(qos.importance, qos)
            if other is not qos:
                raise ValueError(
                    f"classes {other.name} and {qos.name} have the same "
                    f"importance, {qos.importance}")
        self._ordered = tuple(
            by_importance[importance] for importance in sorted(by_importance))
        self._ranks = {
            qos.name: rank for rank, qos in enumerate(self._ordered)}
        self.scale = math.lcm(*[qos.availability.numerator for qos in classes])
        self._terms = {qos.name: self._scaled(qos) for qos in classes}

    def _scaled(self, qos: QosClass) -> _Terms:
        share = qos.availability
        return _Terms(
            share.denominator * (self.scale // share.numerator),
            qos.safety_margin_s * SECOND * self.scale,
            qos.least_run_s * SECOND, *qos.limit.as_integer_ratio())

    def __iter__(self) -> Iterator[QosClass]:
        """Iterate over the classes, the most important first."""
        return iter(self._ordered)

    def __len__(self) -> int:
        return len(self._by_name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QosClasses):
            return NotImplemented
        return self._by_name == other._by_name

    def __hash__(self) -> int:
        return hash(frozenset(self._by_name.values()))

    def find(self, name: str) -> QosClass | None:
        """Return the class of a name, None if there is none."""
        return self._by_name.get(name)

    def rank(self, qos: QosClass) -> int:
        """Return how many classes are more important."""
        return self._ranks[qos.name]

    def q(self, qos: QosClass, times: Times, overhead_us: int) -> int:
        """Return Q, the time until the promise breaks, in us times the scale.

        :param overhead_us: how long it takes to get the request back to a host
        """
        due = times.running_us * self._terms[qos.name].factor
        return due - (times.total_us + overhead_us) * self.scale

    def scaled(self) -> list[tuple[int, int]]:
        """Return two whole numbers of each class, the most important first.

        The worth of a microsecond of run time in Q, and the safety margin,
        both in microseconds times the scale.
        """
        return [
            (self._terms[qos.name].factor, self._terms[qos.name].safety_margin)
            for qos in self._ordered]

    def stand(self, uuid: str, qos: QosClass, clocks: ServerClocks,
              now_us: int, overhead_us: int) -> Standing:
        """Return the standing of a request at a time.

        :param qos: one of the table
        """
        times = clocks.at(now_us)
        q = self.q(qos, times, overhead_us)
        terms = self._terms[qos.name]
        margin = q - terms.safety_margin
        has_run = clocks.ran_us(now_us) >= terms.least_run_us
        return Standing(
            uuid, qos, clocks.admitted_us, q, margin,
            (0, qos.importance, q) if margin < 0 else (1, 0, q),
            has_run and (margin >= 0 or terms.allow(times)))


def smoothed_us(mean_us: int, sample_us: int) -> int:
    """Return the mean including one more sample.

    An exponentially weighted moving average, in whole microseconds.
    """
    part, whole = WEIGHT.as_integer_ratio()
    return mean_us + part * (sample_us - mean_us) // whole


@dataclasses.dataclass(frozen=True)
class Overheads:
    """Restart overheads of requests, by kind.

    A moving average of measurements: a server with its volumes elsewhere
    returns sooner than a server whose image has to be copied.

    ``default_us``: for kinds without a measurement. ``means_us``: {kind, such
    as (flavor, what its disk is backed by): mean}.
    """

    default_us: int = OVERHEAD_S * SECOND
    means_us: Mapping[Hashable, int] = dataclasses.field(default_factory=dict)

    def of(self, kind: Hashable) -> int:
        """Return the mean of a kind, in microseconds."""
        return self.means_us.get(kind, self.default_us)

    def seen(self, kind: Hashable, took_us: int) -> Overheads:
        """Return the overheads with one more measurement.

        The first of a kind counts in full. A negative time, after a clock was
        set back, is ignored.
        """
        if took_us < 0:
            return self
        known_us = self.means_us.get(kind)
        mean_us = (
            took_us if known_us is None else smoothed_us(known_us, took_us))
        return dataclasses.replace(
            self, means_us={**self.means_us, kind: mean_us})


@dataclasses.dataclass(slots=True)
class PromiseStatus:
    """Current availability of a class against its promise.

    ``servers``: {state in STATES: how many servers}; ``times``: the sum of
    their clocks since their admission; ``below``: how many have run for less
    than the promised share.
    """

    servers: dict[str, int] = dataclasses.field(
        default_factory=lambda: dict.fromkeys(STATES, 0))
    times: Times = dataclasses.field(default_factory=Times)
    below: int = 0


def promise_status(classes: QosClasses, servers: Iterable[tuple[QosClass,
        ServerClocks]], now_us: int) -> dict[str, PromiseStatus]:
    """Return {class name: PromiseStatus} of all classes.

    :param servers: with their classes; ended servers do not count
    """
    found = {qos.name: PromiseStatus() for qos in classes}
    for qos, clocks in servers:
        state = _STATES.get(clocks.kind) if clocks.kind is not None else None
        if state is None:
            continue
        of, times = found[qos.name], clocks.at(now_us)
        of.servers[state] += 1
        of.times = Times(
            of.times.running_us + times.running_us,
            of.times.waiting_us + times.waiting_us,
            of.times.binding_us + times.binding_us)
        promised = qos.availability
        of.below += (
            times.running_us * promised.denominator
            < times.total_us * promised.numerator)
    return found
