# SPDX-License-Identifier: Apache-2.0
"""Sixteen threads and two schedulers boot into a full cloud."""

import concurrent.futures
import threading

import fixtures

from nova_preempt.db import decisions
from nova_preempt.embedded import embedded_cloud
from tests.functional import base


class TestConcurrentBoots(base.PreemptionTestCase):
    """The tests in tests/slow do the same with more servers."""

    #: How many ask at once.
    threads = 4
    #: (hosts, slots of each) to be emptied in part, and of which there are
    #: too few.
    large = 2, 3
    scarce = 1, 3
    #: Hosts of two victims of two slots each.
    doubles = 2

    def setUp(self):
        super().setUp()
        # Whether a machine is fast is not the question here.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_preempt.embedded.embedded_cloud.TIMEOUT_S', 600))
        self.flags(service_down_time=3600)
        self.flags(termination_timeout_s=600, group='preemption')
        self.clock = lambda: self.now
        # Nova's tests have but one; here two take turns at one RPC topic.
        self._service_fixture_count['scheduler'] = 0
        self.second = self.start_service('scheduler', host='scheduler2')
        self.second.manager.clock = self.clock
        self.failures = []

    def fill(self, hosts, slots):
        """Fill hosts with preemptible servers, and watch Placement."""
        spots = []
        for number in range(hosts):
            name = f'host{number}'
            self.add_host(name, slots, slots * 1024, slots * 10)
            flavor = self.spot
            for slot in range(slots):
                spots.append(self.boot(f's{number}-{slot}', flavor,
                                       host=name))
        for number, spot in enumerate(spots):
            self.wait(spot)
            self.set_uptime(spot, 60 * number + 1, self.now)
        return spots

    def watch(self, stop):
        capacities = self.capacities()
        # A server takes longer than this to be built, let alone to end.
        while not stop.wait(0.1):
            for host, allocations in self.allocations().items():
                used = {}
                for resources in allocations.values():
                    for name, amount in resources.items():
                        used[name] = used.get(name, 0) + amount
                for name, amount in used.items():
                    if amount > capacities[host][name]:
                        self.failures.append((host, name, amount))

    def boot_all(self, count, flavor):
        stop = threading.Event()
        watcher = threading.Thread(target=self.watch, args=(stop,))
        watcher.start()
        try:
            with concurrent.futures.ThreadPoolExecutor(self.threads) as pool:
                servers = list(pool.map(
                    lambda number: self.boot(f'n{number}', flavor),
                    range(count)))
                return list(pool.map(self.outcome, servers))
        finally:
            stop.set()
            watcher.join()

    def outcome(self, server):
        """The server's id once it is built, None for NoValidHost."""
        try:
            return self.wait(server)['id']
        except embedded_cloud.CloudError as exc:
            self.assertIn('No valid host was found', str(exc))
            # Nova lists it as being built a moment longer.
            self.wait_failed(server)
            return None

    def assert_outcome(self, spots, placed, victims):
        self.assertEqual([], self.failures)
        self.assert_consistent()
        left = {server['id'] for server in self.servers()}
        gone = set(spots) - left
        self.assertEqual(victims, len(gone))
        recorded = [
            victim.server_uuid
            for decision in self.decisions.get_decisions(
                statuses=[decisions.DONE])
            for victim in decision.victims]
        self.assertEqual(sorted(gone), sorted(recorded))
        self.assertEqual(placed, len(left - set(spots)) - sum(
            server['status'] == 'ERROR' for server in self.servers()))

    def test_room_for_all(self):
        spots = self.fill(*self.large)
        placed = self.boot_all(self.threads, self.small)
        self.assertNotIn(None, placed)
        self.assert_outcome(spots, placed=self.threads, victims=self.threads)

    def test_more_than_there_is_room_for(self):
        spots = self.fill(*self.scarce)
        placed = self.boot_all(self.threads, self.small)
        self.assertEqual(self.threads - len(spots), placed.count(None))
        self.assert_outcome(spots, placed=len(spots), victims=len(spots))

    def test_no_more_victims_than_needed(self):
        """Victims of two slots for servers of one."""
        self.spot = self.create_flavor('spot2', 2, 2048, 20,
                                       preemptible=True)
        spots = []
        for number in range(self.doubles):
            name = f'host{number}'
            self.add_host(name, 4, 4096, 40)
            spots += [self.boot(f's{number}-{slot}', self.spot, host=name)
                      for slot in range(2)]
        for number, spot in enumerate(spots):
            self.wait(spot)
            self.set_uptime(spot, 60 * number + 1, self.now)
        placed = self.boot_all(2 * self.doubles, self.small)
        self.assertNotIn(None, placed)
        self.assertEqual([], self.failures)
        self.assert_consistent()
        gone = set(spots) - {server['id'] for server in self.servers()}
        self.assertLessEqual(len(gone), self.doubles + 1)
