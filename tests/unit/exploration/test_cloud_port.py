# SPDX-License-Identifier: Apache-2.0
"""The tests of the port, on the cloud in memory."""

import unittest

from tests.cloud_port import memory
from tests.cloud_port import move_tests
from tests.cloud_port import placement_tests
from tests.cloud_port import server_tests


class TestPlacement(placement_tests.PlacementTests,
                    memory.MemoryPlacementTestCase, unittest.TestCase):
    """Placement in memory."""


class TestBoots(server_tests.BootTests, memory.MemoryServerTestCase,
               unittest.TestCase):
    """Boots in memory."""


class TestEnds(server_tests.EndTests, memory.MemoryServerTestCase,
              unittest.TestCase):
    """Ends in memory."""


class TestStates(server_tests.StateTests, memory.MemoryServerTestCase,
                unittest.TestCase):
    """States in memory."""


class TestMoves(move_tests.MoveTests, memory.MemoryServerTestCase,
                unittest.TestCase):
    """Moves in memory."""
