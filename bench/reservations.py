# SPDX-License-Identifier: Apache-2.0

"""Measure previews and changes of a large, full calendar.

    python bench/reservations.py [--hosts N] [--reservations N]
                                 [--repetitions N] [--database URL] [CASE...]

Prints for each case the median, the 99th percentile and the largest time of
``Schedule.preview``, the median of what this process used of the processor
for it, the same with nothing kept in memory, and what it used of the
processor right after another process has changed something; all in
milliseconds. The ratio is that of the processor. Then what each change costs
whoever else keeps the calendar. README.rst says what is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
import datetime
import gc
import json
import random
import statistics
import tempfile
import time
from typing import Any

from oslo_config import cfg
import sqlalchemy as sa

from nova_preempt import db
import nova_preempt.conf
from nova_preempt.core.reservation import host_query
from nova_preempt.core.reservation import lease_event_controller
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import models
from nova_preempt.db import reservation_calendar
from nova_preempt.db import reservations
from nova_preempt.db import schema_upgrade
from nova_preempt.reservation import lease_cache
from nova_preempt.reservation import reservation_scheduler

SEED = 2013
# Targets: of a preview, and of processor time after a change elsewhere.
TARGET_MS = 50
CHANGE_MS = 200
NOW = datetime.datetime.fromisoformat('2026-01-01T12:00:00')
HOUR = datetime.timedelta(hours=1)
TRAITS = [f'HW_CPU_X86_{number}' for number in range(50)]

LARGE = ['and', ['>=', '$vcpus', 32], ['in', '$hypervisor_type', 'QEMU'],
         ['in', 'CUSTOM_FAST', '$traits']]
NEVER = 'what cannot be'
CASES = {
    'one host now': {'duration_s': 3600},
    'one of few in an hour': {
        'host_properties': LARGE, 'duration_s': 4 * 3600,
        'start_time': NOW + HOUR},
    'a tenth for a day': {
        'quantity': 0.1, 'duration_s': 86400, 'start_time': NOW},
    'half for four hours': {
        'quantity': 0.5, 'duration_s': 4 * 3600, 'start_time': NOW},
    'all for a day': {
        'quantity': 1.0, 'duration_s': 86400, 'start_time': NOW},
    NEVER: {
        'quantity': 1.0, 'duration_s': 86400, 'start_time': NOW,
        'end_time': NOW + 1000 * HOUR},
}


class Inventory:
    """Hosts in memory, with answers encoded as on the bus."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.hosts = {f'host{host:05}': self._properties(rng)
                      for host in range(number)}

    def _properties(self, rng: random.Random) -> dict[str, Any]:
        return {
            'vcpus': rng.choice((16, 32, 64)),
            'memory_mb': rng.choice((65536, 262144)),
            'hypervisor_type': 'QEMU', 'hypervisor_version': 9002000,
            'rack': f'r{rng.randrange(40)}', 'aggregates': ['a', 'b'],
            'traits': [*TRAITS, *['CUSTOM_FAST'] * (rng.random() < 0.5)],
            'flops_per_watt': rng.choice((None, 1e9, 2e9)),
            'vacant': rng.random() < 0.5,
        }

    def find_hosts(self, context: None, query: object) -> Any:
        """Answer as the engine does, see nova_preempt.rpc.EngineClient."""
        matches = host_query.parse(query).matches
        return json.loads(json.dumps([
            {'name': name, 'vacant': properties['vacant'],
             'flops_per_watt': properties['flops_per_watt']}
            for name, properties in self.hosts.items()
            if matches(properties)]))


def fill(database: db.Database, rng: random.Random, hosts: list[str],
         number: int) -> None:
    """Write reservations of one to three hosts, one after the other."""
    free = dict.fromkeys(hosts, NOW)
    rows: list[dict[str, Any]] = []
    host_rows: list[dict[str, Any]] = []
    for item in range(number):
        uuid = f'{item:036}'
        chosen = rng.sample(hosts, rng.randint(1, 3))
        start = (max(free[host] for host in chosen)
                 + rng.randrange(0, 72) * HOUR)
        end = start + rng.randint(1, 48) * HOUR
        rows.append({
            'uuid': uuid, 'created_at': NOW, 'updated_at': NOW,
            'project_id': f'p{item % 500}',
            'status': reservation_model.PENDING,
            'quantity': len(chosen), 'window_start': start,
            'duration_s': int((end - start).total_seconds()),
            'start_at': start, 'end_at': end, 'end_action': 'shelve',
            'before_end_s': 60, 'host_properties': []})
        for host in chosen:
            free[host] = end
            host_rows.append({
                'reservation_uuid': uuid, 'host': host, 'start_at': start,
                'end_at': end, 'status': reservation_model.ASSIGNED})
    with database.writer() as session:
        session.execute(sa.insert(models.Reservation), rows)
        session.execute(sa.insert(models.ReservationHost), host_rows)


class Other:
    """Another process, which changes one reservation after the other."""

    def __init__(self, database: db.Database, number: int) -> None:
        self._reservations = reservations.Reservations(database, lambda: NOW)
        self._number = number
        self._next = 0

    def change(self) -> None:
        """Move the end of a reservation a second earlier."""
        uuid = f'{self._next % self._number:036}'
        self._next += 7
        end_at = self._reservations.get(uuid).end_at
        self._reservations.set_end(
            uuid, end_at - datetime.timedelta(seconds=1))


class Times:
    """Times of many calls in ms: wall clock and processor."""

    def __init__(self, call: Callable[[], Any], repetitions: int,
                 before: Callable[[], None]) -> None:
        self.clock: list[float] = []
        self.processor: list[float] = []
        for _repetition in range(repetitions):
            before()
            begin = time.perf_counter(), time.process_time()
            call()
            end = time.perf_counter(), time.process_time()
            self.clock.append((end[0] - begin[0]) * 1000)
            self.processor.append((end[1] - begin[1]) * 1000)
        self.clock.sort()

    def __str__(self) -> str:
        p99 = self.clock[len(self.clock) * 99 // 100]
        return (f'{statistics.median(self.clock):8.2f} {p99:8.2f} '
                f'{self.clock[-1]:8.2f} '
                f'{statistics.median(self.processor):9.2f}')


def run(options: argparse.Namespace, url: str) -> bool:
    """Print the table; return whether all medians are below the target."""
    conf = cfg.ConfigOpts()
    nova_preempt.conf.register_opts(conf)
    conf([])
    conf.set_override('connection', url, 'preemption_database')
    for name in ('enabled', 'reservable_default'):
        conf.set_override(name, True, 'reservation')
    for limit in reservation_scheduler.LIMITS:
        conf.set_override(limit, -1, 'reservation')
    database = db.Database(conf)
    schema_upgrade.sync(database)
    rng = random.Random(options.seed)
    inventory = Inventory(rng, options.hosts)
    fill(database, rng, list(inventory.hosts), options.reservations)
    it = reservation_scheduler.ReservationScheduler(conf, database, inventory,
                                                    lambda: NOW)
    busy = it.reservations.calendar().busy
    other = Other(database, options.reservations)
    gc.collect()
    # A collection of what others left behind is not ours to measure.
    gc.freeze()
    print(f'{options.hosts} hosts, {options.reservations} reservations, '
          f'{sum(map(len, busy.values()))} intervals; times in ms')
    columns = f'{"median":>8} {"p99":>8} {"max":>8} {"processor":>9}'
    print(f'{"":22} {"as it is":^36}   {"read anew":^36}        '
          f'{"changed":>8}')
    print(f'{"case":22} {columns}   {columns} {"ratio":>6} '
          f'{"processor":>9}  starts after')
    good = True

    def forget() -> None:
        it.reservations._calendar._known = None

    for case, asked in CASES.items():
        if not all(part in case for part in options.case):
            continue
        quantity = asked.get('quantity', 1)
        if isinstance(quantity, float):
            quantity = max(1, int(quantity * options.hosts))
        request = reservation_scheduler.Request(**{**asked,
                                                   'quantity': quantity})

        def call(request: reservation_scheduler.Request = request) -> Any:
            return it.preview(None, 'p0', request)

        found = call()
        if found is None and case != NEVER:
            raise SystemExit(f'{case}: no hosts are found, so that nothing '
                             'would be measured')
        kept = Times(call, options.repetitions, lambda: None)
        anew = Times(call, max(3, options.repetitions // 10), forget)
        changed = Times(call, options.repetitions, other.change)
        changed_ms = statistics.median(changed.processor)
        good &= (statistics.median(kept.clock) < TARGET_MS
                 and changed_ms < TARGET_MS)
        ratio = (statistics.median(anew.processor)
                 / statistics.median(kept.processor))
        after = str(found.start_at - NOW) if found else 'never'
        print(f'{case:22} {kept}   {anew} {ratio:6.1f} {changed_ms:9.2f}  '
              f'{after}', flush=True)
    good &= print_changes(conf, database, other, options.repetitions)
    print(f'target: each median below {TARGET_MS} ms, of others after a '
          f'change below {CHANGE_MS} ms: {"met" if good else "MISSED"}')
    return good


def print_changes(conf: cfg.ConfigOpts, database: db.Database,
                  other: Other,
                  repetitions: int) -> bool:
    """Print times after a change elsewhere; return whether on target."""
    of_engine = reservations.Reservations(database, lambda: NOW)
    told = lease_event_controller.Memory()

    def events() -> None:
        nonlocal told
        told = lease_event_controller.step(of_engine.snapshot().reservations,
                                           told,
                                           reservation_model.to_us(NOW)).memory

    needed = reservation_calendar.CalendarCache(database)
    # Without its thread.
    known = lease_cache.LeaseCache(lease_cache.load_service(conf),
                                   conf.reservation)
    good = True
    print('after a change, of the processor:   all     median      max')
    for who, call in (
            ('engine: what is reserved', of_engine.snapshot),
            ('engine: what is to come', events),
            ('engine: hosts to be on', lambda: needed.read().leases.needed(
                reservation_model.to_s(NOW),
                reservation_model.to_s(NOW + 2 * HOUR))),
            ('scheduler: leases', lambda: known._ask(()))):
        first = Times(call, 1, lambda: None).processor[0]
        # As in a process that has run for a while.
        gc.collect()
        gc.freeze()
        times = Times(call, repetitions, other.change).processor
        median = statistics.median(times)
        good &= median < CHANGE_MS
        print(f'  {who:26} {first:11.2f} {median:10.2f} {max(times):8.2f}',
              flush=True)
    return good


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--reservations', type=int, default=10000)
    parser.add_argument('--repetitions', type=int, default=100)
    parser.add_argument('--seed', type=int, default=SEED)
    parser.add_argument('--database', metavar='URL',
                        help='empty database (default: a SQLite file)')
    parser.add_argument('case', nargs='*', help="part of a case's name")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        url = options.database or f'sqlite:///{directory}/bench.sqlite'
        return 0 if run(options, url) else 1


if __name__ == '__main__':
    raise SystemExit(main())
