# SPDX-License-Identifier: Apache-2.0
"""Compares servers, allocations and decisions.

Nova, Placement and our database are read one after the other, so changes in
progress show as problems: only a problem that remains is real.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
from typing import Any

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import instances
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import preemptible_server_cache
from nova_preempt.core import capacity
from nova_preempt.core import eligibility
from nova_preempt.core import invariant_snapshot
from nova_preempt.core import invariants
from nova_preempt.core.model import Provider, Resources
from nova_preempt.core.nested import provider_fit
from nova_preempt.db import decisions
from nova_preempt.handover import allocation_claim

LOG = logging.getLogger(__name__)

# Kinds of problems.
OPEN_DECISION = 'open_decision'
NO_SPACE = 'claim_without_allocation'
NO_ALLOCATION = 'server_without_allocation'
PART_OF_ALLOCATION = 'server_with_part_of_its_allocation'
NO_SERVER = 'allocation_without_server'
ENDED_MIGRATION = 'allocation_of_ended_migration'
OVER_CAPACITY = 'over_capacity'
BROKEN = 'broken_invariant'

# At this age, in seconds, a roll-back that is still retried is a problem: it
# may wait for a task of Nova that never ends.
_OLD_S = 3600


@dataclasses.dataclass(frozen=True, order=True)
class Problem:
    """An inconsistency.

    uuid is that of the decision, the server, the consumer or the provider, or
    the sentence of a broken invariant.
    """

    kind: str
    uuid: str
    text: str = dataclasses.field(compare=False)


class Audit:
    """Finds inconsistencies of Nova, Placement and our database.

    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param view: a nova_preempt.cloud.preemptible_server_cache.ServerCache
    :param decisions: a nova_preempt.db.Decisions
    :param cells: returns {uuid: CellMapping}
    :param intent_timeout_s: up to this age an open decision is no problem
    :param trees: whether to read all providers of trees, with two more
        calls of Placement each
    """

    def __init__(self, placement: placement_api.Placement,
                 view: preemptible_server_cache.ServerCache,
                 decisions: decisions.Decisions,
                 cells: Callable[[], Mapping[str, Any]],
                 intent_timeout_s: float, trees: bool = False) -> None:
        self._placement = placement
        self._view = view
        self._decisions = decisions
        self._cells = cells
        self._intent_timeout_s = intent_timeout_s
        self._trees = trees

    def look(self) -> list[Problem]:
        """Return all Problems, sorted by kind and uuid."""
        self._view.refresh()
        open_ones = self._decisions.get_decisions(statuses=decisions.OPEN)
        excused = {victim.server_uuid for decision in open_ones
                   for victim in decision.victims}
        stand_ins = {uuid for decision in open_ones
                     for uuid in allocation_claim.all_stand_ins(decision)}
        # A stopped victim needs no allocation until it is started.
        running = {server.uuid for server in self._view.servers()
                   if server.vm_state in eligibility.RUNNING}
        excused |= {victim.server_uuid for _decision, victim
                    in self._decisions.get_victims(decisions.STOPPED)
                    } - running
        states, parts = self._read()
        return sorted([*self._open_decisions(),
                       *self._without_space(open_ones),
                       *self._without_allocation(states, excused),
                       *self._with_a_part(states, parts, excused),
                       *self._without_server({**parts, **states}, stand_ins),
                       *_broken({**parts, **states}, open_ones)])

    def _read(self) -> tuple[dict[str, Provider], dict[str, Provider]]:
        """Return ({host: core Provider}, {name: core Provider of a child})."""
        states: dict[str, Provider] = {}
        parts: dict[str, Provider] = {}
        for provider in self._placement.list_all_providers([]):
            is_root = provider.uuid == provider.root_uuid
            if is_root or self._trees:
                state = self._placement.get_provider_state(provider.uuid)
                if state:
                    (states if is_root else parts)[provider.name] = state
        return states, parts

    def _open_decisions(self) -> Iterator[Problem]:
        for decision, age_s in self._decisions.get_open_decisions():
            if age_s >= self._intent_timeout_s:
                text = (f'is {decision.status}; no process has worked on it '
                        f'for {age_s:.0f} s')
            elif decision.status != decisions.CLAIMED and (
                    timeutils.is_older_than(decision.created_at, _OLD_S)):
                text = (f'of {decision.created_at} is still being rolled '
                        f'back: {decision.reason}')
            else:
                continue
            yield Problem(OPEN_DECISION, decision.uuid,
                          f'decision {decision.uuid} {text}')

    def _without_space(self, open_ones: Iterable[decisions.Decision]
                       ) -> Iterator[Problem]:
        read: Callable[[str], placement_api.Consumer] = (
            self._placement.get_consumer)
        for decision in open_ones:
            uuid = allocation_claim.stand_in(decision)
            # In this order: the allocations go to the server, then the
            # decision is closed.
            if (uuid and decision.status == decisions.CLAIMED
                    and not read(uuid).allocations
                    and not decision.record['allocations'].keys()
                    <= read(decision.server_uuid).allocations.keys()
                    and self._decisions.get_decision(decision.uuid).status
                    == decisions.CLAIMED):
                yield Problem(
                    NO_SPACE, decision.uuid,
                    f'decision {decision.uuid} is {decision.status}, and '
                    f'consumer {uuid}, which must hold capacity for server '
                    f'{decision.server_uuid}, has no allocations')

    def _without_allocation(self, states: Mapping[str, Provider],
                            excused: set[str]) -> Iterator[Problem]:
        for server in self._view.servers():
            state = states.get(server.node)
            if (state is None or server.uuid in excused
                    or not eligibility.needs_allocation(server.vm_state,
                                                        server.task_state)
                    or server.uuid in state.allocations):
                continue
            yield Problem(
                NO_ALLOCATION, server.uuid,
                f'preemptible server {server.uuid} is on host {server.host} '
                'and has no allocation there')

    def _with_a_part(self, states: Mapping[str, Provider],
                     parts: Mapping[str, Provider], excused: set[str]
                     ) -> Iterator[Problem]:
        """Yield servers with less than their expected allocation.

        The expected allocation is read from Nova for servers with less than
        their size, which their flavor may permit; and for servers that may
        use other providers, if trees are read.
        """
        everywhere = _totals([*states.values(), *parts.values()]) if (
            self._trees) else {}
        for server in self._view.servers():
            state = states.get(server.node)
            has = state.allocations.get(server.uuid) if state else None
            is_nested = self._trees and server.pinned
            size = {'VCPU': server.vcpus, 'MEMORY_MB': server.memory_mb}
            if (not has or server.uuid in excused or server.task_state
                    or not (is_nested or _lacks(size, has))):
                continue
            try:
                needs, _node, more = instances.expected_allocation(
                    self._cells()[server.cell_uuid], server)
            except (instances.ServerNotOnHost, cell_calls.CellDown):
                continue          # it is gone, has moved, or is unknown
            if is_nested:
                needs = {**needs, **{
                    name: amount for name, amount in more.items()
                    if name not in provider_fit.COMMON}}
                has = everywhere[server.uuid]
            if _lacks(needs, has):
                yield Problem(
                    PART_OF_ALLOCATION, server.uuid,
                    f'preemptible server {server.uuid} on host {server.host} '
                    f'has only {_sorted(has)} of {_sorted(needs)} allocated')

    def _without_server(self, states: Mapping[str, Provider],
                        stand_ins: set[str]) -> Iterator[Problem]:
        consumers = {consumer: name for name, state in states.items()
                     for consumer in state.allocations}
        known, migrations = self._known(consumers)
        for uuid in sorted(consumers.keys() - known - migrations.keys()
                           - stand_ins):
            # A decision may have been written or closed since they were read.
            of = self._decisions.get_decisions(stand_in=uuid)
            if any(decision.status in decisions.OPEN for decision in of):
                continue
            yield Problem(
                NO_SERVER, uuid,
                f'consumer {uuid} has allocations on {consumers[uuid]}; '
                + (f'it held capacity for preemption {of[0].uuid}, which is '
                   f'{of[0].status}' if of else
                   'Nova knows neither a server nor a migration of that '
                   'uuid'))
        # A moved server has a migration's allocation on its old host, which
        # remains if the server is gone.
        there, _ = self._known({item.instance_uuid
                                for item in migrations.values()}, False)
        for uuid, item in sorted(migrations.items()):
            if item.instance_uuid not in there:
                yield Problem(
                    ENDED_MIGRATION, uuid,
                    f'migration {uuid} ({item.status}) has allocations on '
                    f'{consumers[uuid]}, and its server {item.instance_uuid} '
                    'is gone')

    def _known(self, uuids: Iterable[str], with_migrations: bool = True
               ) -> tuple[set[str], dict[str, Any]]:
        """Return (uuids of servers, {uuid: Migration})."""
        uuids = sorted(uuids)
        found, is_whole = self._of_cells(instances.read, uuids)
        known = {server.uuid for server in found}
        migrations: dict[str, Any] = {}
        if with_migrations:
            found, as_well = self._of_cells(instances.read_migrations, [
                uuid for uuid in uuids if uuid not in known])
            is_whole = is_whole and as_well
            migrations = {item.uuid: item for item in found}
        left = set(uuids) - known - migrations.keys()
        if is_whole:
            # A server that is being built has no cell yet.
            left = {uuid for uuid, cell
                    in instances.find_cells(left).items() if cell is None}
        return known | left, migrations

    def _of_cells(self, read: Callable[..., Any], uuids: list[str]
                  ) -> tuple[list[Any], bool]:
        """Return (the results of all cells, whether all were readable)."""
        found: list[Any] = []
        is_whole = True
        for answer in cell_calls.gather(
                self._cells().values(), read, uuids,
                limit_s=cell_calls.LONG_S).values():
            if isinstance(answer, Exception):
                LOG.warning('The search for allocations without a server is '
                            'skipped: %s', answer)
                is_whole = False
            else:
                found += answer
        return found, is_whole


def _broken(states: Mapping[str, Provider],
            open_ones: Iterable[decisions.Decision]) -> Iterator[Problem]:
    """Yield what breaks the invariants of nova_preempt.core.invariants."""
    for name, state in states.items():
        host = invariant_snapshot.Host(
            name, {key: capacity.most_used(item) for key, item
                   in state.inventories.items()}, state.allocations)
        for text in invariants.breaches(
                invariant_snapshot.Snapshot(hosts=(host,))):
            yield Problem(OVER_CAPACITY, state.uuid, text)
    # A decision whose owner died may be open besides its successor.
    for text in invariants.breaches(invariant_snapshot.Snapshot(
            decisions=tuple(invariant_snapshot.Decision(
                each.uuid, each.status, has_owner=False,
                victims=tuple(invariant_snapshot.Victim(
                    victim.server_uuid, victim.status)
                    for victim in each.victims)) for each in open_ones))):
        yield Problem(BROKEN, text, text)


def _totals(states: Iterable[Provider]) -> dict[str, dict[str, int]]:
    """Return {consumer: {class: amount}} over all these providers."""
    found: dict[str, dict[str, int]] = {}
    for state in states:
        for consumer, resources in state.allocations.items():
            found[consumer] = capacity.total(
                (found.get(consumer, {}), resources))
    return found


def _lacks(needs: Resources, has: Resources) -> bool:
    """Return whether resources are missing; pinned CPUs count as CPUs."""
    return not capacity.fits(_cpus(needs), _cpus(has))


def _cpus(resources: Resources) -> dict[str, int]:
    counted = {name: amount for name, amount in resources.items()
               if name not in ('VCPU', 'PCPU')}
    return {**counted, 'CPU': resources.get('VCPU', 0)
            + resources.get('PCPU', 0)}


def _sorted(resources: Resources) -> str:
    return ', '.join(f'{name}:{amount}'
                     for name, amount in sorted(resources.items()))
