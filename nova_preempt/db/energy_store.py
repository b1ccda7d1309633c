# SPDX-License-Identifier: Apache-2.0
"""Stores power states, figures, readings and samples of hosts.

Hosts are identified by node name. Times are naive and UTC.
"""

import collections
import dataclasses
import datetime

import sqlalchemy as sa

from nova_preempt.core.energy import power_plan
from nova_preempt.core.energy import power_steps
from nova_preempt.db import models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

HostPower = row_schemas.HostPower
HostEfficiency = row_schemas.HostEfficiency
HostPowerReading = row_schemas.HostPowerReading
EnergySample = row_schemas.EnergySample
WakeWait = row_schemas.WakeWait


# -- power states ----------------------------------------------------------

def get_power(database, states=None):
    """Return {host: HostPower} of hosts in these states; None for any."""
    return _by_host(database, models.HostPower, HostPower, *(
        [] if states is None else [models.HostPower.state.in_(states)]))


def get_power_of(database, host):
    """Return the HostPower of a host, None if it has none."""
    return _by_host(database, models.HostPower, HostPower,
                    models.HostPower.host == host).get(host)


@transaction_retries.retried_upsert
def set_power(database, host, state, now, *, from_states, reason='',
              boot_s=None, boots=0):
    """Set the power state of a host if it has an expected one (CAS).

    A host without a row is ON. Its idle intervals are reset.

    :param boot_s: how long it took to boot; None keeps what is stored
    :param boots: see HostPower
    :returns: whether the host was in one of from_states
    """
    values = {'state': state, 'since': now, 'reason': reason,
              'idle_intervals': 0, 'boots': boots}
    if boot_s is not None:
        values['boot_s'] = boot_s
    query = (sa.update(models.HostPower) .where(models.HostPower.host == host)
             .where(models.HostPower.state.in_(from_states)) .values(**values))
    with database.writer() as session:
        if session.execute(query).rowcount:
            return True
        if power_steps.ON not in from_states or session.get(models.HostPower,
                                                            host):
            return False
        session.add(models.HostPower(host=host, **values))
        return True


def forget_power(database, hosts):
    """Delete the power states of hosts that no longer exist."""
    for names in row_schemas.batches(sorted(hosts)):
        database.write(sa.delete(models.HostPower).where(
            models.HostPower.host.in_(names)))


@transaction_retries.retried_upsert
def note_idle(database, idle, now, max_gap_s):
    """Count the successive intervals in which hosts were idle.

    :param idle: the names of hosts that are ON and idle
    :param max_gap_s: see core.energy.power_plan.max_gap_s
    :returns: {host: intervals}
    """
    idle = set(idle)
    table = models.HostPower
    with database.writer() as session:
        # Locks the rows with counts until the new counts are written.
        session.execute(sa.update(table).where(table.idle_intervals > 0)
                        .values(idle_intervals=table.idle_intervals))
        noted = session.execute(sa.select(
            table.host, table.idle_intervals, table.noted_at)).all()
        since = now - datetime.timedelta(seconds=max_gap_s)
        counts = power_plan.count_idle({
            host: intervals for host, intervals, noted_at in noted
            if noted_at is not None and noted_at >= since}, idle)
        by_count = collections.defaultdict(list)
        for host, intervals, _noted_at in noted:
            if host in idle or intervals:
                by_count[counts.get(host, 0)].append(host)
        for count, hosts in sorted(by_count.items()):
            values = {'idle_intervals': count}
            if count:
                values['noted_at'] = now
            for names in row_schemas.batches(sorted(hosts)):
                session.execute(sa.update(table).where(table.host.in_(names))
                                .values(**values))
        session.add_all(
            table(host=host, state=power_steps.ON, since=now, noted_at=now,
                  idle_intervals=counts[host])
            for host in sorted(idle - {host for host, *_ in noted}))
    return counts


# -- figures and readings --------------------------------------------------

def get_figures(database):
    """Return {host: HostEfficiency}, by name."""
    return _by_host(database, models.PowerFigures, HostEfficiency)


def put_figures(database, figures):
    """Write measured figures of hosts, replacing older figures.

    :param figures: HostEfficiency
    """
    _put(database, models.PowerFigures, figures)


def delete_figures(database, host):
    """Delete the figures of a host; return whether it had any."""
    return bool(database.write(sa.delete(models.PowerFigures).where(
        models.PowerFigures.host == host)))


def get_readings(database, since=None):
    """Return {host: HostPowerReading} of hosts read since then, by name."""
    return _by_host(database, models.PowerReading, HostPowerReading, *(
        [] if since is None else [models.PowerReading.measured_at >= since]))


def put_readings(database, readings):
    """Write the last readings of hosts.

    :param readings: HostPowerReading
    """
    _put(database, models.PowerReading, readings)


# -- what is saved ---------------------------------------------------------

@transaction_retries.retried_upsert
def add_sample(database, sample):
    """Write an EnergySample; it replaces a sample of the same second."""
    sample = dataclasses.replace(
        sample, sampled_at=sample.sampled_at.replace(microsecond=0))
    with database.writer() as session:
        row_schemas.upsert(session, models.PowerSample,
                           {'sampled_at': sample.sampled_at},
                           row_schemas.values(sample, 'sampled_at'))


def get_samples(database, since=None, until=None):
    """Return [EnergySample] in [since, until), oldest first.

    The sample that is still valid at since is not among them.
    """
    return _between(database, models.PowerSample.sampled_at, EnergySample,
                    since, until)


def add_wake(database, wake):
    """Write a WakeWait."""
    database.write(sa.insert(models.WakeWait).values(**vars(wake)))


def set_duration(database, server_uuid, duration_s):
    """Write how long a server ran after it was deleted."""
    database.write(sa.update(models.WakeWait).where(
        models.WakeWait.server_uuid == server_uuid,
        models.WakeWait.duration_s.is_(None)).values(duration_s=duration_s))


def get_wakes(database, since=None, until=None):
    """Return [WakeWait] in [since, until), oldest first."""
    return _between(database, models.WakeWait.waited_at, WakeWait, since,
                    until)


def purge(database, before):
    """Delete samples and waits from before then; return their number."""
    return sum(database.write(sa.delete(column.class_).where(column < before))
               for column in (models.PowerSample.sampled_at,
                              models.WakeWait.waited_at))


def _by_host(database, table, cls, *conditions):
    """Return {host: object of a row schema} of rows that match conditions."""
    query = row_schemas.select(table, cls)
    return {row.host: cls(*row) for row in sorted(
        database.read(query.where(*conditions) if conditions else query),
        key=lambda row: row.host)}


def _between(database, time, cls, since, until):
    """Return objects of a row schema with a time in [since, until), sorted."""
    query = row_schemas.select(time.class_, cls).order_by(
        time, *time.class_.__table__.primary_key)
    return [cls(*row) for row in database.read(
        row_schemas.between(query, time, since, until))]


@transaction_retries.retried_upsert
def _put(database, table, items):
    """Write one item per host, replacing older ones."""
    with database.writer() as session:
        for item in sorted(items, key=lambda item: item.host):
            row_schemas.upsert(session, table, {'host': item.host},
                               row_schemas.values(item, 'host'))
