# SPDX-License-Identifier: Apache-2.0
"""Tables, generated from row schemas of this package and of the core."""

import collections.abc
import dataclasses
import datetime
import json
import types
import typing

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import mysql

from nova_preempt.core import eviction_rates
from nova_preempt.core import quotas
from nova_preempt.core import webhook_delivery
from nova_preempt.core.energy import wake_choice
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import row_schemas

Base = orm.declarative_base()

UUID = row_schemas.UUID
BIG_ID = sa.BigInteger().with_variant(sa.Integer, 'sqlite')
# Records name every candidate host: too long for MySQL's TEXT.
JSON_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


class Json(sa.types.TypeDecorator):
    """A column type that stores values as JSON.

    :param sort_keys: whether keys of objects are sorted; otherwise they keep
        their order
    """

    impl = sa.Text
    cache_ok = True

    def __init__(self, sort_keys=True):
        super().__init__()
        self.sort_keys = sort_keys

    def load_dialect_impl(self, dialect):
        return dialect.type_descriptor(
            mysql.MEDIUMTEXT() if dialect.name in ('mysql', 'mariadb')
            else sa.Text())

    def process_bind_param(self, value, dialect):
        return value if value is None else json.dumps(
            value, sort_keys=self.sort_keys)

    def process_result_value(self, value, dialect):
        return value if value is None else json.loads(value)


_TYPES = {str: sa.String(255), int: sa.Integer(), bool: sa.Boolean(),
          float: sa.Float(precision=53), dict: Json(),
          list: Json(sort_keys=False),
          collections.abc.Mapping: Json(sort_keys=False),
          datetime.datetime: sa.DateTime()}


def _columns(row, key, without, required, changed):
    """Yield the columns of a row schema; parameters as of mapped()."""
    hints = typing.get_type_hints(row, include_extras=True)
    for field in dataclasses.fields(row):
        if field.name in without:
            continue
        found = typing.get_args(hints[field.name])
        nullable = types.NoneType in found
        hint = found[0] if nullable else hints[field.name]
        type_ = changed.get(field.name) or getattr(
            hint, '__metadata__', [None])[0] or _TYPES[
                typing.get_origin(hint) or hint]
        default = (field.default if field.default_factory
                   is dataclasses.MISSING else field.default_factory)
        settings = {} if default in (dataclasses.MISSING, None) else {
            'default': default}
        yield sa.Column(
            field.name, type_, primary_key=field.name in key,
            nullable=nullable and field.name not in required, **settings)


def mapped(table, row, key, *more, indexes=None, without=(), required=(),
           attributes=None, options=None, **changed):
    """Return the model of a table for a row schema.

    :param key: names of the fields in the primary key
    :param more: columns that are not fields of the row schema
    :param indexes: {name: names of columns}
    :param without: fields that are not columns
    :param required: fields that are None in new objects only
    :param attributes: further attributes of the model
    :param options: of the table
    :param changed: {field: column type} where it differs from the field's
    """
    return type(row.__name__, (Base,), {
        '__table__': sa.Table(
            table, Base.metadata, *more,
            *_columns(row, key, without, required, changed),
            *(sa.Index(name, *names)
              for name, names in (indexes or {}).items()),
            **(options or {})),
        **(attributes or {})})


Decision = mapped(
    'decisions', row_schemas.Decision, ['uuid'],
    indexes={'decisions_status_idx': ['status'],
             'decisions_server_uuid_idx': ['server_uuid'],
             'decisions_request_id_idx': ['request_id'],
             'decisions_created_at_idx': ['created_at', 'uuid'],
             'decisions_project_id_idx': ['project_id'],
             'decisions_outcome_idx': ['outcome']},
    without=['victims'], required=['created_at', 'updated_at'],
    attributes={'victims': orm.relationship(
        'Victim', order_by='Victim.server_uuid', lazy='joined',
        cascade='all, delete-orphan')})

Victim = mapped(
    'victims', row_schemas.Victim, ['server_uuid'],
    sa.Column('decision_uuid', UUID, sa.ForeignKey(
        'decisions.uuid', ondelete='CASCADE'), primary_key=True),
    indexes={'victims_server_uuid_idx': ['server_uuid'],
             'victims_status_idx': ['status'],
             'victims_project_id_idx': ['project_id'],
             'victims_ended_at_idx': ['ended_at']})

EvictionSample = mapped(
    'eviction_samples', eviction_rates.Sample, [],
    sa.Column('id', BIG_ID, primary_key=True, autoincrement=True),
    indexes={'eviction_samples_at_idx': ['at']})

Pause = mapped('pauses', row_schemas.Pause, ['what'])

Webhook = mapped('webhooks', webhook_delivery.Webhook, ['project_id'],
                 url=sa.Text(), sealed=sa.Text(), last_error=sa.Text())

WebhookDelivery = mapped(
    'webhook_deliveries', webhook_delivery.Delivery, ['id'],
    indexes={'webhook_deliveries_project_id_idx': ['project_id', 'next_at'],
             'webhook_deliveries_expires_at_idx': ['expires_at']},
    body=sa.Text())

QuotaClaim = mapped(
    'quota_claims', quotas.QuotaClaim, [],
    sa.Column('id', BIG_ID, primary_key=True, autoincrement=True),
    sa.Column('project_id', sa.String(255), nullable=False),
    sa.Column('expires_at', sa.DateTime, nullable=False),
    indexes={'quota_claims_project_id_idx': ['project_id'],
             'quota_claims_expires_at_idx': ['expires_at']},
    # Ids are never reused, so a late delete hits no other row.
    options={'sqlite_autoincrement': True}, without=['id'], server_uuid=UUID)

Reservation = mapped(
    'reservations', reservation_model.Reservation, ['uuid'],
    indexes={'reservations_status_idx': ['status'],
             'reservations_project_id_idx': ['project_id'],
             'reservations_created_at_idx': ['created_at', 'uuid']},
    without=['hosts'], required=['created_at', 'updated_at'],
    uuid=UUID, status=sa.String(20), end_action=sa.String(20),
    reason=sa.Text(), public_reason=sa.Text(), duration_s=sa.BigInteger())

# Repeats the times of the reservation, so that no join is needed.
ReservationHost = mapped(
    'reservation_hosts', reservation_model.Assignment, ['host'],
    sa.Column('reservation_uuid', UUID, sa.ForeignKey(
        'reservations.uuid', ondelete='CASCADE'), primary_key=True),
    indexes={'reservation_hosts_host_idx': ['host', 'start_at']},
    status=sa.String(20), reason=sa.Text(), public_reason=sa.Text())

ReservationMove = mapped('reservation_moves', row_schemas.Move, [],
                         sa.Column('server_uuid', UUID, primary_key=True))

ReservableHost = mapped('reservable_hosts', row_schemas.HostSettings, ['host'])

HostPower = mapped('host_power', row_schemas.HostPower, ['host'],
                   indexes={'host_power_state_idx': ['state']})

PowerPromise = mapped(
    'power_promises', wake_choice.Promise, ['request', 'host'],
    sa.Column('promised_at', sa.DateTime, nullable=False), request=UUID)

PowerFigures = mapped('power_figures', row_schemas.HostEfficiency, ['host'])

PowerReading = mapped('power_readings', row_schemas.HostPowerReading, ['host'])

PowerSample = mapped('power_samples', row_schemas.EnergySample, ['sampled_at'])

WakeWait = mapped('wakes', row_schemas.WakeWait, [],
                  sa.Column('id', sa.Integer, primary_key=True),
                  indexes={'wakes_waited_at_idx': ['waited_at'],
                           'wakes_server_uuid_idx': ['server_uuid']})


# Includes a core.classes.server_clocks.ClockState; times are in microseconds.
ServerUptime = mapped(
    'class_servers', row_schemas.ServerUptime, ['uuid'],
    *(sa.Column(name, sa.BigInteger(), nullable=False)
      for name in row_schemas.MARK_COLUMNS),
    indexes={'class_servers_cell_uuid_idx': ['cell_uuid']}, without=['clocks'])


class Lock(Base):
    """A named lock: a transaction locks its row to serialize writers."""

    __tablename__ = 'locks'

    name = sa.Column(sa.String(20), primary_key=True)


class Owner(Base):
    """A process that owns decisions, with the expiry of its lease.

    The database's clock dates the lease.
    """

    __tablename__ = 'owners'

    name = sa.Column(sa.String(300), primary_key=True)
    expires_at = sa.Column(sa.DateTime, nullable=False)


class Leader(Base):
    """The owner whose engine leads, '' if there is none."""

    __tablename__ = 'leaders'

    name = sa.Column(sa.String(20), primary_key=True)
    owner = sa.Column(sa.String(300), nullable=False)


class PreemptibleHint(Base):
    """A server made preemptible by a scheduler hint.

    Nova's record of a server has its flavor but not its hints.
    """

    __tablename__ = 'preemptible_servers'

    uuid = sa.Column(UUID, primary_key=True)
    created_at = sa.Column(sa.DateTime, nullable=False)


class HiddenHostProperty(Base):
    """A property of hosts that is hidden from users."""

    __tablename__ = 'hidden_properties'

    name = sa.Column(sa.String(255), primary_key=True)


class ReservationLimits(Base):
    """Limits of a project, which override the options."""

    __tablename__ = 'reservation_limits'

    project_id = sa.Column(sa.String(255), primary_key=True)
    # JSON: {name of the option: value}
    limits = sa.Column(sa.Text, nullable=False)


class Counter(Base):
    """A growing number; a transaction that raises it holds it as a lock."""

    __tablename__ = 'counters'

    name = sa.Column(sa.String(20), primary_key=True)
    value = sa.Column(sa.BigInteger, nullable=False)


class CalendarChange(Base):
    """A change of the calendar, see calendar_changes."""

    __tablename__ = 'calendar_changes'

    # The counter's value after the change.
    generation = sa.Column(sa.BigInteger, primary_key=True,
                           autoincrement=False)
    # Unique: the generation may recur after a fail-over.
    stamp = sa.Column(UUID, nullable=False)
    # Uuids of changed reservations, and names of hosts whose settings changed.
    reservations = sa.Column(Json, nullable=False)
    hosts = sa.Column(Json, nullable=False)


class RestartOverhead(Base):
    """The mean time to restart an evicted server of a kind."""

    __tablename__ = 'class_overheads'

    flavor = sa.Column(sa.String(255), primary_key=True)
    from_volume = sa.Column(sa.Boolean, primary_key=True)
    mean_us = sa.Column(sa.BigInteger, nullable=False)


class CellScan(Base):
    """The last scan of the servers of a cell."""

    __tablename__ = 'class_cells'

    cell_uuid = sa.Column(UUID, primary_key=True)
    # By the database's clock.
    looked_at = sa.Column(sa.DateTime, nullable=False)
