# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Dominant resource fairness between projects."""

from __future__ import annotations

import collections
from collections.abc import Hashable, Iterable, Sequence
import datetime
import itertools
import operator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nova_preempt.core.as_list import as_list
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.order import Options
from nova_preempt.core.backlog.order import Shares
from nova_preempt.core.backlog.order import oldest_first

_Array: TypeAlias = npt.NDArray[Any]

# Shares are fractions of totals. Two that differ, a/t and b/u, do so by 1/tu
# at least, so the whole multiples in them of anything below that tell them
# apart. Here it is 2**-81, for totals of less than 2**35 (in MiB of memory
# 32 PiB), in digits of so many bits that nothing exceeds 63.
_DIGIT = 27
_DIGITS = 3
_MOST = 2**62
_MOST_TOTAL = 2**35

# So many requests are looked at in one go, while they are in a cache of the
# processor: to get at them takes longer than all arithmetic.
_CHUNK = 256
_OF_REQUESTS = tuple(
    map(
        operator.attrgetter,
        ("project_id", "alternatives", "count", "servers"),
    )
)


class FairShare:
    """Dominant resource fairness (Ghodsi et al., NSDI 2011).

    The project with the smallest dominant share is next, with its oldest
    request, whose first alternative then counts as the project's. Where
    shares are equal the older request comes first.

    A project's share before its k-th request does not depend on what others
    get, so all of them are known at once, and the order is one sort.
    """

    def __init__(self, options: Options | None = None) -> None:
        pass

    def rank(
        self,
        requests: Iterable[model.Request],
        now: datetime.datetime,
        shares: Shares,
    ) -> list[model.Request]:
        oldest = oldest_first(requests)
        keys = _shares_before(oldest, shares) if len(oldest) > 1 else ()
        if not keys:
            return oldest
        places = as_list(_sorted(keys))
        return list(operator.itemgetter(*places)(oldest))


def _shares_before(
    requests: Sequence[model.Request], shares: Shares
) -> tuple[_Array, ...]:
    """The dominant share of the project of each request before it.

    :returns: columns of numbers, to compare one after the other; none where
        nobody has a share of anything
    """
    projects, asked, missing, servers = _columns(requests)
    for at in itertools.compress(itertools.count(), servers):
        missing[at] = model.missing(requests[at])
    project, uuids = _numbered(projects)
    # Many ask for the same, as the same object.
    which, different = _numbered(map(id, asked))
    one_of = np.empty(len(different), np.intp)
    one_of[which] = np.arange(len(asked))
    flavors = [asked[at][0].resources for at in as_list(one_of)]
    totals = {name: n for name, n in shares.total.items() if n > 0}
    wanted = {
        name: [flavor.get(name, 0) for flavor in flavors]
        for name in totals
    }
    had = {
        name: [shares.used.get(uuid, {}).get(name, 0) for uuid in uuids]
        for name in totals
    }
    most = {
        name: len(asked) * max(missing) * max(wanted[name]) + max(had[name])
        for name in totals
    }
    is_small = all(
        total < _MOST_TOTAL
        and most[name] < _MOST
        and most[name] // total < _MOST_TOTAL
        for name, total in totals.items()
    )
    # What 64 bits cannot hold is slower, and as exact.
    kind = np.int64 if is_small else object
    by_project = np.argsort(project, kind="stable")
    project, which = project[by_project], which[by_project]
    number = np.array(missing, kind)[by_project]
    starts = np.searchsorted(project, np.arange(len(uuids)))
    found: tuple[_Array, ...] = ()
    for name, total in totals.items():
        each = np.array(wanted[name], kind)[which] * number
        sums = each.cumsum() - each
        before = sums + (np.array(had[name], kind) - sums[starts])[project]
        keys = (
            _digits(before, total)
            if is_small
            else (before * max(totals.values()) ** 2 // total,)
        )
        found = _larger(found, keys) if found else keys
    return tuple(_placed(column, by_project) for column in found)


def _columns(requests: Sequence[model.Request]) -> list[list[Any]]:
    """[what each of _OF_REQUESTS finds of each request]."""
    found: list[list[Any]] = [[] for _get in _OF_REQUESTS]
    for start in range(0, len(requests), _CHUNK):
        some = requests[start : start + _CHUNK]
        for column, get in zip(found, _OF_REQUESTS, strict=True):
            column.extend(map(get, some))
    return found


def _numbered(values: Iterable[Hashable]) -> tuple[_Array, list[Any]]:
    """(the number of each, the different ones by their numbers)."""
    index: collections.defaultdict[Hashable, int] = collections.defaultdict(
        itertools.count().__next__
    )
    numbers = np.fromiter(map(index.__getitem__, values), np.int64)
    # Sixteen bits are sorted several times as fast as more.
    return numbers.astype(np.min_scalar_type(len(index))), list(index)


def _digits(amounts: _Array, total: int) -> tuple[_Array, _Array]:
    """The multiples of 2**-81 in shares of a total, in two columns."""
    whole = amounts // total
    rest, digits = amounts - whole * total, []
    for _digit in range(_DIGITS):
        rest = rest << _DIGIT
        digits.append(rest // total)
        rest = rest - digits[-1] * total
    first, second, third = digits
    return (whole << _DIGIT) + first, (second << _DIGIT) + third


def _larger(
    one: tuple[_Array, ...], other: tuple[_Array, ...]
) -> tuple[_Array, ...]:
    """Row by row the larger one, by its columns one after the other."""
    is_larger = one[-1] > other[-1]
    for mine, theirs in zip(one[-2::-1], other[-2::-1], strict=True):
        is_larger = (mine > theirs) | ((mine == theirs) & is_larger)
    return tuple(
        np.where(is_larger, mine, theirs)
        for mine, theirs in zip(one, other, strict=True)
    )


def _sorted(columns: tuple[_Array, ...]) -> _Array:
    """The places of rows in order, those of equal ones as they are."""
    places = np.argsort(columns[0], kind="stable")
    same = columns[0][places[1:]] == columns[0][places[:-1]]
    for column in columns[1:]:
        # Hardly ever does the first one not tell all.
        if (same & (column[places[1:]] != column[places[:-1]])).any():
            # The last of them counts first.
            places = np.lexsort(columns[::-1])
            break
    return places


def _placed(column: _Array, places: _Array) -> _Array:
    found = np.empty_like(column)
    found[places] = column
    return found
