# SPDX-License-Identifier: Apache-2.0
"""The servers of a simulation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
import dataclasses
import datetime
import enum
from typing import Any

from nova_preempt.core import eviction_actions
from nova_preempt.core import times
from nova_preempt.core.classes import server_clocks
from nova_preempt.core.model import PreemptibleServer, Request
from nova_preempt.simulator import memory_cloud
from nova_preempt.simulator.simulation_settings import CloudSetting
from nova_preempt.simulator.simulation_settings import Options
from nova_preempt.simulator.simulation_settings import PreemptibleTerms
from nova_preempt.simulator.traces.trace_model import Boot

#: When simulations begin. Any time would do.
EPOCH = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)
_EPOCH_US = times.microseconds(EPOCH)


def clock_us(now_us: int) -> int:
    """Return a time of a simulation in microseconds since the epoch."""
    return _EPOCH_US + now_us


def at(now_us: int) -> datetime.datetime:
    """Return a time of a simulation as the core has times."""
    return EPOCH + datetime.timedelta(microseconds=now_us)


class State(enum.Enum):
    """States of a server."""

    ASKED = 'asked'          # nobody has decided yet
    WAITING = 'waiting'      # for others to give way
    WAKING = 'waking'        # for hosts that are powered on
    BOOTING = 'booting'
    RUNNING = 'running'
    NOTICE = 'notice'        # it runs, and knows when it has to end
    ENDING = 'ending'        # what happens to victims happens to it
    DELETED = 'deleted'      # the same, and its owner has deleted it
    SHELVED = 'shelved'
    STOPPED = 'stopped'
    OVER = 'over'


#: In these it holds something on its host.
ON_HOST = frozenset((State.WAITING, State.BOOTING, State.RUNNING,
                     State.NOTICE, State.ENDING))


@dataclasses.dataclass(frozen=True)
class ServerKind:
    """Values that many servers share; ``terms`` are None of normal ones."""

    resources: Mapping[str, int]
    request: Request
    terms: PreemptibleTerms | None


@dataclasses.dataclass(frozen=True, slots=True)
class HostSearch:
    """A search for a host, on behalf of one request.

    :param left: how many more there may be, should victims not give way
    :param excluded: uuids that must not end for it
    :param waited: decisions whose end it has waited for before
    :param is_stuck: whether victims have not given way in the last one
    """

    left: int = 0
    excluded: Collection[str] = ()
    waited: Collection[str] = ()
    is_stuck: bool = False


@dataclasses.dataclass(eq=False, slots=True)
class Server:
    """A server of a simulation.

    :ivar left_us: for how long it still has to run, None until it is deleted
    :ivar since_us: when it began to run, or gave way
    :ivar launched_us: when it began to run last, or took its first host: what
        Nova has as launched_at, whatever became of the server since
    :ivar epoch: grows as what was to happen to it will not happen
    :ivar ran_us: for how long it had run when it gave way last
    :ivar tries: how often it was asked to come back, since it gave way
    :ivar next_try_us: when it may be asked again
    :ivar mark: what has happened to it last, as clocks of classes have it
    :ivar moves: the server in whose name this one takes another host, None of
        servers themselves
    :ivar why_not: why reservations let it go nowhere, '' if they do
    """

    boot: Boot
    kind: ServerKind
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
    def terms(self) -> PreemptibleTerms:
        """The terms of a preemptible server."""
        assert self.kind.terms is not None
        return self.kind.terms

    def record(self, now_us: int, *, is_active: bool) -> PreemptibleServer:
        """Return Nova's record of it, for a preemptible one.

        :param is_active: whether it runs, or is still being built
        """
        name = self.current_host.name
        terms = self.terms
        resources = self.kind.resources
        return PreemptibleServer(
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
    """The trace requests something that the setting lacks."""


class ServerKinds:
    """Kinds of servers of a simulation, worked out once for all alike."""

    def __init__(self, setting: CloudSetting, options: Options) -> None:
        self._setting = setting
        self._classes = options.classes
        self._kinds: dict[Any, ServerKind] = {}

    def of(self, boot: Boot) -> ServerKind:
        """Return that of a server.

        :raises SimulationError: its flavor is not known
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
                    f'server {boot.id} has the unknown flavor '
                    f'{boot.flavor!r}; the known flavors are: {known}')
            resources, terms = flavor.resources, flavor.terms or terms
        kind = self._kinds[key] = ServerKind(
            resources, Request.of(resources), self._of_class(terms))
        return kind

    def _of_class(self,
                  terms: PreemptibleTerms | None) -> PreemptibleTerms | None:
        """Let servers of known classes return, as the service does."""
        known = self._classes is not None and terms is not None and (
            self._classes.table.classes.find(terms.class_name) is not None)
        return terms and eviction_actions.of_class(
            terms, terms.class_name if known else '')
