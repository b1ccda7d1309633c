# SPDX-License-Identifier: Apache-2.0

"""Values that the model rejects."""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import sys
import unittest

from nova_preempt import core
from nova_preempt.core.costs import CostOptions
from nova_preempt.core.model import Candidate, Inventory
from nova_preempt.core.victims import SearchLimits


class TestModel(unittest.TestCase):
    """Values are checked once, where they come in, and do not change."""

    def test_negative_cost(self) -> None:
        with self.assertRaisesRegex(ValueError, "cost of u is negative: -1"):
            Candidate("u", {"VCPU": 1}, -1)

    def test_negative_amount(self) -> None:
        with self.assertRaisesRegex(ValueError, "u uses a negative amount"):
            Candidate("u", {"VCPU": 1, "DISK_GB": -1}, 0)

    def test_no_resources(self) -> None:
        self.assertEqual({}, Candidate("u", {}, 0).resources)

    def test_billing_period(self) -> None:
        for period in (0, -3600):
            with self.assertRaisesRegex(ValueError, str(period)):
                CostOptions(period)

    def test_limits(self) -> None:
        for field in dataclasses.fields(SearchLimits):
            with self.assertRaisesRegex(ValueError, field.name):
                SearchLimits(**{field.name: -1})

    def test_frozen(self) -> None:
        with self.assertRaises(dataclasses.FrozenInstanceError):
            Inventory(1).total = 2  # type: ignore[misc]


class TestImports(unittest.TestCase):
    """The core is pure."""

    def test_imports(self) -> None:
        """The core imports itself, numpy, scipy and the standard library
        except for clocks, randomness and I/O."""
        allowed = {*sys.stdlib_module_names, "nova_preempt.core"}
        allowed |= {"numpy", "scipy"}
        impure = {"io", "os", "random", "secrets", "socket", "time"}
        [directory] = core.__path__
        for path in pathlib.Path(directory).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    names = [node.module or ""]
                for name in names:
                    root = name.split(".")[0]
                    if root == "nova_preempt":
                        root = ".".join(name.split(".")[:2])
                    self.assertIn(root, allowed - impure, path)
