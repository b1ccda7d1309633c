# SPDX-License-Identifier: Apache-2.0
"""Tests that decisions are the same without a cloud."""

import random
from unittest import mock

from nova import context as nova_context
import oslo_messaging as messaging

from nova_preempt.core.scheduling import cost_bound_cache
from nova_preempt.core.scheduling import ranked_hosts
from nova_preempt.core.scheduling import scheduling_cycle
from tests import replay
from tests.functional import base

SEED = 20261122


class TestReplay(base.PreemptionTestCase):
    """Replays decisions of a scheduler from recorded answers.

    Hosts of five sizes, preemptible servers of four, some of which may not
    end, requests of any size for one server or two: whatever comes, a plain
    loop over the recorded answers decides the same, victim for victim.
    """

    explained = 30
    booted = 12

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.recorded = []
        for number, vcpus in enumerate((2, 3, 4, 6, 8)):
            self.add_host(f'host{number}', vcpus, vcpus * 1024, vcpus * 10)
        self.spots = [
            self.create_flavor(f'spot{size}', size, size * 1024, size * 10,
                               preemptible=True) for size in (1, 2)]
        self.spots.append(self.create_flavor(
            'kept', 1, 1024, 10, preemptible=True,
            **{'preemptible:minimum_runtime_s': '3600'}))
        self.normals = [
            self.create_flavor(f'normal{size}', size, size * 1024, size * 5)
            for size in (1, 2, 3, 4, 6)]
        patch = mock.patch.object(
            scheduling_cycle, 'SchedulingCycle', self.record)
        patch.start()
        self.addCleanup(patch.stop)

    def record(self, *args, **kwargs):
        cycle = replay.RecordingCycle(*args, **kwargs)
        self.recorded.append(cycle.record)
        return cycle

    def fill(self):
        for number in range(5):
            for nth in range(2 + number):
                flavor = self.random.choice(self.spots)
                server = self.boot(f'spot-{number}-{nth}', flavor,
                                   host=f'host{number}')
                if self.settle(server)['status'] == 'ACTIVE':
                    self.set_uptime(server, self.random.randrange(20000),
                                    self.now)

    def explain(self, flavor):
        """Ask for a preview; return its outcome."""
        context = nova_context.get_admin_context()
        endpoint = next(item for item in self.scheduler.additional_endpoints
                        if hasattr(item, 'explain'))
        try:
            return endpoint.explain(
                context, flavor=flavor, project_id=self.api.project_id,
                user_id='user', availability_zone=None, host=None)['outcome']
        except messaging.ExpectedException as exc:
            raise exc.exc_info[1] from None

    def choose(self):
        """Return a random server, the same in each run."""
        ids = {server['name']: server['id'] for server in self.servers()
               if server['status'] == 'ACTIVE'}
        return ids[self.random.choice(sorted(ids))]

    def replay(self):
        """Replay all decisions; return those that evicted servers."""
        remembered = cost_bound_cache.CostBoundCache()
        return [plan for record in self.recorded
                for _host, plan in replay.again(record, remembered)
                if plan is not None and plan.victims]

    def test_equal_decisions(self):
        self.fill()
        outcomes = [self.explain(self.random.choice(self.normals))
                    for _ in range(self.explained)]
        for number in range(self.booted):
            server = self.boot(f'normal-{number}',
                               self.random.choice(self.normals))
            outcomes.append(self.settle(server)['status'])
            if number % 3 == 2:
                self.delete(self.choose())
            outcomes.append(self.explain(self.random.choice(self.normals)))
        # All kinds of them, so that something is shown.
        self.assertEqual({'free', 'preempts', 'no_valid_host', 'ACTIVE',
                          'ERROR'}, set(outcomes))
        self.assertLessEqual(self.explained + self.booted,
                             len(self.recorded))
        plans = self.replay()
        decisions = [decision for decision in self.decisions.get_decisions()
                     if decision.victims]
        self.assertGreater(len(decisions), 5)
        self.assertEqual(
            [([victim.server_uuid for victim in decision.victims],
              decision.cost_us, decision.provider_uuid)
             for decision in decisions],
            [([server.uuid for server in plan.victims], plan.cost_us,
              plan.host.uuid) for plan in plans])
        for decision, plan in zip(decisions, plans, strict=True):
            runner_up = decision.record['runner_up']
            self.assertEqual(decision.record['why'], ranked_hosts.explain(
                decision.host, plan, plan.cost_us, runner_up and (
                    runner_up['host'], runner_up['cost_us'])))
