# SPDX-License-Identifier: Apache-2.0

"""Ranks waiting requests by the promises of their classes.

The order of availability_margin.Standing.order, for a backlog of any size.
Requests without a class are ranked as well: normal ones come first, since they
preempt all they need anyway, and preemptible ones come last, since nothing is
promised to them; the oldest first each.
"""

from collections.abc import Iterable, Sequence
import operator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from nova_preempt.core.classes.availability_margin import QosClasses

_Array: TypeAlias = npt.NDArray[Any]

#: In place of the rank of a class: of normal requests, and of those that are
#: preemptible and of no class.
NORMAL = -1
NO_CLASS = -2

# What sums and products of 64 bits stay below.
_LIMIT = 2**62


class WaitingRequest(NamedTuple):
    """A waiting request.

    ``rank``: of its class, see QosClasses.rank(). ``running_us`` and
    ``total_us``: its time run, and since its admission. ``overhead_us``: how
    long it takes to get it to a host. ``serial``: breaks ties of admission,
    smaller first.
    """

    uuid: str
    rank: int
    running_us: int
    total_us: int
    overhead_us: int
    admitted_us: int
    serial: int = 0


_NUMBERS = WaitingRequest._fields[1:]


def ordered(classes: QosClasses,
            waiting: Iterable[WaitingRequest]) -> list[str]:
    """Return the uuids in order, the next one first.

    O(n log n), and exact: values beyond 64 bits are slower.
    """
    waiting = tuple(waiting)
    try:
        rank, *times, serial = (_column(waiting, name) for name in _NUMBERS)
        band, q, admitted = _columns(classes, rank, *times)
    except OverflowError:
        return [item.uuid for item in sorted(
            waiting, key=lambda item: _key(classes, item))]
    order = np.lexsort((serial, admitted, q, band))
    # Uuids first: in this order, requests are all over the memory.
    uuids = [item.uuid for item in waiting]
    found = [uuids[number] for number in order.tolist()]
    alike = (
        (np.diff(band[order]) == 0)
        & (np.diff(q[order]) == 0) & (np.diff(admitted[order]) == 0)
        & (np.diff(serial[order]) == 0))
    return _by_uuid(found, alike) if alike.any() else found


def _column(waiting: Sequence[WaitingRequest], name: str) -> _Array:
    """Return one number of each request; OverflowError if one is too large."""
    place = WaitingRequest._fields.index(name)
    return np.fromiter(
        map(operator.itemgetter(place), waiting), np.int64, len(waiting))


def _columns(classes: QosClasses, rank: _Array, running: _Array, total: _Array,
             overhead: _Array,
             admitted: _Array) -> tuple[_Array, _Array, _Array]:
    """Return the band, Q and time of admission of each request."""
    # Of no class is whoever has the last of these, NORMAL and NO_CLASS.
    factors, margins = _within_limit(classes, running, total, overhead)
    has_class = rank >= 0
    q = running * factors[rank] - (total + overhead) * classes.scale
    q[~has_class] = 0
    band = np.where(q < margins[rank], rank, len(classes)) + 1
    band[rank == NORMAL] = 0
    band[rank == NO_CLASS] = len(classes) + 2
    return band, q, admitted


def _within_limit(classes: QosClasses, *times: _Array) -> _Array:
    """Return the numbers of classes; OverflowError if Q may be too large."""
    most_us = sum(int(column.max(initial=0)) for column in times)
    most = max(classes.scale, *(factor for factor, _ in classes.scaled()))
    if most_us * most >= _LIMIT:
        raise OverflowError
    return np.array([*classes.scaled(), (0, 0), (0, 0)]).T


def _key(classes: QosClasses, item: WaitingRequest
         ) -> tuple[int, int, int, int, str]:
    if item.rank < 0:
        band = 0 if item.rank == NORMAL else len(classes) + 2
        return band, 0, item.admitted_us, item.serial, item.uuid
    factor, margin = classes.scaled()[item.rank]
    q = (item.running_us * factor
         - (item.total_us + item.overhead_us) * classes.scale)
    band = item.rank if q < margin else len(classes)
    return band + 1, q, item.admitted_us, item.serial, item.uuid


def _by_uuid(found: list[str], alike: _Array) -> list[str]:
    """Order by uuid what is equal in all other keys.

    :param alike: of each but the last, whether the next one is equal
    """
    ends = [*_as_list(np.flatnonzero(~alike) + 1), len(found)]
    start = 0
    for end in ends:
        if end - start > 1:
            found[start:end] = sorted(found[start:end])
        start = end
    return found


def _as_list(array: Any) -> list[int]:
    """Return the numbers of a row, each as an int.

    ``tolist()`` has another return type in each release of numpy.
    """
    found: list[int] = array.tolist()
    return found
