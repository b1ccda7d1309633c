# SPDX-License-Identifier: Apache-2.0
"""Replaces the services that nova_preempt calls.

The database is real, one file for all processes; its transactions are seams,
and its clock is that of the world.
"""

import contextlib
import datetime
import sqlite3
from unittest import mock

from nova import rpc as nova_rpc
from nova.compute import utils as compute_utils
from nova.scheduler import request_filter
from nova.scheduler.client import report
from oslo_db import exception as db_exc
import sqlalchemy as sa
from sqlalchemy.ext import compiler

from nova_preempt import rpc
from nova_preempt.cloud import host_records
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_api
from nova_preempt.db import database_clock
from nova_preempt.engine import periodic_tasks
from nova_preempt.handover import process_lease
from nova_preempt.reservation import lease_cache
from nova_preempt.reservation import lease_event_loop
from nova_preempt.scheduler import host_states
from tests.exploration import bus
from tests.exploration import keystone
from tests.exploration import memory_database
from tests.exploration import nova_client
from tests.exploration import nova_records
from tests.exploration import processes
from tests.exploration import substitutes
from tests.exploration import tasks


@compiler.compiles(database_clock.SecondsFromNow, 'sqlite')
def _explored_clock(element, builder, **kwargs):
    return f'explored_after({builder.process(element.clauses, **kwargs)})'


def _explored_after(seconds):
    later = substitutes.LOOP.utcnow() + datetime.timedelta(
        seconds=float(seconds))
    return f'{later:%Y-%m-%d %H:%M:%S.%f}'


@sa.event.listens_for(sa.engine.Engine, 'connect')
def _add_clock(dbapi_connection, _record):
    if isinstance(dbapi_connection, sqlite3.Connection):
        dbapi_connection.create_function('explored_after', 1, _explored_after)


def _is_up(service):
    return service['is_up'] if isinstance(service, dict) else service.is_up


def _holder(world):
    """Return LockFiles.hold() that notes which process holds the lock."""
    def hold(lock_files, name):
        real(lock_files, name)
        world.loop.current.process.lock_files.append(lock_files)
    real = process_lease.LockFiles.hold
    return hold


def _cell_check(world):
    """Return NovaAPI.check_cell() that records the notices it refuses."""
    def check(api, method, uuid):
        try:
            real(api, method, uuid)
        except nova_api.NovaError:
            if method == 'set_meta':
                # The eviction goes on from now.
                world.watcher.unnoticed(uuid)
            raise
    real = nova_api.NovaAPI.check_cell
    return check


def patches(world):
    """Return the mock patches that put a world.World in place."""
    return (
        *nova_records.Records(world).patches(),
        mock.patch.object(report, 'report_client_singleton',
                          lambda: processes.ReportClient(world)),
        mock.patch.object(nova_api.NovaAPI, '_get_client',
                          lambda _api: nova_client.Client(world)),
        mock.patch.object(nova_api.NovaAPI, 'check_cell',
                          _cell_check(world)),
        mock.patch.object(nova_api, 'load_session',
                          lambda _conf: keystone.Session(world)),
        mock.patch.object(
            keystone_trusts.Trusts, '_session',
            lambda _trusts, **values: keystone.Session(
                world, values.get('trust_id'))),
        # All have disks of their hosts.
        mock.patch.object(compute_utils, 'is_volume_backed_instance',
                          lambda context, instance, bdms=None: False),
        mock.patch.object(request_filter, 'process_reqspec',
                          lambda context, spec_obj: True),
        mock.patch.object(nova_rpc, 'NOTIFIER', mock.Mock(
            is_enabled=lambda: False)),
        mock.patch.object(host_states, 'FEW', -1),
        mock.patch.object(rpc.EngineClient, '_send', bus.sender(world)),
        mock.patch.object(lease_cache, 'current', world.current_leases),
        # Most of its readings find nothing, and take time, as do those of an
        # engine that does not lead.
        mock.patch.object(lease_event_loop, 'POLL_S', 5.0),
        mock.patch.object(periodic_tasks, 'RETRY_S', 20.0),
        mock.patch.object(periodic_tasks.TaskHealth, 'run',
                          tasks.noting(world.loop,
                                       periodic_tasks.TaskHealth.run)),
        mock.patch.object(host_records, 'is_up', _is_up),
        mock.patch.object(process_lease.LockFiles, 'hold', _holder(world)),
        *_transactions(world))


def _transactions(world):
    """The transactions, before and after which other tasks may go on."""
    inside = set()                # tasks within a transaction

    def seamed(name, transaction):
        @contextlib.contextmanager
        def within(database):
            task = world.loop.current
            if task is None or task in inside:
                with transaction(database) as session:
                    yield session
                return
            world.seam('database', 'begin')
            inside.add(task)
            try:
                with transaction(database) as session:
                    yield session
            finally:
                inside.remove(task)
            if world.faults.draw() == 'lost':
                world.loop.tell('answer lost', 'database')
                raise db_exc.DBConnectionError('explored: answer lost')
            world.loop.switch()
        return within

    database = memory_database.MemoryDatabase
    return [mock.patch.object(database, name, seamed(
        name, getattr(database, name))) for name in ('reader', 'writer')]
