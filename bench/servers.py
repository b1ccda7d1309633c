# SPDX-License-Identifier: Apache-2.0
"""Measure the cache of servers: its first load, a refresh, its memory.

    python bench/servers.py [--servers 100000]

The servers are rows of a cell database in SQLite, copies of one that the real
services have made. What the loading takes for a moment is measured as the
highest that the process has had (VmHWM) above what it had before.
"""

# Before other modules of Nova: it decides whether eventlet patches.
import copies  # isort: skip

import argparse
import datetime
import gc
import random
import time
import uuid

from nova import context as nova_context
from nova.db.main import api as cell_database

from nova_preempt.cloud import preemptible_server_cache
from nova_preempt.embedded import embedded_cloud

ON_A_HOST = 10
AT_ONCE = 5000


def fill(case, count):
    """Create a server, and copies of it."""
    case.add_host('host', vcpus=4, memory_mb=4096, disk_gb=40)
    flavor = case.create_flavor('spot', 1, 1024, 10, preemptible=True)
    original = case.boot('spot', flavor, host='host')
    case.wait(original)
    with nova_context.target_cell(nova_context.get_admin_context(),
                                  case.cell_mappings['cell1']) as context:
        rows = copies.Rows(cell_database.get_engine(context=context))
    rng = random.Random(copies.SEED)
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    for start in range(0, count, AT_ONCE):
        made = []
        for number in range(start, min(start + AT_ONCE, count)):
            host = f'host{number // ON_A_HOST:06}'
            launched = now - datetime.timedelta(seconds=rng.uniform(60, 1e6))
            made.append({
                'uuid': str(uuid.UUID(int=rng.getrandbits(128), version=4)),
                'host': host, 'node': host, 'project_id': str(number % 100),
                'created_at': launched, 'launched_at': launched,
                'updated_at': launched})
        rows.copy('instances', {'uuid': original}, made)
        for table in ('instance_extra', 'instance_info_caches',
                      'instance_system_metadata'):
            rows.copy(table, {'instance_uuid': original},
                      [{'instance_uuid': row['uuid']} for row in made])


def memory_mb(name):
    """Return VmRSS or VmHWM of this process in MiB."""
    with open('/proc/self/status') as status:
        for line in status:
            if line.startswith(name + ':'):
                return int(line.split()[1]) / 1024
    raise KeyError(name)


def timed(what, function):
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    print(f'{what}: {time.perf_counter() - wall:.2f} s, '
          f'{time.process_time() - cpu:.2f} s of processor time')


def measure(case, count):
    cache = preemptible_server_cache.ServerCache(
        lambda: case.scheduler.host_manager.cells, lambda uuids: set())
    # By default it stops waiting for a slow cell.
    cache._readings._limit_s = 3600
    gc.collect()
    with open('/proc/self/clear_refs', 'w') as clear:
        clear.write('5')                  # VmHWM begins anew
    before = memory_mb('VmRSS')
    timed(f'first load of {count} servers', cache.refresh)
    most = memory_mb('VmHWM')
    gc.collect()
    after = memory_mb('VmRSS')
    found = len(cache.servers())
    if found != count + 1:
        raise SystemExit(f'{found} servers were found')
    print(f'memory: {after - before:.0f} MB, '
          f'{1024 * (after - before) / count:.2f} kB a server; '
          f'{most - before:.0f} MB at most while loading')
    timed('a refresh without changes', cache.refresh)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--servers', type=int, default=100_000)
    args = parser.parse_args()
    with embedded_cloud.EmbeddedCloud({}, copies.OPTIONS) as case:
        fill(case, args.servers)
        measure(case, args.servers)


if __name__ == '__main__':
    main()
