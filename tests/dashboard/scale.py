# SPDX-License-Identifier: Apache-2.0
"""Measure each page on a small cloud whose databases are filled.

    make cloud-up DASHBOARD=1
    PYTHONPATH=.:tools MINICLOUD_DIR=build/minicloud \
        build/minicloud/venv/bin/python -W ignore -m tests.dashboard.scale

All services, databases and the browser are real. Only rows are invented: the
hosts have no compute service, so that this program reports for them, and
nobody has asked for the reservations, preemptions and requests. For each page
it prints the median and the largest of the times until the HTML was there, and
until the browser had drawn the page. Afterwards remove the cloud.
"""

import argparse
import datetime
import random
import re
import statistics
import sys
import threading
import uuid

from openstack import exceptions
import sqlalchemy as sa

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import backlog_models
from nova_preempt.db import models
from nova_preempt.db import row_schemas
from tests.dashboard import base
from tests.dashboard import scene
from tests.dashboard import test_robustness

SEED = 2013
TARGET_S = 1.0
# One reservation of so many is of the first project: its limit is ten.
FEW = 2000
REPORT_S = 10
HOUR = datetime.timedelta(hours=1)
DAY = 24 * HOUR
MINUTE = datetime.timedelta(minutes=1)
DAYS_OF_SAMPLES = 30
# Services that keep in memory what they have read.
CACHES = ('nova-preempt-api', 'nova-preempt-engine-1',
          'nova-preempt-engine-2', 'nova-preempt-scheduler-1',
          'nova-preempt-scheduler-2')
_BATCH = 1000
_FAILURE = re.compile('Unable to[^.]*|.*does not answer.*')


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(
        tzinfo=None, microsecond=0)


class Tables:
    """Rows of a database of the cloud."""

    def __init__(self, layout, name):
        self.engine = sa.create_engine(layout.database_url(name))
        self._known = sa.MetaData()

    def table(self, name):
        return sa.Table(name, self._known, autoload_with=self.engine)

    def copy(self, name, key, value, changes):
        """Insert copies of one row.

        :param key, value: a column and its value in this row
        :param changes: for each copy {column: value}
        """
        table = self.table(name)
        with self.engine.begin() as session:
            rows = session.execute(sa.select(table).where(
                table.c[key] == value)).mappings().all()
            insert(session, table, [
                {**{column: row[column] for column in row if column != 'id'},
                 **change} for row in rows for change in changes])


def insert(session, table, rows):
    for start in range(0, len(rows), _BATCH):
        session.execute(sa.insert(table), rows[start:start + _BATCH])


class Filler:
    """Writes rows into the databases of a cloud.

    :param projects: ids of two projects, to which preemptions and requests
        belong; reservations are of many others
    """

    def __init__(self, layout, projects, flavor):
        self._rng = random.Random(SEED)
        self._projects = projects
        self._flavor = flavor
        self._cell = Tables(layout, 'nova_cell1')
        self._api = Tables(layout, 'nova_api')
        self._placement = Tables(layout, 'placement')
        self._ours = Tables(layout, 'nova_preempt')
        self.hosts = list(layout.computes)

    def _project(self):
        return self._projects[self._rng.random() < 0.5]

    def _uuid(self):
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def add_hosts(self, number):
        """Copy the first host in Nova's and Placement's databases."""
        names = [f'host{item:04}' for item in range(
            number - len(self.hosts))]
        uuids = [self._uuid() for _name in names]
        first = self.hosts[0]
        self._cell.copy('services', 'host', first, [
            {'host': name, 'uuid': self._uuid()} for name in names])
        self._cell.copy('compute_nodes', 'host', first, [
            {'host': name, 'hypervisor_hostname': name, 'uuid': of_node}
            for name, of_node in zip(names, uuids, strict=True)])
        self._api.copy('host_mappings', 'host', first, [
            {'host': name} for name in names])
        self._placement.copy('resource_providers', 'name', first, [
            {'name': name, 'uuid': of_node, 'root_provider_id': None}
            for name, of_node in zip(names, uuids, strict=True)])
        table = self._placement.table('resource_providers')
        with self._placement.engine.begin() as session:
            session.execute(sa.update(table).where(
                table.c.root_provider_id.is_(None)).values(
                    root_provider_id=table.c.id))
            ids = dict(session.execute(
                sa.select(table.c.name, table.c.id)).all())
        for name in ('inventories', 'resource_provider_traits'):
            self._placement.copy(name, 'resource_provider_id', ids[first], [
                {'resource_provider_id': ids[each]} for each in names])
        self.hosts += names

    def report(self):
        """Have Nova take all hosts for up."""
        table = self._cell.table('services')
        with self._cell.engine.begin() as session:
            session.execute(sa.update(table).where(
                table.c.binary == 'nova-compute').values(
                    last_seen_up=now(), report_count=table.c.report_count + 1))

    def add_reservations(self, number):
        """Fill the hosts with short reservations, one after the other.

        The first ones of the hosts start within a day.
        """
        begin = now()
        free = {host: begin + self._rng.random() * DAY for host in self.hosts}
        rows, held = [], []
        for _number in range(number):
            chosen = self._rng.sample(self.hosts, self._rng.randint(1, 3))
            start = max(free[host] for host in chosen) + HOUR / 4
            end = start + self._rng.randint(1, 12) * HOUR
            row = {
                'uuid': self._uuid(), 'created_at': begin,
                'updated_at': begin, 'user_id': 'u', 'name': f'{len(rows)}',
                'project_id': (f'p{len(rows)}' if len(rows) % FEW
                               else self._projects[0]),
                'status': reservation_model.PENDING, 'quantity': len(chosen),
                'window_start': start, 'start_at': start, 'end_at': end,
                'duration_s': int((end - start).total_seconds()),
                'end_action': 'shelve', 'before_end_s': 60,
                'host_properties': []}
            rows.append(row)
            for host in chosen:
                free[host] = end
                held.append({
                    'reservation_uuid': row['uuid'], 'host': host,
                    'start_at': start, 'end_at': end,
                    'status': reservation_model.ASSIGNED})
        with self._ours.engine.begin() as session:
            insert(session, models.Reservation, rows)
            insert(session, models.ReservationHost, held)

    def add_preemptions(self, number):
        rows, victims = [], []
        for item in range(number):
            at = now() - item * MINUTE
            row = {
                'uuid': self._uuid(), 'server_uuid': self._uuid(),
                'status': 'done', 'operation': 'create', 'outcome': 'built',
                'project_id': self._project(), 'created_at': at,
                'updated_at': at + MINUTE / 2,
                'host': self._rng.choice(self.hosts), 'cost_us': 10 ** 9}
            found = [{
                'decision_uuid': row['uuid'], 'server_uuid': self._uuid(),
                'project_id': self._project(), 'flavor': 'spot.2',
                'cost_us': 10 ** 8, 'status': 'gone', 'launched_at': at,
                'deadline': at, 'ended_at': at, 'lifetime_s': 3600}
                for _victim in range(self._rng.randint(1, 5))]
            row['record'] = {
                'flavor': 'normal.5', 'why': 'a reason', 'considered': [
                    {'host': host, 'cost_us': 10 ** 9, 'victims': [
                        each['server_uuid'] for each in found]}
                    for host in (row['host'], *self._rng.sample(
                        self.hosts, 19))]}
            rows.append(row)
            victims += found
        with self._ours.engine.begin() as session:
            insert(session, models.Decision, rows)
            insert(session, models.Victim, victims)

    def add_requests(self, number):
        """Add requests that wait for more vCPUs than any host has."""
        begin = now()
        flavor = backlog_model.Alternative(
            self._flavor.id, self._flavor.name,
            {'VCPU': 1000, 'MEMORY_MB': 1024, 'DISK_GB': 1})
        with self._ours.engine.begin() as session:
            insert(session, backlog_models.BacklogRequest, [
                row_schemas.values(backlog_model.Request(
                    uuid=self._uuid(), project_id=self._project(),
                    user_id='u', trust_id='t', name=f'waits-{item}',
                    body={'server': {'name': 'a', 'networks': 'none',
                                     'imageRef': self._uuid()}},
                    compute_version='2.90', count=1, least_count=1,
                    alternatives=(flavor,), serial=item, created_at=begin,
                    updated_at=begin, waits_since=begin), 'boots', 'servers')
                for item in range(number)])

    def add_energy(self):
        """Add power states of all hosts, and samples of each minute."""
        begin = now()
        with self._ours.engine.begin() as session:
            insert(session, models.HostPower, [
                {'host': host, 'state': 'on', 'since': begin}
                for host in self.hosts])
            insert(session, models.PowerReading, [
                {'host': host, 'watts': 200.0, 'measured_at': begin}
                for host in self.hosts])
            insert(session, models.PowerSample, [
                {'sampled_at': begin - item * MINUTE, 'hosts_on': 900,
                 'hosts_busy': 800, 'hosts_asleep': 100,
                 'cores_total': 10000, 'cores_off': 1000, 'cores_used': 7000,
                 'watts': 180000.0 + self._rng.randrange(20000),
                 'watts_saved': 5000.0}
                for item in range(DAYS_OF_SAMPLES * 24 * 60)])


class Pages(base.TestCase):
    """Pages in the browser of an administrator.

    The project of the administrator is the first of Filler, too.
    """

    user = 'admin'

    def paths(self):
        ours = self.admin.preemption
        reserved = next(ours.reservations(limit=1))
        yield from test_robustness.PAGES
        yield from (
            f'/project/reservations/?days={days}' for days in (1, 14, 28))
        yield '/project/reservations/?hosts=200'
        yield '/project/reservations/create/'
        yield f'/project/reservations/{reserved.id}/'
        yield f'/project/reservations/{reserved.id}/update/'
        yield '/project/backlog/create/'
        yield f'/project/backlog/{next(ours.backlog_requests(limit=1)).id}/'
        decision = next(ours.preemptions(limit=1, all_projects=True))
        yield f'/admin/preemptions/{decision.id}/'
        yield '/admin/preemption_hosts/host/?name=compute1'
        yield '/admin/preemption_pauses/power/pause/'

    def measure(self, path, repetitions):
        """Return times in seconds, (HTML, drawn), and what has failed."""
        times, failed = [], set()
        for _number in range(repetitions):
            html_s = self.open(path)
            failed.update(_FAILURE.findall(self.text()))
            times.append((html_s, self.browser.execute_script(
                'const t = performance.getEntriesByType("navigation")[0];'
                'return (t.loadEventEnd - t.requestStart) / 1000')))
        return times, sorted(failed)


def _say(text):
    sys.stdout.write(f'{text}\n')
    sys.stdout.flush()


def show(pages, repetitions, chosen):
    """Print the table; return whether each median is on target."""
    _say(f'{"HTML s":>8} {"most":>6} {"drawn s":>8} {"most":>6}  page')
    good = True
    for path in pages.paths():
        if chosen not in path:
            continue
        times, failed = pages.measure(path, repetitions)
        html, drawn = zip(*times, strict=True)
        good &= statistics.median(html) <= TARGET_S and not failed
        _say(f'{statistics.median(html):8.2f} {max(html):6.2f} '
              f'{statistics.median(drawn):8.2f} {max(drawn):6.2f}  {path} '
             f'{" ".join(failed)}')
    _say(f'target: each median of HTML at most {TARGET_S} s: '
          f'{"met" if good else "MISSED"}')
    return good


def _hosts_up(conn):
    try:
        return sum(host.state == 'up' for host in conn.preemption.hosts())
    except exceptions.HttpException:
        # The engine reads them for the first time.
        return 0


def fill(filler, options):
    filler.add_hosts(options.hosts)
    filler.add_reservations(options.reservations)
    filler.add_preemptions(options.preemptions)
    filler.add_requests(options.requests)
    filler.add_energy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--reservations', type=int, default=10000)
    parser.add_argument('--preemptions', type=int, default=10000)
    parser.add_argument('--requests', type=int, default=2000)
    parser.add_argument('--repetitions', type=int, default=7)
    parser.add_argument('--filled', action='store_true',
                        help='the databases are filled already')
    parser.add_argument('page', nargs='?', default='',
                        help='part of the path of a page')
    options = parser.parse_args()
    pages = Pages()
    pages.setUpClass()
    filler = Filler(pages.layout, [
        pages.admin.current_project_id, pages.member.current_project_id],
        next(pages.admin.compute.flavors()))
    if not options.filled:
        fill(filler, options)
        for name in CACHES:
            pages.manager.stop(name)
            pages.manager.start(name)
    done = threading.Event()

    def keep_reporting():
        filler.report()
        while not done.wait(REPORT_S):
            filler.report()

    reporter = threading.Thread(target=keep_reporting)
    reporter.start()
    try:
        scene.until(lambda: _hosts_up(pages.admin) == options.hosts,
                    'all hosts are up')
        return 0 if show(pages, options.repetitions, options.page) else 1
    finally:
        done.set()
        reporter.join()
        pages.doClassCleanups()


if __name__ == '__main__':
    sys.exit(main())
