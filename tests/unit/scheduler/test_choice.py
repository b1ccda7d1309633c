# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""What is read anew before victims end."""

import datetime
from types import SimpleNamespace
import unittest
from unittest import mock

from nova_preempt import placement
from nova_preempt.core import deadline as core_deadline
from nova_preempt.core import model
from nova_preempt.scheduler import candidates
from nova_preempt.scheduler import choice
from nova_preempt.scheduler import deadline
from nova_preempt.scheduler import patience
from nova_preempt.scheduler import states as host_states
from nova_preempt.scheduler.view import Server

TIMES = core_deadline.Times(whole_s=100, end_s=20)
NOW = datetime.datetime(2026, 11, 20, 12)


def server(uuid, **values):
    return Server(**{
        'uuid': uuid, 'host': 'node', 'node': 'node', 'cell_uuid': 'cell',
        'project_id': 'p', 'user_id': 'u', 'flavor': 'f',
        'launched_at': NOW - datetime.timedelta(hours=2),
        'vm_state': 'active', 'task_state': None, 'locked': False,
        'minimum_runtime_s': 0, 'vcpus': 1, 'memory_mb': 1, 'disk_mb': 1,
        **values})


class Spending:
    """No budget."""

    def forget(self):
        pass

    def caps(self, servers):
        return ()

    def allows(self, server):
        return True


def provider(**vcpus):
    return placement.ProviderState(
        uuid='provider', generation=1,
        inventories={'VCPU': model.Inventory(total=4)},
        allocations={uuid: {'VCPU': amount}
                     for uuid, amount in vcpus.items()})


class TestLatest(unittest.TestCase):
    """A host of 4 VCPU, full, with preemptible servers v1 and v2."""

    def setUp(self):
        patch = mock.patch.object(host_states, 'as_planned')
        patch.start()
        self.addCleanup(patch.stop)
        self.costs = {'v1': 10, 'v2': 20}
        self.servers = {uuid: server(uuid) for uuid in self.costs}
        self.reads = 0
        self.monotonic = 0
        self.view = SimpleNamespace(
            refresh=lambda max_age_s: None, get=self.servers.get,
            on_node=lambda node: self.servers)
        self.preemption = SimpleNamespace(
            clock=lambda: NOW, view=self.view, budgets=False,
            providers=SimpleNamespace(read=self.read),
            notice_limit_s=1000, conf=SimpleNamespace(
                minimum_runtime_s=0, actions=['delete'], notice_s=0,
                minimum_notice_s=0, maximum_notice_s=300,
                honored_locks='admin'))
        manager = SimpleNamespace(
            get_filtered_hosts=lambda views, spec_obj, index: views)
        self.places = patience.Places(4)
        self.choice = choice.Choice(
            self.preemption, manager, None, None, (), ['server'],
            patience.Patience(
                deadline.Deadline(TIMES, lambda: self.monotonic),
                self.places))
        self.choice.candidates = candidates.Candidates(
            self.preemption.providers, self.view, {'VCPU': 2},
            self.choice._may_end,
            lambda server, resources: self.costs[server.uuid],
            lambda server, resources: resources, Spending())

    def read(self, uuid):
        self.reads += 1
        return self.now

    def latest(self, now=None, had_room=False, **seen):
        """Whom the option ends that was made of what was seen before.

        :param seen: {consumer: its VCPU}
        """
        seen = provider(**seen or {'v1': 2, 'v2': 2})
        self.now = now or seen
        self.choice.options['provider'] = self.choice.candidates.option(
            'node', seen)
        option = self.choice.latest(SimpleNamespace(uuid='provider'),
                                    had_room)
        return [victim.uuid for victim in option.victims]

    def test_the_cheapest_alone(self):
        self.assertEqual(['v1'], self.latest())
        self.assertEqual(0, self.reads)

    def test_placement_has_offered_the_host(self):
        self.assertEqual(['v1'], self.latest(had_room=True))
        self.assertEqual(1, self.reads)

    def test_not_the_cheapest(self):
        self.assertEqual(['v2'], self.latest(v1=1, v2=2, normal=1))
        self.assertEqual(1, self.reads)

    def test_another_one_costs_as_much(self):
        self.costs['v2'] = 10
        self.assertEqual(['v1'], self.latest())
        self.assertEqual(1, self.reads)

    def test_several(self):
        seen = {'v1': 1, 'v2': 1, 'normal': 2}
        self.assertEqual(['v1', 'v2'], self.latest(**seen))
        # Meanwhile somebody else has left.
        self.assertEqual([], self.latest(provider(v1=1, v2=1), **seen))
        self.assertEqual(2, self.reads)

    def test_budgets(self):
        self.preemption.budgets = True
        self.assertEqual(['v1'], self.latest())
        self.assertEqual(1, self.reads)

    def test_a_notice_for_which_there_is_no_time(self):
        """79 s are left: 59 s before the end that has to fit too."""
        self.servers['v1'] = server('v1', notice_s=60)
        self.monotonic = 20
        self.assertEqual(['v1'], self.latest())
        self.monotonic = 21
        self.choice._longest_notice_s = 59
        self.assertEqual(['v2'], self.latest())

    def test_time_passes_while_it_is_chosen(self):
        self.servers['v1'] = server('v1', notice_s=60)
        self.monotonic = 21
        self.assertEqual(['v2'], self.latest())

    def test_too_many_requests_wait(self):
        """Only who needs no notice ends."""
        self.servers['v1'] = server('v1', notice_s=60)
        for _ in range(4):
            self.places.take()
        self.assertEqual(['v2'], self.latest())
        self.places.give_back()
        self.assertEqual(['v2'], self.latest(),
                         'the same request has another answer')

    def test_one_more_may_wait(self):
        self.servers['v1'] = server('v1', notice_s=60)
        for _ in range(3):
            self.places.take()
        self.assertEqual(['v1'], self.latest())
        self.assertFalse(self.places.take())

    def test_no_notice_needs_no_place(self):
        self.assertEqual(['v1'], self.latest())
        for _ in range(4):
            self.assertTrue(self.places.take())

    def test_nova_says_something_else_now(self):
        changed = server('v1', task_state='resize_prep')
        self.assertEqual(['v1'], self.latest())
        self.view.on_node = lambda node: {**self.servers, 'v1': changed}
        option = self.choice.latest(SimpleNamespace(uuid='provider'), False)
        self.assertEqual(['v2'], [victim.uuid for victim in option.victims])
        self.assertEqual(1, self.reads)
