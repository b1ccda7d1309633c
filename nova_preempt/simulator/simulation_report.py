# SPDX-License-Identifier: Apache-2.0
"""Counts and records the events of a simulation."""

import collections
from collections.abc import Callable, Mapping
import dataclasses
import fractions
import math
from typing import Any

from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes import server_clocks
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.energy import power_savings
from nova_preempt.core.model import SECOND
from nova_preempt.simulator import power_meter
from nova_preempt.simulator.time_series import Point
from nova_preempt.simulator.time_series import Series

#: How many buckets of a histogram there are up to twice a value.
_FINE = 8
#: Of which marks servers are wanted, and are there.
_WANTED = frozenset((Kind.QUEUED, Kind.ALLOCATING, Kind.RUNNING, Kind.EVICTED))
_LEVELS = (('wanted', _WANTED), ('running', frozenset((Kind.RUNNING,))))
#: Of waits, what is said.
_QUANTILES = {'median': 0.5, '95 %': 0.95}


class WaitHistogram:
    """Durations in a histogram: a quantile is up to 9 % too large."""

    def __init__(self) -> None:
        self.count = 0
        self.total_us = 0
        self.most_us = 0
        self._buckets: collections.Counter[int] = collections.Counter()

    def add(self, wait_us: int) -> None:
        self.count += 1
        self.total_us += wait_us
        self.most_us = max(self.most_us, wait_us)
        self._buckets[math.ceil(_FINE * math.log2(wait_us))
                      if wait_us else -1] += 1

    def quantile_us(self, share: float) -> int:
        """Return a time that at least this share was not above."""
        left = math.ceil(share * self.count)
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return 0 if bucket < 0 else min(
                    self.most_us, round(2 ** (bucket / _FINE)))
        return 0

    def figures(self) -> dict[str, float]:
        """Return them in seconds."""
        mean_us = self.total_us / self.count if self.count else 0
        return {'mean': round(mean_us / SECOND, 3),
                **{name: round(self.quantile_us(share) / SECOND, 3)
                   for name, share in _QUANTILES.items()},
                'most': self.most_us / SECOND}


@dataclasses.dataclass
class _Integral:
    """An amount in use, and its integral over time."""

    amount: int = 0
    area: int = 0
    since_us: int = 0

    def change(self, amount: int, now_us: int) -> None:
        self.area += self.amount * (now_us - self.since_us)
        self.since_us = now_us
        self.amount += amount


class Report:
    """Grows while a simulation runs.

    :param now_us: tells the time
    :param write: takes each record, {"t", "event", "id", ...}; None if
        nobody wants them
    :param series: grows, too; None if nobody wants it
    """

    def __init__(self, now_us: Callable[[], int],
                 write: Callable[[dict[str, Any]], None] | None = None,
                 series: Series | None = None) -> None:
        self.counts: dict[str, collections.Counter[str]] = (
            collections.defaultdict(collections.Counter))
        self.decisions: collections.Counter[str] = collections.Counter()
        self._waits: dict[str, WaitHistogram] = (
            collections.defaultdict(WaitHistogram))
        # Nothing is held of anything until it changes for the first time.
        self._held: dict[tuple[str, bool, str], _Integral] = (
            collections.defaultdict(_Integral))
        self._levels: dict[str, _Integral] = collections.defaultdict(_Integral)
        self._promised: dict[availability_margin.QosClass,
                             list[fractions.Fraction]] = {}
        self._moves: collections.Counter[str] = collections.Counter()
        self._delays: list[power_savings.DelayedRequest] = []
        self._delay_s = 0.0
        self._now_us = now_us
        self._write = write
        self.series = series
        self.marked: Callable[[Any, Kind], None] | None = None
        self.reserved: Callable[[Any, int], None] | None = None
        self._reservations: collections.Counter[str] = collections.Counter()

    def note(self, event: str, server: Any, **more: Any) -> None:
        """Count an event of a server, and write it down."""
        if self.series is not None:
            self._sample(is_event=True)
        name = server.boot.class_name
        self.counts[name][event] += 1
        if self._write is not None:
            self._write({'t': self._now_us() / SECOND, 'event': event,
                         'id': server.boot.id, 'class': name, **more})

    def waited(self, server: Any, wait_us: int) -> None:
        """Record how long a server waited."""
        self._waits[server.boot.class_name].add(wait_us)

    def lost(self, server: Any, ran_us: int) -> None:
        """Record the work that a server has lost."""
        self.counts[server.boot.class_name]['lost_us'] += ran_us

    def hold(self, server: Any, sign: int) -> None:
        """Record that a server claims or frees its resources."""
        now_us = self._now_us()
        if self.series is not None:
            self._sample()
        for name, amount in server.kind.resources.items():
            key = (server.boot.class_name, server.kind.terms is None, name)
            self._held[key].change(sign * amount, now_us)
        if self.reserved is not None:
            self.reserved(server, sign)

    def mark(self, server: Any, kind: Kind) -> None:
        """Record an event of a server's clock.

        ``marked`` is told of it, too.
        """
        if server.moves is not None:
            return
        if self.series is not None and server.mark is not kind:
            name = server.boot.class_name
            for what, marks in _LEVELS:
                change = (kind in marks) - (server.mark in marks)
                if change:
                    self.level(f'{what} {name}', change)
        if server.mark is not Kind.ENDED and self.marked is not None:
            self.marked(server, kind)
        server.mark = kind

    def level(self, name: str, change: int) -> None:
        """Something has become more or less."""
        now_us = self._now_us()
        if self.series is not None:
            self._sample()
        self._levels[name].change(change, now_us)

    def host(self, state: str, name: str, why: str) -> None:
        """A host has come into a state."""
        self._moves[state] += 1
        if self._write is not None:
            self._write({'t': self._now_us() / SECOND, 'event': state,
                         'host': name, 'why': why})

    def reservation(self, event: str, id: str, **more: Any) -> None:
        """Count an event of a reservation, and write it down."""
        if self.series is not None:
            self._sample(is_event=True)
        self._reservations[event] += 1
        if self._write is not None:
            self._write({'t': self._now_us() / SECOND,
                         'event': f'reservation {event}', 'id': id, **more})

    def started(self, reservation: Any, late_s: float) -> None:
        """A reservation has its hosts for itself."""
        self.reservation('started', reservation.uuid,
                         on=list(reservation.held))
        if late_s >= 1:
            self._reservations['late'] += 1
            self._reservations['late_ms'] += round(1000 * late_s)

    def delayed(self, server: Any, waited_s: float) -> None:
        """A server has waited for hosts to wake."""
        self._delay_s += waited_s
        self._delays.append(power_savings.DelayedRequest(
            server.kind.resources.get('VCPU', 0), waited_s,
            server.left_us / SECOND if server.left_us else math.inf))

    def promised(self, qos: availability_margin.QosClass,
                 times: server_clocks.Times) -> None:
        """A server of a class is over, or the simulation is."""
        if times.total_us:
            self._promised.setdefault(qos, []).append(times.availability)

    def _sample(self, is_event: bool = False) -> None:
        """Add the points whose time has come: all was the same since."""
        series, now_us = self.series, self._now_us()
        assert series is not None
        if not series.points:
            # Hosts are there before the first event.
            if is_event:
                series.add(self._point(now_us))
            return
        while series.next_us < now_us:
            series.add(self._point(series.next_us))

    def _point(self, at_us: int) -> Point:
        areas: collections.Counter[tuple[str, str]] = collections.Counter()
        for (_, normal, name), held in self._held.items():
            areas['normal' if normal else 'preemptible', name] += (
                held.area + held.amount * (at_us - held.since_us))
        counts: collections.Counter[str] = collections.Counter()
        for each in self.counts.values():
            counts.update(each)
        for waits in self._waits.values():
            counts['waits'] += waits.count
            counts['waited_us'] += waits.total_us
        return Point(at_us, areas, counts, {
            name: held.area + held.amount * (at_us - held.since_us)
            for name, held in self._levels.items()})

    def summary(self, capacity: Mapping[str, int]) -> dict[str, Any]:
        """Return the figures.

        :param capacity: of the cloud
        """
        now_us = self._now_us()
        if self.series is not None:
            self._sample()
            self.series.end = self._point(now_us)
        return {
            'seconds': now_us / SECOND,
            'capacity': dict(sorted(capacity.items())),
            'used': self._used(capacity, now_us),
            'decisions': dict(sorted(self.decisions.items())),
            **self._energy(now_us), **self._reserved(now_us),
            **({'promises': _promises(self._promised)}
               if self._promised else {}),
            'classes': {name: self._class(name)
                        for name in sorted(self.counts)}}

    def _used(self, capacity: Mapping[str, int], now_us: int
              ) -> dict[str, dict[str, float]]:
        areas: collections.Counter[tuple[str, str]] = collections.Counter()
        for (_, normal, name), held in self._held.items():
            held.change(0, now_us)
            kind = 'normal' if normal else 'preemptible'
            areas[kind, name] += held.area
        return {
            kind: {name: round(areas[kind, name] / (total * now_us), 6)
                   for name, total in sorted(capacity.items())
                   if total and now_us} for kind in ('normal', 'preemptible')}

    def _energy(self, now_us: int) -> dict[str, Any]:
        """Return the power draw of hosts, {} if it was not measured."""
        if 'hosts on' not in self._levels:
            return {}
        for held in self._levels.values():
            held.change(0, now_us)
        levels = {name: held.area / SECOND
                  for name, held in self._levels.items()}
        found = power_meter.figures(levels)
        if now_us:
            found['hosts_on'] = round(levels['hosts on'] * SECOND / now_us, 3)
        if self._moves:
            found['moves'] = dict(sorted(self._moves.items()))
            found['waited'] = len(self._delays)
            found['waited_s'] = round(self._delay_s, 3)
            found['delay_req'] = round(power_savings.delay_req(self._delays),
                                       6)
        return {'energy': found}

    def _reserved(self, now_us: int) -> dict[str, Any]:
        """Return the results of reservations, {} without any."""
        if not self._reservations:
            return {}
        found: dict[str, Any] = dict(sorted(self._reservations.items()))
        found['late_s'] = found.pop('late_ms', 0) / 1000
        for name, level in (('host_hours', 'hosts reserved'),
                            ('host_hours_used', 'hosts reserved and used')):
            held = self._levels.get(level, _Integral())
            held.change(0, now_us)
            found[name] = round(held.area / SECOND / 3600, 3)
        return {'reservations': found}

    def _class(self, name: str) -> dict[str, Any]:
        counts = dict(sorted(self.counts[name].items()))
        lost_us = counts.pop('lost_us', 0)
        waits = self._waits.get(name, WaitHistogram())
        return {**counts, 'lost_s': lost_us / SECOND,
                'wait_s': waits.figures()}


def _promises(found: Mapping[availability_margin.QosClass,
                             list[fractions.Fraction]]) -> dict[str, Any]:
    """Return the summary of the promises.

    :param found: {QosClass: which part of its time each server has run}
    """
    return {qos.name: {
        'promised': float(qos.availability), 'servers': len(shares),
        'mean': round(float(sum(shares) / len(shares)), 6),
        'least': round(float(min(shares)), 6),
        'kept': round(sum(share >= qos.availability for share in shares)
                      / len(shares), 6)}
            for qos, shares in sorted(found.items(),
                                      key=lambda item: item[0].importance)}
