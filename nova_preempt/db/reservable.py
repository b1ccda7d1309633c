# SPDX-License-Identifier: Apache-2.0
"""What administrators say of reservations: hosts, properties and limits."""

import json

import sqlalchemy as sa

from nova_preempt.db import calendar
from nova_preempt.db import changes
from nova_preempt.db import models
from nova_preempt.db import retries
from nova_preempt.db import rows


def get_hosts(database):
    """{host: calendar.HostSettings} of those of which something is said."""
    with database.reader() as session:
        return calendar.get_settings(session)


@retries.retried_upsert
def set_host(database, host, **values):
    """Change what is said of a host; the HostSettings as they are then.

    :param reservable: whether it can be reserved; None as the option says
    :param extra: {name of a property: value, None to unset it}; others stay
    """
    with database.writer() as session:
        changes.raise_generation(session, reservations=(), hosts=(host,))
        before = calendar.get_settings(session, (host,)).get(
            host, calendar.HostSettings(host))
        settings = calendar.HostSettings(
            host, values.get('reservable', before.reservable),
            {name: value for name, value
             in {**before.extra, **values.get('extra', {})}.items()
             if value is not None})
        rows.upsert(session, models.ReservableHost, {'host': host},
                    rows.values(settings, 'host'))
    return settings


def get_hidden(database):
    """The set of the names of properties that users are not to see."""
    return set(database.scalars(sa.select(models.HiddenProperty.name)))


@retries.retried
def set_hidden(database, name, hidden):
    """Hide a property from users, or show it again."""
    row = models.HiddenProperty
    with database.writer() as session:
        changes.raise_generation(session, reservations=())
        session.execute(sa.delete(row).where(row.name == name))
        if hidden:
            session.execute(sa.insert(row).values(name=name))


def get_limits(database, project_id):
    """{name of an option: value}: a project's own limits, {} if none."""
    row = models.ReservationLimits
    found = database.scalars(sa.select(row.limits).where(
        row.project_id == project_id))
    return json.loads(found[0]) if found else {}


@retries.retried
def set_limits(database, project_id, limits):
    """Give a project limits of its own in place of all before.

    :param limits: {name of an option: value}; {} for none
    """
    row = models.ReservationLimits
    with database.writer() as session:
        changes.raise_generation(session, reservations=())
        session.execute(sa.delete(row).where(row.project_id == project_id))
        if limits:
            session.execute(sa.insert(row).values(
                project_id=project_id,
                limits=json.dumps(limits, sort_keys=True)))
