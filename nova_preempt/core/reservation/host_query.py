# SPDX-License-Identifier: Apache-2.0

"""Query language that selects hosts, as Nova's JsonFilter has it.

    ["and", [">=", "$vcpus", 8], ["in", "HW_CPU_X86_AVX2", "$traits"]]

A query is a list whose first item is an operator:

* ``and``, ``or``: of one or more queries; ``not``: of one query;
* ``=``, ``<``, ``>``, ``<=``, ``>=``: the first value stands in this relation
  to each of the others; ``in``: it is equal to one of the others.

A value is a string, a number, ``true``, ``false`` or ``"$name"``, a property
of the host. Where a property is a list, its elements stand in its place; as
the first value, one of them has to do. Of a list no more than MAX_LIST count.
A comparison with a property that the host does not have is false.

Two values are compared as numbers if one of them is a number and the other
one, too, or a string that reads as a number; otherwise as strings. ``true``
and ``false`` are the strings "true" and "false".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import itertools
import json
import math
import operator
import re
from typing import TypeAlias

Scalar: TypeAlias = str | int | float
Properties: TypeAlias = Mapping[str, object]
Test: TypeAlias = Callable[["_Host"], bool]

# A query comes from a user and is evaluated for every host.
MAX_DEPTH = 16
MAX_ITEMS = 500
MAX_STRING = 255
MAX_TEXT = 65536
# The highest cost of a query for one host, in elements of lists that are read;
# the costs of looking up a property, and of comparing a pair of values; and
# the most elements of a list that are read.
MAX_WORK = 2000
PROPERTY_WORK = 20
PAIR_WORK = 4
MAX_LIST = 1000
# Beyond what any property counts, and safe to convert and compare.
MAX_NUMBER = 10**30

_RELATIONS: Mapping[str, Callable[[Scalar, Scalar], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "in": operator.eq,
}
_JUNCTIONS = ("and", "or", "not")
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?", re.ASCII)


class InvalidQuery(ValueError):
    """Raised for an invalid query; the message names the place."""


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """A parsed query.

    :ivar names: of the properties it refers to, without "$"
    """

    names: frozenset[str]
    _test: Test = dataclasses.field(repr=False, compare=False)

    def matches(self, properties: Properties) -> bool:
        """Tell whether a host with these properties matches.

        :param properties: {name: a string, number or bool, or a list of
            these}; others count as missing
        :raises InvalidQuery: its lists are too long for this query
        """
        return self._test(_Host(properties))


def parse(query: object) -> Query:
    """Return the Query of a JSON value, or of a string that holds one.

    None, an empty list and an empty string match every host.

    :raises InvalidQuery: it is invalid
    """
    query = load(query)
    if isinstance(query, list | tuple) and not query:
        return Query(frozenset(), lambda host: True)
    parser = _Parser()
    test = parser.query(query, "host_properties", 1)
    return Query(frozenset(parser.names), test)


def load(query: object) -> object:
    """Return the JSON value that a string holds; other values unchanged.

    None and a blank string become an empty list.

    :raises InvalidQuery: the string holds no JSON
    """
    if isinstance(query, str):
        query = _load(query)
    return [] if query is None else query


def _load(text: str) -> object:
    if not text.strip():
        return None
    if len(text) > MAX_TEXT:
        raise InvalidQuery(
            f"host_properties: it is longer than {MAX_TEXT} characters")
    try:
        loaded: object = json.loads(text)
    except (ValueError, RecursionError) as exc:
        reason = exc if isinstance(exc, ValueError) else "nested too deep"
        raise InvalidQuery(
            f"host_properties: it is not valid JSON: {reason}") from None
    return loaded


class _Parser:
    """Compiles a query to a function."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._items = 0

    def query(self, query: object, place: str, depth: int) -> Test:
        if not isinstance(query, list | tuple) or not query:
            raise InvalidQuery(
                f"{place}: it must be a list that begins with an operator")
        if depth > MAX_DEPTH:
            raise InvalidQuery(
                f"{place}: it is nested deeper than {MAX_DEPTH} levels")
        self._items += len(query)
        if self._items > MAX_ITEMS:
            raise InvalidQuery(
                f"{place}: the filter has more than {MAX_ITEMS} items")
        name = query[0]
        if isinstance(name, str) and name in _JUNCTIONS:
            return self._junction(name, query, place, depth)
        if isinstance(name, str) and name in _RELATIONS:
            return self._comparison(name, query, place)
        known = ", ".join((*_JUNCTIONS, *_RELATIONS))
        raise InvalidQuery(
            f"{place}[0]: unknown operator {_short(name)}; known are {known}")

    def _junction(
        self, name: str, query: Sequence[object], place: str, depth: int
    ) -> Test:
        parts = [
            self.query(part, f"{place}[{number}]", depth + 1)
            for number, part in enumerate(query[1:], 1)]
        if not parts or (name == "not" and len(parts) > 1):
            number_of = "one query" if name == "not" else "at least one query"
            raise InvalidQuery(f'{place}: "{name}" takes {number_of}')
        if name == "not":
            return lambda host: not parts[0](host)
        enough = all if name == "and" else any
        return lambda host: enough(part(host) for part in parts)

    def _comparison(
        self, name: str, query: Sequence[object], place: str) -> Test:
        values = [
            self._value(value, f"{place}[{number}]")
            for number, value in enumerate(query[1:], 1)]
        if len(values) < 2:
            raise InvalidQuery(f'{place}: "{name}" takes at least two values')
        # Duplicates change nothing.
        others = list(dict.fromkeys(values[1:]))
        return _comparison(name, values[0], others)

    def _value(self, value: object, place: str) -> _Value:
        if isinstance(value, str):
            if len(value) > MAX_STRING:
                raise InvalidQuery(
                    f"{place}: it is longer than {MAX_STRING} characters")
            if not value.startswith("$"):
                return (value,)
            name = value[1:]
            if not name:
                raise InvalidQuery(f"{place}: a name must follow $")
            self.names.add(name)
            return _Reference(name)
        scalar = _scalar(value)
        if scalar is None:
            raise InvalidQuery(
                f"{place}: {_short(value)} is neither a string, a number, "
                "true nor false")
        return (scalar,)


@dataclasses.dataclass(frozen=True, slots=True)
class _Reference:
    name: str


_Value: TypeAlias = tuple[Scalar] | _Reference


@dataclasses.dataclass(slots=True)
class _Host:
    properties: Properties
    work: int = 0

    def count(self, work: int) -> None:
        """Count work, before it is done if there may be much of it."""
        self.work += work
        if self.work > MAX_WORK:
            raise InvalidQuery("host_properties: the filter compares too many "
                               "values of one host")


def _comparison(name: str, first: _Value, others: Sequence[_Value]) -> Test:
    relation = _RELATIONS[name]

    def test(host: _Host) -> bool:
        ours = _look_up(first, host)
        theirs: list[Scalar] = []
        for other in others:
            found = _look_up(other, host)
            if found is None:
                return False
            theirs.extend(found)
        if not ours or not theirs:
            return False
        if name == "in" or (name == "=" and len(theirs) == 1):
            return _any_in(ours, theirs)
        host.count(PAIR_WORK * len(ours) * len(theirs))
        return any(
            all(_holds(relation, one, other) for other in theirs)
            for one in ours)

    return test


def _any_in(ours: Sequence[Scalar], theirs: Sequence[Scalar]) -> bool:
    """Tell whether a value of one list equals one of the other.

    Equal as _holds() has it, in time linear in their number.
    """
    texts, numbers = _sorts(theirs)
    own_texts, own_numbers = _sorts(ours)
    if not texts.isdisjoint(own_texts) or not numbers.isdisjoint(own_numbers):
        return True
    return _meet(own_numbers, texts) or _meet(numbers, own_texts)


def _sorts(values: Sequence[Scalar]) -> tuple[set[str], set[int | float]]:
    texts = {value for value in values if isinstance(value, str)}
    return texts, {value for value in values if not isinstance(value, str)}


def _meet(numbers: set[int | float], texts: set[str]) -> bool:
    """Tell whether any number equals any string."""
    read = {text: _number(text) for text in texts} if numbers else {}
    # The text of an integer reads as a number.
    return not numbers.isdisjoint(read.values()) or any(
        read.get(str(number), 0) is None for number in numbers
        if isinstance(number, float))


def _look_up(value: _Value, host: _Host) -> Sequence[Scalar] | None:
    """Return the values of an operand, None if the host has none."""
    if not isinstance(value, _Reference):
        return value
    host.count(PROPERTY_WORK)
    found = host.properties.get(value.name)
    if isinstance(found, str | int | float):
        scalar = _scalar(found)
        return None if scalar is None else (scalar,)
    if not isinstance(found, list | tuple | set | frozenset):
        return None
    elements = [
        element if isinstance(element, str) else _scalar(element)
        for element in itertools.islice(found, MAX_LIST)]
    host.count(len(elements))
    return [element for element in elements if element is not None]


def _scalar(value: object) -> Scalar | None:
    """Return the comparable value, None if there is none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int | float) and abs(value) <= MAX_NUMBER:
        return value
    return None


def _holds(
    relation: Callable[[Scalar, Scalar], bool], one: Scalar, other: Scalar
) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return relation(one, other)
    numbers = _number(one), _number(other)
    if numbers[0] is None or numbers[1] is None:
        return relation(str(one), str(other))
    return relation(numbers[0], numbers[1])


@functools.lru_cache(maxsize=10000)
def _number(value: Scalar) -> int | float | None:
    if not isinstance(value, str):
        return value
    if not _NUMBER.fullmatch(value):
        return None
    return float(value) if "." in value else int(value)


def _short(value: object) -> str:
    """Return a short text of any value for a message."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "a number that large" if abs(value) > MAX_NUMBER else str(value)
    if isinstance(value, str):
        return json.dumps(value if len(value) < 40 else value[:40] + "...")
    if value is None:
        return "null"
    return f"a {type(value).__name__}"
