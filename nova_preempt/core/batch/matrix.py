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
"""A sparse matrix, row by row."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

Array: TypeAlias = npt.NDArray[Any]


class Matrix:
    """Rows, and between what they have to be.

    :param width: how many columns it has
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._columns: list[Array] = []
        self._values: list[Array] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def add(
        self, columns: Array, values: Array, low: float, high: float
    ) -> None:
        """Add a row: its values in these columns, low <= row <= high."""
        # Errors of the solver are to be shares of the largest.
        largest = float(np.abs(values).max(initial=0)) or 1.0
        some = np.flatnonzero(values)
        self._columns.append(columns[some])
        self._values.append(values[some] / largest)
        self._low.append(low / largest)
        self._high.append(high / largest)

    def done(self) -> tuple[Any, Array, Array]:
        """Return the matrix, and what its rows have to be between."""
        lengths = [len(columns) for columns in self._columns]
        matrix = scipy.sparse.csr_array(
            (
                np.concatenate([np.zeros(0), *self._values]),
                np.concatenate([np.zeros(0, np.int64), *self._columns]),
                np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
            ),
            shape=(len(lengths), self._width),
        )
        return matrix, np.array(self._low), np.array(self._high)
