# SPDX-License-Identifier: Apache-2.0
"""Sixty requests at once on twelve hosts with other users."""

import collections
import dataclasses
import functools
import random
import threading

import fixtures
import nova.conf

from nova_preempt.cloud import nova_as_user
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import dispatch_values
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.backlog import shortfalls

# Nova's fixtures do not let numpy and scipy be imported any more.
from nova_preempt.core.batch import batch_placement  # noqa: F401 (see above)
from nova_preempt.embedded import embedded_cloud
from tests.functional import test_backlog
from tests.unit.core.backlog import base

HOSTS = {f'h{number:02}': size for number, size in enumerate(
    4 * ((4, 8192, 80), (8, 8192, 120), (4, 16384, 100)))}
FLAVORS = ((1, 512, 5), (1, 2048, 10), (2, 2048, 10), (2, 4096, 20),
           (4, 4096, 30))
# (Policy, how many on a host, {number of a request: how many servers}).
GROUPS = (
    ('affinity', 0, {0: 2, 9: 1}), ('affinity', 0, {10: 1, 14: 2}),
    ('anti-affinity', 1, {1: 1, 3: 2, 6: 1, 13: 1}),
    ('anti-affinity', 2, {2: 2, 7: 3, 19: 1}),
)
OTHER = ('h00', 'h01', 'h04', 'h05', 'h08', 'h09')


class TestSixty(test_backlog.BacklogTestCase):

    def setUp(self):
        super().setUp()
        for name, size in HOSTS.items():
            self.add_host(name, *size)
        # The one that all others here begin with.
        service, = self.api.get_services(binary='nova-compute', host='host1')
        self.api.put_service(service['id'], {'status': 'disabled'})
        self.flags(group='backlog', batch_mode='exact', pass_interval_s=75)
        self.useFixture(fixtures.MockPatchObject(
            dispatch_values, 'Options', functools.partial(
                dispatch_values.Options, most_of_project=100)))
        self.engine = self.start_engine()
        self.flavors = [self.create_flavor(f'f{number}', *size)
                        for number, size in enumerate(FLAVORS)]

    def leave_all(self):
        """60 of five flavors: five spread over hosts, some in groups."""
        chance = random.Random(15)
        self.groups = {self.user_group(policy, most): (policy, most)
                       for policy, most, _counts in GROUPS}
        named = {number: (group, count)
                 for group, (_policy, _most, counts)
                 in zip(self.groups, GROUPS, strict=True)
                 for number, count in counts.items()}
        uuids = []
        for number in range(60):
            values = {}
            if number % 12 == 5:
                values = {'count': 3, 'apart': True}
            elif number in named:
                group, count = named[number]
                values = {'count': count, 'body': {
                    'server': {'name': 'x', 'imageRef': embedded_cloud.IMAGE,
                               'networks': 'none'},
                    'os:scheduler_hints': {'group': group}}}
            flavor = 0 if 'body' in values else chance.randrange(5)
            uuids.append(self.leave(self.flavors[flavor], **values))
            # One after the other, or their random uuids decide.
            self.pass_time(1)
        return uuids

    def user_group(self, policy, most):
        """The id of a new group of the user."""
        trust = self.trusts.create('', test_backlog.PROJECT,
                                   test_backlog.USER, [])
        user = nova_as_user.UserNova(
            self.trusts.session(trust), nova.conf.CONF, 60)
        group = {'name': f'{policy}{most}', 'policy': policy}
        if most:
            group['rules'] = {'max_server_per_host': most}
        answer = user._call('POST', '/os-server-groups', '2.64',
                            json={'server_group': group})
        return answer.json()['server_group']['id']

    def test_sixty_requests(self):
        uuids = self.leave_all()
        beside = [threading.Thread(target=self.boot, args=(
            f'other{number}', self.flavors[2]), kwargs={'host': host})
            for number, host in enumerate(OTHER)]
        for thread in beside:
            thread.start()
        self.step()
        for thread in beside:
            thread.join()
        self.settle_all(uuids)
        requests = {uuid: self.get(uuid) for uuid in uuids}
        shown = {server['id']: server for server in self.servers()
                 if server['status'] != 'ERROR'}
        self.assertEqual({'ACTIVE'}, {
            server['status'] for server in shown.values()})
        at = {uuid: server['OS-EXT-SRV-ATTR:host']
              for uuid, server in shown.items()}
        self.check_claims(at)
        self.check_groups(requests, at)
        self.check_none_twice(requests, at)
        placed = sum(len(item.servers) for item in requests.values())
        self.assertGreaterEqual(placed, self.one_by_one(uuids, at))
        self.wait_consistent()

    def settle_all(self, uuids):
        """Run passes until all requests run or have been tried."""
        def settled():
            self.step()
            self.pass_time(30)
            return all(
                item.state == backlog_model.ACTIVE
                or (item.state == backlog_model.WAITING
                    and item.waits_for['code']
                    in (shortfalls.ROOM, shortfalls.GROUP))
                for item in map(self.get, uuids))

        self.wait_for(settled, 'all to run or to wait for room')

    def check_claims(self, at):
        """Check that each server has its allocation, and no host too much."""
        found, capacities = self.allocations(), self.capacities()
        where = {uuid: host for host, claims in found.items()
                 for uuid in claims}
        self.assertEqual(at, where)
        for host, claims in found.items():
            used = collections.Counter()
            for resources in claims.values():
                used.update(resources)
            for name, amount in used.items():
                self.assertLessEqual(amount, capacities[host][name], host)

    def check_groups(self, requests, at):
        """Check the policy of each group, over all of its requests."""
        apart = 0
        there = collections.defaultdict(collections.Counter)
        for item in requests.values():
            hosts = [at[server.uuid] for server in item.servers]
            if item.apart and hosts:
                self.assertEqual(3, len(set(hosts)))
                apart += 1
            there[group_placement.group_hint(item)].update(hosts)
        self.assertLessEqual(1, apart)
        for group, (policy, most) in self.groups.items():
            # Of more than one request, or nothing is shown.
            self.assertLess(1, sum(
                bool(item.servers) for item in requests.values()
                if group_placement.group_hint(item) == group))
            if policy == group_placement.AFFINITY:
                self.assertEqual(1, len(there[group]))
            else:
                self.assertLessEqual(max(there[group].values()), most)

    def check_none_twice(self, requests, at):
        known = [server.uuid for item in requests.values()
                 for server in item.servers]
        self.assertEqual(len(known), len(set(known)))
        others = set(at) - set(known)
        self.assertLessEqual(len(others), len(OTHER))
        for item in requests.values():
            self.assertLessEqual(len(item.servers), item.count)

    def one_by_one(self, uuids, at):
        """Return how many would have started one by one."""
        own = {server.uuid for uuid in uuids
               for server in self.get(uuid).servers}
        capacities = self.capacities()
        rooms = []
        for host, claims in self.allocations().items():
            if host in HOSTS:
                free = collections.Counter(capacities[host])
                for uuid, resources in claims.items():
                    if uuid not in own:
                        free.subtract(resources)
                rooms.append(
                    host_capacity.HostCapacity(host, dict(free), dict(free),
                                                capacities[host]))
        requests = [self.fresh(self.get(uuid)) for uuid in uuids]
        return sum(start.count for start in base.decide(
            requests, rooms, self.at(), dispatch.Options()).starts)

    @staticmethod
    def fresh(item):
        return dataclasses.replace(
            item, servers=(), boots=(), next_try_at=None)
