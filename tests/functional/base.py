# SPDX-License-Identifier: Apache-2.0
"""Base classes of functional tests of preemption."""

import datetime
import time

import fixtures
from nova import context as nova_context
from nova import objects

from nova_preempt.cmd import engine as cmd_engine
from nova_preempt.db import decisions
from nova_preempt.embedded import embedded_cloud


class PreemptionTestCase(embedded_cloud.EmbeddedTestCase):
    """Hosts of two slots each, in both senses: 2 vCPUs, 2 GB, 20 GB."""

    def setUp(self):
        super().setUp()
        # As an operator does who wants reservations.
        self.flags(group='reservation', enabled=True,
                   reservable_default=True)
        self.now = datetime.datetime(2026, 1, 1, 12,
                                     tzinfo=datetime.timezone.utc)
        self.clock = lambda: self.now
        self.small = self.create_flavor('small', 1, 1024, 10)
        self.big = self.create_flavor('big', 2, 2048, 20)
        self.spot = self.create_flavor('spot', 1, 1024, 10, preemptible=True)

    @property
    def db(self):
        return self.scheduler.preemption.process.db

    @property
    def decisions(self):
        return self.scheduler.preemption.process.decisions

    def add_hosts(self, *names):
        for name in names:
            self.add_host(name, 2, 2048, 20)

    def boot_spot(self, name, host, uptime_s=60, flavor=None, **kwargs):
        server = self.boot(name, flavor or self.spot, host=host, **kwargs)
        self.wait(server)
        self.set_uptime(server, uptime_s, self.now)
        return server

    def boot_normal(self, name='normal', flavor=None, **kwargs):
        server = self.boot(name, flavor or self.small, **kwargs)
        return self.wait(server)

    def boot_in_vain(self, name='vain', flavor=None, **kwargs):
        """Boot a server that gets NoValidHost without evictions."""
        before = self.alive()
        server = self.boot(name, flavor or self.small, **kwargs)
        self.assertIn('No valid host', str(self.wait_failed(server)))
        self.assertEqual(before, self.alive())
        self.assert_consistent()
        return server

    def wait_failed(self, server_id):
        """Wait until a server has failed and return the error."""
        exc = self.assertRaises(embedded_cloud.CloudError, self.wait,
                                server_id)
        # Nova lists it as being built a moment longer.
        self.wait_for(lambda: server_id not in {
            server['id'] for server in self.servers()
            if server['status'] != 'ERROR'}, f'{server_id} to fail')
        return exc

    def alive(self):
        """The ids of the servers that exist and have not failed."""
        return {server['id'] for server in self.servers()
                if server['status'] != 'ERROR'}

    def wait_for(self, condition, what):
        return embedded_cloud._poll(condition, what)

    def jumps(self, terminator):
        """Return a function that sets the clock of a Terminator forward.

        And that of what it looks at victims with.
        """
        jumps_s = []

        def monotonic():
            return time.monotonic() + sum(jumps_s)

        self.useFixture(fixtures.MockPatchObject(
            terminator, 'monotonic', monotonic))
        watch = terminator.watch
        for reading in (watch, *watch._cells.values()):
            self.useFixture(fixtures.MockPatchObject(
                reading, '_clocks', (monotonic, reading._clocks[1])))
        return jumps_s.append

    def act(self, server_id, action, arguments=None):
        """Ask for an action, wait for its end and return the server."""
        self.api.post_server_action(server_id, {action: arguments})

        def idle():
            server = self.api.get_server(server_id)
            return server['OS-EXT-STS:task_state'] is None and server

        return self.wait_for(idle, f'{action} of {server_id} to end')

    def cell_context(self, cell='cell1'):
        """A context manager to look into Nova's database with."""
        return nova_context.target_cell(nova_context.get_admin_context(),
                                        self.cell_mappings[cell])

    def launched(self, uptime_s):
        return self.now - datetime.timedelta(seconds=uptime_s)

    def change_record(self, server_id, cell='cell1', **values):
        """Change Nova's record of a server."""
        with self.cell_context(cell) as context:
            instance = objects.Instance.get_by_uuid(context, server_id)
            for name, value in values.items():
                setattr(instance, name, value)
            instance.save()

    def add_aggregate(self, name, hosts, zone=None, **metadata):
        """Make an aggregate of these hosts with this metadata."""
        aggregate = self._create_aggregate(name, availability_zone=zone)
        for host in hosts:
            self.api.add_host_to_aggregate(aggregate, host)
        if metadata:
            self.set_metadata(aggregate, **metadata)
        return aggregate

    def set_metadata(self, aggregate, **metadata):
        self.api.post_aggregate_action(
            aggregate, {'set_metadata': {'metadata': metadata}})

    def restart_scheduler(self):
        """Start the scheduler anew: it reads its options and forgets."""
        host = self.scheduler_service.host
        self.scheduler_service.stop()
        self.scheduler_service = self.start_service('scheduler', host=host)
        self.clock = lambda: self.now

    def start_engine(self, **backlog):
        """Start an engine that runs only in run_once()."""
        engine = cmd_engine.make_engine(
            cmd_engine.CONF, lambda: self.scheduler.host_manager.cells,
            lambda: self.now, trusts=self.trusts, **backlog)
        self.addCleanup(engine.backlog.close)
        self.addCleanup(engine.evictions.close)
        self.addCleanup(engine._leadership.close)
        self.addCleanup(engine.parts.process.close)
        return engine

    def last_decision(self):
        return self.decisions.get_decisions()[-1]

    def last_victims(self):
        """Return the victims of the last decision."""
        decision = self.last_decision()
        self.assertEqual(decisions.DONE, decision.status)
        return {victim.server_uuid for victim in decision.victims}

    def wait_consistent(self):
        """Nova may free an allocation after it shows that it is done.

        And a decision of the engine is closed after its victims are gone.
        """
        def consistent():
            if self.decisions.get_open_decisions():
                return False
            consumers = {consumer for servers in self.allocations().values()
                         for consumer in servers}
            return consumers == {
                server['id'] for server in self.servers()
                if server['OS-EXT-SRV-ATTR:host']}

        self.wait_for(consistent, 'allocations to be freed')
        self.assert_consistent()

    def assert_consistent(self):
        """Every server has its allocations, and every allocation a server.

        No host is over capacity, no decision open.
        """
        self.assertEqual([], self.decisions.get_open_decisions())
        # A shelved server that was offloaded has neither host nor space.
        servers = {server['id']: server for server in self.servers()
                   if server['status'] not in ('ERROR', 'SHELVED_OFFLOADED')}
        allocated = self.allocations()
        capacities = self.capacities()
        found = {}
        for host, allocations in allocated.items():
            used = {}
            for server, resources in allocations.items():
                self.assertNotIn(server, found)
                found[server] = host
                for name, amount in resources.items():
                    used[name] = used.get(name, 0) + amount
            for name, amount in used.items():
                self.assertLessEqual(amount, capacities[host][name],
                                     (host, name))
        self.assertEqual(
            {uuid: server['OS-EXT-SRV-ATTR:host']
             for uuid, server in servers.items()}, found)
        self.assertEqual(
            {uuid: (server['flavor']['vcpus'], server['flavor']['ram'],
                    server['flavor']['disk'])
             for uuid, server in servers.items()},
            {uuid: _size(allocated[host][uuid])
             for uuid, host in found.items()})


def _size(resources):
    vcpus = resources.get('VCPU', 0) + resources.get('PCPU', 0)
    return vcpus, resources['MEMORY_MB'], resources['DISK_GB']
