# SPDX-License-Identifier: Apache-2.0
"""Tests of the garbage that waits for collection, in a process of its own."""

import subprocess
import sys
import unittest

# As many objects as a service has; then requests one after the other, some of
# which are under way at a time. Each is a cycle. Prints how many are there at
# most.
SCRIPT = """
import collections
import gc
from nova_preempt import garbage_collection

class Request:
    there = most = 0

    def __init__(self):
        self.me = self
        Request.there += 1
        Request.most = max(Request.most, Request.there)

    def __del__(self):
        Request.there -= 1

imported = [[] for _ in range(300_000)]
gc.collect()
if {settles}:
    garbage_collection.settle()
under_way = collections.deque(maxlen=2000)
for _ in range(200_000):
    under_way.append(Request())
print(Request.most)
"""


def most(settles):
    return int(subprocess.run(
        [sys.executable, '-c', SCRIPT.format(settles=settles)], check=True,
        capture_output=True, text=True).stdout)


class TestSettle(unittest.TestCase):

    def test_little_waits_for_collection(self):
        self.assertLess(most(settles=True), 20_000)

    @unittest.skipIf(sys.version_info >= (3, 14),
                     'it collects bit by bit anyway')
    def test_without_it_much_does(self):
        self.assertGreater(most(settles=False), 30_000)
