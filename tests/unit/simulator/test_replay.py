# SPDX-License-Identifier: Apache-2.0
"""Decisions made again."""

import unittest

from nova_preempt.core.model import Request
from tests import replay
from tests.unit.core.scheduling import world


class TestReplay(unittest.TestCase):

    def setUp(self):
        self.set_up_world()
        cycle = self.cycle()
        self.record = cycle.record
        self.placed = cycle.place(self.world.offered(cycle), self.claim, 2)

    def set_up_world(self):
        self.world = world.World()
        self.world.add('h', {'VCPU': 4}, {}, {
            'a': (5, {'VCPU': 2}), 'b': (7, {'VCPU': 2})})
        self.world.add('i', {'VCPU': 4}, {}, {'c': (6, {'VCPU': 4})})

    def cycle(self):
        cycle = replay.RecordingCycle(
            self.world.answers(), Request.of({'VCPU': 2}), self.world.policy,
            world.NOW)
        self.world.begin(cycle)
        return cycle

    def claim(self, uuid, plan):
        for victim in plan.victims:
            self.world.hosts[uuid].remove(victim.uuid)
        self.world.hosts[uuid].add(f'new {len(self.world.hosts)}',
                                   {'VCPU': 2})
        return True

    def test_the_same_without_the_cloud(self):
        self.world.hosts.clear()
        found = replay.again(self.record)
        self.assertEqual(self.placed, found)
        self.assertEqual([('uuid of h', ['a']), ('uuid of i', ['c'])],
                         [(uuid, world.uuids(plan.victims))
                          for uuid, plan in found])

    def test_another_answer(self):
        number = next(number for number, (question, _args, _answer)
                      in enumerate(self.record.log) if question == 'passing')
        question, args, _answer = self.record.log[number]
        self.record.log[number] = question, args, set()
        self.assertRaises(replay.Differs, replay.again, self.record)

    def test_another_question(self):
        self.record.log.pop(0)
        self.assertRaises(replay.Differs, replay.again, self.record)

    def test_a_query_that_is_not_repeated(self):
        self.record.log.append(('ending', (), ()))
        self.assertRaises(replay.Differs, replay.again, self.record)

    def test_another_host_was_claimed(self):
        _host, plan, could = self.record.claims[0]
        self.record.claims[0] = 'uuid of i', plan, could
        self.assertRaises(replay.Differs, replay.again, self.record)

    def test_another_request_was_faster(self):
        """The host is lost; the next one is claimed, then and again."""
        self.set_up_world()
        cycle = self.cycle()
        placed = cycle.place(self.world.offered(cycle), self.claims_second())
        self.assertEqual([False, True],
                         [could for _, _, could in cycle.record.claims])
        self.assertEqual(placed, replay.again(cycle.record))

    @staticmethod
    def claims_second():
        answers = iter([False, True])
        return lambda uuid, plan: next(answers)
