# SPDX-License-Identifier: Apache-2.0
"""Hosts of the embedded cloud are powered off and on."""

import datetime
import json
import os
import threading
from unittest import mock

import fixtures
from nova import objects

from nova_preempt.cloud import placement_api
from nova_preempt.cmd import engine as cmd_engine
from nova_preempt.core.energy import energy_observation
from nova_preempt.core.energy import power_steps
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import calendar_changes
from nova_preempt.db import energy_store
from nova_preempt.db import reservation_rows as rows
from nova_preempt.embedded import embedded_cloud
from nova_preempt.power import driver
from nova_preempt.power import power_errors
from tests.functional import base
from tests.unit.power import emulator

ON, EMPTYING, SLEEPING, ASLEEP, WAKING, FAILED = power_steps.STATES


class Machines:
    """Machines of the embedded cloud, each a nova-compute.

    To power one off is to stop it, as the shutdown of a host does. Nova sees
    what it sees then: no more reports, and no answers.
    """

    def __init__(self, case):
        self._case = case
        # Fixtures know one thread only.
        self._lock = threading.Lock()
        self.off = {}         # name: its stopped service
        self.broken = set()   # those that never come up
        self.calls = []

    def is_on(self, host):
        return host not in self.off

    def switch_off(self, host):
        raise power_errors.PowerError(host, 'a shutdown is enough')

    def shut_down(self, host):
        with self._lock:
            self.calls.append(('off', host))
            if host not in self.off:
                self.off[host] = self._case.computes.pop(host)
                self.off[host].stop()

    def power_on(self, host):
        with self._lock:
            self.calls.append(('on', host))
            if host in self.broken:
                raise power_errors.PowerError(host,
                                              'its power supply is broken')
            if host in self.off:
                del self.off[host]
                self._case._start_compute(host)


class Controlled(Machines):
    """Machines whose controllers are those of a Redfish service."""

    def __init__(self, case, drivers):
        super().__init__(case)
        self._drivers = drivers

    def is_on(self, host):
        return self._drivers.is_on(host)

    def shut_down(self, host):
        self._drivers.shut_down(host)
        super().shut_down(host)

    def power_on(self, host):
        self._drivers.power_on(host)
        super().power_on(host)


class EnergyTestCase(base.PreemptionTestCase):

    HOSTS = ('host1', 'host2', 'host3', 'host4')

    def setUp(self):
        super().setUp()
        # Real ones, but nobody wants to wait for them.
        self.flags(report_interval=1)
        self.useFixture(fixtures.MonkeyPatch(
            'nova.servicegroup.api.INITIAL_REPORTING_DELAY', 0.1))
        self.flags(group='energy', enabled=True, spare_hosts=0,
                   max_sleeps_per_minute=10)
        self.useFixture(fixtures.MockPatchObject(
            energy_observation, 'BOOT_TIME_S', 120))
        self.add_hosts(*self.HOSTS)
        self.machines = self.make_machines()
        self.start_engine()

    def make_machines(self):
        return Machines(self)

    def start_engine(self):
        if hasattr(self, 'engine'):
            # The lock of a process that is gone is free.
            self.engine._leadership.close()
        self.engine = cmd_engine.make_engine(
            cmd_engine.CONF, lambda: self.scheduler.host_manager.cells,
            lambda: self.now, self.machines,
            monotonic=lambda: self.now.timestamp())
        # As before each look of its own: threads would race for it.
        self.assertTrue(self.engine._leadership.holds())
        self.addCleanup(self.engine.evictions.close)
        self.addCleanup(self.engine._leadership.close)
        self.addCleanup(self.engine.parts.process.close)
        self.addCleanup(self.engine.power.close)

    # -- time goes by ----------------------------------------------------

    def tick(self, seconds=10):
        """Advance the clock and run the engine once."""
        self.now += datetime.timedelta(seconds=seconds)
        self.engine.power.control.step()
        self.engine.power.switcher.wait()

    def minutes(self, number):
        """Wait for a number of notes and samples."""
        for _ in range(number):
            self.tick(60)
            self.engine.power.observer.observe()

    def until_asleep(self, *names):
        """Let idle hosts be powered off, these and no others."""
        self.tick(0)
        self.minutes(5)
        self.tick()
        self.tick()
        self.assertEqual(set(names), self.in_state(ASLEEP))

    # -- what is seen ----------------------------------------------------

    def states(self):
        """{host: state} of all."""
        known = energy_store.get_power(self.db)
        return {host: known[host].state if host in known else ON
                for host in self.HOSTS}

    def in_state(self, state):
        return {host for host, found in self.states().items()
                if found == state}

    def services(self):
        """{host: service as Nova's API shows it}."""
        return {service['host']: service for service in
                self.api.get_services() if service['binary'] ==
                'nova-compute'}

    def wait_reported(self, *hosts):
        """Wait until services report once more, in real time."""
        def read():
            fleet = self.engine.power.switcher._fleet.read()
            return {host: fleet[host].seen_at for host in hosts}

        before = read()
        self.wait_for(lambda: all(
            seen_at != before[host] for host, seen_at in read().items()),
            'services to report')

    def until_on(self, *hosts):
        """Let hosts boot that are waking."""
        self.tick()
        self.wait_reported(*hosts)
        self.tick()
        self.assertLessEqual(set(hosts), self.in_state(ON))


    def disable(self, host, reason):
        """Disable a service as an operator does.

        Nova's API would also ask the service to tell Placement, and wait for
        the answer of one that is off but has reported a moment ago.
        """
        with self.cell_context() as context:
            service = objects.Service.get_by_compute_host(context, host)
            service.disabled = True
            service.disabled_reason = reason
            service.save()


class TestSleep(EnergyTestCase):

    def test_idle_cloud_goes_to_its_minimum(self):
        self.flags(minimum_hosts=1, group='energy')
        self.tick(0)
        self.minutes(4)
        self.assertEqual(set(self.HOSTS), self.in_state(ON))
        # Five intervals at the second decision.
        self.tick(60)
        emptying = self.in_state(EMPTYING)
        self.assertEqual(3, len(emptying))
        for host in emptying:
            service = self.services()[host]
            self.assertEqual('disabled', service['status'])
            self.assertIn('nova-preempt-engine: ',
                          service['disabled_reason'])
        self.assertEqual([], self.machines.calls)
        self.tick()
        self.assertEqual([], self.machines.calls)
        self.tick()
        self.assertEqual(emptying, self.in_state(ASLEEP))
        self.assertEqual(emptying, self.machines.off.keys())
        # And there it stays.
        self.minutes(10)
        self.assertEqual(emptying, self.in_state(ASLEEP))
        self.assertEqual(3, len(self.machines.calls))

    def test_busy_and_disabled_hosts_are_left_alone(self):
        self.flags(minimum_hosts=0, group='energy')
        self.boot_normal('n', host='host1')
        self.boot_spot('s', 'host2')
        self.disable('host3', 'a fan is broken')
        self.until_asleep('host4')
        self.assertEqual({('off', 'host4')}, set(self.machines.calls))
        service = self.services()['host3']
        self.assertEqual(('disabled', 'a fan is broken'), (
            service['status'], service['disabled_reason']))
        # Asleep, but it is the operator's now.
        self.disable('host4', 'waits for a spare part')
        self.flags(minimum_hosts=4, group='energy')
        self.minutes(6)
        self.assertEqual({'host4'}, self.in_state(ASLEEP))
        self.assertEqual('waits for a spare part',
                         self.services()['host4']['disabled_reason'])

    def test_server_that_slips_in(self):
        self.flags(minimum_hosts=3, group='energy')
        nova = self.engine.parts.clients.nova
        real = nova.disable_service
        servers = []

        def disable_service(uuid, reason):
            host, = self.in_state(EMPTYING)
            servers.append(self.boot('late', self.small, host=host))
            self.wait(servers[0])
            real(uuid, reason)

        with mock.patch.object(nova, 'disable_service', disable_service):
            self.tick(0)
            self.minutes(5)
        host, = self.in_state(EMPTYING)
        self.tick()
        self.tick()
        self.assertEqual(set(self.HOSTS), self.in_state(ON))
        self.assertEqual([], self.machines.calls)
        self.assertEqual('enabled', self.services()[host]['status'])
        self.assertEqual('ACTIVE', self.api.get_server(servers[0])['status'])
        # Another server may come, and the host stays where it is.
        self.boot_normal('next', host=host)

    def test_claim_that_comes_after_the_power_off(self):
        self.flags(minimum_hosts=3, group='energy')
        self.tick(0)
        self.minutes(5)
        host, = self.in_state(EMPTYING)
        self.tick()
        self.tick()
        # As of a scheduler that had looked before the service was disabled.
        consumer = '11111111-1111-4111-8111-111111111111'
        self.engine.parts.clients.placement.post_allocations([
            placement_api.Consumer(consumer, {self.providers()[host]: {
                'resources': {'VCPU': 1}}}, None, 'p', 'u')])
        self.tick(60)
        self.until_on(host)
        self.assertEqual('enabled', self.services()[host]['status'])
        self.assertEqual([('off', host), ('on', host)], self.machines.calls)


class TestWake(EnergyTestCase):

    def setUp(self):
        super().setUp()
        self.flags(minimum_hosts=0, minimum_hosts_per_aggregate=0,
                   group='energy')

    def put_to_sleep(self):
        """Wait until all hosts are asleep."""
        self.until_asleep(*self.HOSTS)

    def serve(self):
        server = cmd_engine.make_server(cmd_engine.CONF, self.engine)
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)

    def boot_and_tick(self, *servers):
        """Let the engine work until these servers are built."""
        def built():
            self.tick(1)
            return all(self.api.get_server(server)['status'] in
                       ('ACTIVE', 'ERROR') for server in servers)

        self.wait_for(built, 'servers to be built')
        return {self.api.get_server(server)['status'] for server in servers}

    def test_burst(self):
        self.serve()
        self.put_to_sleep()
        servers = [self.boot(f's{number}', self.big) for number in range(4)]
        self.assertEqual({'ACTIVE'}, self.boot_and_tick(*servers))
        self.assertEqual(set(self.HOSTS), self.in_state(ON))
        self.assert_consistent()
        waits = energy_store.get_wakes(self.db)
        self.assertEqual(set(servers), {wait.server_uuid for wait in waits})
        self.assertEqual({(2, None)}, {(wait.cores, wait.duration_s)
                                       for wait in waits})
        sample = self.observe()
        self.assertEqual((4, 4, 0, 8), (
            sample.hosts_on, sample.hosts_busy, sample.hosts_asleep,
            sample.cores_used))
        # Once the burst is over the night comes again.
        for server in servers:
            self.delete(server)
        self.minutes(11)
        self.tick()
        self.tick()
        self.assertEqual(set(self.HOSTS), self.in_state(ASLEEP))
        sample = self.observe()
        self.assertEqual((0, 4, 8, 8, 0), (
            sample.hosts_on, sample.hosts_asleep, sample.cores_total,
            sample.cores_off, sample.cores_used))
        for wait in energy_store.get_wakes(self.db):
            self.assertGreater(wait.duration_s, 0)

    def observe(self):
        self.engine.power.observer.observe()
        return energy_store.get_samples(self.db)[-1]

    def test_no_host_could_help_and_no_time_to_wait(self):
        self.serve()
        self.put_to_sleep()
        self.boot_in_vain(flavor=self.create_flavor('huge', 8, 1024, 10))
        self.assertEqual(set(self.HOSTS), self.in_state(ASLEEP))
        self.flags(demand_wait_s=0, group='energy')
        server = self.boot('s', self.small)
        exc = self.assertRaises(embedded_cloud.CloudError, self.wait, server)
        self.assertIn('Hosts are being powered on', str(exc))
        # As many as are needed.
        waking, = self.in_state(WAKING)
        self.until_on(waking)
        self.boot_normal()

    def test_failed_boot(self):
        self.flags(boot_timeout_s=300, group='energy')
        self.put_to_sleep()
        self.machines.broken = {'host1'}
        self.flags(minimum_hosts=1, group='energy')
        self.minutes(5)
        self.assertEqual({'host1'}, self.in_state(WAKING))
        self.minutes(5)
        self.assertEqual({'host1'}, self.in_state(FAILED))
        reason = energy_store.get_power(self.db)['host1'].reason
        self.assertIn('its power supply is broken', reason)
        # Another one takes its place at once.
        self.tick(60)
        self.assertEqual({'host2'}, self.in_state(WAKING))
        self.until_on('host2')
        calls = len(self.machines.calls)
        self.minutes(10)
        self.assertEqual(calls, len(self.machines.calls))
        self.machines.broken = set()
        self.flags(minimum_hosts=4, group='energy')
        self.now += datetime.timedelta(seconds=3600)
        self.minutes(7)
        self.until_on('host1')

    def test_reservation(self):
        self.put_to_sleep()
        self.now = self.now.replace(second=0)
        start = self.naive() + datetime.timedelta(minutes=30)
        self.reserve(['host2', 'host3'], start)
        while self.naive() < start - datetime.timedelta(seconds=150):
            self.assertEqual(set(self.HOSTS), self.in_state(ASLEEP))
            self.tick()
        self.tick()
        self.assertEqual({'host2', 'host3'}, self.in_state(WAKING))
        self.until_on('host2', 'host3')
        self.assertLess(self.naive(), start)
        # They are idle, but reserved.
        self.minutes(20)
        self.assertEqual({'host2', 'host3'}, self.in_state(ON))

    def naive(self):
        return self.now.replace(tzinfo=None)

    def reserve(self, hosts, start):
        end = start + datetime.timedelta(hours=2)
        uuid = '22222222-2222-4222-8222-222222222222'
        with self.db.writer() as session:
            calendar_changes.raise_generation(session, reservations=(uuid,))
            rows.insert(session, reservation_model.Reservation(
                uuid=uuid, project_id='p', quantity=len(hosts),
                duration_s=7200, window_start=start, end_action='shelve',
                before_end_s=0,
                start_at=start, end_at=end, created_at=self.naive(),
                updated_at=self.naive(),
                hosts=tuple(reservation_model.Assignment(host, start, end)
                            for host in hosts)))

    def test_restart_in_the_middle(self):
        with mock.patch.object(self.machines, 'shut_down',
                               side_effect=KeyboardInterrupt):
            self.tick(0)
            self.minutes(5)
            self.tick()
            self.tick()
        self.assertEqual(set(self.HOSTS), self.in_state(SLEEPING))
        self.start_engine()
        self.tick()
        self.assertEqual(set(self.HOSTS), self.in_state(ASLEEP))
        self.flags(minimum_hosts=1, group='energy')
        nova = self.engine.parts.clients.nova
        with mock.patch.object(nova, 'enable_service',
                               side_effect=KeyboardInterrupt):
            self.minutes(5)
            host, = self.in_state(WAKING)
            self.tick()
            self.wait_reported(host)
            self.tick()
        self.assertEqual({host}, self.in_state(WAKING))
        self.start_engine()
        self.until_on(host)
        self.assertEqual('enabled', self.services()[host]['status'])
        self.assertEqual(1, self.machines.calls.count(('on', host)))


class TestRedfish(EnergyTestCase):
    """Uses the emulator of sushy-tools with one system per host."""

    HOSTS = ('host1', 'host2')

    def make_machines(self):
        self.emulator = emulator.Emulator(*self.HOSTS)
        self.addCleanup(self.emulator.close)
        hosts_file = os.path.join(cmd_engine.CONF.state_path, 'hosts.yaml')
        with open(hosts_file, 'w', encoding='utf-8') as stream:
            json.dump({host: {'redfish': {
                'address': self.emulator.url, 'system': path}}
                for host, path in self.emulator.paths.items()}, stream)
        self.flags(group='energy', driver='redfish', hosts_file=hosts_file)
        machines = Controlled(self, driver.Drivers(cmd_engine.CONF))
        for host in self.HOSTS:
            machines.power_on(host)
        return machines

    def switched_on(self):
        """The hosts that are on, as their controllers say."""
        return {host for host in self.HOSTS
                if self.emulator.state(host) == 'On'}

    def test_controllers_that_are_away(self):
        self.flags(minimum_hosts=1, group='energy')
        self.assertEqual(set(self.HOSTS), self.switched_on())
        self.tick(0)
        self.minutes(5)
        host, = self.in_state(EMPTYING)
        self.tick()
        self.emulator.kill()
        self.tick()
        self.assertEqual({host}, self.in_state(SLEEPING))
        self.emulator.start()
        self.assertEqual(set(self.HOSTS), self.switched_on())
        self.tick()
        self.assertEqual({host}, self.in_state(ASLEEP))
        self.assertEqual(set(self.HOSTS) - {host}, self.switched_on())
        self.emulator.kill()
        self.flags(minimum_hosts=2, group='energy')
        self.minutes(5)
        self.assertEqual({host}, self.in_state(WAKING))
        self.emulator.start()
        self.assertEqual(set(self.HOSTS) - {host}, self.switched_on())
        self.until_on(host)
        self.assertEqual(set(self.HOSTS), self.switched_on())
        self.boot_normal('n', host=host)
