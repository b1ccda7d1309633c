# SPDX-License-Identifier: Apache-2.0
"""Evictions for headroom."""

import unittest

from nova_preempt.core import eligibility
from nova_preempt.core import headroom_account
from nova_preempt.core.eviction import headroom_controller
from nova_preempt.core.model import Inventory, Provider
from nova_preempt.core.scheduling import preemption_policy
from tests.unit.core.scheduling import world


class TestChoose(unittest.TestCase):

    def chosen(self, wanted, *, plain, gpus):
        """Return the victims; servers without a GPU cost less."""
        held = {f'plain{number}': {'VCPU': 1} for number in range(plain)}
        held |= {f'gpu{number}': {'VCPU': 1, 'CUSTOM_GPU': 1}
                 for number in range(gpus)}
        host = Provider('uuid', 1, {
            'VCPU': Inventory(len(held)), 'CUSTOM_GPU': Inventory(gpus + 1)},
            {**held, 'normal': {'CUSTOM_GPU': 1}})
        group = headroom_account.HostGroup('all', headroom_account.parse(
            wanted),
                                           {'host': host})
        policy = preemption_policy.Policy(
            eligibility.Rules(), ('delete',),
            lambda server, options: int(server.uuid.startswith('gpu')))
        return [server.uuid for server, _ in headroom_controller.choose(
            group, group.missing({}), headroom_controller.Candidates(
                [world.server(uuid) for uuid in held], policy), world.NOW)]

    def test_the_cheapest_that_help(self):
        self.assertEqual(['plain0'], self.chosen('VCPU:1', plain=3, gpus=3))
        self.assertEqual(['gpu0'], self.chosen('CUSTOM_GPU:1', plain=3,
                                               gpus=3))

    def test_many_that_are_cheaper_and_do_not_help(self):
        self.assertEqual(['gpu0'], self.chosen(
            'CUSTOM_GPU:1', plain=headroom_controller.MOST, gpus=3))

    def test_no_evictions_for_a_class_that_cannot_be_freed(self):
        """A normal server uses the GPU, so evictions would be in vain."""
        self.assertEqual(['plain0'], self.chosen('VCPU:1,CUSTOM_GPU:1',
                                                 plain=3, gpus=0))
        self.assertEqual([], self.chosen('CUSTOM_GPU:1', plain=3, gpus=0))

    def test_the_cheapest_servers_of_each_class_are_evaluated(self):
        self.assertEqual(['gpu0'], self.chosen(
            'VCPU:1,CUSTOM_GPU:1', plain=headroom_controller.MOST, gpus=3))

    def test_all_where_they_are_not_enough(self):
        self.assertEqual(['gpu0', 'gpu1', 'plain0'], self.chosen(
            'VCPU:9,CUSTOM_GPU:9', plain=1, gpus=2))


class TestStep(unittest.TestCase):
    """Two servers have two cores, of which headroom wants one."""

    def setUp(self):
        super().setUp()
        self.held = {uuid: {'VCPU': 1} for uuid in 'ab'}
        self.asked = 0

    def candidates(self):
        self.asked += 1
        return headroom_controller.Candidates(
            [world.server(uuid) for uuid in self.held],
            preemption_policy.Policy(eligibility.Rules(), ('delete',),
                                     lambda server, options: 0))

    def step(self, memory=None, ending=(), changes=None):
        host = Provider('uuid', 1, {'VCPU': Inventory(2)}, self.held)
        group = headroom_account.HostGroup(
            'all', headroom_account.parse('VCPU:1'), {'host': host})
        found = headroom_controller.step(
            headroom_controller.Observed(
                group, {uuid: {'uuid': {'VCPU': 1}} for uuid in ending},
                self.candidates, changes), memory, 0)
        return [end.server.uuid for end in found.intents], found.memory

    def test_ending_servers_count_as_free(self):
        self.assertEqual((['a'], None), self.step())
        self.assertEqual(([], None), self.step(ending='a'))
        self.assertEqual(1, self.asked)

    def test_equal_input_gives_an_equal_step(self):
        self.assertEqual(self.step(), self.step())

    def test_nothing_is_looked_at_until_something_changes(self):
        self.assertEqual(([], 5), self.step(ending='a', changes=5))
        self.assertEqual(([], 5), self.step(memory=5, changes=5))
        self.assertEqual((['a'], None), self.step(memory=5, changes=6))
