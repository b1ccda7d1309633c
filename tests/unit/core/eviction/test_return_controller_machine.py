# SPDX-License-Identifier: Apache-2.0
"""The controller of returns against a cloud that fails at will."""

import dataclasses

from hypothesis import stateful
from hypothesis import strategies as st

from nova_preempt.core import controller_step
from nova_preempt.core import times
from nova_preempt.core.eviction import return_controller
from nova_preempt.core.eviction.return_controller import ShelvedState
from nova_preempt.core.model import SECOND
from tests.unit.core import machines

UUIDS = ('a', 'b', 'c', 'd')
OPTIONS = return_controller.Options(at_once=2, timeout_s=1800)
SIZES = {'a': 1, 'b': 1, 'c': 2, 'd': 1}
OF_CLASS = 'd'
PERIOD_S = 120
STEP_S = 30
#: The longest time until each server is back, once there is room and Nova
#: works: the longest pause, or a host that is never cleared.
BOUND_S = (return_controller.LONGEST_S + return_controller.LET_GO_S
           + 10 * STEP_S)

servers = st.sampled_from(UUIDS)


@dataclasses.dataclass
class Server:
    """A server that was shelved, and the record of its eviction."""

    ended_us: int
    status: str | None = 'SHELVED_OFFLOADED'
    task_state: str | None = None
    host: str | None = None
    launched_us: int = 0
    tries: int = 0
    next_try_us: int | None = None
    asked_us: int | None = None
    closed: str = ''


class ReturnMachine(machines.Machine):
    """Shelved victims, and the process that unshelves them; an Observed."""

    options = OPTIONS

    def __init__(self):
        super().__init__()
        self.servers = {uuid: Server(self.now_us) for uuid in UUIDS}
        self.free, self.memory = 0, None
        self.looked_us, self.held_us = {}, {}

    # -- the cloud ---------------------------------------------------------

    @stateful.rule(free=st.integers(0, 5))
    def room_changes(self, free):
        self.free = free

    @stateful.rule(uuid=servers)
    def owner_deletes(self, uuid):
        self.servers[uuid].status = None

    @stateful.rule(uuid=servers)
    def owner_unshelves(self, uuid):
        self.unshelve(uuid, False)

    @stateful.rule(uuid=servers, keeps_host=st.booleans())
    def owner_shelves_again(self, uuid, keeps_host):
        server = self.servers[uuid]
        if server.status == 'ACTIVE':
            server.status = 'SHELVED_OFFLOADED'
            server.host = server.host if keeps_host else None

    @stateful.rule(uuid=servers)
    def host_is_not_cleared(self, uuid):
        server = self.servers[uuid]
        if server.status == 'SHELVED_OFFLOADED' and not server.task_state:
            server.host = 'h'

    @stateful.rule(uuid=servers, is_done=st.booleans())
    def task_ends(self, uuid, is_done):
        server = self.servers[uuid]
        if server.task_state is not None:
            server.task_state = None
            if is_done:
                server.status, server.host = 'ACTIVE', 'h'
                server.launched_us = self.now_us

    def unshelve(self, uuid, at_once):
        server = self.servers[uuid]
        if server.status == 'SHELVED_OFFLOADED' and not server.task_state:
            server.task_state = 'unshelving'
            if at_once:
                self.task_ends(uuid, self.free >= SIZES[uuid])

    # -- what the controller observes --------------------------------------

    def shelved(self):
        return [return_controller.ShelvedVictim(
            uuid, {'VCPU': SIZES[uuid]}, server.ended_us, server.tries,
            server.next_try_us, PERIOD_S if uuid == OF_CLASS else None)
            for uuid, server in self.servers.items() if not server.closed]

    def asked(self):
        return [each for each in self.shelved() if each.tries]

    def waiting(self):
        return [[each for each in self.shelved() if each.period_s is None
                 and SIZES[each.uuid] == size] for size in (1, 2)]

    def of_class(self):
        return [each for each in self.shelved() if each.period_s is not None]

    def unseen(self):
        return sorted(
            (each.uuid for each in self.shelved()
             if self.now_us - self.looked_us.get(each.uuid, 0)
             >= return_controller.LOOK_S * SECOND),
            key=lambda uuid: (self.looked_us.get(uuid, 0), uuid))

    def sight(self, uuid):
        self.looked_us[uuid] = self.now_us
        if not self.draw(True, True, True, False):
            return None
        server, held_s = self.servers[uuid], 0
        shown = server.status, server.task_state, server.host
        if return_controller.is_held(*shown):
            held_s = (self.now_us - self.held_us.setdefault(
                uuid, self.now_us)) / SECOND
        else:
            self.held_us.pop(uuid, None)
        return return_controller.classify(
            *shown, held_s, has_run=return_controller.has_run_since(
                times.at(server.launched_us), times.at(0),
                times.at(server.ended_us)))

    def holds(self, uuid):
        return self.servers[uuid].task_state == 'unshelving'

    def room(self, server):
        free = self.draw(self.free, self.free, 0)
        return ({'h': {'VCPU': free}}
                if free >= server.resources['VCPU'] else {})

    def choose(self, waiting, most, memory, now_us):
        return controller_step.Step(
            tuple(each.uuid for each in waiting)[:max(0, most)], memory)

    # -- the service -------------------------------------------------------

    @stateful.rule()
    def process_dies(self):
        self.memory, self.looked_us, self.held_us = None, {}, {}

    @stateful.rule(steps=st.sampled_from((1, 1, 3, 10, 40)))
    def runs(self, steps):
        for _ in range(steps):
            self.now_us += STEP_S * SECOND
            self.work()

    @stateful.rule()
    def work(self):
        found = return_controller.step(self, self.memory, self.now_us)
        self.memory = found.memory
        self.check(found.intents)
        for intent in found.intents:
            self.carry_out(intent)

    def carry_out(self, intent):
        """Carry out an intent after a look, as the engine does."""
        server = self.servers[intent.uuid]
        assert not server.closed, 'it is forgotten twice'
        sight = (intent.sight if isinstance(intent, return_controller.Close)
                 else self.sight(intent.uuid))
        if sight is ShelvedState.GONE:
            assert server.status is None
            server.closed = 'gone'
        elif sight is ShelvedState.BACK:
            assert server.status == 'ACTIVE' or (
                server.launched_us > server.ended_us)
            server.closed = 'back'
        elif sight is ShelvedState.SHELVED:
            if isinstance(intent, return_controller.GiveUp):
                assert intent.uuid != OF_CLASS
                assert self.now_us - server.ended_us >= (
                    OPTIONS.timeout_s * SECOND)
                server.closed = 'given up'
            else:
                self.ask(intent)

    def ask(self, intent):
        server = self.servers[intent.uuid]
        pause_s = PERIOD_S if intent.uuid == OF_CLASS else (
            return_controller.pause_s(return_controller.INTERVAL_S,
                                      max(0, server.tries - 1)))
        assert not server.tries or (
            self.now_us - server.asked_us >= pause_s * SECOND), 'too soon'
        assert intent.next_try_us > self.now_us
        server.tries, server.next_try_us = server.tries + 1, intent.next_try_us
        server.asked_us = self.now_us
        self.call(self.unshelve, intent.uuid)

    def check(self, intents):
        """Check the intents of a step."""
        uuids = [intent.uuid for intent in intents]
        assert len(uuids) == len(set(uuids)), 'two intents with one server'
        starts = [intent for intent in intents
                  if isinstance(intent, return_controller.Unshelve)]
        others = [uuid for uuid in starts if uuid.uuid != OF_CLASS]
        assert len(starts) <= OPTIONS.at_once, 'too many at once'
        assert sum(SIZES[each.uuid] for each in others) <= self.free, (
            'more than there is room for')

    def teardown(self):
        """With room for all, each is back, gone or given up in time."""
        self.faulty, self.free = False, sum(SIZES.values())
        end_us = self.now_us + BOUND_S * SECOND
        while self.now_us < end_us:
            for uuid in UUIDS:
                self.task_ends(uuid, True)
            self.runs(1)
        for uuid, server in self.servers.items():
            assert server.closed, (uuid, server)


TestReturnMachine = ReturnMachine.TestCase
TestReturnMachine.settings = machines.settings(60, 40)
