# SPDX-License-Identifier: Apache-2.0
"""The controller of the backlog against a Nova that fails at will."""

import dataclasses

from hypothesis import stateful
from hypothesis import strategies as st

from nova_preempt.core import eviction_status
from nova_preempt.core.backlog import backlog_controller
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import dispatch_values
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.backlog import request_servers
from nova_preempt.core.backlog.boot_outcome import BootAnswer
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.core.times import at
from tests.unit.core import machines
from tests.unit.core.backlog import base

BOOTS = boot_outcome.Options(undecided_s=180, building_s=600, retry_s=30)
OPTIONS = backlog_controller.Options(boots=BOOTS)
UUIDS = ('q', 'r', 's')
CORES = 4
#: The longest time until each request has started, once Nova works: a server
#: that is never built, and the longest pause.
BOUND_S = BOOTS.building_s + 2 * boot_outcome.LONGEST_PAUSE_S + 300
STEP_S = 30
_FAULTS = ('No valid host was found', 'The image is broken')

requests = st.sampled_from(UUIDS)


@dataclasses.dataclass
class Server:
    """A server in Nova; ``victim``: how it was evicted."""

    uuid: str
    request: str
    tag: str
    comes_us: int
    vm_state: str = 'building'
    fault: str = ''
    victim: str = ''
    is_asked_to_end: bool = False

    @property
    def exists(self):
        return self.vm_state != 'deleted'


class BacklogMachine(machines.Machine):
    """State machine of requests, their servers and the engine."""

    def __init__(self):
        super().__init__()
        self.requests, self.servers = {}, {}
        self.cleared = set()
        self.cores = CORES
        self.memory = backlog_controller.Memory()

    @property
    def now(self):
        return at(self.now_us).replace(tzinfo=None)

    # -- users -------------------------------------------------------------

    @stateful.rule(uuid=requests, count=st.integers(1, 2),
                   least=st.integers(1, 2), comes_back=st.booleans(),
                   wait_s=st.sampled_from((None, None, 900)))
    def asks(self, uuid, count, least, comes_back, wait_s):
        if uuid not in self.requests:
            self.requests[uuid] = base.request(
                uuid, base.alternative(preemptible=True), count=count,
                least_count=min(count, least), comes_back=comes_back,
                longest_wait_s=wait_s, created_at=self.now,
                updated_at=self.now)

    @stateful.rule(uuid=requests, ends_servers=st.booleans())
    def cancels(self, uuid, ends_servers):
        request = self.requests.get(uuid)
        if request and request.state in backlog_model.OPEN:
            self.requests[uuid] = dataclasses.replace(
                request, state=backlog_model.CANCELLED, updated_at=self.now,
                ends_servers=ends_servers)

    @stateful.precondition(lambda self: self.servers)
    @stateful.rule(choice=st.integers(0, 99))
    def owner_deletes(self, choice):
        server = self.choose(choice)
        if server and server.vm_state == 'active':
            server.vm_state = 'deleted'

    # -- Nova --------------------------------------------------------------

    def choose(self, choice):
        found = [each for each in self.servers.values() if each.exists
                 and each.comes_us <= self.now_us]
        return found[choice % len(found)] if found else None

    @stateful.precondition(lambda self: self.servers)
    @stateful.rule(choice=st.integers(0, 99), is_done=st.booleans(),
                   fault=st.sampled_from(_FAULTS))
    def build_ends(self, choice, is_done, fault):
        server = self.choose(choice)
        if server and server.vm_state == 'building':
            server.vm_state = 'active' if is_done else 'error'
            server.fault = '' if is_done else fault

    @stateful.precondition(lambda self: self.servers)
    @stateful.rule(choice=st.integers(0, 99), is_kept=st.booleans())
    def is_evicted(self, choice, is_kept):
        server = self.choose(choice)
        if server and server.vm_state == 'active':
            server.vm_state = 'shelved_offloaded' if is_kept else 'deleted'
            server.victim = (eviction_status.SHELVED if is_kept
                             else eviction_status.GONE)

    @stateful.rule(cores=st.integers(0, CORES))
    def capacity_changes(self, cores):
        self.cores = cores

    # -- what the service reads and writes ---------------------------------

    def look(self, request):
        """Return Nova's servers of a request."""
        tags = request_servers.sought_tags(request, self.now)
        uuids = request_servers.sought_servers(request)
        found = [each for each in self.servers.values()
                 if each.comes_us <= self.now_us
                 and (each.uuid in uuids or each.tag in tags)]
        return request_servers.FoundServers(tuple(
            ObservedServer(each.uuid, each.vm_state, tags=(each.tag,),
                           fault=each.fault)
            for each in found if each.exists), {
                each.uuid: each.victim for each in found if each.victim})

    def cloud(self):
        used = {each.uuid for each in self.servers.values()
                if each.vm_state in ('building', 'active')
                and each.comes_us <= self.now_us}
        free = {'VCPU': max(0, self.cores - len(used))}
        return dispatch_values.Cloud([host_capacity.HostCapacity(
            'h', free, free, {'VCPU': CORES}, consumers=frozenset(used))])

    @stateful.rule()
    def process_dies(self):
        self.memory = backlog_controller.Memory()

    @stateful.rule(steps=st.sampled_from((1, 1, 3, 10, 30)))
    def runs(self, steps):
        for _ in range(steps):
            self.now_us += STEP_S * SECOND
            self.work()

    @stateful.rule()
    def work(self):
        opened = [each for each in self.requests.values()
                  if each.state in backlog_model.OPEN]
        closed = [each for each in self.requests.values()
                  if each.state in backlog_model.CLOSED
                  and each.uuid not in self.cleared]
        followed = backlog_controller.follow(opened, closed, {
            each.uuid: self.look(each) for each in (*opened, *closed)
            if self.draw(True, True, True, False)}, self.now_us, BOOTS)
        changed = {item.request.uuid for item in followed.records
                   if not self.record(item.request, item.verdict)}
        for item in followed.clears:
            if item.request.uuid not in changed:
                self.record(item.request, item.verdict)
                if item.is_last and not item.verdict.deletes:
                    self.check_cleared(item.request.uuid)
        found = backlog_controller.step(backlog_controller.Observed(
            OPTIONS, followed.waiting, followed.requests,
            self.cloud() if self.draw(True, True, False) else None),
            self.memory, self.now_us)
        self.memory = found.memory
        for intent in found.intents:
            if isinstance(intent, backlog_controller.RecordWaitReason):
                self.note(intent)
            elif isinstance(intent, backlog_controller.Launch):
                self.launch(intent)
            else:
                assert not isinstance(intent,
                                      backlog_controller.LogException), intent
        self.check()

    def record(self, request, verdict):
        """Record a verdict; return False if the database does not answer."""
        if not self.draw(True, True, True, False):
            return False
        current = self.requests[request.uuid]
        self.requests[request.uuid] = dataclasses.replace(
            boot_outcome.with_verdict(current, verdict), updated_at=(
                self.now if current.state != verdict.state
                else current.updated_at))
        for uuid in verdict.deletes:
            self.call(self.delete, uuid)
        return True

    def delete(self, uuid, at_once):
        self.servers[uuid].is_asked_to_end = True
        if at_once:
            self.servers[uuid].vm_state = 'deleted'

    def note(self, intent):
        request = self.requests[intent.request.uuid]
        self.requests[request.uuid] = dataclasses.replace(
            request, position=intent.note.position,
            waits_for=intent.note.waits_for,
            estimate_s=intent.note.estimate_s)

    def launch(self, intent):
        """Boot servers, as backlog.launcher does."""
        request, start = self.requests[intent.request.uuid], intent.start
        if request.state != intent.request.state:
            return
        self.check_launch(request, start)
        boot = request_servers.next_boot(request, start.flavor_id,
                                         start.count, self.now)
        begun = boot_outcome.with_boot(request, boot)
        self.requests[request.uuid] = begun
        how = self.draw(BootAnswer.ACCEPTED, *BootAnswer, 'dies')
        first = ''
        if how in (BootAnswer.ACCEPTED, BootAnswer.UNKNOWN):
            late_s = 0 if how is BootAnswer.ACCEPTED else self.draw(
                0, 60, BOOTS.undecided_s - 1, None)
            if late_s is not None:
                first = self.create(request.uuid, boot, late_s)
        if how != 'dies':
            verdict = boot_outcome.judge_answer(
                request, boot, how, 'why', first if how is
                BootAnswer.ACCEPTED and self.draw(True, False) else '',
                self.now, BOOTS)
            self.requests[request.uuid] = boot_outcome.with_verdict(
                begun, verdict)

    def create(self, uuid, boot, late_s):
        uuids = [f'{uuid}-{boot.number}-{number}'
                 for number in range(boot.count)]
        for each in uuids:
            self.servers[each] = Server(
                each, uuid, boot.tag, self.now_us + late_s * SECOND)
        return uuids[0]

    # -- the laws ----------------------------------------------------------

    def check_launch(self, request, start):
        assert request.state in (
            backlog_model.WAITING, backlog_model.PARTLY_ACTIVE,
            backlog_model.EVICTED), 'it does not wait'
        assert start.count <= backlog_model.missing(request), 'too many'
        assert start.count >= backlog_model.least(request), 'too few'
        # New capacity ends the pause of a request that found no host.
        assert request.next_try_at is None or (
            request.next_try_at <= self.now
            or boot_outcome.refused(request) == boot_outcome.NO_HOST
        ), 'too soon'
        assert not any(boot.state in request_servers.OPEN_BOOTS
                       for boot in request.boots), 'a boot is under way'

    def check(self):
        """Check that no request has more servers than it asked for."""
        for uuid, request in self.requests.items():
            there = [each for each in self.servers.values()
                     if each.request == uuid and not each.is_asked_to_end
                     and each.vm_state in ('building', 'active',
                                           'shelved_offloaded')
                     and not self.is_given_up(request, each)]
            assert len(there) <= request.count, there

    def is_given_up(self, request, server):
        """Return whether a server is of a boot that was given up."""
        states = {item.tag: item.state for item in request.boots}
        own = {item.uuid: item.state for item in request.servers}
        return states.get(server.tag) in request_servers.VOID_BOOTS or (
            own.get(server.uuid) == backlog_model.UNPLACED)

    def check_cleared(self, uuid):
        request = self.requests[uuid]
        for each in self.servers.values():
            if each.request == uuid and each.exists and (
                    each.comes_us <= self.now_us):
                assert not request.ends_servers, 'a server is left'
                assert each.vm_state != 'building', 'a server is left'
        self.cleared.add(uuid)

    def teardown(self):
        """After the faults each request starts, or is refused, in time."""
        self.faulty, self.cores = False, 100
        end_us = self.now_us + BOUND_S * SECOND
        while self.now_us < end_us:
            self.now_us += STEP_S * SECOND
            for server in self.servers.values():
                if server.comes_us <= self.now_us and server.exists:
                    if server.is_asked_to_end:
                        server.vm_state = 'deleted'
                    elif server.vm_state == 'building':
                        server.vm_state = 'active'
            self.work()
        for uuid, request in self.requests.items():
            assert request.state not in (backlog_model.WAITING,
                                         backlog_model.PLACING), request
            assert request.state in backlog_model.OPEN or (
                uuid in self.cleared), request
            if request.state == backlog_model.ACTIVE:
                assert sum(each.request == uuid and each.exists for each
                           in self.servers.values()) <= request.count


TestBacklogMachine = BacklogMachine.TestCase
TestBacklogMachine.settings = machines.settings(60, 40)
