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
"""Tables.

A decision row is written before anything happens (then it is an intent),
follows what happens, and stays as the record of it.
"""

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import mysql

Base = orm.declarative_base()

UUID = sa.String(36)
DOUBLE = sa.Float(precision=53)
# A record names every host considered: more than MySQL's TEXT may hold.
JSON_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


class Decision(Base):
    """One server, one host, and who had to end for it."""

    __tablename__ = 'decisions'
    __table_args__ = (
        sa.Index('decisions_status_idx', 'status'),
        sa.Index('decisions_server_uuid_idx', 'server_uuid'),
        sa.Index('decisions_request_id_idx', 'request_id'),
        sa.Index('decisions_created_at_idx', 'created_at', 'uuid'),
        sa.Index('decisions_project_id_idx', 'project_id'),
        sa.Index('decisions_outcome_idx', 'outcome'),
    )

    uuid = sa.Column(UUID, primary_key=True)
    created_at = sa.Column(sa.DateTime, nullable=False)
    updated_at = sa.Column(sa.DateTime, nullable=False)
    # Who works on it: the name of an Owner, empty once nobody does.
    owner = sa.Column(sa.String(300), nullable=False)
    status = sa.Column(sa.String(20), nullable=False)
    reason = sa.Column(sa.Text, nullable=False, default='')
    request_id = sa.Column(sa.String(255), nullable=False, default='')
    operation = sa.Column(sa.String(20), nullable=False, default='')
    server_uuid = sa.Column(UUID, nullable=False)
    project_id = sa.Column(sa.String(255), nullable=False, default='')
    user_id = sa.Column(sa.String(255), nullable=False, default='')
    host = sa.Column(sa.String(255), nullable=False, default='')
    provider_uuid = sa.Column(UUID, nullable=False, default='')
    cost_us = sa.Column(sa.BigInteger, nullable=False, default=0)
    # JSON: the alternatives with their costs, and why.
    record = sa.Column(JSON_TEXT, nullable=False, default='{}')
    # What became of the server; NULL: nobody has looked yet.
    outcome = sa.Column(sa.String(20))

    victims = orm.relationship('Victim', order_by='Victim.server_uuid',
                               lazy='joined', cascade='all, delete-orphan')


class Victim(Base):
    """A preemptible server that a decision ends."""

    __tablename__ = 'victims'
    __table_args__ = (
        sa.Index('victims_server_uuid_idx', 'server_uuid'),
        sa.Index('victims_status_idx', 'status'),
        sa.Index('victims_project_id_idx', 'project_id'),
        sa.Index('victims_ended_at_idx', 'ended_at'),
    )

    decision_uuid = sa.Column(
        UUID, sa.ForeignKey('decisions.uuid', ondelete='CASCADE'),
        primary_key=True)
    server_uuid = sa.Column(UUID, primary_key=True)
    status = sa.Column(sa.String(20), nullable=False)
    project_id = sa.Column(sa.String(255), nullable=False, default='')
    user_id = sa.Column(sa.String(255), nullable=False, default='')
    flavor = sa.Column(sa.String(255), nullable=False, default='')
    cost_us = sa.Column(sa.BigInteger, nullable=False, default=0)
    # JSON: its allocations in Placement, to be given back in a rollback.
    allocations = sa.Column(JSON_TEXT, nullable=False, default='{}')
    # Under whom they stand there, which may be another project than its own;
    # empty if that is not known.
    consumer_project_id = sa.Column(sa.String(255), nullable=False,
                                    default='')
    consumer_user_id = sa.Column(sa.String(255), nullable=False, default='')
    launched_at = sa.Column(sa.DateTime)
    action = sa.Column(sa.String(20), nullable=False, default='delete')
    notice_s = sa.Column(sa.Integer, nullable=False, default=0)
    # When its action is taken at the latest; set with the notice.
    deadline = sa.Column(sa.DateTime)
    # When it had gone, or was kept.
    ended_at = sa.Column(sa.DateTime)
    lifetime_s = sa.Column(sa.Integer)
    # Whether it comes back; how often that was tried, and when it is next.
    restore = sa.Column(sa.Boolean, nullable=False, default=False)
    tries = sa.Column(sa.Integer, nullable=False, default=0)
    next_try_at = sa.Column(sa.DateTime)
    # Its action where it cannot be migrated.
    last_resort = sa.Column(sa.String(20), nullable=False, default='')
    # What Nova was asked for: "stop", or else what was first.
    asked = sa.Column(sa.String(20), nullable=False, default='')


class Lock(Base):
    """A row to hold while others must not write what is being counted."""

    __tablename__ = 'locks'

    name = sa.Column(sa.String(20), primary_key=True)


class Owner(Base):
    """A process that owns decisions; it is alive until its lease runs out.

    Both times are the database's.
    """

    __tablename__ = 'owners'

    name = sa.Column(sa.String(300), primary_key=True)
    started_at = sa.Column(sa.DateTime, nullable=False)
    expires_at = sa.Column(sa.DateTime, nullable=False)


class Pause(Base):
    """What an operator has stopped for now, and who asked for it."""

    __tablename__ = 'pauses'

    what = sa.Column(sa.String(20), primary_key=True)
    since = sa.Column(sa.DateTime, nullable=False)
    reason = sa.Column(sa.Text, nullable=False)
    user_id = sa.Column(sa.String(255), nullable=False, default='')
    project_id = sa.Column(sa.String(255), nullable=False, default='')
    request_id = sa.Column(sa.String(255), nullable=False, default='')


class PreemptibleServer(Base):
    """A server made preemptible by a scheduler hint.

    A flavor's extra spec travels with the server; a hint does not, so its
    uuid is kept here.
    """

    __tablename__ = 'preemptible_servers'

    uuid = sa.Column(UUID, primary_key=True)
    created_at = sa.Column(sa.DateTime, nullable=False)


class QuotaClaim(Base):
    """A server that was admitted, or is about to be, and counts for a quota.

    Until Nova's records show what it is to become.
    """

    __tablename__ = 'quota_claims'
    __table_args__ = (
        sa.Index('quota_claims_project_id_idx', 'project_id'),
        sa.Index('quota_claims_expires_at_idx', 'expires_at'),
        # No id is given twice: who deletes one means that one.
        {'sqlite_autoincrement': True},
    )

    id = sa.Column(sa.BigInteger().with_variant(sa.Integer, 'sqlite'),
                   primary_key=True, autoincrement=True)
    project_id = sa.Column(sa.String(255), nullable=False)
    server_uuid = sa.Column(UUID, nullable=False)
    preemptible = sa.Column(sa.Boolean, nullable=False)
    vcpus = sa.Column(sa.Integer, nullable=False)
    memory_mb = sa.Column(sa.Integer, nullable=False)
    expires_at = sa.Column(sa.DateTime, nullable=False)


class Reservation(Base):
    """Whole hosts for a project, for a time."""

    __tablename__ = 'reservations'
    __table_args__ = (
        sa.Index('reservations_status_idx', 'status'),
        sa.Index('reservations_project_id_idx', 'project_id'),
        sa.Index('reservations_created_at_idx', 'created_at', 'uuid'),
    )

    uuid = sa.Column(UUID, primary_key=True)
    name = sa.Column(sa.String(255), nullable=False, default='')
    created_at = sa.Column(sa.DateTime, nullable=False)
    updated_at = sa.Column(sa.DateTime, nullable=False)
    project_id = sa.Column(sa.String(255), nullable=False)
    user_id = sa.Column(sa.String(255), nullable=False, default='')
    status = sa.Column(sa.String(20), nullable=False)
    # For operators; what its owner is told is public.
    reason = sa.Column(sa.Text, nullable=False, default='')
    public_reason = sa.Column(sa.Text)
    # What was asked for; host_properties is JSON.
    host_properties = sa.Column(JSON_TEXT, nullable=False, default='[]')
    quantity = sa.Column(sa.Integer, nullable=False)
    duration_s = sa.Column(sa.BigInteger, nullable=False)
    window_start = sa.Column(sa.DateTime, nullable=False)
    window_end = sa.Column(sa.DateTime)
    # What was granted: [start_at, end_at), in whole seconds.
    start_at = sa.Column(sa.DateTime, nullable=False)
    end_at = sa.Column(sa.DateTime, nullable=False)
    end_action = sa.Column(sa.String(20), nullable=False)
    before_end_s = sa.Column(sa.Integer, nullable=False)
    # When its hosts were empty, its owner was told of the end, and its hosts
    # were empty again.
    ready_at = sa.Column(sa.DateTime)
    noticed_at = sa.Column(sa.DateTime)
    released_at = sa.Column(sa.DateTime)


class ReservationHost(Base):
    """A host of a reservation; times as there, so that no join is needed."""

    __tablename__ = 'reservation_hosts'
    __table_args__ = (
        sa.Index('reservation_hosts_host_idx', 'host', 'start_at'),
    )

    reservation_uuid = sa.Column(
        UUID, sa.ForeignKey('reservations.uuid', ondelete='CASCADE'),
        primary_key=True)
    host = sa.Column(sa.String(255), primary_key=True)
    start_at = sa.Column(sa.DateTime, nullable=False)
    end_at = sa.Column(sa.DateTime, nullable=False)
    status = sa.Column(sa.String(20), nullable=False)
    reason = sa.Column(sa.Text, nullable=False, default='')
    public_reason = sa.Column(sa.Text)


class ReservationMove(Base):
    """A server that Nova was asked to move away from a reserved host."""

    __tablename__ = 'reservation_moves'

    server_uuid = sa.Column(UUID, primary_key=True)
    # From where, and when Nova was asked last.
    node = sa.Column(sa.String(255), nullable=False)
    asked_at = sa.Column(sa.DateTime, nullable=False)
    cold = sa.Column(sa.Boolean, nullable=False)


class ReservableHost(Base):
    """What an administrator says of a host; no row, nothing said."""

    __tablename__ = 'reservable_hosts'

    host = sa.Column(sa.String(255), primary_key=True)
    # None: as [reservation]reservable_default says.
    reservable = sa.Column(sa.Boolean)
    # JSON: {name of a property: value}
    extra = sa.Column(JSON_TEXT, nullable=False, default='{}')


class HiddenProperty(Base):
    """A property of hosts that users are not to see."""

    __tablename__ = 'hidden_properties'

    name = sa.Column(sa.String(255), primary_key=True)


class ReservationLimits(Base):
    """Limits of one project in place of those in the options."""

    __tablename__ = 'reservation_limits'

    project_id = sa.Column(sa.String(255), primary_key=True)
    # JSON: {name of the option: value}
    limits = sa.Column(sa.Text, nullable=False)


class Counter(Base):
    """A number that only grows; to raise it is to hold it as a lock."""

    __tablename__ = 'counters'

    name = sa.Column(sa.String(20), primary_key=True)
    value = sa.Column(sa.BigInteger, nullable=False)


class CalendarChange(Base):
    """What a change of the calendar concerns; see changes."""

    __tablename__ = 'calendar_changes'

    # As the counter's value after it.
    generation = sa.Column(sa.BigInteger, primary_key=True,
                           autoincrement=False)
    # Nobody else's: the number may come again after a fail-over.
    stamp = sa.Column(UUID, nullable=False)
    # JSON: uuids of reservations, and names of hosts of which administrators
    # say something else.
    reservations = sa.Column(JSON_TEXT, nullable=False)
    hosts = sa.Column(JSON_TEXT, nullable=False)


class HostPower(Base):
    """Whether a host is on; no row, never switched."""

    __tablename__ = 'host_power'
    __table_args__ = (sa.Index('host_power_state_idx', 'state'),)

    host = sa.Column(sa.String(255), primary_key=True)
    state = sa.Column(sa.String(20), nullable=False)
    since = sa.Column(sa.DateTime, nullable=False)
    reason = sa.Column(sa.Text, nullable=False, default='')
    # How often in a row it was noted as idle, and when last.
    idle_intervals = sa.Column(sa.Integer, nullable=False, default=0)
    noted_at = sa.Column(sa.DateTime)
    # How long its last boot has taken.
    boot_s = sa.Column(DOUBLE)
    # How many boots beyond the first were begun to wake it.
    boots = sa.Column(sa.Integer, nullable=False, default=0)


class PowerPromise(Base):
    """A host that a request waits for."""

    __tablename__ = 'power_promises'

    request = sa.Column(sa.String(36), primary_key=True)
    host = sa.Column(sa.String(255), primary_key=True)
    # So many servers, of as many as would fit.
    servers = sa.Column(sa.Integer, nullable=False)
    room = sa.Column(sa.Integer, nullable=False)
    promised_at = sa.Column(sa.DateTime, nullable=False)


class PowerFigures(Base):
    """What a host delivers and draws, as it was measured."""

    __tablename__ = 'power_figures'

    host = sa.Column(sa.String(255), primary_key=True)
    flops = sa.Column(DOUBLE)
    watts = sa.Column(DOUBLE)
    idle_watts = sa.Column(DOUBLE)
    measured_at = sa.Column(sa.DateTime, nullable=False)
    source = sa.Column(sa.String(255), nullable=False, default='')


class PowerReading(Base):
    """What a host drew when it was last read."""

    __tablename__ = 'power_readings'

    host = sa.Column(sa.String(255), primary_key=True)
    watts = sa.Column(DOUBLE, nullable=False)
    measured_at = sa.Column(sa.DateTime, nullable=False)
    source = sa.Column(sa.String(255), nullable=False, default='')


class PowerSample(Base):
    """What the whole cloud was like at a time."""

    __tablename__ = 'power_samples'

    sampled_at = sa.Column(sa.DateTime, primary_key=True)
    watts = sa.Column(DOUBLE)
    watts_saved = sa.Column(DOUBLE, nullable=False, default=0.0)
    hosts_on = sa.Column(sa.Integer, nullable=False)
    hosts_busy = sa.Column(sa.Integer, nullable=False)
    hosts_asleep = sa.Column(sa.Integer, nullable=False)
    cores_total = sa.Column(sa.Integer, nullable=False)
    cores_off = sa.Column(sa.Integer, nullable=False)
    cores_used = sa.Column(sa.Integer, nullable=False)


class Wake(Base):
    """A server whose request has waited for hosts to wake."""

    __tablename__ = 'wakes'
    __table_args__ = (
        sa.Index('wakes_waited_at_idx', 'waited_at'),
        sa.Index('wakes_server_uuid_idx', 'server_uuid'),
    )

    id = sa.Column(sa.Integer, primary_key=True)
    server_uuid = sa.Column(UUID, nullable=False)
    waited_at = sa.Column(sa.DateTime, nullable=False)
    cores = sa.Column(sa.Integer, nullable=False)
    boot_s = sa.Column(DOUBLE, nullable=False)
    # How long the server ran, once it is gone.
    duration_s = sa.Column(DOUBLE)
