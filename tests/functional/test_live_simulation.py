# SPDX-License-Identifier: Apache-2.0
"""Tests that the simulator agrees with a cloud."""

import dataclasses
import datetime
import random

import fixtures
from nova import context as nova_context
from nova.conf import CONF

from nova_preempt.core.model import SECOND, Inventory
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.core.reservation import reservation_model
from nova_preempt.handover import eviction_policy
from nova_preempt.reservation import lease_cache
from nova_preempt.reservation import reservation_scheduler
from nova_preempt.simulator import simulation
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator.traces import trace_model
from tests.functional import base
from tests.functional import test_reservations
from tests.unit.simulator import small
from tests.unit.simulator import test_simulated_reservations

SEED = 20261123
EVENTS = 26
_SECOND = datetime.timedelta(seconds=1)

#: No two hosts ever have the same memory free, so that it is always known
#: which comes first: Nova leaves the order of equal ones to chance.
HOSTS = {f'host{number}': (vcpus, vcpus * 1024 + 32 * number, vcpus * 10)
         for number, vcpus in enumerate((4, 6, 8))}


AT_ONCE = small.delays.Delays(**{
    name: small.delays.Delay('constant:0') for name in (
        'boot', 'delete', 'shelve', 'stop', 'unshelve', 'migrate')})


def make_kinds():
    """Return the hosts for the simulator."""
    return tuple(
        simulation_settings.HostKind(name, 1, {
            rc: Inventory(total) for rc, total in zip(
                ('VCPU', 'MEMORY_MB', 'DISK_GB'), amounts, strict=True)})
        for name, amounts in HOSTS.items())


class TestLiveSimulation(base.PreemptionTestCase):
    """An afternoon, recorded and simulated: the same hosts and victims."""

    def setUp(self):
        super().setUp()
        self.flags(group='filter_scheduler', weight_classes=[
            'nova.scheduler.weights.ram.RAMWeigher',
            'nova_preempt.scheduler.weights.all_weighers'])
        self.restart_scheduler()
        self.random = random.Random(SEED)
        for name, amounts in HOSTS.items():
            self.add_host(name, *amounts)
        self.begin = self.now
        self.kinds = {
            (size, spot): self.create_flavor(
                f'{"spot" if spot else "normal"}{size}', size, size * 1024,
                size * 5, preemptible=spot)
            for size in (1, 2, 3) for spot in (True, False)}
        self.ids = {}            # name: uuid
        self.trace, self.happened = [], []

    def at_us(self):
        return (self.now - self.begin) // datetime.timedelta(
            microseconds=1)

    def boot_one(self, name):
        size = self.random.choice((1, 1, 2, 3))
        spot = self.random.random() < 0.6
        self.trace.append(trace_model.Boot(
            self.at_us(), name, {'VCPU': size, 'MEMORY_MB': size * 1024,
                                 'DISK_GB': size * 5}, '',
            'preemptible' if spot else 'normal'))
        server = self.settle(self.boot(name, self.kinds[size, spot]))
        if server['status'] == 'ERROR':
            self.happened.append((name, None, ()))
            self.delete(server['id'])
            return
        if spot:
            self.set_uptime(server['id'], 0, self.now)
        self.ids[name] = server['id']
        names = {uuid: name for name, uuid in self.ids.items()}
        victims = sorted(
            names[victim.server_uuid] for decision
            in self.decisions.get_decisions(server_uuid=server['id'])
            for victim in decision.victims)
        self.happened.append((name, server['OS-EXT-SRV-ATTR:host'],
                              tuple(victims)))
        for victim in victims:
            self.wait_gone(self.ids.pop(victim))

    def delete_one(self):
        name = self.random.choice(sorted(self.ids))
        self.trace.append(trace_model.End(self.at_us(), name))
        self.delete(self.ids.pop(name))

    def simulate(self):
        """Return ``happened`` of the simulator."""
        records = []
        simulation.Simulation(
            simulation_settings.CloudSetting(make_kinds(), delays=AT_ONCE),
            small.options(notice=NoticeRule(0)), 0, records.append).run(
                self.trace, self.at_us() + SECOND)
        found = {}
        for item in records:
            if item['event'] == 'refused':
                found[item['id']] = (item['id'], None, ())
            elif item['event'] in ('placed', 'preempted'):
                found[item['id']] = (
                    item['id'], item['host'].rpartition('-')[0],
                    tuple(sorted(item.get('victims', ()))))
        return [found[event.id] for event in self.trace
                if isinstance(event, trace_model.Boot)]

    def test_the_simulation_agrees_with_the_cloud(self):
        for number in range(EVENTS):
            if self.ids and self.random.random() < 0.15:
                self.delete_one()
            else:
                self.boot_one(f's{number:02}')
            # No two have lost as much: what costs the same is in any order.
            self.now += self.random.randrange(180, 1020) * _SECOND
        self.assertEqual(self.happened, self.simulate())
        # All kinds of it, so that something is shown.
        self.assertTrue(any(victims for _, _, victims in self.happened))
        self.assertTrue(any(host is None for _, host, _ in self.happened))


class TestLiveReservation(test_reservations.ReservationTestCase):
    """A reservation from its grant to its end, recorded and simulated."""

    start_s, for_s = 9000, 3600

    def setUp(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova_preempt.reservation.lease_cache.PAUSE_S', 0))
        super().setUp()
        self.flags(group='filter_scheduler', enabled_filters=[
            *CONF.filter_scheduler.enabled_filters, 'ReservationFilter'],
            weight_classes=[
                'nova.scheduler.weights.ram.RAMWeigher',
                'nova_preempt.scheduler.weights.all_weighers'])
        self.restart_scheduler()
        for name, amounts in HOSTS.items():
            self.add_host(name, *amounts)
        self.begin = self.now
        self.ids, self.trace, self.happened = {}, [], []

    def at_us(self):
        return (self.now - self.begin) // datetime.timedelta(
            microseconds=1)

    def go_to(self, at_s):
        self.now = self.begin + at_s * _SECOND

    def boot_one(self, at_s, name, size, spot=False, own=False):
        """Boot a server; record its host and its victims."""
        self.go_to(at_s)
        lease_cache.current(CONF).refresh()
        self.trace.append(trace_model.Boot(
            self.at_us(), name, {'VCPU': size, 'MEMORY_MB': size * 1024,
                                 'DISK_GB': size * 5}, '',
            'preemptible' if spot else 'normal', project=self.project,
            reservation='r' if own else ''))
        server = self.settle(self.boot(name, self.create_flavor(
            name, size, size * 1024, size * 5, preemptible=spot),
            hints={'reservation': self.reservation} if own else None))
        uuid = self.ids[name] = server['id']
        if server['status'] == 'ERROR':
            self.happened.append((name, None))
            return
        if spot:
            self.set_uptime(uuid, 0, self.now)
        self.happened.append((name, server['OS-EXT-SRV-ATTR:host']))
        self.note_ends()

    def note_ends(self):
        """Record servers that have ended or moved since."""
        names = {uuid: name for name, uuid in self.ids.items()}
        there = {names[server['id']]: server['OS-EXT-SRV-ATTR:host']
                 for server in self.servers() if server['status'] != 'ERROR'}
        before = dict(self.happened)
        self.happened += sorted(
            (name, there.get(name)) for name, host in before.items()
            if name in self.ids and host is not None
            and there.get(name) != host)

    def look_at(self, at_s, condition, what):
        self.go_to(at_s)
        self.look_until(condition, what)
        self.note_ends()

    def simulate(self):
        """Return ``happened`` of the simulator."""
        records = []
        options = small.options(
            notice=NoticeRule(0), reservations=dataclasses.replace(
                test_simulated_reservations.RESERVATIONS, end_action='delete',
                guard=eviction_policy.get_guard(
                    CONF.preemption, CONF.reservation.guard_s)))
        simulation.Simulation(
            simulation_settings.CloudSetting(make_kinds(), delays=AT_ONCE),
            options, 0, records.append).run(self.trace, self.at_us() + SECOND)
        found = []
        for item in records:
            host = item.get('host', '').rpartition('-')[0] or None
            event, name = item['event'], item['id']
            if event == 'reservation granted':
                found.append((name, tuple(
                    host.rpartition('-')[0] for host in item['on'])))
            elif event == 'refused':
                found.append((name, None))
            elif event in ('placed', 'preempted', 'moved'):
                found.append((name, host))
            elif event in ('deleted', 'cleared'):
                found.append((name, None))
        return found

    def test_the_simulated_reservation_agrees_with_the_cloud(self):
        self.reservation = None
        for number, (size, spot) in enumerate((
                (2, False), (2, True), (2, True), (2, True), (2, True))):
            self.boot_one(300 * number, f's{number}', size, spot)
        self.go_to(1800)
        query = ['>=', '$inventory.VCPU', 8]
        made = reservation_scheduler.ReservationScheduler(CONF, self.db,
                                                          self.serve(),
                                                          self.naive)
        granted = made.create(
            nova_context.get_admin_context(), self.project, 'user',
            reservation_scheduler.Request(
                query, 1, self.for_s, self.naive(self.start_s - 1800),
                end_action='delete'))
        self.reservation = granted.uuid
        self.trace.append(trace_model.Reserve(
            self.at_us(), 'r', 1, self.start_s, None, self.for_s, query,
            self.project, 'delete'))
        self.happened.append(('r', granted.held))
        # Before the guard it may still go there, then no more.
        self.boot_one(2000, 'before', 1)
        self.boot_one(self.start_s - 3600, 'guarded', 1)
        self.boot_one(self.start_s - 3000, 'early', 1, own=True)
        (host,) = granted.held
        self.look_at(self.start_s - 900, lambda: not self.on(host) - {
            self.ids[name] for name in self.ids if self.is_spot(name)},
            'normal servers to move')
        self.look_at(self.start_s - 150, lambda: not self.on(host),
                     'the host to be empty')
        self.look_at(self.start_s, lambda: self.reservations.get(
            self.reservation).status == reservation_model.ACTIVE,
            'it to begin')
        self.boot_one(self.start_s + 60, 'own', 3, own=True)
        self.boot_one(self.start_s + 120, 'other', 3)
        self.look_at(
            self.start_s + self.for_s, lambda: self.reservations.get(
                self.reservation).released_at, 'the host to be released')
        self.boot_one(self.start_s + self.for_s + 60, 'after', 3)
        self.assertEqual(self.in_order(self.happened),
                         self.in_order(self.simulate()))
        events = dict(self.happened)
        self.assertIsNone(events['early'])
        self.assertIsNone(events['own'])
        self.assertEqual(('host2',), events['r'])

    def is_spot(self, name):
        return any(event.id == name and event.class_name == 'preemptible'
                   for event in self.trace
                   if isinstance(event, trace_model.Boot))

    @staticmethod
    def in_order(happened):
        """Return the events of each server."""
        found = {}
        for name, what in happened:
            found.setdefault(name, []).append(what)
        return found
