# SPDX-License-Identifier: Apache-2.0
"""Row schemas: frozen dataclasses from which models generates tables.

Each declares the columns of a table: their names, types, defaults, and whether
they may be NULL. Times are naive and in UTC. Hosts are identified by
node name.
"""

import dataclasses
import datetime
import functools
import typing

import sqlalchemy as sa

from nova_preempt.core import eviction_status
from nova_preempt.core import times
from nova_preempt.core.classes import server_clocks

# A str is a name of up to 255 characters, a dict or list is JSON.
UUID = sa.String(36)
Uuid = typing.Annotated[str, UUID]
Word = typing.Annotated[str, sa.String(20)]
OwnerName = typing.Annotated[str, sa.String(300)]
Text = typing.Annotated[str, sa.Text()]
BigInt = typing.Annotated[int, sa.BigInteger()]


@dataclasses.dataclass(frozen=True)
class Victim:
    """A preemptible server that a decision evicts.

    :ivar allocations: {provider uuid: {'resources': {class: amount}}}, which
        a rollback restores
    :ivar consumer_project_id: the project of these allocations in Placement,
        which may differ from the server's; empty if unknown
    :ivar deadline: the latest time of its action; set with the notice
    :ivar ended_at: when it was gone, or was kept
    :ivar restore: whether it is restored later
    :ivar tries: number of attempts to restore it
    :ivar last_resort: its action if it cannot be migrated
    :ivar asked: the action that Nova was asked for: "stop", or else the first
    """

    server_uuid: Uuid
    project_id: str = ''
    user_id: str = ''
    flavor: str = ''
    cost_us: BigInt = 0
    allocations: dict = dataclasses.field(default_factory=dict)
    consumer_project_id: str = ''
    consumer_user_id: str = ''
    status: Word = eviction_status.PENDING
    launched_at: datetime.datetime | None = None
    action: Word = 'delete'
    notice_s: int = 0
    deadline: datetime.datetime | None = None
    ended_at: datetime.datetime | None = None
    lifetime_s: int | None = None
    restore: bool = False
    tries: int = 0
    next_try_at: datetime.datetime | None = None
    last_resort: Word = ''
    asked: Word = ''


@dataclasses.dataclass(frozen=True)
class Decision:
    """A server, a host, and the victims that are evicted for it.

    A decision is written before it has any effect (an intent), tracks its
    progress, and remains as its record.

    :ivar owner: the name of the Owner that works on it, empty if it is closed
    :ivar record: the alternatives with their costs, and the reason
    :ivar outcome: whether the server was built; None if it was not checked yet
    """

    uuid: Uuid
    server_uuid: Uuid
    owner: OwnerName = ''
    status: Word = 'intent'
    reason: Text = ''
    request_id: str = ''
    operation: Word = ''
    project_id: str = ''
    user_id: str = ''
    host: str = ''
    provider_uuid: Uuid = ''
    cost_us: BigInt = 0
    record: dict = dataclasses.field(default_factory=dict)
    victims: tuple[Victim, ...] = ()
    outcome: Word | None = None
    created_at: datetime.datetime | None = dataclasses.field(
        default=None, compare=False)
    updated_at: datetime.datetime | None = dataclasses.field(
        default=None, compare=False)


@dataclasses.dataclass(frozen=True)
class Pause:
    """A subsystem that an operator has paused, and who requested it."""

    what: Word
    since: datetime.datetime
    reason: Text
    user_id: str = ''
    project_id: str = ''
    request_id: str = ''


@dataclasses.dataclass(frozen=True)
class Move:
    """A server that Nova was asked to migrate away from a reserved host.

    :ivar node: the node it leaves
    :ivar asked_at: time of the last request
    :ivar cold: whether it is a cold migration, which has to be confirmed
    """

    node: str
    asked_at: datetime.datetime
    cold: bool


@dataclasses.dataclass(frozen=True)
class HostSettings:
    """Settings of a host by an administrator.

    :ivar reservable: None for [reservation]reservable_default
    :ivar extra: {name of a property: value}
    """

    host: str
    reservable: bool | None = None
    extra: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class HostPower:
    """The power state of a host that was idle or was switched.

    :ivar idle_intervals: number of successive intervals in which it was idle
    :ivar noted_at: time of the last idle interval
    :ivar boot_s: duration of its last boot after we powered it on, None before
    :ivar boots: number of boots beyond the first that tried to wake it
    """

    host: str
    state: Word
    since: datetime.datetime
    reason: Text = ''
    idle_intervals: int = 0
    noted_at: datetime.datetime | None = None
    boot_s: float | None = None
    boots: int = 0

    @property
    def since_us(self):
        return times.microseconds(self.since)


@dataclasses.dataclass(frozen=True)
class HostEfficiency:
    """Measured figures of a host; see efficiency_ranking.Figures."""

    host: str
    flops: float | None
    watts: float | None
    idle_watts: float | None
    measured_at: datetime.datetime
    source: str = ''


@dataclasses.dataclass(frozen=True)
class HostPowerReading:
    """The watts that a host drew when it was last read."""

    host: str
    watts: float
    measured_at: datetime.datetime
    source: str = ''


@dataclasses.dataclass(frozen=True)
class EnergySample:
    """Power and load of the cloud; see core.energy.power_savings.CloudSample.

    :ivar hosts_on: including hosts that are booting
    :ivar hosts_busy: hosts with servers, for the forecast
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
class WakeWait:
    """A server whose request waited for hosts to wake.

    :ivar duration_s: how long it ran, None while it exists
    """

    server_uuid: Uuid
    waited_at: datetime.datetime
    cores: int
    boot_s: float
    duration_s: float | None = None


#: Columns of the clocks of a server of a class: fields of a
#: core.classes.server_clocks.Times and of a Mark.
TIMES = ('running_us', 'waiting_us', 'binding_us')
MARK = ('admitted_us', 'since_us', 'last_us', 'gaps')
MARK_COLUMNS = ('kind', *TIMES, *MARK)


@dataclasses.dataclass(frozen=True)
class ServerUptime:
    """A server of a class, with its running, waiting and starting times.

    :ivar class_name: from its flavor or its request; the class may no longer
        be configured
    :ivar clocks: clocks.at(now_us) returns the times in microseconds
    :ivar changed_at: time of Nova's last change, naive and in UTC
    :ivar read_at: when that was read
    """

    uuid: Uuid
    cell_uuid: Uuid
    project_id: str
    class_name: str
    flavor: str
    from_volume: bool
    clocks: server_clocks.ServerClocks
    changed_at: datetime.datetime | None
    read_at: datetime.datetime

    @property
    def kind(self):
        """The kind, by which mean times to restart a server are kept."""
        return self.flavor, self.from_volume


@dataclasses.dataclass(frozen=True)
class PendingSubmission:
    """A submission to the backlog that has begun.

    :ivar expires_at: expiry of its trust, by which the trust is identified
    """

    uuid: Uuid
    project_id: str
    user_id: str
    begun_at: datetime.datetime
    expires_at: datetime.datetime


def values(item, *without):
    """Return {name of a field: value} of an object, without some fields."""
    return {field.name: getattr(item, field.name)
            for field in dataclasses.fields(item) if field.name not in without}


def load(cls, row, **others):
    """Return an object of a row schema from a row with its columns.

    :param others: {field: value} of fields that are not columns of the row
    """
    return cls(**others, **{
        field.name: getattr(row, field.name)
        for field in dataclasses.fields(cls) if field.name not in others})


def columns(model, cls, *without):
    """Return the columns of a model that are fields of a row schema."""
    return [getattr(model, field.name) for field in dataclasses.fields(cls)
            if field.name not in without]


@functools.cache
def select(model, cls, *first):
    """Return the query of the columns of a model for a row schema.

    :param first: names of columns that come before them
    """
    return sa.select(*(getattr(model, name) for name in first),
                     *columns(model, cls))


def between(query, time, since, until):
    """Return a query of rows with a time in [since, until); None for any."""
    if since is not None:
        query = query.where(time >= since)
    return query if until is None else query.where(time < until)


def batches(items, size=500):
    """Split items into lists that fit into the parameters of a query."""
    items = list(items)
    return (items[start:start + size] for start in range(0, len(items), size))


def lock(session, model, name):
    """Lock a row of a table of locks until the transaction ends."""
    session.execute(sa.update(model).where(model.name == name).values(
        name=name))


def upsert(session, model, key, values):
    """Update the row with this key, or insert it.

    :param key: {name of a column: value}
    """
    if not session.execute(sa.update(model).where(*(
            getattr(model, name) == value for name, value in key.items()))
            .values(**values)).rowcount:
        session.execute(sa.insert(model).values(**key, **values))
