# SPDX-License-Identifier: Apache-2.0
"""Tests of repeated evictions, budgets of projects and groups, and headroom.
"""

import concurrent.futures
import threading
import time

from nova_preempt.embedded import embedded_cloud
from tests.functional import base


class TestRepeats(base.PreemptionTestCase):

    def test_repeated_evictions_choose_other_servers(self):
        self.add_hosts('host1')
        flavor = self.create_flavor('shelvable', 1, 1024, 10,
                                    preemptible=True,
                                    **{'preemptible:action': 'shelve'})
        cheap = self.boot_spot('a', 'host1', 100, flavor)
        dear = self.boot_spot('b', 'host1', 1000, flavor)
        normal = self.boot_normal('n1')['id']
        self.assertEqual({cheap}, self.last_victims())
        self.delete(normal)
        self.api.post_server_action(cheap, {'unshelve': None})
        self.wait(cheap)
        self.set_uptime(cheap, 100, self.now)
        self.scheduler.preemption.known.refresh()
        self.boot_normal('n2')
        self.assertEqual({dear}, self.last_victims())
        self.assertEqual(1000 * 10**6, self.last_decision().cost_us)


class BudgetsTestCase(base.PreemptionTestCase):

    def limit(self, **options):
        """Set budgets; servers count for an hour unless it is said."""
        self.flags(group='preemption', **{'budget_window_s': 3600, **options})
        self.restart_scheduler()

    def make_group(self):
        return {'group': self.api.post_server_groups(
            {'name': 'web', 'policy': 'soft-affinity'})['id']}


class TestProjectBudget(BudgetsTestCase):

    def test_used_up(self):
        """Two servers use it; maximum run times still end servers.
        """
        self.limit(project_budget=2)
        self.add_hosts('host1', 'host2')
        spots = {self.boot_spot(f'{host}-{number}', host, 100)
                 for host in ('host1', 'host2') for number in range(2)}
        body = self._build_server(name='m', image_uuid=embedded_cloud.IMAGE,
                                  flavor_id=self.small, networks='none')
        for count, left in ((3, 4), (2, 2)):
            body.update(min_count=count, max_count=count)
            before = {server['id'] for server in self.servers()}
            self.api.post_server({'server': body})
            for server in self.servers():
                if server['id'] not in before:
                    status = self.settle(server['id'])['status']
                    self.assertEqual('ACTIVE' if left == 2 else 'ERROR',
                                     status)
            self.assertEqual(left, len(spots & self.alive()))
        self.boot_in_vain()
        self.flags(headroom='VCPU:100%', group='preemption')
        engine = self.start_engine()
        engine.run_once()
        self.assertEqual(2, len(spots & self.alive()))
        self.flags(maximum_runtime_s=60, group='preemption')
        engine.run_once()
        for spot in spots:
            self.wait_gone(spot)
        self.wait_consistent()


class TestGroupBudget(BudgetsTestCase):

    def test_used_up(self):
        self.limit(group_budget=1)
        self.add_hosts('host1', 'host2')
        group = self.make_group()
        cheap = self.boot_spot('a', 'host1', 10, hints=group)
        self.boot_spot('b', 'host1', 20, hints=group)
        other = self.boot_spot('c', 'host2', 1000)
        self.boot_normal('n0', host='host2')
        self.boot_normal('n1', host='host1')
        self.assertEqual({cheap}, self.last_victims())
        self.boot_in_vain(host='host1')
        self.boot_normal('n2')
        self.assertEqual({other}, self.last_victims())


class TestHeadroom(BudgetsTestCase):
    """Preemptible servers leave the headroom free."""

    def boot_closed_out(self, name='late', flavor=None, **kwargs):
        server = self.boot(name, flavor or self.spot, **kwargs)
        exc = self.assertRaises(embedded_cloud.CloudError, self.wait, server)
        self.assertIn('No valid host', str(exc))
        self.api.delete_server(server)
        self.wait_gone(server)

    def test_headroom_is_not_filled_again(self):
        self.limit(headroom='VCPU:50%')
        self.add_hosts('host1')
        spot = self.boot_spot('a', 'host1', 100)
        self.boot_closed_out(host='host1')
        self.boot_closed_out()
        # There is nothing to do for the engine.
        self.start_engine().run_once()
        self.assertEqual([], self.decisions.get_decisions())
        normal = self.boot_normal()['id']
        self.assertEqual({spot, normal}, self.alive())
        self.boot_closed_out()
        self.wait_consistent()
        self.add_hosts('host2')
        larger = self.create_flavor('larger-spot', 2, 2048, 20,
                                    preemptible=True)
        self.assertEqual('ACTIVE', self.act(spot, 'resize', {
            'flavorRef': larger})['status'])
        self.assertEqual('VERIFY_RESIZE', self.act(
            normal, 'resize', {'flavorRef': self.big})['status'])

    def test_headroom_of_an_aggregate(self):
        self.add_hosts('host1', 'host2')
        self.add_aggregate('spare', ['host2'], **{
            'preemptible:headroom': 'MEMORY_MB:1024'})
        self.boot_spot('a', 'host2')
        self.boot_closed_out(host='host2')
        self.boot_spot('b', 'host1')
        self.boot_spot('c', 'host1')
        self.boot_closed_out()

    def test_several_servers_of_a_request(self):
        """Each server of a request reduces the budget for the next."""
        self.limit(headroom='VCPU:1')
        self.add_hosts('host1', 'host2')
        body = self._build_server(name='m', image_uuid=embedded_cloud.IMAGE,
                                  flavor_id=self.spot, networks='none')
        body.update(min_count=4, max_count=4)
        self.api.post_server({'server': body})
        for server in self.servers():
            self.assertEqual('ERROR', self.settle(server['id'])['status'])
            self.delete(server['id'])
        body.update(min_count=3, max_count=3)
        self.api.post_server({'server': body})
        for server in self.servers():
            self.assertEqual('ACTIVE', self.settle(server['id'])['status'])

    def test_returns_leave_the_headroom_free(self):
        flavor = self.create_flavor(
            'shelvable', 1, 1024, 10, preemptible=True,
            **{'preemptible:action': 'shelve', 'preemptible:restore': 'true'})
        self.add_hosts('host1')
        back = self.boot_spot('a', 'host1', 100, flavor)
        stays = self.boot_spot('b', 'host1', 1000)
        normal = self.boot_normal()['id']
        self.limit(headroom='VCPU:50%')
        engine = self.start_engine()
        self.delete(normal)
        engine.run_once()
        self.assertEqual('SHELVED_OFFLOADED',
                         self.api.get_server(back)['status'])
        self.delete(stays)
        engine.run_once()
        self.wait(back)
        self.wait_consistent()


class TestConcurrency(BudgetsTestCase):
    """Threads and two schedulers: no budget is ever exceeded."""

    hosts = 3
    requests = 5
    budget = 2

    def setUp(self):
        super().setUp()
        self.flags(service_down_time=3600)

    def start_second(self):
        # Nova's tests have but one; here two take turns at one RPC topic.
        self._service_fixture_count['scheduler'] = 0
        second = self.start_service('scheduler', host='scheduler2')
        second.manager.clock = self.clock

    def boot_all(self, count, flavor=None):
        most = [0]
        stop = threading.Event()

        def watch():
            while not stop.is_set():
                most[0] = max(most[0], len(self.decisions.get_ending()))
                time.sleep(0.01)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            with concurrent.futures.ThreadPoolExecutor(count) as pool:
                servers = list(pool.map(
                    lambda number: self.boot(f'n{number}',
                                             flavor or self.small),
                    range(count)))
                found = list(pool.map(self.settle, servers))
        finally:
            stop.set()
            watcher.join()
        return most[0], [server['status'] for server in found]

    def fill(self, **extra_specs):
        flavor = self.create_flavor('ends', 1, 1024, 10, preemptible=True,
                                    **extra_specs)
        self.add_hosts(*(f'host{number}' for number in range(self.hosts)))
        return {self.boot_spot(f's{number}', f'host{number // 2}',
                               60 * number + 1, flavor)
                for number in range(2 * self.hosts)}

    def test_with_a_window(self):
        self.limit(project_budget=self.budget)
        self.start_second()
        spots = self.fill()
        most, statuses = self.boot_all(self.requests)
        self.assertLessEqual(most, self.budget)
        self.assertEqual(self.budget, statuses.count('ACTIVE'))
        self.assertEqual(len(spots) - self.budget,
                         len(spots & self.alive()))
        self.wait_consistent()

    def test_in_flight(self):
        self.limit(project_budget=self.budget, budget_window_s=0)
        self.start_second()
        spots = self.fill(**{'preemptible:notice_s': '3'})
        most, statuses = self.boot_all(self.requests)
        self.assertEqual(self.budget, most)
        placed = statuses.count('ACTIVE')
        self.assertGreaterEqual(placed, self.budget)
        self.assertEqual(len(spots) - placed, len(spots & self.alive()))
        self.wait_consistent()

    def test_headroom(self):
        """Threads of a scheduler never share the same capacity."""
        self.limit(headroom='VCPU:50%')
        self.add_hosts('host1', 'host2', 'host3')
        _most, statuses = self.boot_all(self.requests, self.spot)
        self.assertEqual(3, statuses.count('ACTIVE'))
