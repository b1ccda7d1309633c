# SPDX-License-Identifier: Apache-2.0
"""Cloud of many hosts and servers for benchmarks, copied as database rows.

The real services create the first host and server of each kind.
"""

# Before other modules of Nova: it decides whether eventlet patches.
from nova_preempt.embedded import embedded_cloud  # isort: skip

import collections
import dataclasses
import datetime
import random
import time
import uuid

from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_database
from nova.db.main import api as cell_database
from nova.scheduler.client import report
from placement import db_api as placement_database
import sqlalchemy as sa

from nova_preempt.cloud import placement_api
from nova_preempt.embedded import fake_hypervisor

SEED = 2019

# One server of each size leaves one vCPU of a host free, and its share of
# the rest.
HOST = fake_hypervisor.HostSize(vcpus=16, memory_mb=16 * 4096, disk_gb=16 * 20)
SIZES = (1, 2, 4, 8)
PREEMPTIBLE = 2     # of the four
SMALL = 1           # a request that has room on every host
LARGE = 4           # one that has room on each once some victims are gone

LONGEST_UPTIME_S = 36_000

# The share of the servers that have changed within the last seconds, which
# our scheduler reads again at each decision to preempt.
RECENT = 0.01

# Nobody reports that the hosts are up while they are being measured.
OPTIONS = {None: {'service_down_time': 86_400}}


@dataclasses.dataclass(frozen=True)
class Host:
    id: int
    name: str
    uuid: str


class Cloud:
    """Hosts with four servers each.

    :param case: a running EmbeddedTestCase without hosts
    :param hosts: how many
    :param preemptible: how many servers of each host are
    """

    def __init__(self, case, hosts, preemptible):
        self.case = case
        self.context = nova_context.get_admin_context()
        self.cell = case.cell_mappings['cell1']
        self.placement = placement_api.Placement(
            report.report_client_singleton)
        self._rng = random.Random(SEED)
        self._flavors = {}        # (vCPUs, preemptible): flavor id
        # Host: {server uuid: {resource class: amount}}
        self.servers = {Host(number, f'host{number:05}', self._uuid()): {}
                        for number in range(1000, 1000 + hosts)}
        self._by_uuid = {host.uuid: host for host in self.servers}
        self._build(preemptible)

    def _uuid(self):
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def _build(self, preemptible):
        """Boot a server of each kind, copy them, and delete the originals."""
        originals = {}
        for kind in (False, True):
            host = f'original-{kind}'
            self.case.add_host(host, **dataclasses.asdict(HOST))
            for vcpus in SIZES:
                flavor = self._flavors[vcpus, kind] = self.case.create_flavor(
                    f'{vcpus}-{kind}', vcpus, vcpus * 4096, vcpus * 20,
                    preemptible=kind)
                originals[vcpus, kind] = self.case.boot(
                    f'{vcpus}-{kind}', flavor, host=host)
                self.case.wait(originals[vcpus, kind])
        self.case._run_periodics()
        self._copy('original-False', originals, preemptible)
        for server in originals.values():
            self.case.delete(server)
        for host, service in self.case.computes.items():
            service.stop()
            record, = self.case.admin_api.get_services('nova-compute', host)
            self.case.admin_api.api_delete(f'/os-services/{record["id"]}')

    def _copy(self, original_host, originals, preemptible):
        with nova_context.target_cell(self.context, self.cell) as context:
            cell = Rows(cell_database.get_engine(context=context))
        databases = (cell, Rows(api_database.get_engine()),
                     Rows(placement_database.get_placement_engine()))
        _copy_host(*databases, original_host, self.servers)
        copies = collections.defaultdict(list)
        for host, servers in self.servers.items():
            chosen = self._rng.sample(SIZES, preemptible)
            for vcpus in SIZES:
                server = self._uuid()
                servers[server] = {'VCPU': vcpus, 'MEMORY_MB': vcpus * 4096,
                                   'DISK_GB': vcpus * 20}
                copies[originals[vcpus, vcpus in chosen]].append(
                    (server, host, *self._times()))
        for original, made in copies.items():
            _copy_server(*databases, original, made)

    def _times(self):
        """Return when a server was launched, and when it last changed."""
        now = datetime.datetime.now(datetime.timezone.utc)
        launched = now - datetime.timedelta(
            seconds=self._rng.uniform(60, LONGEST_UPTIME_S))
        changed = launched
        if self._rng.random() < RECENT:
            # So that it stays recent however long the benchmark takes.
            changed = now + datetime.timedelta(days=1)
        return launched.replace(tzinfo=None), changed.replace(tzinfo=None)

    def tell(self, scheduler):
        """Wait for the first read of a scheduler, then sync all hosts with it.

        Without the sync it queries the database for the servers of each host.
        """
        servers = sum(map(len, self.servers.values()))
        while sum(len(item['instances']) for item in list(
                scheduler.host_manager._instance_info.values())) < servers:
            time.sleep(0.1)
        for host, servers in self.servers.items():
            scheduler.sync_instance_info(self.context, host.name,
                                         list(servers))

    def ask(self, vcpus):
        """Return (uuid, RequestSpec) of a request for a normal server."""
        server = str(uuid.uuid4())
        objects.InstanceMapping(
            self.context, instance_uuid=server, project_id='project',
            cell_mapping=None).create()
        flavor = objects.Flavor.get_by_flavor_id(
            self.context, self._flavors[vcpus, False])
        return server, objects.RequestSpec.from_components(
            nova_context.RequestContext('user', 'project'), server,
            {'id': embedded_cloud.IMAGE, 'properties': {}}, flavor, None,
            objects.InstancePCIRequests(requests=[]), {}, None, None)

    def restore(self, selection):
        """Roll back a decision in Placement; return its number of victims.
        """
        host = self._by_uuid[selection.compute_node_uuid]
        had = self.servers[host]
        has = self.placement.get_provider_state(host.uuid).allocations
        changed = [consumer for consumer in {**had, **has}
                   if had.get(consumer) != has.get(consumer)]
        self.placement.post_allocations([
            placement_api.Consumer(
                consumer, {host.uuid: {'resources': had[consumer]}}
                if consumer in had else {},
                self.placement.get_consumer(consumer).generation,
                'project', 'user')
            for consumer in changed])
        return len(had.keys() & changed)


class Rows:
    """Copies rows that a service has written to its database.

    Creating each server through the APIs would take longer than measuring.
    """

    def __init__(self, engine):
        self._engine = engine
        self._schema = sa.MetaData()
        self._schema.reflect(engine)

    def find(self, table, **where):
        """Return the rows of a table with these values."""
        query = sa.select(self._schema.tables[table]).filter_by(**where)
        with self._engine.connect() as connection:
            return connection.execute(query).mappings().all()

    def copy(self, table, where, changes):
        """Insert each row that is found once for each dict of changes."""
        rows = [{key: value for key, value in row.items() if key != 'id'}
                for row in self.find(table, **where)]
        with self._engine.begin() as connection:
            connection.execute(
                self._schema.tables[table].insert(),
                [row | change for change in changes for row in rows])


def _copy_host(cell, api, placement, original, hosts):
    cell.copy('services', {'host': original}, [
        {'id': host.id, 'uuid': str(uuid.uuid4()), 'host': host.name}
        for host in hosts])
    cell.copy('compute_nodes', {'host': original}, [
        {'id': host.id, 'service_id': host.id, 'uuid': host.uuid,
         'host': host.name, 'hypervisor_hostname': host.name}
        for host in hosts])
    api.copy('host_mappings', {'host': original},
             [{'host': host.name} for host in hosts])
    provider, = placement.find('resource_providers', name=original)
    placement.copy('resource_providers', {'id': provider['id']}, [
        {'id': host.id, 'root_provider_id': host.id, 'uuid': host.uuid,
         'name': host.name} for host in hosts])
    for table in ('inventories', 'resource_provider_traits'):
        placement.copy(table, {'resource_provider_id': provider['id']},
                       [{'resource_provider_id': host.id} for host in hosts])


def _copy_server(cell, api, placement, original, copies):
    """Copy a server.

    :param copies: [(uuid, Host, launched at, changed at)]
    """
    cell.copy('instances', {'uuid': original}, [
        {'uuid': server, 'host': host.name, 'node': host.name,
         'compute_id': host.id, 'created_at': launched,
         'launched_at': launched, 'updated_at': changed}
        for server, host, launched, changed in copies])
    of_server = [{'instance_uuid': server} for server, *_ in copies]
    for table in ('instance_extra', 'instance_info_caches',
                  'instance_system_metadata'):
        cell.copy(table, {'instance_uuid': original}, of_server)
    api.copy('instance_mappings', {'instance_uuid': original}, of_server)
    placement.copy('consumers', {'uuid': original},
                   [{'uuid': server} for server, *_ in copies])
    placement.copy('allocations', {'consumer_id': original}, [
        {'consumer_id': server, 'resource_provider_id': host.id}
        for server, host, *_ in copies])
