# SPDX-License-Identifier: Apache-2.0
"""Stores settings of reservable hosts, hidden properties and limits."""

import json

import sqlalchemy as sa

from nova_preempt.db import calendar_changes
from nova_preempt.db import models
from nova_preempt.db import reservation_calendar
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries


def get_hosts(database):
    """Return {host: row_schemas.HostSettings} of hosts with settings."""
    with database.reader() as session:
        return reservation_calendar.get_settings(session)


@transaction_retries.retried_upsert
def set_host(database, host, **values):
    """Change settings of a host; return its new HostSettings.

    :param reservable: whether it can be reserved; None for the option
    :param extra: {name of a property: value, None to unset it}; other
        properties are kept
    """
    with database.writer() as session:
        calendar_changes.raise_generation(
            session, reservations=(), hosts=(host,))
        before = reservation_calendar.get_settings(session, (host,)).get(
            host, reservation_calendar.HostSettings(host))
        settings = reservation_calendar.HostSettings(
            host, values.get('reservable', before.reservable),
            {name: value for name, value
             in {**before.extra, **values.get('extra', {})}.items()
             if value is not None})
        row_schemas.upsert(session, models.ReservableHost, {'host': host},
                         row_schemas.values(settings, 'host'))
    return settings


def get_hidden(database):
    """Return the set of names of properties that are hidden from users."""
    return set(database.scalars(sa.select(models.HiddenHostProperty.name)))


@transaction_retries.retried
def set_hidden(database, name, hidden):
    """Hide a property from users, or show it again."""
    row = models.HiddenHostProperty
    with database.writer() as session:
        calendar_changes.raise_generation(session, reservations=())
        session.execute(sa.delete(row).where(row.name == name))
        if hidden:
            session.execute(sa.insert(row).values(name=name))


def get_limits(database, project_id):
    """Return {name of an option: value} of a project's own limits."""
    row = models.ReservationLimits
    found = database.scalars(sa.select(row.limits).where(
        row.project_id == project_id))
    return json.loads(found[0]) if found else {}


@transaction_retries.retried
def set_limits(database, project_id, limits):
    """Replace the own limits of a project.

    :param limits: {name of an option: value}; {} deletes them
    """
    row = models.ReservationLimits
    with database.writer() as session:
        calendar_changes.raise_generation(session, reservations=())
        session.execute(sa.delete(row).where(row.project_id == project_id))
        if limits:
            session.execute(sa.insert(row).values(
                project_id=project_id,
                limits=json.dumps(limits, sort_keys=True)))
