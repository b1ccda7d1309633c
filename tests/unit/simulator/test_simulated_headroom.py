# SPDX-License-Identifier: Apache-2.0
"""Space that is kept free, and how many may end for that."""

import random
import unittest

from nova_preempt.core import headroom_account
from nova_preempt.core.model import Inventory
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.simulator import indexed_cloud
from nova_preempt.simulator import simulated_headroom
from nova_preempt.simulator import simulation_settings
from tests.unit.simulator import small


def simulated(*trace, hosts=1, wanted='VCPU:2', terms=None, **values):
    return small.simulated(
        small.cloud(hosts, terms=terms),
        small.options(headroom=headroom_account.parse(wanted), **values),
        *trace, until_s=500)[0]


class TestCloud(unittest.TestCase):

    def test_as_a_group_that_looks_at_each_host(self):
        chance = random.Random(1)
        there = indexed_cloud.IndexedCloud(
            host for size in (4, 8) for host in simulation_settings.HostKind(
                f'h{size}', 3, {'VCPU': Inventory(size), 'MEMORY_MB':
                                Inventory(900, 100, allocation_ratio=1.5)}
            ).hosts())
        wanted = headroom_account.parse('VCPU:20%,MEMORY_MB:700,DISK_GB:5')
        group = simulated_headroom.CloudGroup(
            'all', wanted, simulated_headroom.HostProviders(there))
        held = []
        rooms = set()
        for number in range(60):
            if held and chance.random() < 0.4:
                there.take_away(*held.pop(chance.randrange(len(held))))
            else:
                # More than there is, too.
                host = chance.choice(sorted(there.hosts.values(),
                                            key=lambda host: host.name))
                there.put(host, f's{number}', {
                    'VCPU': chance.randrange(4),
                    'MEMORY_MB': chance.randrange(500)})
                held.append((host, f's{number}'))
            plain = headroom_account.HostGroup('all', wanted, dict(
                group.nodes))
            self.assertEqual(plain.spare(), group.spare())
            self.assertEqual(plain.missing({'VCPU': 2}),
                             group.missing({'VCPU': 2}))
            self.assertEqual(plain.uuids(), group.uuids())
            asked = {'VCPU': chance.randrange(6), 'MEMORY_MB': 100}
            room = headroom_account.HeadroomAccount([plain]).has_room(asked)
            account = headroom_account.HeadroomAccount([group])
            self.assertEqual(room, account.has_room_on(
                asked, there.providers_with(asked)))
            rooms.add(room)
        self.assertEqual({True, False}, rooms)


class TestHeadroom(unittest.TestCase):

    def test_preemptible_servers_leave_it_free(self):
        self.assertEqual(
            ['1 placed p', '2 placed q', '3 refused r', '3 placed n',
             '11 active p', '12 active q', '13 active n', '20 notice q'],
            simulated(small.boot(1, 'p', spot=True),
                      small.boot(2, 'q', spot=True),
                      small.boot(3, 'r', spot=True), small.boot(3, 'n'),
                      notice=NoticeRule(1000)))

    def test_servers_are_evicted_before_demand(self):
        """The cheapest victims are evicted, so that n need not wait."""
        self.assertEqual(
            ['0 placed p', '0 placed q', '10 active p', '10 active q',
             '15 placed n', '20 notice p', '25 active n', '52 deleted p'],
            simulated(small.boot(0, 'p', spot=True),
                      small.boot(0, 'q', spot=True), small.boot(15, 'n')))

    def test_sufficient_headroom_spares_victims(self):
        self.assertEqual(
            ['20 notice p', '50 kept p'],
            [line for line in simulated(
                small.boot(0, 'p', spot=True), small.boot(0, 'q', spot=True),
                small.boot(15, 'n'), small.end(40, 'n'))
             if line.endswith(' p')][2:])

    def test_headroom_is_read_periodically(self):
        """Freed space shows with the next reading."""
        found = simulated(
            small.boot(0, 'p', 2, spot=True, for_s=10),
            small.boot(21, 'q', 2, spot=True), max_age_s=30)
        self.assertIn('21 refused q', found)
        found = simulated(
            small.boot(0, 'p', 2, spot=True, for_s=10),
            small.boot(21, 'q', 2, spot=True), max_age_s=5)
        self.assertIn('21 placed q', found)

    def test_shelved_ones_do_not_come_back_into_it(self):
        terms = simulation_settings.PreemptibleTerms(action='shelve',
                                                     restore=True)
        found = simulated(
            small.boot(0, 'p', 2, spot=True), small.boot(15, 'n', 2),
            small.end(200, 'n'), terms=terms)
        self.assertEqual(
            ['20 notice p', '220 back p'],
            [line for line in found if 'notice' in line or 'back' in line])


class TestBudgets(unittest.TestCase):

    def ends(self, *trace, **values):
        found = small.simulated(small.cloud(2), small.options(
            notice=NoticeRule(0), **values), *trace, until_s=2000)[0]
        return [line for line in found if 'notice' in line
                or 'refused' in line]

    def trace(self, **values):
        return (*(small.boot(number, f'p{number}', 4, spot=True, **values)
                  for number in range(2)),
                small.boot(100, 'n0', 4), small.boot(101, 'n1', 4),
                small.boot(300, 'n2', 4))

    def test_budget_of_a_group(self):
        self.assertEqual(
            ['100 notice p1', '101 notice p0', '300 refused n2'],
            self.ends(*self.trace()))
        self.assertEqual(
            ['100 notice p1', '101 refused n1', '300 notice p0'],
            self.ends(*self.trace(group='g'), group_budget=1))

    def test_ended_servers_count_for_the_window(self):
        self.assertEqual(
            ['100 notice p1', '101 refused n1', '300 refused n2'],
            self.ends(*self.trace(group='g'), group_budget=1,
                      budget_window_s=300))
