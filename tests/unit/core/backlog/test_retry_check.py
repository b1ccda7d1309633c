# SPDX-License-Identifier: Apache-2.0
"""Tests of retries after Nova refused a request."""

import dataclasses
import datetime
import itertools
import json
import unittest

from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import vcpus
from tests.unit.core.backlog.test_dispatch import LATER
from tests.unit.core.backlog.test_dispatch import decide

REFUSED = {'code': 'no_valid_host', 'text': 'No host.'}


class TestNewRoom(unittest.TestCase):
    """A request for which Nova found no host."""

    def look(self, free, waits_for=None, reclaimable=None, code=None):
        found = decide([base.request(
            next_try_at=LATER, tries=1, waits_for=waits_for or {
                'code': code or 'no_valid_host', 'text': 'No host.'})],
            [host('h', free, reclaimable)])
        return found.notes['r1'].waits_for if found.notes else None

    def test_a_request_is_tried_as_soon_as_there_is_space(self):
        seen = self.look(0)
        self.assertEqual('room', seen['code'])
        self.assertEqual('room', self.look(0, seen)['code'])
        self.assertIsNone(self.look(1, seen))

    def test_space_that_nova_refused_is_not_tried(self):
        seen = self.look(1)
        self.assertEqual('no_valid_host', seen['code'])
        self.assertEqual(seen, self.look(1, seen))
        # Unless that was taken meanwhile.
        self.assertIsNone(self.look(1, self.look(0, seen)))

    def test_reclaimable_space_is_not_new_space(self):
        seen = self.look(0, reclaimable=1)
        self.assertEqual('no_valid_host', seen['code'])
        self.assertEqual(seen, self.look(0, seen, reclaimable=1))
        self.assertIsNone(self.look(1, seen))

    def test_on_another_host(self):
        """Filters of Nova refuse a host that has room by Placement."""
        seen = self.look_at(REFUSED, a=1, b=0)
        self.assertEqual(seen, self.look_at(seen, a=1, b=0))
        self.assertIsNone(self.look_at(seen, a=1, b=8))
        # Also where it takes the place of the other one.
        self.assertIsNone(self.look_at(seen, a=0, b=1))
        # It is remembered with those that Nova had to choose from.
        seen = self.look_at(REFUSED, a=1, b=8)
        self.assertEqual(seen, self.look_at(seen, a=1, b=8))

    def look_at(self, waits_for, **free):
        found = decide([base.request(
            next_try_at=LATER, tries=1, waits_for=waits_for)],
            [host(name, some) for name, some in free.items()])
        return found.notes['r1'].waits_for if found.notes else None

    def test_the_memory_is_bounded(self):
        """It does not grow with hosts; a further host is noticed."""
        free = {f'host{number}': 1 for number in range(5000)}
        seen = self.look_at(REFUSED, **free, z=0)
        self.assertLess(len(json.dumps(seen['seen'])), 300)
        self.assertEqual(seen, self.look_at(seen, **free, z=0))
        self.assertIsNone(self.look_at(seen, **free, z=1))

    def test_space_is_needed_for_all_that_start_together(self):
        request = base.request(count=3, next_try_at=LATER, tries=1,
                               waits_for=REFUSED)
        for free, is_tried in (((1, 2, 0), False), ((1, 2, 1), True)):
            found = decide([request], [
                host(str(number), some) for number, some in enumerate(free)])
            self.assertEqual(is_tried, bool(found.starts))
            for note in found.notes.values():
                request = dataclasses.replace(
                    request, waits_for=note.waits_for)

    def test_an_affinity_group_needs_space_on_one_host(self):
        group = group_placement.Group('g', group_placement.AFFINITY)
        tracker = CapacityTracker([host('a', 2), host('b', 1), host('c', 3)])
        self.assertEqual({'a', 'c'}, tracker.hosts(vcpus(1), group, 2))
        self.assertEqual({'a', 'b', 'c'}, tracker.hosts(vcpus(1)))
        tracker.take_at(vcpus(1), {'c': 2})
        self.assertEqual({'a'}, tracker.hosts(vcpus(1), group, 2))
        tracker.hold(vcpus(8), 1)                         # on a
        self.assertEqual(set(), tracker.hosts(vcpus(1), group, 2))
        self.assertEqual({'b', 'c'}, tracker.hosts(vcpus(1)))

    def test_fluctuating_space_is_not_tried_each_time(self):
        """Nova has no host although Placement has space."""
        request, tries = base.request(), []
        for number in range(2880):
            at_s = 5 * number
            now = base.NOW + datetime.timedelta(seconds=at_s)
            found = decide([request], [host('a', 1), host('b', number % 2)],
                           now)
            if found.starts:
                tries.append(at_s)
                request = dataclasses.replace(request,
                    **boot_outcome.retry_values(
                    request, boot_outcome.NO_HOST, 'No host.', now,
                    boot_outcome.Options()))
            else:
                request = dataclasses.replace(
                    request, waits_for=found.notes['r1'].waits_for)
        pauses = [after - before for before, after
                  in itertools.pairwise(tries)]
        # At once at first; later in an eighth of the pause of ten minutes.
        self.assertLessEqual(max(pauses[:3]), 15)
        self.assertGreaterEqual(min(pauses[-100:]), 75)
        self.assertLessEqual(max(pauses), 90)

    def test_other_answers_do_not_depend_on_space(self):
        for code in ('quota', 'refused', 'no_answer'):
            self.assertEqual(code, self.look(
                1, self.look(0, code=code))['code'])


if __name__ == '__main__':
    unittest.main()
