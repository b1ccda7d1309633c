# SPDX-License-Identifier: Apache-2.0
"""Scores a server on a host.

A score is a function of the demand of a kind of request and the free amounts
of hosts, each as a share of the capacity of the largest host. Larger is
better; costs of the arcs of a flow are negative scores.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nova_preempt.core.batch import batch_model

Array: TypeAlias = npt.NDArray[Any]

_MILLION = 10**6


def _dot_product(demand: Array, free: Array) -> Array:
    """Return the sum of demand times free ("dp"): similar shapes match."""
    # Not a matrix product, whose order of additions may vary.
    found = np.zeros((len(demand), len(free)))
    for k in range(demand.shape[1]):
        found += demand[:, k, None] * free[None, :, k]
    return found


def _most_loaded(demand: Array, free: Array) -> Array:
    """Return the sum of demand by free ("ml"): loaded hosts win."""
    found = np.zeros((len(demand), len(free)))
    for k in range(demand.shape[1]):
        some = free[:, k] > 0
        found[:, some] += demand[:, k, None] / free[None, some, k]
    return found


_FUNCTIONS: Mapping[str, Callable[[Array, Array], Array]] = {
    batch_model.DP: _dot_product,
    batch_model.ML: _most_loaded,
}


@dataclasses.dataclass(frozen=True)
class Scorer:
    """Scores kinds of requests on hosts.

    :param demand: [f, k], as a share of the largest capacity
    :param largest: [k], the largest capacity of a host
    :param rest: [j, k], remainders of hosts beyond whole units
    :param function: scores two such shares; None: weights alone
    :param weights: [j], of hosts
    """

    demand: Array
    largest: Array
    rest: Array
    function: Callable[[Array, Array], Array] | None
    weights: Array

    def of(self, free: Array, columns: Any = slice(None)) -> Array:
        """Return scores in millionths, [f, j].

        :param free: [j, k] of these hosts, in whole units; what comes after
            resource classes does not count
        :param columns: which hosts these are
        """
        if self.function is None:
            weights = self.weights[columns]
            return np.broadcast_to(
                weights, (len(self.demand), len(weights))).copy()
        shares = free[:, :len(self.largest)] + self.rest[columns]
        scores = self.function(self.demand, shares / self.largest)
        # The caller masks impossible placements.
        most = float(batch_model.MOST_SCORE)
        millionths = np.clip(scores * _MILLION, -most, most)
        found: Array = np.rint(millionths).astype(np.int64)
        return found


def make(
    name: str, demand: Array, largest: Array, rest: Array,
    hosts: Sequence[batch_model.HostState], ) -> Scorer:
    """Return the scorer of this name.

    :param demand: [f, k] in the units of ``largest`` and ``rest``
    :raises ValueError: a weight of a host is too large
    """
    for host in hosts:
        if abs(host.weight) > batch_model.MOST_SCORE:
            raise ValueError(
                f"weight of {host.name} is {host.weight}; it must be from "
                f"-{batch_model.MOST_SCORE} to {batch_model.MOST_SCORE}")
    weights = np.array([host.weight for host in hosts], dtype=np.int64)
    return Scorer(
        demand / largest, largest, rest, _FUNCTIONS.get(name), weights)
