# SPDX-License-Identifier: Apache-2.0
"""Measure a pass over many waiting requests and many hosts.

    python bench/backlog.py [--hosts N] [--requests N] [--starts N]
                            [--order NAME] [--flavors N] [--database URL]

Prints the processor time of a look of the engine at the backlog: where nothing
can be started, where one request has left the queue, and where so many are
started. README.rst says what is measured.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import random
import tempfile
import threading
import time
import types
from typing import Any
from unittest import mock

from oslo_config import cfg
import sqlalchemy as sa

from nova_preempt import db
from nova_preempt.backlog import backlog_loop
from nova_preempt.backlog import capacity_reader
from nova_preempt.backlog import cloud_observer
from nova_preempt.backlog import launcher
from nova_preempt.backlog import request_tracker
from nova_preempt.backlog import server_reader
from nova_preempt.backlog import transition_recorder
from nova_preempt.backlog import user_nova_clients
from nova_preempt.backlog import user_quota_reader
from nova_preempt.cloud import instances
from nova_preempt.cloud import nova_as_user
import nova_preempt.conf
from nova_preempt.core import model as core_model
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dispatch_values
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.db import backlog_models
from nova_preempt.db import backlog_store
from nova_preempt.db import row_schemas
from nova_preempt.db import schema_upgrade

SEED = 2013
NOW = datetime.datetime.fromisoformat('2026-01-01T12:00:00')
# Of a look where nothing can start, and of one with so many starts.
IDLE_S = 2.0
STARTS_S = 20.0

SIZES = [(vcpus, ram_mb) for vcpus in (1, 2, 4, 8, 16)
         for ram_mb in (1024 * vcpus, 4096 * vcpus)]


class Cloud:
    """Hosts in memory, full until they are emptied."""

    def __init__(self, number: int) -> None:
        self.hosts = [
            (types.SimpleNamespace(
                name=f'host{host:05}', properties={'traits': ()},
                asleep=None),
             [self._full(host)])
            for host in range(number)]
        self.servers = types.SimpleNamespace(by_node=dict)

    @staticmethod
    def _full(number: int) -> core_model.Provider:
        # One of sixteen vCPUs is free, and too little memory for anybody.
        return core_model.Provider(
            f'p{number:05}', 1, {
                'VCPU': core_model.Inventory(64),
                'MEMORY_MB': core_model.Inventory(262144),
                'DISK_GB': core_model.Inventory(4000)},
            {f's{number}-{server}': {
                'VCPU': 15, 'MEMORY_MB': 65300, 'DISK_GB': 100}
             for server in range(4)})

    def rooms(self) -> list[Any]:
        return self.hosts

    def policy(self) -> None:
        return None

    def empty(self, number: int) -> None:
        """Remove the servers of a number of hosts."""
        self.hosts[:number] = [
            (host, [core_model.Provider(
                provider.uuid, 2, provider.inventories, {})])
            for host, (provider,) in self.hosts[:number]]


class Nova:
    """Accepts every request at once: the time of Nova is not measured."""

    def __init__(self, *_arguments: Any) -> None:
        self._lock = threading.Lock()
        self.made = 0

    def check(self) -> None:
        pass

    def limits(self) -> dict[str, int]:
        return {}

    def create(self, body: Any, version: str) -> nova_as_user.Reply:
        with self._lock:
            self.made += 1
            return nova_as_user.Reply(202, server_uuid=f'server{self.made}')


class Bench:

    def __init__(self, conf: cfg.ConfigOpts, hosts: int, flavors: int = 1
                 ) -> None:
        self.flavors = flavors
        self.database = db.Database(conf)
        schema_upgrade.sync(self.database)
        self.cloud = Cloud(hosts)
        self.nova = Nova()
        options = conf.backlog
        written = transition_recorder.TransitionRecorder(self.database,
                                           lambda *_arguments: None)
        acting = user_nova_clients.UserNovaClients(
            conf, types.SimpleNamespace(session=lambda trust_id: None,
                                        delete=lambda trust_id: None),
            lambda *_arguments: self.nova)
        self.loop = backlog_loop.BacklogLoop(
            options, self.database, request_tracker.RequestTracker(
                self.database, server_reader.ServerReader(
                    db.Decisions(self.database), self.find), acting, written),
            cloud_observer.CloudObserver(
                options, self.database, capacity_reader.CapacityReader(
                    conf.preemption, self.cloud, self.cloud, lambda: NOW,
                    types.SimpleNamespace(why=lambda what: '')),
                lambda: cloud_observer.load_order(options),
                lambda uuid: None,
                user_quota_reader.UserQuotaReader(acting, time.monotonic)),
            launcher.Launcher(options, acting, written, lambda: NOW))

    @staticmethod
    def find(tags: Any, uuids: Any) -> instances.FoundServers:
        """Return all servers as being built."""
        return instances.FoundServers({uuid: ObservedServer(
            uuid, 'building', project_id='p') for uuid in uuids})

    def fill(self, number: int) -> None:
        rng = random.Random(SEED)
        # All at once, which those who leave them do not.
        with self.database.writer() as session:
            session.execute(sa.insert(backlog_models.BacklogRequest), [
                row_schemas.values(self.request(rng, number - item, item),
                                   'boots', 'servers')
                for item in range(number)])

    def request(self, rng: random.Random, age_s: int, number: int
                ) -> backlog_model.Request:
        sizes = rng.sample(SIZES, self.flavors)
        return backlog_model.Request(
            uuid=f'{number:036}', project_id=f'p{rng.randrange(100)}',
            user_id='u', trust_id='t',
            body={'server': {'name': 'batch', 'imageRef': 'i' * 36,
                             'networks': 'auto', 'metadata': {'a': 'b'}}},
            compute_version='2.90', count=1, least_count=1,
            alternatives=tuple(backlog_model.Alternative(
                f'f{vcpus}-{ram_mb}', f'f{vcpus}', {
                    'VCPU': vcpus, 'MEMORY_MB': ram_mb, 'DISK_GB': 20})
                for vcpus, ram_mb in sizes),
            created_at=NOW - datetime.timedelta(seconds=age_s),
            updated_at=NOW)

    def look(self) -> tuple[float, float]:
        """(seconds of the processor, seconds of the clock)."""
        cpu, clock = time.process_time(), time.monotonic()
        self.loop.run(NOW)
        return time.process_time() - cpu, time.monotonic() - clock


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--requests', type=int, default=10000)
    parser.add_argument('--starts', type=int, default=500)
    parser.add_argument('--order', default='fifo')
    parser.add_argument('--flavors', type=int, default=1, help=(
        'number of flavors that each request names, in any order'))
    parser.add_argument('--database', metavar='URL')
    args = parser.parse_args()
    conf = cfg.ConfigOpts()
    nova_preempt.conf.register_opts(conf)
    conf([], default_config_files=[])
    with tempfile.TemporaryDirectory() as directory:
        conf.set_override(
            'connection', args.database or f'sqlite:///{directory}/b.sqlite',
            'preemption_database')
        conf.set_override('order', args.order, 'backlog')
        with mock.patch.object(
                dispatch_values, 'Options', functools.partial(
                    dispatch_values.Options, args.starts, args.starts)):
            return run(Bench(conf, args.hosts, args.flavors), args)


def run(bench: Bench, args: argparse.Namespace) -> int:
    bench.fill(args.requests)
    print(f'{args.requests} requests, {args.hosts} hosts, order '
          f'{args.order}; seconds of the processor (of the clock)')
    tell('the first look', bench.look())
    idle = [bench.look() for _ in range(3)]
    tell('nothing fits', min(idle))
    first = backlog_store.find(bench.database, backlog_model.OPEN, limit=1)[0]
    backlog_store.change(bench.database, first.uuid, backlog_model.OPEN, NOW,
                         state=backlog_model.CANCELLED)
    tell('the first has left', bench.look())
    bench.cloud.empty(args.hosts)
    started = bench.look()
    tell(f'{bench.nova.made} are started', started)
    well = min(idle)[0] < IDLE_S and started[0] < STARTS_S
    print('on target' if well else
          f'MISSED: {IDLE_S:g} s where nothing fits, {STARTS_S:g} s with '
          'starts')
    return not well


def tell(what: str, took: tuple[float, float]) -> None:
    print(f'{what:24} {took[0]:7.2f} ({took[1]:.2f})')


if __name__ == '__main__':
    raise SystemExit(main())
