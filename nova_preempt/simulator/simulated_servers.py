# SPDX-License-Identifier: Apache-2.0
"""Servers of a simulation: states, terms and scheduling attempts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
import dataclasses
import datetime
import enum
from typing import Any

from nova_preempt.core import actions
from nova_preempt.core import times
from nova_preempt.core.classes import server_clocks
from nova_preempt.core.model import Request
from nova_preempt.core.model import Server as Record
from nova_preempt.simulator import memory_cloud
from nova_preempt.simulator.simulation_settings import Options
from nova_preempt.simulator.simulation_settings import Setting
from nova_preempt.simulator.simulation_settings import Terms
from nova_preempt.simulator.traces.trace_model import Boot

#: Start of all simulations; arbitrary.
EPOCH = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)
_EPOCH_US = times.microseconds(EPOCH)


def clock_us(now_us: int) -> int:
    """Convert a time of a simulation to microseconds since 1970."""
    return _EPOCH_US + now_us


def at(now_us: int) -> datetime.datetime:
    """Convert a time of a simulation to an aware datetime."""
    return EPOCH + datetime.timedelta(microseconds=now_us)


class State(enum.Enum):
    """States of a server."""

    ASKED = 'asked'          # not scheduled yet
    WAITING = 'waiting'      # waits for evictions
    WAKING = 'waking'        # waits for hosts that are powered on
    BOOTING = 'booting'
    RUNNING = 'running'
    NOTICE = 'notice'        # runs until the end of its notice
    ENDING = 'ending'        # is being evicted
    DELETED = 'deleted'      # deleted by its owner while ENDING
    SHELVED = 'shelved'
    STOPPED = 'stopped'
    OVER = 'over'


#: In these states a server has an allocation.
ON_HOST = frozenset((State.WAITING, State.BOOTING, State.RUNNING,
                     State.NOTICE, State.ENDING))


@dataclasses.dataclass(frozen=True)
class Kind:
    """Properties shared by equal servers; ``terms`` is None if normal."""

    resources: Mapping[str, int]
    request: Request
    terms: Terms | None


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """A scheduling attempt of one request.

    :param left: number of further attempts after eviction timeouts
    :param excluded: uuids of servers that must not be victims
    :param waited: decisions whose end the request has awaited before
    :param is_stuck: whether the previous attempt had an eviction timeout
    """

    left: int = 0
    excluded: Collection[str] = ()
    waited: Collection[str] = ()
    is_stuck: bool = False


@dataclasses.dataclass(eq=False, slots=True)
class Server:
    """A server of a simulation.

    :ivar left_us: remaining run time, None if it runs until it is deleted
    :ivar since_us: time of its last start or eviction
    :ivar launched_us: time of its last start or first claim, which is Nova's
        launched_at
    :ivar epoch: incremented to cancel the scheduled events of the server
    :ivar ran_us: total run time at its last eviction
    :ivar tries: number of unshelve attempts since its eviction
    :ivar next_try_us: earliest time of the next unshelve attempt
    :ivar mark: last event of its clock of service class
    :ivar moves: the server that this stand-in migrates, None for real servers
    :ivar why_not: why reservations allow no host, '' if they allow some
    """

    boot: Boot
    kind: Kind
    state: State = State.ASKED
    host: memory_cloud.MemoryHost | None = None
    left_us: int | None = None
    since_us: int = 0
    launched_us: int = 0
    epoch: int = 0
    ran_us: int = 0
    tries: int = 0
    next_try_us: int = 0
    mark: server_clocks.Kind | None = None
    moves: Server | None = None
    why_not: str = ''

    @property
    def current_host(self) -> memory_cloud.MemoryHost:
        """The host of a server that has one."""
        assert self.host is not None
        return self.host

    @property
    def named(self) -> tuple[str, ...]:
        """The ids of the reservations that it names."""
        return (self.boot.reservation,) if self.boot.reservation else ()

    @property
    def terms(self) -> Terms:
        """The terms of a preemptible server."""
        assert self.kind.terms is not None
        return self.kind.terms

    def record(self, now_us: int, *, is_active: bool) -> Record:
        """Return Nova's record of a preemptible server.

        :param is_active: whether the server is active, not building
        """
        name = self.current_host.name
        terms = self.terms
        resources = self.kind.resources
        return Record(
            self.boot.id, name, name, 'cell', self.boot.project, '',
            self.boot.flavor, at(now_us),
            'active' if is_active else 'building',
            None if is_active else 'spawning',
            terms.minimum_runtime_s, resources.get('VCPU', 0),
            resources.get('MEMORY_MB', 0),
            1024 * resources.get('DISK_GB', 0), terms.maximum_runtime_s,
            terms.notice_s, terms.action, terms.restore,
            class_name=terms.class_name)


class SimulationError(Exception):
    """A trace refers to something that the setting does not have."""


class Kinds:
    """Cache of the Kinds of servers of a simulation."""

    def __init__(self, setting: Setting, options: Options) -> None:
        self._setting = setting
        self._classes = options.classes
        self._kinds: dict[Any, Kind] = {}

    def of(self, boot: Boot) -> Kind:
        """Return the Kind of a server.

        :raises SimulationError: unknown flavor
        """
        resources = boot.resources
        key = (boot.flavor, boot.class_name,
               resources and tuple(sorted(resources.items())))
        found = self._kinds.get(key)
        if found is not None:
            return found
        terms = self._setting.classes.get(boot.class_name)
        if resources is None:
            flavor = self._setting.flavors.get(boot.flavor)
            if flavor is None:
                known = ', '.join(sorted(self._setting.flavors)) or 'none'
                raise SimulationError(
                    f'server {boot.id} has the flavor {boot.flavor!r}, which '
                    f'is not known; there are: {known}')
            resources, terms = flavor.resources, flavor.terms or terms
        kind = self._kinds[key] = Kind(
            resources, Request.of(resources), self._of_class(terms))
        return kind

    def _of_class(self, terms: Terms | None) -> Terms | None:
        """Apply the terms of a known class, as the service does."""
        known = self._classes is not None and terms is not None and (
            self._classes.table.classes.find(terms.class_name) is not None)
        return terms and actions.of_class(
            terms, terms.class_name if known else '')
