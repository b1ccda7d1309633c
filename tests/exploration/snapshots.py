# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a world, on which invariants are checked."""

import collections
import json
import math

from nova_preempt import db
from nova_preempt import pause_reader
from nova_preempt.core import eligibility
from nova_preempt.core import eviction_status
from nova_preempt.core import invariant_snapshot
from nova_preempt.core import times
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.energy import power_steps
from nova_preempt.core.eviction import eviction_controller
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.db import backlog_store
from nova_preempt.db import decision_owners
from nova_preempt.db import energy_store
from nova_preempt.db import reservations
from nova_preempt.handover import allocation_claim
from nova_preempt.handover import process_lease
from nova_preempt.handover import victim_allocations
from tests.exploration import machines
from tests.exploration import nova_client
from tests.exploration import processes
from tests.exploration import reserved_hosts

#: Statuses of migrations that hold space.
_MOVING = ('preparing', 'running', 'finished', 'reverting', 'confirmed')

#: After how long it is seen that a server was deleted or has moved: as long as
#: a reading may be old when a call is sent.
_SEEN_S = 8

#: After how long the engine has repaired what an audit finds, which it does if
#: two audits in a row find it.
_AUDITED_S = 900


def _budgets(decisions):
    """Yield how many servers of each project are ending, and may."""
    most = processes.CONF.preemption.project_budget
    ending = collections.Counter(
        victim.project_id for each in decisions
        if each.status in invariant_snapshot.OPEN
        and each.operation != 'maximum_runtime'
        for victim in each.victims
        if victim.status == eviction_status.ENDING or (
            # A process that stood still may reopen one, to roll it back again.
            each.status != 'rolling_back'
            and victim.status in eviction_status.UNTOUCHED))
    if most:
        for project, number in ending.items():
            yield invariant_snapshot.LimitUsage(f'budget of {project}', number,
                                                most)


def _is_ours(server, action):
    """Return whether an eviction acted so last, and no start followed."""
    return next((
        (each.action, each.project_id) == (action, nova_client.SERVICE)
        for each in server.actions if each.action in (action, 'start')), False)


def _records(database):
    return (db.Decisions(database).get_decisions(),
            energy_store.get_power(database))


def _reservations(database):
    return reservations.Reservations(database).list()


def _requests(database):
    return backlog_store.find(database, with_bodies=False)


class Watcher:
    """Records acts, and takes snapshots.

    :param world: a world.World
    :ivar acts: invariant_snapshot.EndingCall, since the last snapshot
    """

    def __init__(self, world):
        self._world = world
        self.acts = []
        self._first = set()       # (decision, server) that were asked before
        self._noticed_s = {}      # (decision, server): when it was told
        self._begun = set()       # requests that have asked a server to end
        self._moved = set()       # (decision, server) that are to be migrated
        self._owned = {}          # decision: (its owner, since when)
        # Victims whose space is not theirs, by an act of an operator.
        self._robbed = set()
        self._stray_since_s = {}  # stand-in of a late claim: since when
        self._freed_s = {}        # stand-in: when an operator has freed it
        self._reserved = reserved_hosts.ReservedHosts(world)
        self._paused_since_s = {}  # what is paused: since when
        # {function: (writes until then, what it has read)}
        self._found = {}

    def act(self, method, uuid):
        """Record a call by which we end a server."""
        world = self._world
        server = world.nova.servers.get(uuid)
        if server is None or server.deleted:
            return
        decisions = self._read(lambda database: db.Decisions(
            database).get_decisions(victim_uuid=uuid))
        if not decisions:
            found = None
        else:
            found = next((each for each in decisions
                          if each.status in invariant_snapshot.OPEN), None)
            # One that an earlier eviction has stopped may be chosen again.
            is_earlier = server.vm_state == 'stopped' and found and (
                found.status == 'rolling_back' or method == 'force_delete')
            if any(victim.server_uuid == uuid and victim.status == 'stopped'
                   for each in (decisions if is_earlier or not found
                                else [found])
                   for victim in each.victims):
                return            # it is deleted after its retention
        if self._is_of_request(server, method, found) or (
                (found is None or found.status == 'rolling_back')
                and self._is_of_reservation(server, method)):
            return
        key = found and found.uuid, uuid
        victim = next((each for each in found.victims
                       if each.server_uuid == uuid), None) if found else None
        stand_in = found and allocation_claim.stand_in(found)
        # What has begun is finished.
        has_begun = found is not None and (
            found.request_id or found.uuid) in self._begun
        rules = self._rules(found and found.operation)
        specs = server.flavor.extra_specs
        ours = server.locked_reason == victim_allocations.LOCKED
        # What others did in the last moment may be later than the last
        # reading: a lock, a migration.
        is_new = self._is_recent(server.updated_at,
                                 eviction_controller.FRESH_S)
        is_locked = server.locked and not ours and not is_new
        locked_by = server.locked_by if is_locked else ''
        self.acts.append(invariant_snapshot.EndingCall(
            uuid, method, round(world.loop.now_s * 1e6),
            None if found is None else self._decision(found, True),
            is_first=key not in self._first,
            is_preemptible=server.is_preemptible,
            # Who does not run has nothing to save.
            notice_s=victim.notice_s if victim and (
                server.vm_state in eligibility.RUNNING) else 0,
            deadline_us=victim and self._deadline_us(*key, victim.notice_s),
            is_space_held=stand_in is None or has_begun
            or stand_in in world.placement.consumers
            or world.loop.now_s - self._freed_s.get(stand_in, -math.inf)
            < eviction_controller.FRESH_S,
            is_wanted=found is None or self._is_wanted(found),
            is_away=found is not None and self._is_away(found, server),
            is_moving=method != 'live_migrate' and key in self._moved
            and server.task_state == 'migrating' and not is_new,
            is_by_owner=found is None or self.is_by_owner(found),
            locked_by=locked_by if rules.counts(locked_by) else '',
            promised_until_us=0 if not server.launched_at else (
                times.microseconds(server.launched_at) + round(1e6 * (max(
                    rules.minimum_runtime_s, int(specs.get(
                        'preemptible:minimum_runtime_s', 0)))
                    # A process knows the age of a server by its own clock.
                    - max(0, world.loop.current.process.skew_s)))),
            is_paused=found is not None and not has_begun
            and self._is_paused(found.operation)))
        self._first.add(key)
        if method == 'live_migrate':
            self._moved.add(key)
        if found is not None:
            self._begun.add(found.request_id or found.uuid)

    def has_decision(self, server_uuid):
        """Return whether any victim was evicted for a server."""
        return bool(self._read(lambda database: db.Decisions(
            database).get_decisions(server_uuid=server_uuid)))

    def _is_wanted(self, decision):
        """Return whether a decision's server existed seconds ago."""
        world = self._world
        server = world.nova.servers.get(decision.server_uuid)
        if server is None or decision.status != 'claimed':
            return True
        return not server.deleted_at or self._is_recent(server.deleted_at)

    def _is_recent(self, when, seconds=_SEEN_S):
        return self._world.loop.now_s - when.timestamp() < seconds

    def _is_away(self, decision, server):
        """Return whether a server left a decision's host a while ago."""
        return decision.status == 'claimed' and (
            decision.operation not in eviction_steps.FOR_GOOD
            and server.host != decision.host and not server.task_state
            and not self._is_recent(server.updated_at))

    def is_by_owner(self, decision):
        """Return whether the acting process owns the decision."""
        world = self._world
        return not any(
            each.parts.process.owner.name == decision.owner
            for each in (*world.schedulers, *world.engines)
            if each.parts and each.process is not world.loop.current.process)

    def _is_of_reservation(self, server, method):
        """Return whether a reservation moves or ends a server.

        Neither is an eviction: no decision is made.
        """
        found = self.reservations()
        return (bool(found) and method == 'live_migrate') or bool(
            {each.uuid for each in found}.intersection(
                (server.spec.scheduler_hints or {}).get('reservation', ())))

    def _is_of_request(self, server, method, found):
        """Return whether the backlog deletes a server of its own request.

        A victim only if its user has cancelled the request.
        """
        of = {tag.tag.split(':')[1] for tag in server.tags
              if tag.tag.startswith('backlog:')}
        return method == 'delete' and bool(of) and (found is None or any(
            each.ends_servers and each.uuid in of
            for each in self.requests()))

    @staticmethod
    def _rules(operation):
        if operation in eviction_steps.FOR_GOOD:
            # No lock of its owner lengthens a maximum run time.
            return eligibility.Rules()
        options = processes.CONF.preemption
        return eligibility.Rules(options.honored_locks,
                                 options.minimum_runtime_s)

    def placed(self, servers, hosts, asked_at):
        """Record the hosts that a scheduler has chosen.

        :param asked_at: when it was asked, naive and in UTC
        """
        self._reserved.placed(self.reservations(), servers, hosts, asked_at)

    def notice(self, uuid, at_s, decision):
        """Note when a server was told of its end."""
        self._noticed_s[decision, uuid] = at_s

    def unnoticed(self, uuid):
        """Note that a server cannot be told: its eviction goes on."""
        for each in self.open_decisions():
            self._noticed_s.setdefault((each.uuid, uuid),
                                       self._world.loop.now_s)

    def _deadline_us(self, decision, uuid, notice_s):
        """Return the end of a notice by a steady clock, or None.

        An earlier decision may write its notice later: see the guide's limits.
        """
        noticed_s = self._noticed_s.get((decision, uuid))
        return None if noticed_s is None else round(
            (noticed_s + notice_s) * 1e6)

    def paused(self, what):
        """Record that an operator has paused something.

        :param what: one of nova_preempt.db.pauses.ALL
        """
        self._paused_since_s[what] = self._world.loop.now_s

    def resumed(self, what):
        """Record that an operator has resumed it."""
        self._paused_since_s.pop(what, None)

    def _is_paused(self, operation):
        """Return whether every process must know of a pause by now."""
        now_s = self._world.loop.now_s
        return now_s - self._paused_since_s.get(
            pause_reader.of_operation(operation), now_s) > 5

    def leader(self):
        """Return the name under which the leading engine owns decisions."""
        return self._read(decision_owners.get_leader)

    def _is_taken_over(self, decision):
        """Return whether a process has just taken it over, to close it."""
        owner, since_s = self._owned.get(
            decision.uuid, (decision.owner, -math.inf))
        if owner != decision.owner:
            since_s = self._world.loop.now_s
        self._owned[decision.uuid] = decision.owner, since_s
        return self._world.loop.now_s - since_s < (
            process_lease.INTENT_TIMEOUT_S)

    def _owners(self):
        """Return the names under which processes own decisions now.

        A process whose lease has expired leaves its decisions to others.
        """
        return {each.parts.process.owner.name for each in (
            *self._world.schedulers, *self._world.engines) if each.parts}

    @staticmethod
    def _decision(each, has_owner):
        return invariant_snapshot.Decision(
            each.uuid, each.status, each.host, each.server_uuid,
            each.operation, has_owner,
            tuple(allocation_claim.all_stand_ins(each)),
            tuple(invariant_snapshot.Victim(victim.server_uuid, victim.status)
                  for victim in each.victims))

    def _read(self, read):
        """Read the database without switching tasks."""
        loop = self._world.loop
        current, loop.current = loop.current, None
        try:
            return read(processes.database())
        finally:
            loop.current = current

    def _read_once(self, read, *tables):
        """Read the database, or return what was read since the last write.

        :param tables: the names of those that it reads
        """
        counts = processes.database().writes
        writes = [counts[table] for table in tables]
        if self._found.get(read, (None,))[0] != writes:
            self._found[read] = writes, self._read(read)
        return self._found[read][1]

    def _records(self):
        """Return the records of the database as of the last write.

        :returns: [db.Decision] and {host: its power}
        """
        return self._read_once(_records, 'decisions', 'victims', 'host_power')

    def open_decisions(self):
        """Return the db.Decisions that are not finished."""
        return [each for each in self._records()[0]
                if each.status in invariant_snapshot.OPEN]

    def victims(self):
        """Return the uuids of all victims of open decisions, and stopped ones.
        """
        return {victim.server_uuid for each in self._records()[0]
                for victim in each.victims
                if each.status in invariant_snapshot.OPEN
                or victim.status == eviction_status.STOPPED}

    def rob(self, consumer):
        """Record that an operator has freed a stand-in's allocations."""
        self._freed_s[consumer] = self._world.loop.now_s
        self._robbed.update(
            victim.server_uuid for each in self.open_decisions()
            if consumer in allocation_claim.all_stand_ins(each)
            for victim in each.victims)

    def released(self, uuid):
        """Record that an administrator starts or unlocks a stopped victim.

        Nova lets them, and lets its owner start it once it is unlocked,
        although others have its space.
        """
        server = self._world.nova.servers.get(uuid)
        if server and server.locked_reason == victim_allocations.LOCKED:
            self._robbed.add(uuid)

    def snapshot(self):
        """Return a Snapshot, with the acts since the last one."""
        world, owners = self._world, self._owners()
        acts, self.acts = tuple(self.acts), []
        found, powers = self._records()
        leases = self._read_once(decision_owners.get_leases, 'owners')
        return invariant_snapshot.Snapshot(
            servers={uuid: self._server(server)
                     for uuid, server in world.nova.servers.items()},
            hosts=tuple(self._host(provider, powers) for provider
                        in world.placement.providers.values()),
            moves=frozenset(
                uuid for uuid, move in world.nova.migrations.items()
                if move.status in _MOVING),
            decisions=tuple(self._decision(each, bool(
                leases.get(each.owner) and each.owner in owners
                and not self._is_taken_over(each)))
                for each in found),
            reservations=self._reserved.snapshot(self.reservations()),
            requests=tuple(map(self._waiting, self.requests())),
            trusts=frozenset(world.keystone.trusts),
            acts=acts, limits=tuple(_budgets(found)))

    def _host(self, provider, powers):
        name = provider.name
        nova = self._world.nova
        host = nova.hosts[name]
        nova.leaks -= {
            (uuid, at) for uuid, at in nova.leaks if at == name and (
                uuid not in provider.allocations
                or nova.servers[uuid].host == name)}
        return invariant_snapshot.Host(
            name, {key: item['total'] for key, item
                   in provider.inventories.items()},
            {uuid: dict(amounts) for uuid, amounts
             in provider.allocations.items() if not self._is_left(uuid, name)},
            is_off=self._world.machines.of[name].state != machines.ON,
            power=powers[name].state if name in powers else power_steps.ON,
            is_closed=host.disabled and (host.disabled_reason or ''
                                         ).startswith(power_steps.REASON))

    def _is_left(self, uuid, host):
        """Return whether an allocation on a host may remain.

        As the guide's limits say: the engine deletes that of a stand-in of a
        late claim. That of a server which was there remains while it is
        locked and its new host is full, and that of a failed migration of a
        server without allocations while it is elsewhere.
        """
        world = self._world
        if uuid in world.placement.strays:
            since_s = self._stray_since_s.setdefault(uuid, world.loop.now_s)
            return world.loop.now_s - since_s < _AUDITED_S
        server = world.nova.servers.get(uuid)
        return server is not None and server.host != host and (
            (uuid, host) in world.nova.leaks or (
                server.locked and uuid in world.placement.lost))

    def reservations(self):
        """Return the reservation_model.Reservations, if they are on."""
        if ('reservation', 'enabled') not in self._world.settings:
            return []
        return self._read_once(
            _reservations, 'reservations', 'reservation_hosts')

    def requests(self):
        """Return the backlog_model.Requests, if the backlog is on."""
        if ('backlog', 'enabled') not in self._world.settings:
            return []
        return self._read_once(_requests, 'backlog_requests', 'backlog_boots',
                               'backlog_servers')

    def _waiting(self, each):
        """Return a request; the backlog keeps failed servers with a lock."""
        of_it = f'backlog:{each.uuid}:'
        return invariant_snapshot.BacklogRequest(
            each.uuid, each.count, frozenset(
                server.uuid for server in self._world.nova.servers.values()
                if not server.deleted and not (
                    server.vm_state == 'error' and server.locked) and any(
                        tag.tag.startswith(of_it) for tag in server.tags)),
            is_over=each.state in backlog_model.CLOSED, trust=each.trust_id)

    def _server(self, server):
        is_robbed = server.uuid in self._robbed or (
            # The guide's limits describe how this happens.
            server.uuid in self._world.placement.lost)
        uses = {} if is_robbed else server.amounts
        # A stopped server may be shelved.
        if server.vm_state == 'stopped' or (
                server.vm_state == 'shelved' and _is_ours(server, 'stop')):
            uses = {name: amount for name, amount in uses.items()
                    if name == 'DISK_GB'}
        notice = server.metadata.get('preemption')
        return invariant_snapshot.Server(
            server.uuid, server.project_id, server.host or '', server.guest,
            uses, server.vm_state, server.task_state, server.is_preemptible,
            server.deleted, server.cell == 'cell0',
            json.loads(notice)['preemption_id'] if notice else '',
            server.locked_reason == victim_allocations.LOCKED,
            (server.is_left_off and _is_ours(server, 'shelve'))
            or (server.vm_state == 'stopped' and _is_ours(server, 'stop')))
