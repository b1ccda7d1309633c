# SPDX-License-Identifier: Apache-2.0
"""The scheduler hint with which a request names reservations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HINT = "reservation"


class InvalidHint(ValueError):
    """The value of the hint names no reservations."""


def named(hints: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the ids of reservations in hints, mostly none or one.

    :raises InvalidHint:
    """
    value = (hints or {}).get(HINT, ())
    ids = (value,) if isinstance(value, str) and value else value
    if not isinstance(ids, str | list | tuple) or not all(
        isinstance(lease_id, str) for lease_id in ids):
        raise InvalidHint("it is neither an id nor a list of ids")
    return tuple(ids)
