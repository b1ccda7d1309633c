# SPDX-License-Identifier: Apache-2.0
"""Places a batch: bundles its requests, cuts it into parts, places these."""

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
from typing import TypeAlias

from nova_preempt.core import capacity
from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import exact_solver
from nova_preempt.core.batch import greedy_solver
from nova_preempt.core.batch import request_kinds
from nova_preempt.core.batch.free_capacity import FreeCapacity
from nova_preempt.core.batch.free_capacity import make
from nova_preempt.core.batch.greedy_solver import AtomicUnit
from nova_preempt.core.batch.greedy_solver import Solution
from nova_preempt.core.batch.request_kinds import Bundle
from nova_preempt.core.batch.request_kinds import RequestKind

#: A part has no more pairs of a class and a host, so that its arrays are of
#: some ten megabytes each.
_MOST_PAIRS = 4_000_000

Members: TypeAlias = Mapping[str, Mapping[str, int]]
#: Places units, and takes them from the table; what is left is in seconds.
Search: TypeAlias = Callable[[FreeCapacity, Sequence[AtomicUnit],
    batch_model.Options, Callable[[], float]], Solution]


class BatchPlacer:
    """Places batches by some options; made by ``solver_choice.make()``.

    :param search: replaces the search of the mode
    """

    def __init__(
        self, options: batch_model.Options,
        monotonic: Callable[[], float] | None = None,
        search: Search | None = None, ) -> None:
        self._options = options
        self._monotonic = monotonic
        self._search = search or _search

    def place(
        self, requests: Iterable[batch_model.Request],
        hosts: Iterable[batch_model.HostState], members: Members | None = None,
    ) -> batch_model.BatchResult:
        """Return the hosts of the requests.

        Equal input gives equal output in whatever order it comes, unless the
        time limit ends a search: ``Part.optimal`` is False then.

        :param members: running servers of anti-affinity groups: {group: {host:
            how many}}
        :raises ValueError: a duplicate, or amounts that are negative or too
            large to be added up
        """
        bundles = request_kinds.bundles(requests)
        run = _Run(tuple(hosts), members or {}, self._options, self._search)
        left_s = self._budget()
        # Even of an empty batch something may be wrong with the hosts.
        parts = list(run.cut(bundles)) or [[]]
        for number, part in enumerate(parts):
            run.place(part, _shared(left_s, len(parts) - number))
        unplaced = sorted(
            member.uuid for bundle in bundles for member in bundle.members
            if member.uuid not in run.placed)
        return batch_model.BatchResult(
            run.placed, tuple(unplaced), run.score, tuple(run.parts))

    def _budget(self) -> Callable[[], float]:
        """Return a function that returns the remaining time of solvers."""
        limit_s = self._options.time_limit_s
        if self._monotonic is None:
            return lambda: limit_s
        end = self._monotonic() + limit_s
        clock = self._monotonic
        return lambda: end - clock()


class _Run:
    """The placement of one batch."""

    def __init__(
        self, hosts: tuple[batch_model.HostState, ...], members: Members,
        options: batch_model.Options, search: Search, ) -> None:
        self._options = options
        self._search = search
        self._left = {host.name: host for host in hosts}
        if len(self._left) < len(hosts):
            names = collections.Counter(host.name for host in hosts)
            raise ValueError(
                f"host {names.most_common(1)[0][0]} is a duplicate")
        self._there = {group: dict(there) for group, there in members.items()}
        self.placed: dict[str, dict[str, int]] = {}
        self.parts: list[batch_model.PartResult] = []
        self.score = 0

    def cut(self, bundles: Iterable[Bundle]) -> Iterator[list[Bundle]]:
        """Yield the bundles of each part."""
        part: list[Bundle] = []
        servers, classes = 0, set[RequestKind]()
        most = _MOST_PAIRS // max(1, len(self._left))
        for bundle in bundles:
            if part and (
                servers + bundle.count > self._options.most_at_once
                or (bundle.kind not in classes and len(classes) >= most)):
                yield part
                part, servers, classes = [], 0, set()
            part.append(bundle)
            servers += bundle.count
            classes.add(bundle.kind)
        if part:
            yield part

    def place(
        self, part: Sequence[Bundle], left_s: Callable[[], float]) -> None:
        """Place a part."""
        wanted = collections.Counter[RequestKind]()
        for bundle in part:
            wanted[bundle.kind] += bundle.count
        table = make(
            wanted, self._left.values(), self._options.score, self._there)
        class_of = {
            kind: f for f, kind in enumerate(table.problem.classes)}
        units = greedy_solver.make_units(part, class_of)
        found = self._search(table, units, self._options, left_s)
        given = found.hosts_of(units)
        for number, hosts in sorted(given.items()):
            self._take(part[number], {
                table.problem.hosts[j].name: count
                for j, count in sorted(hosts.items())})
        if part:
            self.score += found.score
            self.parts.append(batch_model.PartResult(
                sum(unit.size for unit in units), found.method, found.optimal))
    def _take(self, bundle: Bundle, hosts: Mapping[str, int]) -> None:
        """Record the hosts of a bundle, and claim their capacity."""
        for name, count in hosts.items():
            host = self._left[name]
            self._left[name] = dataclasses.replace(
                host, free=capacity.subtract(host.free, {
                    item: amount * count
                    for item, amount in bundle.kind.demand}))
            for group, _most, members in bundle.kind.apart:
                there = self._there.setdefault(group, {})
                there[name] = there.get(name, 0) + members * count
            for member in bundle.members:
                # All servers of those that are together are there.
                some = member.count if member.together else count
                self.placed.setdefault(member.uuid, {})[name] = some


def _search(table: FreeCapacity, units: Sequence[AtomicUnit],
        options: batch_model.Options, left_s: Callable[[], float]) -> Solution:
    servers = sum(unit.size for unit in units)
    if (options.mode == batch_model.GREEDY
            or servers > batch_model.MOST_AT_ONCE):
        return greedy_solver.place(table, units)
    return exact_solver.place(table, units, options, left_s)


def _shared(left_s: Callable[[], float], parts: int) -> Callable[[], float]:
    """Return the share of the first of some parts in the remaining time."""
    if parts == 1:
        return left_s
    rest_s = left_s() * (parts - 1) / parts
    return lambda: left_s() - rest_s
