# SPDX-License-Identifier: Apache-2.0
"""Tests of the choice of a flavor in a ladder."""

import dataclasses
import unittest

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import ladder_choice
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import vcpus

HIGH = ('CUSTOM_REPUTATION_HIGH',)
RUNGS = tuple(dataclasses.replace(vcpus(number), required=HIGH)
              for number in range(1, 10))


def request(uuid, cores, rungs=RUNGS, **changes):
    changes.setdefault('priorities', backlog_model.SlaPriorities(cores=cores))
    return base.request(uuid, *rungs, ladder='web', **changes)


def high(name, free, **kwargs):
    return dataclasses.replace(host(name, free, **kwargs),
                               traits=frozenset(HIGH))


def decide(requests, rooms):
    return base.decide(requests, rooms, base.NOW, dispatch.Options())


class TestLadders(unittest.TestCase):

    def test_published_example(self):
        """Idle cores 9, 6 and 6 of premium hosts; see sla's tests."""
        rooms = [high('1', 9, capacity=9), high('2', 6, capacity=9),
                 high('3', 6, capacity=9), host('4', 99, capacity=99)]
        requests = [request('c1', 3), request('c2', 2), request('c3', 1),
                    base.request('other')]
        found = decide(requests[:3], rooms)
        self.assertEqual([('c1', '9', 1), ('c2', '6', 1), ('c3', '3', 1)],
                         [(start.uuid, start.flavor_id, start.count)
                          for start in found.starts])

    def test_the_largest_that_it_may_have(self):
        rooms = [high('1', 9, capacity=9)]
        few = RUNGS[0], RUNGS[4]                          # 1 and 5
        for cores, expected in ((3, '5'), (2, '5'), (1, '1')):
            one = request('a', cores, few)
            self.assertEqual(expected, ladder_choice.LadderFlavorChooser(
                rooms, [one]).alternatives(one)[0].name)

    def test_all_have_too_many(self):
        one = request('a', 1, RUNGS[5:])
        found = decide([one], [high('1', 9, capacity=9)])
        self.assertEqual('ladder', found.notes['a'].waits_for['code'])

    def test_without_priorities_it_is_best_effort(self):
        one = request('a', 1, priorities=None)
        self.assertEqual('3', ladder_choice.LadderFlavorChooser(
            [high('1', 9, capacity=9)], [one]).alternatives(one)[0].name)

    def test_copies_on_distinct_hosts_or_none(self):
        one = request('a', 3, count=3, apart=True)
        rooms = [high('1', 9, capacity=9), high('2', 9, capacity=9)]
        found = decide([one], rooms)
        self.assertEqual('too_large', found.notes['a'].waits_for['code'])
        found = decide([one], [*rooms, high('3', 0, capacity=9)])
        self.assertEqual('room', found.notes['a'].waits_for['code'])
        found = decide([one], [*rooms, high('3', 9, capacity=9)])
        self.assertEqual((dispatch.PlannedBoot('a', '9', 3),), found.starts)

    def test_a_request_without_ladder_keeps_its_flavors(self):
        one = base.request('a', vcpus(2), vcpus(1))
        self.assertEqual(one.alternatives, ladder_choice.LadderFlavorChooser(
            [], [one]).alternatives(one))

    def test_no_hosts(self):
        found = decide([request('a', 3)], [])
        self.assertIn(found.notes['a'].waits_for['code'],
                      ('ladder', 'no_host'))


if __name__ == '__main__':
    unittest.main()
