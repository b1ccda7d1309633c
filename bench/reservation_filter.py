# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of reservations for requests and background refreshes.

    python bench/reservation_filter.py [--hosts N] [--reservations N]
                                       [--repetitions N]

The hosts are Nova's host states, filtered and weighed by Nova's handlers with
Nova's default filters and weighers, without ours and with them. The
reservations are in a real database, a SQLite file.
"""

import argparse
import datetime
import logging
import os
import statistics
import tempfile
import time

from nova import objects
import nova.conf
from nova.scheduler import filters
from nova.scheduler import host_manager
from nova.scheduler import weights
import sqlalchemy as sa

from nova_preempt import db
import nova_preempt.conf
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import models
from nova_preempt.db import reservations
from nova_preempt.db import schema_upgrade
from nova_preempt.reservation import lease_cache
from nova_preempt.scheduler.filters import reservation_filter
from nova_preempt.scheduler.weights import reservation_weigher

CONF = nova.conf.CONF

DAY_S = 86400


def make_reservations(database, hosts, number):
    """Write reservations of one host each, a day apart on a host."""
    start = datetime.datetime.now(datetime.timezone.utc).replace(
        tzinfo=None, microsecond=0)
    rows, assigned = [], []
    for index in range(number):
        begin = start + datetime.timedelta(
            days=index // hosts, seconds=index % hosts)
        times = {'start_at': begin,
                 'end_at': begin + datetime.timedelta(hours=8)}
        rows.append({
            'uuid': f'r{index}', 'created_at': start, 'updated_at': start,
            'project_id': 'p', 'quantity': 1,
            'status': 'pending' if index else 'active',
            'duration_s': 8 * 3600, 'window_start': begin,
            'end_action': 'shelve', 'before_end_s': 0,
            'host_properties': [], **times})
        assigned.append({'reservation_uuid': f'r{index}', 'status': 'assigned',
                         'host': f'host{index % hosts}', **times})
    with database.writer() as session:
        session.execute(sa.insert(models.Reservation), rows)
        session.execute(sa.insert(models.ReservationHost), assigned)


def make_host(number):
    state = host_manager.HostState(f'host{number}', f'host{number}', None)
    state.uuid = f'uuid{number}'
    state.service = {'disabled': False}
    state.free_ram_mb = state.total_usable_ram_mb = 1024 * (number % 64)
    state.vcpus_total = 64
    state.cpu_allocation_ratio = state.ram_allocation_ratio = 1.0
    state.hypervisor_type = 'QEMU'
    state.supported_instances = []
    state.hypervisor_version = 1
    return state


def make_spec(hints):
    return objects.RequestSpec(
        instance_uuid='155d900f-4e14-4e4c-a73d-069cbf4541e6', project_id='p',
        scheduler_hints=hints, image=objects.ImageMeta(
            properties=objects.ImageMetaProps()),
        flavor=objects.Flavor(extra_specs={}, memory_mb=1, vcpus=1,
                              root_gb=1, ephemeral_gb=0, swap=0),
        instance_group=None, pci_requests=None, numa_topology=None)


def of_nova():
    """Nova's default filters and weighers."""
    names = set(CONF.filter_scheduler.enabled_filters) - {
        'ComputeFilter', 'ReservationFilter'}   # the first asks a service
    return ([cls() for cls in filters.all_filters()
             if cls.__name__ in names],
            [cls() for cls in weights.all_weighers()])


def median_ms(repetitions, function, before=lambda: None):
    times = []
    for _ in range(repetitions):
        before()
        start = time.process_time()
        function()
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description='What reservations cost.')
    parser.add_argument('--hosts', type=int, default=1000, metavar='N')
    parser.add_argument('--reservations', type=int, default=10_000,
                        metavar='N')
    parser.add_argument('--repetitions', type=int, default=50, metavar='N')
    args = parser.parse_args()
    objects.register_all()
    nova_preempt.conf.register_opts(CONF)
    logging.disable(logging.INFO)
    CONF([], default_config_files=[])
    CONF.set_override('enabled_filters', [
        *CONF.filter_scheduler.enabled_filters, 'ReservationFilter'],
        'filter_scheduler')
    with tempfile.TemporaryDirectory() as folder:
        CONF.set_override(
            'connection', f'sqlite:///{os.path.join(folder, "db.sqlite")}',
            'preemption_database')
        measure(args)


def measure(args):
    database = db.Database(CONF)
    schema_upgrade.sync(database)
    make_reservations(database, args.hosts, args.reservations)
    hosts = [make_host(number) for number in range(args.hosts)]
    known = lease_cache.current(CONF)
    writer = reservations.Reservations(database)
    first_ms = median_ms(1, lambda: known._ask(()))
    change_ms = median_ms(
        args.repetitions, lambda: known._ask(()),
        before=lambda: writer.update('r0', status=reservation_model.ACTIVE))
    next_ms = median_ms(args.repetitions, lambda: known._ask(()))
    print(f'{args.hosts} hosts, {args.reservations} reservations; processor '
          'time, ms, median')
    print(f'  refresh in the background: {first_ms:.1f} of all, '
          f'{change_ms:.2f} after a change, {next_ms:.2f} without')
    # From here on nobody disturbs the measurement.
    now_s = time.monotonic()
    known._monotonic = lambda: now_s
    known.start = lambda: None
    for label, hints in (('no hint', {}), ('hint', {'reservation': ['r0']})):
        print_shares(args.repetitions, label, make_spec(hints), hosts)


def print_shares(repetitions, label, spec_obj, hosts):
    filter_handler = filters.HostFilterHandler()
    weight_handler = weights.HostWeightHandler()
    theirs, weighers = of_nova()
    ours = [reservation_filter.ReservationFilter()]

    def decide(used_filters, used_weighers):
        filter_handler.get_filtered_objects(used_filters, hosts, spec_obj)
        # All of them, whatever was filtered: as many as without ours.
        weight_handler.get_weighed_objects(used_weighers, hosts, spec_obj)

    nova_ms = median_ms(repetitions, lambda: decide(theirs, weighers))
    both_ms = median_ms(repetitions, lambda: decide(
        theirs + ours,
        [*weighers, reservation_weigher.ReservationFreeTimeWeigher()]))
    filter_ms = median_ms(
        repetitions, lambda: ours[0].filter_all(hosts, spec_obj))
    print(f'  {label}: our filter {filter_ms:.2f}; all filters and weighers '
          f'{nova_ms:.1f} without ours, {both_ms:.1f} with them')


if __name__ == '__main__':
    main()
