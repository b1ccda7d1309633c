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
"""Energy in the database: power states, figures, readings, samples.

Hosts go by their node names. Times are naive and UTC. As everywhere here a
transaction begins with a write.
"""

import collections
import dataclasses
import datetime
import math

import sqlalchemy as sa

from nova_preempt.core import times
from nova_preempt.core.energy import power
from nova_preempt.core.energy import steps
from nova_preempt.db import models
from nova_preempt.db import retries

# States of a host.
ON = steps.ON
EMPTYING = steps.EMPTYING
SLEEPING = steps.SLEEPING
ASLEEP = steps.ASLEEP
WAKING = steps.WAKING
FAILED = steps.FAILED
STATES = steps.STATES

# So many hosts are named in one statement.
_BATCH = 500


@dataclasses.dataclass(frozen=True)
class HostPower:
    """A host that has been noted as idle, or was switched.

    :param boot_s: how long its last boot has taken, None if not seen yet
    :param boots: how many boots beyond the first were begun to wake it
    """

    host: str
    state: str
    since: datetime.datetime
    reason: str = ''
    idle_intervals: int = 0
    noted_at: datetime.datetime | None = None
    boot_s: float | None = None
    boots: int = 0

    @property
    def since_us(self):
        return times.microseconds(self.since)


@dataclasses.dataclass(frozen=True)
class HostFigures:
    """What a host delivers and draws; see core.energy.efficiency.Figures."""

    host: str
    flops: float | None
    watts: float | None
    idle_watts: float | None
    measured_at: datetime.datetime
    source: str = ''


@dataclasses.dataclass(frozen=True)
class HostReading:
    """What a host drew when it was last read."""

    host: str
    watts: float
    measured_at: datetime.datetime
    source: str = ''


@dataclasses.dataclass(frozen=True)
class Sample:
    """The whole cloud at a time; see core.energy.savings.Sample.

    :param hosts_on: with those that are booting
    :param hosts_busy: with servers, for the forecast
    """

    sampled_at: datetime.datetime
    hosts_on: int
    hosts_busy: int
    hosts_asleep: int
    cores_total: int
    cores_off: int
    cores_used: int
    watts: float | None = None
    watts_saved: float = 0.0


@dataclasses.dataclass(frozen=True)
class Wake:
    """A server whose request has waited for hosts to wake.

    :param duration_s: how long it ran, None while it is there
    """

    server_uuid: str
    waited_at: datetime.datetime
    cores: int
    boot_s: float
    duration_s: float | None = None


# -- power states ----------------------------------------------------------

def get_power(database, states=None):
    """{host: HostPower} of those that are in one of the states, if given."""
    query = sa.select(models.HostPower).order_by(models.HostPower.host)
    if states is not None:
        query = query.where(models.HostPower.state.in_(states))
    return {item.host: item
            for item in _select(database, query, HostPower)}


def get_power_of(database, host):
    """The HostPower of one host, None if nothing is written of it."""
    query = sa.select(models.HostPower).where(models.HostPower.host == host)
    return next(iter(_select(database, query, HostPower)), None)


@retries.retried_upsert
def set_power(database, host, state, now, *, from_states, reason='',
              boot_s=None, boots=0):
    """Move a host on to another state, if it is in one of some (CAS).

    A host of which nothing is written is ON. It has not been idle for any
    interval afterwards.

    :param boot_s: how long it took to boot, if it has
    :param boots: see HostPower
    :returns: whether it was
    """
    values = {'state': state, 'since': now, 'reason': reason,
              'idle_intervals': 0, 'boots': boots}
    if boot_s is not None:
        values['boot_s'] = boot_s
    query = (sa.update(models.HostPower)
             .where(models.HostPower.host == host)
             .where(models.HostPower.state.in_(from_states))
             .values(**values))
    with database.writer() as session:
        if session.execute(query).rowcount:
            return True
        if ON not in from_states or session.get(models.HostPower, host):
            return False
        session.add(models.HostPower(host=host, **values))
        return True


def forget_power(database, hosts):
    """Delete what is written of the states of hosts that are no more."""
    with database.writer() as session:
        for names in _batches(hosts):
            session.execute(sa.delete(models.HostPower).where(
                models.HostPower.host.in_(names)))


@retries.retried_upsert
def note_idle(database, idle, now, max_gap_s):
    """Count for how many intervals in a row hosts have been idle.

    :param idle: the names of those that are ON and idle; all others are not
    :param max_gap_s: see core.energy.power.count_idle
    :returns: {host: intervals}
    """
    idle = set(idle)
    table = models.HostPower
    with database.writer() as session:
        # Nobody changes those that count before the new counts are there.
        session.execute(sa.update(table).where(table.idle_intervals > 0)
                        .values(idle_intervals=table.idle_intervals))
        noted = {
            host: power.Noted(intervals, _age_s(noted_at, now))
            for host, intervals, noted_at in session.execute(sa.select(
                table.host, table.idle_intervals, table.noted_at))}
        counts = power.count_idle(noted, idle, max_gap_s)
        by_count = collections.defaultdict(list)
        for host, item in noted.items():
            if host in idle or item.intervals:
                by_count[counts.get(host, 0)].append(host)
        for count, hosts in sorted(by_count.items()):
            values = {'idle_intervals': count}
            if count:
                values['noted_at'] = now
            for names in _batches(hosts):
                session.execute(sa.update(table).where(table.host.in_(names))
                                .values(**values))
        session.add_all(
            table(host=host, state=ON, since=now, noted_at=now,
                  idle_intervals=counts[host])
            for host in sorted(idle - noted.keys()))
    return counts


def _age_s(time, now):
    return math.inf if time is None else (now - time).total_seconds()


# -- figures and readings --------------------------------------------------

def get_figures(database):
    """{host: HostFigures}, by name."""
    query = sa.select(models.PowerFigures).order_by(models.PowerFigures.host)
    return {item.host: item
            for item in _select(database, query, HostFigures)}


def put_figures(database, figures):
    """Write what was measured of hosts, in place of what was there.

    :param figures: HostFigures
    """
    _put(database, models.PowerFigures, figures)


def delete_figures(database, host):
    """Whether there were any."""
    with database.writer() as session:
        return bool(session.execute(
            sa.delete(models.PowerFigures)
            .where(models.PowerFigures.host == host)).rowcount)


def get_readings(database, since=None):
    """{host: HostReading} of those read since then, by name."""
    query = sa.select(models.PowerReading).order_by(models.PowerReading.host)
    if since is not None:
        query = query.where(models.PowerReading.measured_at >= since)
    return {item.host: item
            for item in _select(database, query, HostReading)}


def put_readings(database, readings):
    """Write the last readings of hosts.

    :param readings: HostReading
    """
    _put(database, models.PowerReading, readings)


# -- what is saved ---------------------------------------------------------

@retries.retried_upsert
def add_sample(database, sample):
    """Write a Sample; the last one of a second stays."""
    sample = dataclasses.replace(
        sample, sampled_at=sample.sampled_at.replace(microsecond=0))
    table = models.PowerSample
    values = dataclasses.asdict(sample)
    with database.writer() as session:
        if not session.execute(
                sa.update(table)
                .where(table.sampled_at == sample.sampled_at)
                .values(**values)).rowcount:
            session.add(table(**values))


def get_samples(database, since=None, until=None):
    """[Sample], oldest first, in [since, until).

    What is there before since, the last one, is not among them.
    """
    table = models.PowerSample
    query = sa.select(table).order_by(table.sampled_at)
    return _select(database, _between(query, table.sampled_at, since, until),
                   Sample)


def add_wake(database, wake):
    with database.writer() as session:
        session.add(models.Wake(**dataclasses.asdict(wake)))


def set_duration(database, server_uuid, duration_s):
    """Write how long a server ran, once it is gone."""
    query = (sa.update(models.Wake)
             .where(models.Wake.server_uuid == server_uuid)
             .where(models.Wake.duration_s.is_(None))
             .values(duration_s=duration_s))
    with database.writer() as session:
        session.execute(query)


def get_wakes(database, since=None, until=None):
    """[Wake], oldest first, in [since, until)."""
    table = models.Wake
    query = sa.select(table).order_by(table.waited_at, table.id)
    return _select(database, _between(query, table.waited_at, since, until),
                   Wake)


def purge(database, before):
    """Delete samples and waits from before then; how many."""
    with database.writer() as session:
        return sum(
            session.execute(sa.delete(column.class_).where(
                column < before)).rowcount
            for column in (models.PowerSample.sampled_at,
                           models.Wake.waited_at))


def _select(database, query, cls):
    names = [field.name for field in dataclasses.fields(cls)]
    with database.reader() as session:
        return [cls(**{name: getattr(row, name) for name in names})
                for row in session.execute(query).scalars()]


@retries.retried_upsert
def _put(database, table, items):
    """Write an item a host, in place of what is there."""
    with database.writer() as session:
        for item in sorted(items, key=lambda item: item.host):
            values = dataclasses.asdict(item)
            if not session.execute(
                    sa.update(table).where(table.host == item.host)
                    .values(**values)).rowcount:
                session.add(table(**values))


def _between(query, column, since, until):
    if since is not None:
        query = query.where(column >= since)
    if until is not None:
        query = query.where(column < until)
    return query


def _batches(names):
    names = sorted(names)
    for start in range(0, len(names), _BATCH):
        yield names[start:start + _BATCH]
