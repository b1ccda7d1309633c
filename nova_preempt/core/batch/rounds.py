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
"""Rounds of a flow: ECSched as published, and with slots.

As published a host takes one server in a round. With slots it takes as many
as fit whichever they are: s = min over k of (free k / largest demand of k by
anybody who may go there). So no flow can take more than there is, and whoever
is left comes again. (Firmament's CoCo has slots for each class by itself,
which together may be too many.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nova_preempt.core.batch import flow
from nova_preempt.core.batch import greedy
from nova_preempt.core.batch import model
from nova_preempt.core.batch import units as batch_units
from nova_preempt.core.batch.arrays import NO
from nova_preempt.core.batch.table import Table
from nova_preempt.core.batch.units import Found
from nova_preempt.core.batch.units import Unit
from nova_preempt.core.batch.units import Where

Array: TypeAlias = npt.NDArray[Any]


def place(
    table: Table,
    units: Sequence[Unit],
    options: model.Options,
    *,
    slots: bool = False,
) -> Found:
    """Place units in rounds, and take them from the table.

    ECSched ends after ``options.rounds``; with slots nothing but an empty
    round ends it, and who is left is then placed one by one. What has to
    start together and does not is given back.
    """
    waiting = [n for n, unit in enumerate(units) for _ in range(unit.size)]
    # (host, score when it got there) of each server.
    at: list[list[tuple[int, int]]] = [[] for _ in units]
    before = table.copy()
    done = 0
    while waiting and (slots or done < options.rounds):
        order = [units[n].f for n in waiting]
        given = _round(table, order, options, slots=slots)
        if not given:
            break
        for n, j in given.items():
            at[waiting[n]].append((j, int(table.scores[order[n], j])))
        batch_units.move(table, batch_units.add(
            *({(order[n], j): 1} for n, j in given.items())))
        waiting = [w for n, w in enumerate(waiting) if n not in given]
        done += 1
    found = _settle(table, units, at)
    if slots:
        found = _fill(table, units, found, before)
    return found


def _round(
    table: Table,
    order: Sequence[int],
    options: model.Options,
    *,
    slots: bool,
) -> dict[int, int]:
    """Return the host of each server that gets one, by its number."""
    classes = np.unique(order)
    scores = np.full_like(table.scores, NO)
    scores[classes] = table.scores[classes]
    columns: Array = np.arange(scores.shape[1])
    if slots:
        columns = flow.worth_it(scores, len(order))
        counts = table.slots(classes, len(order))[columns]
        columns = np.repeat(columns, counts)
        scores = scores[:, columns]
        # Members of a group are one on a host in each round.
        again = np.concatenate(([False], columns[1:] == columns[:-1]))
        for layer in table.problem.layers:
            scores[np.ix_(layer.rows, again)] = NO
    owner = flow.assign(
        scores, order, options.solver,
        unscheduled_free=options.unscheduled_free and not slots,
    )
    hosts = {
        int(f): columns[owner == f].tolist() for f in classes
    }
    given = {}
    for n, f in enumerate(order):
        if hosts[f]:
            given[n] = hosts[f].pop(0)
    return given


def _settle(
    table: Table,
    units: Sequence[Unit],
    at: Sequence[Sequence[tuple[int, int]]],
) -> Found:
    """Give back what is not whole."""
    placed: list[bool] = []
    kept: list[Where] = []
    score = 0
    for unit, got in zip(units, at, strict=True):
        placed.append(
            len(got) == unit.size and (unit.base < 0 or placed[unit.base])
        )
        where = batch_units.add(*({(unit.f, j): 1} for j, _score in got))
        if placed[-1]:
            kept.append(where)
            score += sum(each for _j, each in got)
        else:
            batch_units.move(table, where, -1)
    return Found(tuple(placed), batch_units.add(*kept), score, model.FLOW)


def _fill(
    table: Table, units: Sequence[Unit], found: Found, before: Table
) -> Found:
    more = greedy.place(table, units, found.placed)
    where = batch_units.add(found.where, more.where)
    return Found(
        tuple(
            one or other
            for one, other in zip(found.placed, more.placed, strict=True)
        ),
        where, batch_units.score(before, where), model.ROUNDS,
    )
