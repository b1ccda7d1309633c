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
"""The flow of a round by OR-tools."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from ortools.graph.python import min_cost_flow

from nova_preempt.core.as_list import as_list
from nova_preempt.core.batch.arrays import NO

Array: TypeAlias = npt.NDArray[Any]


def assign(scores: Array, counts: Array, unscheduled_free: bool) -> Array:
    """Return the class of each column, -1 where it stays empty.

    The network has a node for each class, and one for all columns that are
    alike.

    :param scores: [class, column], NO where it is not possible
    :param counts: of servers of each class; all of them can be placed, or
        ``unscheduled_free``: those left out cost nothing
    :raises ValueError: scores that are too large for OR-tools
    """
    found = np.full(scores.shape[1], -1)
    kinds, kind_of, capacities = np.unique(
        scores, axis=1, return_inverse=True, return_counts=True)
    kind_of = kind_of.reshape(-1)
    sources, targets = np.nonzero(kinds > NO)
    sink = len(scores) + kinds.shape[1]
    tails = [sources, np.arange(len(scores), sink)]
    heads = [len(scores) + targets, np.full(kinds.shape[1], sink)]
    limits = [np.minimum(counts[sources], capacities[targets]), capacities]
    costs = [-kinds[sources, targets], np.zeros(kinds.shape[1], np.int64)]
    if unscheduled_free:
        tails.append(np.arange(len(scores)))
        heads.append(np.full(len(scores), sink))
        limits.append(counts)
        costs.append(np.zeros(len(scores), np.int64))
    largest = max(int(abs(cost).max(initial=0)) for cost in costs)
    # It multiplies costs by the number of nodes, and adds some of them up.
    if largest * (sink + 2) ** 2 >= 2**62:
        msg = (
            f"a score is {largest}, which is too large for OR-tools with "
            f"{sink} nodes; take another solver"
        )
        raise ValueError(msg)
    network = min_cost_flow.SimpleMinCostFlow()
    arcs = network.add_arcs_with_capacity_and_unit_cost(
        np.concatenate(tails).astype(np.int32),
        np.concatenate(heads).astype(np.int32),
        np.concatenate(limits).astype(np.int64),
        np.concatenate(costs).astype(np.int64),
    )
    network.set_nodes_supplies(
        np.arange(len(scores), dtype=np.int32), counts.astype(np.int64))
    network.set_node_supply(sink, -int(counts.sum()))
    status = network.solve()
    if status != network.OPTIMAL:
        msg = f"OR-tools ended with {status}"
        raise RuntimeError(msg)
    flows = network.flows(arcs)[: len(sources)]
    left = {kind: as_list(np.flatnonzero(kind_of == kind))
            for kind in set(as_list(targets[flows > 0]))}
    for f, kind, flow in zip(
        as_list(sources), as_list(targets), as_list(flows), strict=True
    ):
        for _ in range(flow):
            found[left[kind].pop(0)] = f
    return found
