# SPDX-License-Identifier: Apache-2.0

"""Tests of host queries: cases and laws."""

from __future__ import annotations

import json
import operator
import re
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.reservation import host_query
from nova_preempt.core.reservation.host_query import InvalidQuery
from tests.unit.core.support import LAW

HOST = {
    "vcpus": 16,
    "ratio": 1.5,
    "hypervisor_type": "QEMU",
    "cores": "8",
    "version": "1.10",
    "gpu": True,
    "traits": ["HW_CPU_X86_AVX2", "CUSTOM_FAST"],
    "slots": [1, 2, 3],
    "none": [],
    "nothing": None,
    "odd": {"a": 1},
}


class TestMatches(unittest.TestCase):
    """Properties of a host."""

    def test_hosts_that_are_meant(self) -> None:
        for query in (
            ["=", "$vcpus", 16],
            ["=", "$vcpus", "16"],
            ["=", "$vcpus", 16.0],
            ["=", 16, "$vcpus"],
            [">=", "$vcpus", 8],
            [">", "$vcpus", "8"],
            ["<", 8, "$vcpus", 17],
            ["<", 8, "$vcpus"],
            ["<=", "$ratio", 1.5, 2],
            ["=", "$hypervisor_type", "QEMU"],
            ["in", "$hypervisor_type", "KVM", "QEMU"],
            ["in", "HW_CPU_X86_AVX2", "$traits"],
            ["in", "$traits", "CUSTOM_SLOW", "CUSTOM_FAST"],
            ["=", "$traits", "CUSTOM_FAST"],
            ["in", 2, "$slots"],
            ["in", "2", "$slots"],
            ["<", 0, "$slots"],
            [">", "$cores", 7],
            ["=", "$gpu", True],
            ["=", "$gpu", "true"],
            ["not", ["=", "$missing", 1]],
            ["and", [">=", "$vcpus", 8], ["in", "CUSTOM_FAST", "$traits"]],
            ["or", ["=", "$vcpus", 1], ["=", "$vcpus", 16]],
            ("=", "$vcpus", 16),
            '["=", "$vcpus", 16]',
            '\n ["=", "$vcpus", 16]',
        ):
            self.assertTrue(host_query.parse(query).matches(HOST), query)

    def test_hosts_that_are_not(self) -> None:
        for query in (
            ["=", "$vcpus", 16, 17],
            ["<", "$vcpus", 16],
            ["=", "$hypervisor_type", "qemu"],
            ["in", "CUSTOM_SLOW", "$traits"],
            ["in", "$missing", "a"],
            ["in", "QEMU", "QEMU", "$missing"],
            ["=", "$missing", "$missing"],
            ["=", "$nothing", "None"],
            ["=", "$none", "$none"],
            ["in", "a", "$none"],
            ["=", "$odd", "$odd"],
            ["<", 1, "$slots"],
            ["=", "$gpu", 1],
            ["=", "$gpu", False],
            ["not", ["=", "$vcpus", 16]],
            ["and", ["=", "$vcpus", 16], ["=", "$vcpus", 1]],
            ["or", ["=", "$vcpus", 1], ["=", "$vcpus", 2]],
        ):
            self.assertFalse(host_query.parse(query).matches(HOST), query)

    def test_two_strings_are_compared_as_such(self) -> None:
        matches = host_query.parse(["<", "$version", "1.9"]).matches
        self.assertTrue(matches(HOST))
        self.assertFalse(matches({"version": 1.95}))

    def test_in_is_as_relations_are(self) -> None:
        """The property may be on either side."""
        for query in (
            ["in", "$cores", 8], ["in", 8, "$cores"],
            ["in", "1.10", "$version"], ["in", 1.1, "$version"],
            ["in", "$slots", "2"], ["in", "2", "$slots"],
            ["in", "$slots", "a", 3.0], ["in", "true", "$gpu"],
            ["in", 1e25, "1e+25"],
        ):
            self.assertTrue(host_query.parse(query).matches(HOST), query)
        for query in (
            ["in", "1.1", "$version"], ["in", "$slots", "4", "b"],
            ["in", "$traits", "$slots"],
        ):
            self.assertFalse(host_query.parse(query).matches(HOST), query)

    def test_long_lists_are_truncated(self) -> None:
        numbers = list(map(str, range(host_query.MAX_LIST + 1)))
        for value, expected in ((0, True), (host_query.MAX_LIST, False)):
            self.assertEqual(expected, host_query.parse(
                ["in", str(value), "$long"]).matches({"long": numbers}))

    def test_work_is_bounded_for_each_host(self) -> None:
        """Properties, elements of lists and pairs that are compared count."""
        host: dict[str, object] = {
            "one": 1, "a": [f"CUSTOM_{number}" for number in range(100)],
            "b": [f"CUSTOM_{number}" for number in range(980)]}

        def repeat(number: int, part: list[object]) -> list[object]:
            return ["or", *(part for _number in range(number))]

        for accepted, part in (
            (100, ["in", "$one", 2]), (100, ["=", 2, "$one"]),
            (83, [">", "$one", 1]), (71, ["=", "$one", 1, 2]),
            (16, ["in", "x", "$a"]), (16, ["=", "$a", "x"]),
            (14, ["in", "$missing", "$a"]),
            (14, ["in", "x", "$a", "$missing"]),
            (3, ["<", "$a", "A"]), (2, ["in", "x", "$b"]),
        ):
            with self.subTest(part=part):
                parsed = host_query.parse(repeat(accepted, part))
                # Each host counts by itself.
                self.assertEqual([False] * 3, [
                    parsed.matches(host) for _number in range(3)])
                parsed = host_query.parse(repeat(accepted + 1, part))
                with self.assertRaisesRegex(
                    InvalidQuery, "^host_properties: the filter compares too "
                    "many values of one host$"
                ):
                    parsed.matches(host)
        with self.assertRaises(InvalidQuery):
            host_query.parse(["<", "$a", "$b"]).matches(host)

    def test_no_query_means_every_host(self) -> None:
        for query in (None, [], (), "", "  ", "[]", "null"):
            parsed = host_query.parse(query)
            self.assertTrue(parsed.matches({}), query)
            self.assertEqual(frozenset(), parsed.names)

    def test_names(self) -> None:
        parsed = host_query.parse(
            ["or", ["in", "a", "$traits"], ["not", ["=", "$vcpus", "$b$"]]]
        )
        self.assertEqual({"traits", "vcpus", "b$"}, parsed.names)


class TestInvalid(unittest.TestCase):
    """The message names the place."""

    def test_messages(self) -> None:
        deep: object = ["=", 1, 1]
        for _level in range(20):
            deep = ["not", deep]
        at = "host_properties"
        for query, message in (
            ("[", f"{at}: it is not valid JSON: "),
            ("[1" + "0" * 5000 + "]", f"{at}: it is not valid JSON: "),
            ("[" * 60000, f"{at}: it is not valid JSON: nested too deep"),
            (" " + "[" * 70000, f"{at}: it is longer than 65536 characters"),
            (7, f"{at}: it must be a list that begins"),
            ({}, f"{at}: it must be a list that begins"),
            ([[]], f"{at}[0]: unknown operator a list; known are and, or"),
            (["=="], f'{at}[0]: unknown operator "=="; known are '),
            ([{}], f"{at}[0]: unknown operator a dict"),
            ([None], f"{at}[0]: unknown operator null"),
            ([10**5000], f"{at}[0]: unknown operator a number that large"),
            (["x" * 99], f'{at}[0]: unknown operator "{"x" * 40}..."'),
            (["and"], f'{at}: "and" takes at least one query'),
            (["not"], f'{at}: "not" takes one query'),
            (["and", 1], f"{at}[1]: it must be a list"),
            (
                ["or", ["=", 1, 1], ["and", ["?", 1]]],
                f'{at}[2][1][0]: unknown operator "?"',
            ),
            (
                ["not", ["=", 1, 1], ["=", 1, 1]],
                f'{at}: "not" takes one query',
            ),
            (["in", "a"], f'{at}: "in" takes at least two values'),
            (["=", 1, ["a"]], f"{at}[2]: a list is neither a string"),
            (["=", 1, None], f"{at}[2]: null is neither a string"),
            (["=", 1, float("nan")], f"{at}[2]: a float is neither a"),
            ('["=", 1, Infinity]', f"{at}[2]: a float is neither a"),
            (["=", 10**31, 1], f"{at}[1]: a number that large is nei"),
            (["=", "$", 1], f"{at}[1]: a name must follow $"),
            (["=", 1, "a" * 256], f"{at}[2]: it is longer than 255 char"),
            (["=", *range(600)], f"{at}: the filter has more than 500 items"),
            (
                ["and", *(["=", 1, 1] for _number in range(200))],
                f"{at}[100]: the filter has more than 500 items",
            ),
            (deep, f"{at}{'[1]' * 16}: it is nested deeper than 16"),
        ):
            with self.assertRaisesRegex(
                InvalidQuery, "^" + re.escape(message)
            ):
                host_query.parse(query)


# -- laws ------------------------------------------------------------------

SCALARS = (
    st.sampled_from(("a", "b", "1", "1.0", "10", "-2", "true", "x1"))
    | st.integers(-3, 12)
    | st.sampled_from((0.5, 1.0, 10.0))
    | st.booleans()
)
NAMES = st.sampled_from(("a", "b", "c"))
PROPERTIES = st.dictionaries(
    NAMES, SCALARS | st.none() | st.lists(SCALARS, max_size=3)
)
VALUES = SCALARS | st.builds("${}".format, NAMES)
COMPARISONS = st.builds(
    lambda name, values: [name, *values],
    st.sampled_from(("=", "<", ">", "<=", ">=", "in")),
    st.lists(VALUES, min_size=2, max_size=4),
)
QUERIES: st.SearchStrategy[list[object]] = st.recursive(
    COMPARISONS,
    lambda inner: (
        st.builds(
            lambda name, parts: [name, *parts],
            st.sampled_from(("and", "or")),
            st.lists(inner, min_size=1, max_size=3),
        )
        | st.builds(lambda part: ["not", part], inner)
    ),
    max_leaves=6,
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=3)
    | st.sampled_from(("and", "or", "not", "=", "in", "<", "$a", "$")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=12,
)
OPERATORS = {
    "=": operator.eq,
    "in": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def naive(query, properties):  # type: ignore[no-untyped-def]
    """Read the documentation aloud."""
    name, *rest = query
    if name == "and":
        return all(naive(part, properties) for part in rest)
    if name == "or":
        return any(naive(part, properties) for part in rest)
    if name == "not":
        return not naive(rest[0], properties)
    values = []
    for value in rest:
        if isinstance(value, str) and value.startswith("$"):
            value = properties.get(value[1:])
            if value is None:
                return False
        values.append(value if isinstance(value, list) else [value])
    others = [each for value in values[1:] for each in value]
    enough = any if name == "in" else all
    return bool(others) and any(
        enough([naive_compare(name, one, other) for other in others])
        for one in values[0]
    )


def naive_compare(name, one, other):  # type: ignore[no-untyped-def]
    """Compare as numbers if that makes sense, or else as strings."""
    one, other = (
        {True: "true", False: "false"}[value]
        if isinstance(value, bool)
        else value
        for value in (one, other)
    )
    if not isinstance(one, str) or not isinstance(other, str):
        try:
            return OPERATORS[name](float(one), float(other))
        except ValueError:
            pass
    return OPERATORS[name](str(one), str(other))


class TestLaws(unittest.TestCase):
    """A naive reading is the judge."""

    @LAW
    @hypothesis.given(QUERIES, PROPERTIES)
    def test_as_a_naive_reading(
        self, query: list[object], properties: dict[str, object]
    ) -> None:
        parsed = host_query.parse(query)
        expected = naive(query, properties)
        self.assertEqual(expected, parsed.matches(properties))
        text = json.dumps(query)
        self.assertEqual(expected, host_query.parse(text).matches(properties))
        self.assertEqual(
            set(re.findall(r'"\$(\w+)"', text)), set(parsed.names)
        )

    @LAW
    @hypothesis.given(QUERIES, PROPERTIES, PROPERTIES)
    def test_only_named_properties_matter(
        self,
        query: list[object],
        properties: dict[str, object],
        others: dict[str, object],
    ) -> None:
        parsed = host_query.parse(query)
        named = {
            name: value
            for name, value in properties.items()
            if name in parsed.names
        }
        unnamed = {
            name: value
            for name, value in others.items()
            if name not in parsed.names
        }
        self.assertEqual(
            parsed.matches(named), parsed.matches({**unnamed, **named})
        )

    @LAW
    @hypothesis.given(ANYTHING, st.dictionaries(NAMES, ANYTHING))
    def test_any_json_is_a_query_or_invalid(
        self, query: object, properties: dict[str, object]
    ) -> None:
        """It is a query, or InvalidQuery is raised."""
        try:
            parsed = host_query.parse(query)
        except InvalidQuery as exc:
            self.assertIn("host_properties", str(exc))
            return
        self.assertIsInstance(parsed.matches(properties), bool)

    @LAW
    @hypothesis.given(
        st.text() | st.from_regex(r'\[("(=|in|and)",?|[0-9$"\[\]{}, ]){0,20}')
    )
    def test_any_text(self, query: str) -> None:
        try:
            parsed = host_query.parse(query)
        except InvalidQuery:
            return
        self.assertIsInstance(parsed.matches(HOST), bool)

    @LAW
    @hypothesis.given(QUERIES, st.dictionaries(NAMES, ANYTHING))
    def test_any_properties(
        self, query: list[object], properties: dict[str, object]
    ) -> None:
        self.assertIsInstance(
            host_query.parse(query).matches(properties), bool
        )


if __name__ == "__main__":
    unittest.main()
