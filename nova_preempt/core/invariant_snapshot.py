# SPDX-License-Identifier: Apache-2.0

"""The whole cloud at a moment, as its records show it."""

from collections.abc import Iterator, Mapping
import dataclasses

from nova_preempt.core.energy import power_steps

#: Statuses of a decision that somebody works on.
OPEN = frozenset(("intent", "claimed", "rolling_back"))


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server as the cloud has it.

    :ivar host: where Nova says that it is, "" for nowhere
    :ivar uses: {class: amount} that it uses on ``guest_on``
    :ivar guest_on: the host that its guest is on, "" if it has none
    :ivar refused: whether no host was found for it
    :ivar notice: the uuid of the decision that its metadata has a notice of
    :ivar is_locked_by_us: whether our lock is on it
    :ivar is_stopped_by_us: whether it is stopped, and a decision stopped it
    """

    uuid: str
    project: str = ""
    host: str = ""
    guest_on: str = ""
    uses: Mapping[str, int] = dataclasses.field(default_factory=dict)
    vm_state: str = "active"
    task_state: str | None = None
    is_preemptible: bool = False
    is_deleted: bool = False
    refused: bool = False
    notice: str = ""
    is_locked_by_us: bool = False
    is_stopped_by_us: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A host and its resource provider.

    :ivar allocations: {uuid of a consumer: {class: amount}}
    :ivar is_off: whether it was powered off, or is just being
    :ivar power: its recorded state, one of energy.power_steps.STATES
    :ivar is_closed: whether we have disabled its compute service
    """

    name: str
    capacity: Mapping[str, int]
    allocations: Mapping[str, Mapping[str, int]]
    is_off: bool = False
    power: str = power_steps.ON
    is_closed: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Victim:
    """A victim of a decision, as it is recorded; statuses: eviction_status."""

    server: str
    status: str


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """A decision as it is recorded.

    :ivar server: the server that the space is for, "" for none
    :ivar has_owner: whether a process that lives works on it
    :ivar stand_ins: uuids of the consumers that hold space for it
    """

    uuid: str
    status: str
    host: str = ""
    server: str = ""
    operation: str = "create"
    has_owner: bool = True
    stand_ins: tuple[str, ...] = ()
    victims: tuple[Victim, ...] = ()

    @property
    def is_open(self) -> bool:
        """Return whether it must still be finished or rolled back."""
        return self.status in OPEN


@dataclasses.dataclass(frozen=True, slots=True)
class EndingCall:
    """A call that ends a server, and its circumstances.

    :ivar decision: the open decision that it is for, None if there is none
    :ivar is_first: whether nothing was asked of the server for it before
    :ivar at_us, deadline_us: when, and when its notice is over (None: none)
    :ivar notice_s: the notice that it was promised, 0 for one that does not
        run
    :ivar is_space_held: whether a stand-in holds the space
    :ivar is_wanted: whether the server still exists that the space is for
    :ivar is_away: whether it has left the host of the decision
    :ivar is_moving: whether Nova still migrates it for the decision
    :ivar is_by_owner: whether the decision belongs to the process that calls
    :ivar locked_by: who had locked it, where that forbids its end
    :ivar promised_until_us: until when it was promised to run
    :ivar is_paused: whether an operator had stopped all evictions before any
        server was asked to end for the decision
    """

    server: str
    method: str
    at_us: int
    decision: Decision | None = None
    is_first: bool = True
    is_preemptible: bool = True
    notice_s: int = 0
    deadline_us: int | None = None
    is_space_held: bool = True
    is_wanted: bool = True
    is_away: bool = False
    is_moving: bool = False
    is_by_owner: bool = True
    locked_by: str = ""
    promised_until_us: int = 0
    is_paused: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation whose time has come.

    :ivar says: whether it tells its owner that it is not as it should be
    :ivar may_use: uuids of the servers that may be on its hosts: its own, and
        locked ones of which it tells
    :ivar available: if it lacks empty hosts, those that it could have: no
        other reservation has them, and all their servers can be evicted
    :ivar strangers: uuids of other servers that got a host of it, though the
        scheduler knew of the reservation
    """

    uuid: str
    project: str
    hosts: frozenset[str]
    is_due: bool = True
    says: bool = False
    may_use: frozenset[str] = frozenset()
    available: frozenset[str] = frozenset()
    strangers: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class BacklogRequest:
    """A request of the backlog.

    :ivar servers: uuids of its servers that live
    :ivar is_over: whether nothing is done for it any more
    :ivar trust: the id of its trust, "" for none
    """

    uuid: str
    count: int
    servers: frozenset[str] = frozenset()
    is_over: bool = False
    trust: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class LimitUsage:
    """A quota or a budget, and its usage."""

    name: str
    used: int
    most: int


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A cloud at a moment.

    :ivar servers: {uuid: Server}, deleted ones too
    :ivar moves: uuids of consumers that hold the space of a migration
    :ivar acts: those since the last snapshot
    :ivar trusts: the ids of all trusts of the backlog
    :ivar leaders: the names of engines that act
    """

    servers: Mapping[str, Server] = dataclasses.field(default_factory=dict)
    hosts: tuple[Host, ...] = ()
    moves: frozenset[str] = frozenset()
    decisions: tuple[Decision, ...] = ()
    acts: tuple[EndingCall, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    requests: tuple[BacklogRequest, ...] = ()
    trusts: frozenset[str] = frozenset()
    limits: tuple[LimitUsage, ...] = ()
    leaders: tuple[str, ...] = ()

    def open_decisions(self) -> Iterator[Decision]:
        """Yield the decisions that are not finished."""
        return (each for each in self.decisions if each.is_open)

    def stand_ins(self) -> set[str]:
        """Return the consumers that hold space for open decisions."""
        return {uuid for each in self.open_decisions()
                for uuid in each.stand_ins}

    def hosts_of(self, consumer: str) -> list[str]:
        """Return the names of the hosts that a consumer has space on."""
        return [host.name for host in self.hosts
                if consumer in host.allocations]
