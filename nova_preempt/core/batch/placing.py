# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Place a batch: group it, cut it into parts, place these, say why not."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import dataclasses
from typing import TypeAlias

from nova_preempt.core import capacity
from nova_preempt.core.batch import exact
from nova_preempt.core.batch import greedy
from nova_preempt.core.batch import grouping
from nova_preempt.core.batch import model
from nova_preempt.core.batch import reasons
from nova_preempt.core.batch import units as batch_units
from nova_preempt.core.batch.arrays import make_problem
from nova_preempt.core.batch.grouping import Bundle
from nova_preempt.core.batch.grouping import Class
from nova_preempt.core.batch.table import Table

#: A part has no more pairs of a class and a host, so that its arrays are of
#: some ten megabytes each.
_MOST_PAIRS = 4_000_000


#: Places units of a table, given the options and how long is left in seconds,
#: and takes them from the table.
Search: TypeAlias = Callable[
    [Table, Sequence[batch_units.Unit], model.Options, Callable[[], float]],
    batch_units.Found]


class Batch:
    """Places batches by some options; made by ``choice.make()``.

    :param search: in place of the one that is named by the mode
    """

    def __init__(
        self,
        options: model.Options,
        monotonic: Callable[[], float] | None = None,
        search: Search | None = None,
    ) -> None:
        self._options = options
        self._monotonic = monotonic
        self._search = search or _search

    def place(
        self,
        requests: Iterable[model.Request],
        hosts: Iterable[model.HostState],
        members: Mapping[str, Mapping[str, int]] | None = None,
    ) -> model.Result:
        """Say which request gets which host.

        Equal input gives equal output in whatever order it comes, unless the
        time limit ends a search: ``Part.optimal`` is False then.

        :param members: of groups that requests are ``apart`` by, those that
            run: {group: {host: how many}}
        :raises ValueError: something is there twice, or amounts are negative
            or too large to be added up
        """
        bundles, refused = grouping.bundles(requests)
        return _Run(bundles, tuple(hosts), self._options, members or {},
                    self._search).run(self._budget(), refused)

    def _budget(self) -> Callable[[], float]:
        """Return what says how long solvers may still take."""
        limit_s = self._options.time_limit_s
        if self._monotonic is None:
            return lambda: limit_s
        end = self._monotonic() + limit_s
        clock = self._monotonic
        return lambda: end - clock()


class _Run:
    """One batch that is being placed."""

    def __init__(
        self,
        bundles: Sequence[Bundle],
        hosts: tuple[model.HostState, ...],
        options: model.Options,
        members: Mapping[str, Mapping[str, int]],
        search: Search,
    ) -> None:
        self._bundles = bundles
        self._search = search
        self._options = options
        self._before = hosts
        self._left: dict[str, model.HostState] = {}
        for host in hosts:
            if host.name in self._left:
                msg = f"host {host.name} is there twice"
                raise ValueError(msg)
            self._left[host.name] = host
        # {group: {host: members that run, or were placed, there}}
        self._there = {group: dict(there) for group, there in members.items()}
        self._members = members
        self._placed: dict[str, dict[str, int]] = {}
        self._parts: list[model.Part] = []
        self._score = 0

    def run(
        self, left_s: Callable[[], float], refused: dict[str, model.Reason]
    ) -> model.Result:
        """Place all parts."""
        unplaced = dict(refused)
        parts = list(self._cut())
        # Even of an empty batch something may be wrong with the hosts.
        for number, part in enumerate(parts or [[]]):
            share = max(1, len(parts) - number)
            unplaced.update(self._place(
                part, _shared(left_s, share), is_last=share == 1))
        return model.Result(
            self._placed, dict(sorted(unplaced.items())), self._score,
            tuple(self._parts),
        )

    def _cut(self) -> Iterator[list[int]]:
        """Yield the numbers of the bundles of each part."""
        part: list[int] = []
        servers, classes = 0, set[int]()
        most = _MOST_PAIRS // max(1, len(self._before))
        for number, bundle in enumerate(self._bundles):
            new = id(bundle.kind) not in classes
            if part and (
                servers + bundle.count > self._options.most_at_once
                or (new and len(classes) >= most)
            ):
                yield part
                part, servers = [], 0
                classes.clear()
            part.append(number)
            servers += bundle.count
            classes.add(id(bundle.kind))
        if part:
            yield part

    def _place(
        self,
        part: Sequence[int],
        left_s: Callable[[], float],
        *,
        is_last: bool,
    ) -> dict[str, model.Reason]:
        """Place a part; return why some are not."""
        counts: dict[int, int] = {}
        for number in part:
            key = id(self._bundles[number].kind)
            counts[key] = counts.get(key, 0) + self._bundles[number].count
        classes = {
            id(self._bundles[number].kind): self._bundles[number].kind
            for number in part
        }
        wanted = {kind: counts[key] for key, kind in classes.items()}
        table = self._table(wanted, tuple(self._left.values()), self._there)
        class_of = {
            id(kind): f for f, kind in enumerate(table.problem.classes)}
        kinds = {
            number: class_of[id(self._bundles[number].kind)]
            for number in part
        }
        units = batch_units.make_units(self._bundles, part, kinds)
        before = table.copy()
        found = self._search(table, units, self._options, left_s)
        given = batch_units.hosts_of(units, found)
        taken = self._write_down(table, given)
        if not is_last:
            self._take(taken)
        if part:
            self._score += found.score
            self._parts.append(model.Part(
                sum(unit.size for unit in units), found.method, found.optimal
            ))
        late = [number for number in part if number not in given]
        if late and len(self._parts) > 1:
            before = self._table(wanted, self._before, self._members)
        return {
            member.uuid: reasons.explain(
                self._bundles[number], kinds[number], before, table)
            for number in late
            for member in self._bundles[number].members
        }

    def _table(
        self,
        wanted: dict[Class, int],
        hosts: Sequence[model.HostState],
        members: Mapping[str, Mapping[str, int]],
    ) -> Table:
        problem, free = make_problem(wanted, hosts, self._options.score)
        table = Table(problem, free)
        number_of = {host.name: j for j, host in enumerate(problem.hosts)}
        table.add_members({
            (number, number_of[name]): there
            for number, limit in enumerate(problem.limits)
            for name, there in members.get(limit.group, {}).items()
            if name in number_of
        })
        return table

    def _write_down(
        self, table: Table, given: dict[int, dict[int, int]]
    ) -> dict[str, dict[str, int]]:
        """Write down who was placed; return what that takes of each host."""
        names = [host.name for host in table.problem.hosts]
        taken: dict[str, dict[str, int]] = {}
        for number, hosts in sorted(given.items()):
            bundle = self._bundles[number]
            for j, count in sorted(hosts.items()):
                name = names[j]
                amounts = taken.setdefault(name, {})
                for item, amount in bundle.kind.demand:
                    amounts[item] = amounts.get(item, 0) + amount * count
                for group, _most, members in bundle.kind.apart:
                    there = self._there.setdefault(group, {})
                    there[name] = there.get(name, 0) + members * count
                for member in bundle.members:
                    # All servers of those that are together are there.
                    some = member.count if member.together else count
                    self._placed.setdefault(member.uuid, {})[name] = some
        return taken

    def _take(self, taken: dict[str, dict[str, int]]) -> None:
        """Leave the rest to the other parts."""
        for name, amounts in taken.items():
            host = self._left[name]
            self._left[name] = dataclasses.replace(
                host, free=capacity.less(host.free, amounts))


def _search(
    table: Table,
    units: Sequence[batch_units.Unit],
    options: model.Options,
    left_s: Callable[[], float],
) -> batch_units.Found:
    servers = sum(unit.size for unit in units)
    if options.mode == model.GREEDY or servers > model.MOST_AT_ONCE:
        return greedy.place(table, units)
    return exact.place(table, units, options, left_s)


def _shared(
    left_s: Callable[[], float], parts: int
) -> Callable[[], float]:
    """Return how long the first of some parts may take of what is left."""
    if parts == 1:
        return left_s
    rest_s = left_s() * (parts - 1) / parts
    return lambda: left_s() - rest_s
