# SPDX-License-Identifier: Apache-2.0
"""Converts arrays of numpy to lists of integers."""

from __future__ import annotations

from typing import Any


def as_list(array: Any) -> list[int]:
    """Return the numbers of a row, each as an int.

    What ``tolist()`` returns has other types in each release of numpy.
    """
    found: list[int] = array.tolist()
    return found
