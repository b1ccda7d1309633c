# SPDX-License-Identifier: Apache-2.0

"""Parses the operator's table of classes.

Each class is {field: text}. Defaults follow from the overhead of getting a
server back to a host, see availability_margin.py.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import fractions
import re
from typing import Any

from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes.availability_margin import QosClass
from nova_preempt.core.classes.availability_margin import QosClasses
from nova_preempt.core.model import SECOND

_REQUIRED = ("name", "importance", "availability")
_OPTIONAL = ("safety_margin_s", "overhead_limit", "least_run_s", "open")
FIELDS = (*_REQUIRED, *_OPTIONAL)

# It is in extra specs, URLs and columns.
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FLAGS = {"true": True, "false": False}


@dataclasses.dataclass(frozen=True, slots=True)
class ClassTable:
    """The classes, and their common settings.

    ``open``: the names of classes that any user may request; others come with
    a flavor that names them. ``overhead_us``: the overhead of kinds that were
    not measured. ``pass_period_s``: how often to look for victims.
    """

    classes: QosClasses
    open: frozenset[str] = frozenset()
    overhead_us: int = availability_margin.OVERHEAD_S * SECOND
    pass_period_s: int = availability_margin.PASS_PERIOD_S

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the classes, the most important first."""
        return tuple(qos.name for qos in self.classes)

    @property
    def hasty(self) -> tuple[str, ...]:
        """Return classes whose safety margin is less than the pass period."""
        return tuple(
            qos.name for qos in self.classes
            if qos.safety_margin_s < self.pass_period_s)


def parse(entries: Iterable[Mapping[str, str]], pass_period_s: int =
          availability_margin.PASS_PERIOD_S) -> ClassTable:
    """Return the table of classes.

    :param entries: a class each
    :raises ValueError: names the class, the field and the error
    """
    classes, opened = [], set()
    for number, entry in enumerate(entries, start=1):
        try:
            fields = _fields(entry, pass_period_s)
            is_open = _flag(entry, "open")
        except ValueError as exc:
            raise ValueError(
                f"class {entry.get('name') or f'number {number}'}: {exc}"
            ) from None
        qos = QosClass(**fields)
        classes.append(qos)
        if is_open:
            opened.add(qos.name)
    return ClassTable(
        QosClasses(*classes), frozenset(opened),
        availability_margin.OVERHEAD_S * SECOND, pass_period_s)


def _fields(entry: Mapping[str, str], pass_period_s: int) -> dict[str, Any]:
    unknown = sorted(entry.keys() - set(FIELDS))
    if unknown:
        raise ValueError(
            f"field {unknown[0]} is unknown; known are {', '.join(FIELDS)}")
    missing = [field for field in _REQUIRED if not entry.get(field)]
    if missing:
        raise ValueError(f"field {missing[0]} is missing")
    if not _NAME.fullmatch(entry["name"]):
        raise ValueError(
            "name must have 1 to 64 letters, digits, dots, hyphens and "
            "underscores, and begin with a letter or a digit")
    return {
        "name": entry["name"],
        "importance": _whole(entry, "importance"),
        "availability": _share(entry, "availability"),
        "safety_margin_s": _whole(entry, "safety_margin_s", pass_period_s),
        "overhead_limit": _share(entry, "overhead_limit"),
        "least_run_s": _whole(entry, "least_run_s",
                              availability_margin.LEAST_RUN_S),
    }


def _flag(entry: Mapping[str, str], field: str) -> bool:
    text = entry.get(field, "false")
    if text not in _FLAGS:
        raise ValueError(f"{field} is {text!r}; it must be true or false")
    return _FLAGS[text]


def _whole(entry: Mapping[str, str], field: str, default: int = 0) -> int:
    text = entry.get(field)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"{field} is {text!r}; it must be a whole number") from None


def _share(entry: Mapping[str, str], field: str) -> fractions.Fraction:
    """Return the exact number: 0.9 is 9/10; 1 if it is missing."""
    text = entry.get(field, "1")
    try:
        return fractions.Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError(
            f"{field} is {text!r}; it must be a number such as 0.95") from None
