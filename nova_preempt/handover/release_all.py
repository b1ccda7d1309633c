# SPDX-License-Identifier: Apache-2.0
"""Releases all that nova_preempt holds, before Nova's scheduler replaces it.

Otherwise stopped and locked victims, disabled hosts and allocations under
another project would remain so.
"""

from collections.abc import Callable, Iterable, Iterator
import dataclasses
import functools

from oslo_utils import timeutils

from nova_preempt.cloud import host_records
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core.eviction import stopped_victim_controller
from nova_preempt.core.model import PreemptibleServer
from nova_preempt.db import decisions
from nova_preempt.handover import victim_allocations

# The status of a stopped victim that has left its host.
_NOT_THERE = {stopped_victim_controller.NextAction.GONE: decisions.GONE,
              stopped_victim_controller.NextAction.SHELVED: decisions.SHELVED}

# Attempts of a step that conflicts with other changes.
_TRIES = 3


class ManualStepNeeded(Exception):
    """A step has to be done by hand; the text says why."""


@dataclasses.dataclass(frozen=True)
class ReleaseStep:
    """A step of the release.

    :param text: its description
    :param do: carries it out; None if it has to be done by hand
    """

    text: str
    do: Callable[[], object] | None = None


class ReleaseAll:
    """Finds the steps of the release.

    :param decisions: a nova_preempt.db.Decisions
    :param nova: a NovaAPI
    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param hosts: all ComputeHosts
    :param servers: all preemptible Servers
    :param project_id: [preemption_quota]allocation_project_id
    :param start: whether to start stopped victims
    """

    def __init__(self, decisions: decisions.Decisions, nova: nova_api.NovaAPI,
                 placement: placement_api.Placement,
                 hosts: Iterable[host_records.ComputeHost],
                 servers: Iterable[PreemptibleServer], project_id: str = '',
                 start: bool = False) -> None:
        self._decisions = decisions
        self._nova = nova
        self._placement = placement
        self._hosts = hosts
        self._servers = servers
        self._project_id = project_id
        self._start = start

    def steps(self) -> Iterator[ReleaseStep]:
        """Yield the Steps, in their order."""
        yield from self._open()
        yield from self._stopped()
        yield from self._shelved()
        yield from self._closed_hosts()
        yield from self._projects()

    def _open(self) -> Iterator[ReleaseStep]:
        for decision, _age_s in self._decisions.get_open_decisions():
            yield ReleaseStep(
                f'preemption {decision.uuid} is {decision.status}: wait until '
                'a scheduler or the engine has finished it')

    def _stopped(self) -> Iterator[ReleaseStep]:
        for decision_uuid, victim in self._decisions.get_victims(
                decisions.STOPPED):
            yield ReleaseStep(
                f'server {victim.server_uuid} was stopped and locked as a '
                'victim: restore its allocations, unlock '
                + ('and start it' if self._start else 'it')
                + ' unless it is locked for another reason',
                functools.partial(self._free_stopped, decision_uuid, victim))

    def _free_stopped(self, decision_uuid: str, victim: decisions.Victim
                      ) -> None:
        uuid = victim.server_uuid
        server = self._nova.get(uuid)
        left = stopped_victim_controller.having_left(server)
        if left in _NOT_THERE:
            self._decisions.update_victim(decision_uuid, uuid,
                                          _NOT_THERE[left])
            return
        if not victim_allocations.restore_stopped(
                self._placement, self._nova, victim, server):
            raise ManualStepNeeded(
                'its host has no capacity for it; free capacity, or migrate '
                'it with "openstack server migrate", and try again')
        if self._start and server.vm_state == 'stopped' and (
                victim_allocations.is_locked_by_us(server)
                or not server.locked_by):
            self._nova.start(uuid)
        self._decisions.update_victim(decision_uuid, uuid, decisions.KEPT,
                                      ended_at=timeutils.utcnow())

    def _shelved(self) -> Iterator[ReleaseStep]:
        for decision_uuid, victim in self._decisions.get_victims(
                decisions.SHELVED):
            if victim.restore:
                yield ReleaseStep(
                    f'server {victim.server_uuid} was shelved as a victim, '
                    'to be unshelved later: leave it to its owner, who can '
                    'unshelve it', functools.partial(
                        self._decisions.update_victim, decision_uuid,
                        victim.server_uuid, decisions.LEFT))

    def _closed_hosts(self) -> Iterator[ReleaseStep]:
        for host in sorted(self._hosts, key=lambda host: host.name):
            if not host.is_ours:
                continue
            if host.up:
                yield ReleaseStep(
                    f'host {host.name} is on, and its compute service is '
                    f'disabled ("{host.disabled_reason}"): enable it',
                    functools.partial(self._nova.enable_service,
                                      host.service_uuid))
            else:
                yield ReleaseStep(
                    f'host {host.name} was powered off: power it on by hand, '
                    'or have the engine wake it, and try again')

    def _projects(self) -> Iterator[ReleaseStep]:
        if not self._project_id:
            return
        for server in self._servers:
            consumer = self._placement.get_consumer(server.uuid)
            if consumer.project_id == self._project_id != server.project_id:
                yield ReleaseStep(
                    f'the allocations of server {server.uuid} belong to '
                    f'project {self._project_id}: change it to the '
                    f"server's project, {server.project_id}",
                    functools.partial(self._put_under_own, server))

    def _put_under_own(self, server: PreemptibleServer) -> None:
        self._placement.post_allocations([dataclasses.replace(
            self._placement.get_consumer(server.uuid),
            project_id=server.project_id)])


def run_step(step: ReleaseStep) -> str:
    """Carry out a ReleaseStep; return the manual step that remains, or ''."""
    if step.do is None:
        return step.text
    why: Exception
    for _ in range(_TRIES):
        try:
            step.do()
            return ''
        except placement_api.Conflict as exc:
            why = exc  # changed meanwhile: the step reads it again
        except (ManualStepNeeded, nova_api.NovaError,
                placement_api.PlacementError) as exc:
            why = exc
            break
    return f'{step.text}: {why}'
