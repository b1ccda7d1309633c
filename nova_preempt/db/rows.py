# SPDX-License-Identifier: Apache-2.0
"""Rows of the tables as frozen dataclasses, from which models makes tables.

A row type says once which columns a table has: their names, types, defaults,
and whether they may be NULL. Times are naive and in UTC. Hosts go by their
node names.
"""

import dataclasses
import datetime
import typing

import sqlalchemy as sa

from nova_preempt.core import times
from nova_preempt.core import victim_status
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

    :ivar allocations: {provider uuid: {'resources': {class: amount}}}, to be
        given back in a rollback
    :ivar consumer_project_id: under which project these stand in Placement,
        which may be another than its own; empty if that is not known
    :ivar deadline: when its action is taken at the latest; set with the
        notice
    :ivar ended_at: when it had gone, or was kept
    :ivar restore: whether it comes back
    :ivar tries: how often that was tried
    :ivar last_resort: its action where it cannot be migrated
    :ivar asked: what Nova was asked for: "stop", or else what was first
    """

    server_uuid: Uuid
    project_id: str = ''
    user_id: str = ''
    flavor: str = ''
    cost_us: BigInt = 0
    allocations: dict = dataclasses.field(default_factory=dict)
    consumer_project_id: str = ''
    consumer_user_id: str = ''
    status: Word = victim_status.PENDING
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

    A decision is written before anything happens (then it is an intent),
    follows what happens, and stays as the record of it.

    :ivar owner: the name of the Owner who works on it, empty once nobody does
    :ivar record: the alternatives with their costs, and why
    :ivar outcome: what became of the server; None: nobody has looked yet
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
    """Something that an operator has stopped for now, and who asked for it."""

    what: Word
    since: datetime.datetime
    reason: Text
    user_id: str = ''
    project_id: str = ''
    request_id: str = ''


@dataclasses.dataclass(frozen=True)
class Move:
    """A server that Nova was asked to move away from a reserved host.

    :ivar node: from where
    :ivar asked_at: when it was asked last
    :ivar cold: whether it has to be told that the move is to stay
    """

    node: str
    asked_at: datetime.datetime
    cold: bool


@dataclasses.dataclass(frozen=True)
class HostSettings:
    """Settings of a host by an administrator.

    :ivar reservable: None: as [reservation]reservable_default says
    :ivar extra: {name of a property: value}
    """

    host: str
    reservable: bool | None = None
    extra: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class HostPower:
    """The power state of a host that was noted as idle, or was switched.

    :ivar idle_intervals: how often in a row it was noted as idle
    :ivar noted_at: when it was noted last
    :ivar boot_s: how long its last boot has taken, None if not seen yet
    :ivar boots: how many boots beyond the first were begun to wake it
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
class HostFigures:
    """Measured figures of a host; see efficiency_ranking.Figures."""

    host: str
    flops: float | None
    watts: float | None
    idle_watts: float | None
    measured_at: datetime.datetime
    source: str = ''


@dataclasses.dataclass(frozen=True)
class HostReading:
    """The watts that a host drew when it was last read."""

    host: str
    watts: float
    measured_at: datetime.datetime
    source: str = ''


@dataclasses.dataclass(frozen=True)
class Sample:
    """The whole cloud at a time; see core.energy.power_savings.Sample.

    :ivar hosts_on: with those that are booting
    :ivar hosts_busy: with servers, for the forecast
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

    :ivar duration_s: how long it ran, None while it is there
    """

    server_uuid: Uuid
    waited_at: datetime.datetime
    cores: int
    boot_s: float
    duration_s: float | None = None


#: What of the clocks of a server of a class has a column: the fields of a
#: core.classes.server_clocks.Times, and those of a Mark.
TIMES = ('running_us', 'waiting_us', 'binding_us')
MARK = ('admitted_us', 'since_us', 'last_us', 'gaps')
MARK_COLUMNS = ('kind', *TIMES, *MARK)


@dataclasses.dataclass(frozen=True)
class ClassServer:
    """A server of a class, and how long it has run, waited, and come.

    :ivar class_name: as its flavor or its request names it; an operator may
        have taken the class away since
    :ivar clocks: server_clocks.at(now_us) is what they show then, in
        microseconds
    :ivar changed_at: when Nova had changed it last, naive and in UTC
    :ivar read_at: when that was read
    """

    uuid: Uuid
    cell_uuid: Uuid
    project_id: str
    class_name: str
    flavor: str
    from_volume: bool
    clocks: server_clocks.Clocks
    changed_at: datetime.datetime | None
    read_at: datetime.datetime

    @property
    def kind(self):
        """Servers with the same one take as long to come back."""
        return self.flavor, self.from_volume


@dataclasses.dataclass(frozen=True)
class Begun:
    """A submission to the backlog that has begun.

    :ivar expires_at: when its trust does, by which that is known
    """

    uuid: Uuid
    project_id: str
    user_id: str
    begun_at: datetime.datetime
    expires_at: datetime.datetime


def values(item, *without):
    """{name of a field: value} of a row type, but for these fields."""
    return {field.name: getattr(item, field.name)
            for field in dataclasses.fields(item)
            if field.name not in without}


def load(cls, row, **others):
    """An object of a row type from a row that has its columns.

    :param others: the fields that are no columns of the row
    """
    return cls(**others, **{
        field.name: getattr(row, field.name)
        for field in dataclasses.fields(cls) if field.name not in others})


def columns(model, cls, *without):
    """The columns of a model that are fields of a row type, in its order."""
    return [getattr(model, field.name) for field in dataclasses.fields(cls)
            if field.name not in without]


def batches(items, size=500):
    """Lists of so few items that every database takes them as parameters."""
    items = list(items)
    return (items[start:start + size] for start in range(0, len(items), size))


def lock(session, model, name):
    """Hold a row of the locks until the transaction ends."""
    session.execute(sa.update(model).where(model.name == name).values(
        name=name))


def upsert(session, model, key, values):
    """Write values into the row with this key, or into a new one.

    :param key: {name of a column: value}
    """
    if not session.execute(sa.update(model).where(*(
            getattr(model, name) == value for name, value in key.items()))
            .values(**values)).rowcount:
        session.execute(sa.insert(model).values(**key, **values))
