# SPDX-License-Identifier: Apache-2.0
"""Measure how the engine reads the clocks of many servers of a class.

    python bench/classes.py [--servers N] [--database URL]

Prints the processor time of the first look of all, of one where nothing has
changed, and of the first look of another engine. README.rst says what is
measured.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import time
from typing import Any

from nova import conf as nova_conf
from nova import context as nova_context
from nova import objects
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from oslo_config import cfg
from oslo_serialization import jsonutils
import sqlalchemy as sa

from nova_preempt import db
from nova_preempt.classes import uptime_recorder
import nova_preempt.conf
from nova_preempt.core.classes import class_table
from nova_preempt.db import schema_upgrade
from nova_preempt.db import server_uptimes

CELL = '1a1f0b0e-0000-4000-8000-000000000001'
# Long ago: what has just changed is read again at each look.
THEN = datetime.datetime.fromisoformat('2026-01-01T12:00:00')
# Of the first look at 10,000 servers; Nova's objects take most of it.
FIRST_S = 10.0
IDLE_S = 0.5

TABLE = class_table.parse([
    {'name': 'gold', 'importance': '1', 'availability': '0.95'},
    {'name': 'bronze', 'importance': '3', 'availability': '0.5'}])


def at(seconds: float) -> datetime.datetime:
    return THEN + datetime.timedelta(seconds=seconds)


class Cell:
    """A cell database with servers, half of which were shelved once."""

    def __init__(self, url: str) -> None:
        self.mapping = objects.CellMapping(
            uuid=CELL, name='cell1', database_connection=url,
            transport_url='none://', disabled=False)
        self._actions: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []

    def fill(self, number: int) -> None:
        with nova_context.target_cell(
                nova_context.get_admin_context(), self.mapping) as context:
            engine = main_db.get_context_manager(context).writer.get_engine()
        main_models.BASE.metadata.create_all(engine)
        servers = [self._server(item) for item in range(number)]
        extras = [{'instance_uuid': item['uuid'], 'deleted': 0,
                   'flavor': _flavor(index % 2)}
                  for index, item in enumerate(servers)]
        for index, item in enumerate(servers):
            self._ask(item['uuid'], 'create', 0)
            if index % 2:
                self._ask(item['uuid'], 'shelve', 3600)
                self._ask(item['uuid'], 'unshelve', 7200)
        with engine.begin() as connection:
            for rows, model in ((servers, main_models.Instance),
                                (extras, main_models.InstanceExtra),
                                (self._actions, main_models.InstanceAction),
                                (self._events,
                                 main_models.InstanceActionEvent)):
                connection.execute(sa.insert(model.__table__), rows)

    @staticmethod
    def _server(number: int) -> dict[str, Any]:
        return {
            'uuid': f'00000000-0000-4000-8000-{number:012}', 'deleted': 0,
            'project_id': f'p{number % 100}', 'user_id': 'u',
            'image_ref': 'i', 'vm_state': 'active', 'host': 'h', 'node': 'n',
            'hidden': False, 'created_at': THEN, 'updated_at': at(9000),
            'launched_at': at(30)}

    def _ask(self, uuid: str, name: str, at_s: float) -> None:
        number = len(self._actions) + 1
        self._actions.append({
            'id': number, 'action': name, 'instance_uuid': uuid,
            'request_id': f'req-{number}', 'user_id': 'u',
            'project_id': 'operators', 'start_time': at(at_s),
            'created_at': at(at_s), 'deleted': 0})
        for event in {
                'create': ['conductor_schedule_and_build_instances',
                           'compute__do_build_and_run_instance'],
                'shelve': ['compute_shelve_instance'],
                'unshelve': ['compute_unshelve_instance']}[name]:
            self._events.append({
                'event': event, 'action_id': number, 'deleted': 0,
                'start_time': at(at_s + 2), 'finish_time': at(at_s + 30),
                'created_at': at(at_s + 2), 'result': 'Success'})


def _flavor(number: int) -> str:
    flavor = objects.Flavor(
        id=1, flavorid=str(number), name='spot', memory_mb=1024, vcpus=1,
        root_gb=1, ephemeral_gb=0, swap=0, rxtx_factor=1.0, vcpu_weight=0,
        disabled=False, is_public=True, description=None, extra_specs={
            'preemptible:enabled': 'true',
            'preemptible:class': ('gold', 'bronze')[number]})
    return jsonutils.dumps({'cur': flavor.obj_to_primitive(), 'old': None,
                            'new': None})


def look(clocks: uptime_recorder.UptimeRecorder) -> tuple[float, float]:
    """(seconds of the processor, seconds of the clock)."""
    cpu, clock = time.process_time(), time.monotonic()
    clocks.look()
    # It waits for a while only, and the reading goes on.
    while not clocks._since:
        time.sleep(0.1)
    return time.process_time() - cpu, time.monotonic() - clock


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--servers', type=int, default=10000)
    parser.add_argument('--database', metavar='URL')
    args = parser.parse_args()
    conf = cfg.ConfigOpts()
    nova_preempt.conf.register_opts(conf)
    conf([], default_config_files=[])
    objects.register_all()
    # Nova asks it of what kind the databases of cells are.
    nova_conf.CONF.set_override('connection', 'sqlite://', 'database')
    with tempfile.TemporaryDirectory() as directory:
        conf.set_override(
            'connection', args.database or f'sqlite:///{directory}/b.sqlite',
            'preemption_database')
        cell = Cell(f'sqlite:///{directory}/cell.sqlite')
        cell.fill(args.servers)
        return run(conf, cell, args.servers)


def run(conf: cfg.ConfigOpts, cell: Cell, number: int) -> int:
    database = db.Database(conf)
    schema_upgrade.sync(database)
    first, second = (uptime_recorder.UptimeRecorder(
        database, lambda: {CELL: cell.mapping}, TABLE) for _ in range(2))
    print(f'{number} servers of a class; seconds of the processor (of the '
          'clock)')
    begun = look(first)
    tell('the first look', begun)
    found = len(server_uptimes.find(database))
    idle = min(look(first) for _ in range(3))
    tell('nothing has changed', idle)
    other = look(second)
    tell('another engine', other)
    print(f'{found} are known')
    well = found == number and begun[0] < FIRST_S and idle[0] < IDLE_S
    print('on target' if well else
          f'MISSED: all after {FIRST_S:g} s, {IDLE_S:g} s where nothing has '
          'changed')
    return not well


def tell(what: str, took: tuple[float, float]) -> None:
    print(f'{what:24} {took[0]:7.2f} ({took[1]:.2f})')


if __name__ == '__main__':
    raise SystemExit(main())
