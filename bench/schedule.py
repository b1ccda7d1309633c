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
"""Measure a decision of the scheduler: ours, Nova's own and a retrying one.

    python bench/schedule.py [--hosts 100,1000] [--cases abc]
                             [--repetitions N] [--phases] [--profile CASE]

All three run in this process on the same real Placement and Nova databases.
README.rst beside this file says what is measured and what is not.
"""


# The first of Nova: it settles whether eventlet patches the process.
from nova_preempt.embedded import cloud as embedded  # isort: skip

import argparse
import collections
import contextlib
import copy
import cProfile
import dataclasses
import datetime
import gc
import pstats
import random
import statistics
import time
from unittest import mock
import uuid

from nova import context as nova_context
from nova import objects
from nova.conf import scheduler as scheduler_conf
from nova.db.api import api as api_database
from nova.db.main import api as cell_database
from nova.scheduler import host_manager
from nova.scheduler import manager as nova_manager
from nova.scheduler import utils
from nova.scheduler.client import report
import oslo_messaging as messaging
from placement import db_api as placement_database
import sqlalchemy as sa

from nova_preempt import placement as placement_api
from nova_preempt.db import api as db_api
from nova_preempt.embedded import driver
from nova_preempt.scheduler import candidates
from nova_preempt.scheduler import manager
from nova_preempt.scheduler import request
from nova_preempt.scheduler import view

SEED = 2019
WARM_UP = 2

# One server of each size leaves one vCPU of a host free, and its share of
# the rest.
HOST = driver.HostSize(vcpus=16, memory_mb=16 * 4096, disk_gb=16 * 20)
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


# -- the cloud -----------------------------------------------------------

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
        """When a server was launched and when it changed last."""
        now = datetime.datetime.now(datetime.timezone.utc)
        launched = now - datetime.timedelta(
            seconds=self._rng.uniform(60, LONGEST_UPTIME_S))
        changed = launched
        if self._rng.random() < RECENT:
            # So that it stays recent however long the benchmark takes.
            changed = now + datetime.timedelta(days=1)
        return launched.replace(tzinfo=None), changed.replace(tzinfo=None)

    def ask(self, vcpus):
        """A request for a normal server: (its uuid, a RequestSpec)."""
        server = str(uuid.uuid4())
        objects.InstanceMapping(
            self.context, instance_uuid=server, project_id='project',
            cell_mapping=None).create()
        flavor = objects.Flavor.get_by_flavor_id(
            self.context, self._flavors[vcpus, False])
        return server, objects.RequestSpec.from_components(
            nova_context.RequestContext('user', 'project'), server,
            {'id': embedded.IMAGE, 'properties': {}}, flavor, None,
            objects.InstancePCIRequests(requests=[]), {}, None, None)

    def restore(self, selection):
        """Undo a decision in Placement.

        :returns: how many victims it had
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
    """Copies what a service has written to its database.

    To make each server through the APIs would take longer than to measure.
    """

    def __init__(self, engine):
        self._engine = engine
        self._schema = sa.MetaData()
        self._schema.reflect(engine)

    def find(self, table, **where):
        """The rows of a table with these values."""
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


# -- the schedulers ------------------------------------------------------

class RetryScheduler(nova_manager.SchedulerManager):
    """Fails, ends the cheapest victims, and schedules again.

    :param preemption: what finds victims, which is the same for both
    """

    def __init__(self, preemption):
        super().__init__()
        self._preemption = preemption

    def select_destinations(self, context, spec_obj, **kwargs):
        again = copy.deepcopy(spec_obj)
        try:
            return super().select_destinations(
                context, spec_obj=spec_obj, **kwargs)
        except messaging.ExpectedException:
            self._remove_victims(context, spec_obj)
        return super().select_destinations(context, spec_obj=again, **kwargs)

    def _remove_victims(self, context, spec_obj):
        resources = utils.resources_from_request_spec(
            context, spec_obj, self.host_manager)
        now = self._preemption.clock()
        self._preemption.view.refresh()
        options = self._preemption.candidates(
            resources.merged_resources(),
            lambda server: server.may_end(now, 0), now)
        option = next(options.ranked(request.provider_query(resources)))
        for victim in option.victims:
            self.placement_client.delete_allocation_for_instance(
                context, victim.uuid, force=True)


class FreeTerminator:
    """Ends servers at once: their end is no part of the decision."""

    def end(self, decisions):
        return set()


def _nova_defaults():
    """What Nova's scheduler has where the cloud has our filters, weighers."""
    return {option.dest: option.default
            for option in scheduler_conf.filter_scheduler_opts
            if option.dest in ('available_filters', 'enabled_filters',
                               'weight_classes')}


class Schedulers:
    """One of each kind, started on a cloud that is in use already."""

    def __init__(self, cloud):
        self.ours = manager.PreemptibleSchedulerManager()
        self.ours.start_preemption()
        self.ours.preemption.terminator = FreeTerminator()
        self.ours.preemption.refresh()
        cloud.case.flags(group='filter_scheduler', **_nova_defaults())
        # The default, which the embedded cloud lowers.
        cloud.case.flags(group='preemption', max_age_s=5.0)
        self.stock = nova_manager.SchedulerManager()
        self.retry = RetryScheduler(self.ours.preemption)
        for scheduler in (self.stock, self.ours, self.retry):
            self._learn_servers(scheduler, cloud)

    def _learn_servers(self, scheduler, cloud):
        """Wait for what it reads when it starts; tell it what hosts tell."""
        servers = sum(map(len, cloud.servers.values()))
        while sum(len(item['instances']) for item in list(
                scheduler.host_manager._instance_info.values())) < servers:
            time.sleep(0.1)
        for host, servers in cloud.servers.items():
            scheduler.sync_instance_info(cloud.context, host.name,
                                         list(servers))


# -- measuring -----------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Case:
    """One way to decide.

    :param scheduler: an attribute of Schedulers
    :param vcpus: of the request
    :param always: [preemption]consider is always, not when_full
    :param victims: whether somebody has to end
    """

    label: str
    scheduler: str
    vcpus: int = SMALL
    always: bool = False
    victims: bool = False


STOCK = Case('stock', 'stock')
WHEN_FULL = Case('ours, when_full', 'ours')
ALWAYS = Case('ours, always', 'ours', always=True)
PREEMPTING = Case('ours, preempting', 'ours', LARGE, victims=True)
RETRY = Case('retry', 'retry', LARGE, victims=True)


@dataclasses.dataclass(frozen=True)
class Group:
    """Cases that are compared, turn by turn, on one cloud.

    :param ratios: [(case, case that it is compared to, the target)]
    """

    title: str
    preemptible: int
    cases: tuple[Case, ...]
    ratios: tuple[tuple[Case, Case, str], ...]


GROUPS = {
    'a': Group('(a) no preemptible server', 0, (STOCK, WHEN_FULL, ALWAYS),
               ((WHEN_FULL, STOCK, '<= 1.10'), (ALWAYS, STOCK, '<= 1.10'))),
    'b': Group('(b) preemptible servers, room on every host', PREEMPTIBLE,
               (STOCK, WHEN_FULL, ALWAYS),
               ((WHEN_FULL, STOCK, '<= 1.10'), (ALWAYS, STOCK, '<= 1.10'))),
    'c': Group('(c) no room; (d) against a retry', PREEMPTIBLE,
               (STOCK, PREEMPTING, RETRY),
               ((PREEMPTING, STOCK, '<= 1.00, aim 0.50'),
                (PREEMPTING, RETRY, '< 1.00'))),
}

PROFILES = {
    'stock': ('b', STOCK),
    'a': ('a', WHEN_FULL),
    'b': ('b', WHEN_FULL),
    'b-always': ('b', ALWAYS),
    'c': ('c', PREEMPTING),
    'retry': ('c', RETRY),
}


class Bench:
    """Makes decisions and undoes them."""

    def __init__(self, cloud):
        self._cloud = cloud
        self._schedulers = Schedulers(cloud)
        # The whole cloud is in this process: too much for the garbage
        # collector of a scheduler to go through, again and again.
        gc.collect()
        gc.freeze()

    def decide(self, case, during=None):
        """Decide once; (seconds, seconds of processor time).

        :param during: a context manager around the decision
        """
        server, spec_obj = self._cloud.ask(case.vcpus)
        scheduler = getattr(self._schedulers, case.scheduler)
        preemption = self._schedulers.ours.preemption
        preemption.always = case.always
        with during or contextlib.nullcontext():
            wall, cpu = time.perf_counter(), time.process_time()
            selections = scheduler.select_destinations(
                nova_context.RequestContext('user', 'project'),
                spec_obj=spec_obj, instance_uuids=[server],
                return_objects=True, return_alternates=True)
            times = (time.perf_counter() - wall, time.process_time() - cpu)
        victims = self._cloud.restore(selections[0][0])
        if bool(victims) != case.victims:
            raise SystemExit(f'{case.label}: {victims} victims')
        preemption.refresh()
        return times

    def compare(self, cases, repetitions):
        """{case: [(seconds, processor seconds)]}, the cases by turns."""
        times = {case: [] for case in cases}
        for number in range(-WARM_UP, repetitions):
            for case in cases if number % 2 else cases[::-1]:
                took = self.decide(case)
                if number >= 0:
                    times[case].append(took)
        return times


class Phases(contextlib.AbstractContextManager):
    """Where the time goes; each phase without what it calls of others."""

    PARTS = {
        'Placement': (report.SchedulerReportClient, (
            'get', 'put', 'post', 'delete')),
        'host states': (host_manager.HostManager, (
            'get_host_states_by_uuids',)),
        'filters, weighers': (host_manager.HostManager, (
            'get_filtered_hosts', 'get_weighed_hosts')),
        'servers': (view.ServerView, ('refresh',)),
        'our database': (db_api.Database, (
            'create_decision', 'update_decision', 'get_preemptible',
            'get_decisions')),
        'bounds': (candidates.Candidates, ('_bound',)),
        'victims': (candidates.Candidates, ('option',)),
        'copies': (copy, ('deepcopy',)),
    }

    def __init__(self):
        self.seconds = dict.fromkeys((*self.PARTS, 'rest'), 0)
        self._stack = contextlib.ExitStack()
        self._inner = [0]

    def __enter__(self):
        for part, (owner, names) in self.PARTS.items():
            for name in names:
                self._stack.enter_context(mock.patch.object(
                    owner, name, self._timed(part, getattr(owner, name))))
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exc_info):
        took = time.perf_counter() - self._start
        self.seconds['rest'] += took - self._inner[0]
        self._inner = [0]
        self._stack.close()

    def _timed(self, part, function):
        def call(*args, **kwargs):
            self._inner.append(0)
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.perf_counter() - start
                self.seconds[part] += took - self._inner.pop()
                self._inner[-1] += took

        return call


@contextlib.contextmanager
def started(hosts, preemptible):
    """A Bench on a new cloud."""
    gc.unfreeze()
    with embedded.EmbeddedCloud({}, OPTIONS) as case:
        start = time.perf_counter()
        bench = Bench(Cloud(case, hosts, preemptible))
        print(f'{hosts} hosts, {preemptible} of {len(SIZES)} servers on each '
              f'preemptible; made in {time.perf_counter() - start:.0f} s',
              flush=True)
        yield bench


def measure(hosts, groups, repetitions, phases):
    for preemptible in sorted({group.preemptible for group in groups}):
        with started(hosts, preemptible) as bench:
            for group in groups:
                if group.preemptible == preemptible:
                    times = bench.compare(group.cases, repetitions)
                    print_group(group, times)
                    if phases:
                        print_phases(bench, group, repetitions)


def print_group(group, times):
    print(f'\n{group.title}\n  {"ms":20}{"median":>9}{"min":>9}{"max":>9}'
          f'{"cpu":>9}')
    for case in group.cases:
        wall = [1000 * took for took, _cpu in times[case]]
        cpu = [1000 * took for _wall, took in times[case]]
        print(f'  {case.label:20}{statistics.median(wall):9.1f}'
              f'{min(wall):9.1f}{max(wall):9.1f}'
              f'{statistics.median(cpu):9.1f}')
    for case, other, target in group.ratios:
        ratio, cpu_ratio = (
            statistics.median(ours[clock] / theirs[clock] for ours, theirs
                              in zip(times[case], times[other], strict=True))
            for clock in (0, 1))
        print(f'  {case.label} / {other.label}: {ratio:.2f} '
              f'(cpu {cpu_ratio:.2f}), target {target}')
    print(flush=True)


def print_phases(bench, group, repetitions):
    for case in group.cases:
        phases = Phases()
        for _ in range(repetitions):
            bench.decide(case, phases)
        print(f'  phases of {case.label}, ms: ' + ', '.join(
            f'{part} {1000 * seconds / repetitions:.1f}'
            for part, seconds in phases.seconds.items() if seconds))
    print(flush=True)


def profile(hosts, name, repetitions):
    group, case = PROFILES[name]
    with started(hosts, GROUPS[group].preemptible) as bench:
        for _ in range(WARM_UP):
            bench.decide(case)
        profiler = cProfile.Profile()
        for _ in range(repetitions):
            bench.decide(case, profiler)
        print(f'{case.label}, {repetitions} decisions')
        pstats.Stats(profiler).sort_stats('cumulative').print_stats(
            'nova[_/]', 25)


def main():
    parser = argparse.ArgumentParser(
        description='Time of a scheduling decision.')
    parser.add_argument(
        '--hosts', default='100,1000', metavar='N,...',
        type=lambda text: [int(number) for number in text.split(',')],
        help='sizes of the cloud (100,1000)')
    parser.add_argument('--repetitions', type=int, default=15, metavar='N',
                        help='decisions of each kind (15)')
    parser.add_argument('--cases', default='abc', metavar='LETTERS',
                        help='which of a, b, c; d comes with c (abc)')
    parser.add_argument('--phases', action='store_true',
                        help='say where the time goes, too')
    parser.add_argument('--profile', choices=PROFILES, metavar='CASE',
                        help='profile one instead: ' + ', '.join(PROFILES))
    args = parser.parse_args()
    print('The end of victims is left out of all times.')
    for hosts in args.hosts:
        if args.profile:
            profile(hosts, args.profile, args.repetitions)
        else:
            measure(hosts, [GROUPS[name] for name in args.cases],
                    args.repetitions, args.phases)


if __name__ == '__main__':
    main()
