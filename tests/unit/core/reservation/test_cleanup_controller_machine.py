# SPDX-License-Identifier: Apache-2.0
"""The cleanup after a reservation against a cloud that fails at will."""

import dataclasses

from hypothesis import stateful
from hypothesis import strategies as st

from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import DELETING
from nova_preempt.core.reservation import cleanup_controller
from nova_preempt.core.reservation import reservation_model
from tests.unit.core import machines
from tests.unit.core import servers_of_machines
from tests.unit.core.servers_of_machines import HERE

#: Servers of the reservation, one of another that runs there, a stranger.
NAMED = {'a': ('r',), 'b': ('r',), 'c': ('r', 'q'), 'd': ()}
OWN = ('a', 'b')
BOUND_S = cleanup_controller.TIMEOUT_S + 60
_BUSY = eviction_steps.SHELVING | eviction_steps.MOVING | DELETING

servers = st.sampled_from(tuple(NAMED))


def reservation(uuid, status, end_action='delete'):
    start, end = reservation_model.from_s(0), reservation_model.from_s(1000)
    return reservation_model.Reservation(
        uuid, 'p', 1, 1000, start, end_action, 0, status=status,
        start_at=start, end_at=end, ready_at=start,
        hosts=(reservation_model.Assignment(
            HERE, start, end, reservation_model.READY),))


class CleanupMachine(machines.Machine):
    """A reservation that is over, and the servers on its host; a View."""

    def __init__(self):
        super().__init__()
        self.servers_of_nova = {
            uuid: servers_of_machines.ModelServer(uuid) for uuid in NAMED}
        self.memory = cleanup_controller.Memory()
        self.running = {'q': reservation('q', reservation_model.ACTIVE)}
        self.needed, self.dark = frozenset(), False
        self.asked_us, self.began_us = {}, None
        self.left = None
        self.reservation = reservation('r', reservation_model.ENDED)

    @stateful.initialize(action=st.sampled_from(('delete', 'shelve')))
    def ends(self, action):
        self.reservation = reservation('r', reservation_model.ENDED, action)

    # -- the cloud ---------------------------------------------------------

    @stateful.rule(uuid=servers, call=st.sampled_from(
        servers_of_machines.USER_CALLS))
    def user_calls(self, uuid, call):
        server = self.servers_of_nova[uuid]
        if server.allows(call) and call not in ('resize', 'live_migrate',
                                                'unshelve'):
            server.begin(call)

    @stateful.rule(uuid=servers, is_done=st.booleans())
    def task_ends(self, uuid, is_done):
        server = self.servers_of_nova[uuid]
        if server.call and is_done:
            server.finish()
        elif server.call:
            server.fail()

    @stateful.rule(uuid=servers, locked_by=st.sampled_from(('', 'admin')))
    def locks(self, uuid, locked_by):
        self.servers_of_nova[uuid].locked_by = locked_by

    @stateful.rule(is_dark=st.booleans(), is_needed=st.booleans())
    def cell_changes(self, is_dark, is_needed):
        self.dark = is_dark
        self.needed = frozenset((HERE,) if is_needed else ())

    # -- what the controller observes --------------------------------------

    def servers(self, host):
        if self.dark:
            return []
        return [self.seen(each) for each in self.servers_of_nova.values()
                if each.exists and each.host == host]

    def coming(self):
        return []

    def homeless(self, coming):
        return []

    def seen(self, server):
        return cleanup_controller.Server(
            server.uuid, server.host, NAMED[server.uuid], server.vm_state,
            server.task_state, is_kept=bool(server.locked_by))

    # -- the service -------------------------------------------------------

    @stateful.rule()
    def process_dies(self):
        self.memory, self.began_us = cleanup_controller.Memory(), None
        self.asked_us = {}

    @stateful.rule(steps=st.integers(1, 60))
    def runs(self, steps):
        for _ in range(steps):
            self.now_us += 5 * SECOND
            self.work()

    @stateful.rule()
    def work(self):
        if self.began_us is None and not self.dark:
            self.began_us = self.now_us
        found = cleanup_controller.step(self, self.memory, self.now_us)
        self.memory = found.memory
        for intent in found.intents:
            if isinstance(intent, cleanup_controller.EndServer):
                self.check_end(intent)
                self.call(self.change, intent.server, intent.call)
            elif isinstance(intent, cleanup_controller.Release):
                self.check_release(intent)

    def change(self, uuid, call, at_once):
        server = self.servers_of_nova[uuid]
        if server.allows(call):
            server.begin(call)
            if at_once:
                server.finish()

    # -- the laws ----------------------------------------------------------

    def check_end(self, intent):
        server = self.servers_of_nova[intent.server]
        assert intent.server in OWN, 'it has business there'
        # Nova deletes a server whatever else it does with it.
        assert server.task_state not in (
            _BUSY if self.reservation.end_action == 'shelve' else DELETING
        ), 'it is ended twice'
        if intent.call == 'force_delete':
            assert not server.locked_by, 'an administrator has locked it'
            if self.reservation.end_action == 'shelve':
                assert server.vm_state == 'soft-delete' or self.is_late(), (
                    'it is deleted instead of shelved')
        asked_us = self.asked_us.get(intent.server)
        assert asked_us is None or self.now_us - asked_us >= (
            cleanup_controller.ASK_AGAIN_S * SECOND), 'it is asked too often'
        self.asked_us[intent.server] = self.now_us

    def is_late(self):
        """Return whether half of the time is spent."""
        return self.began_us is not None and self.now_us - self.began_us >= (
            cleanup_controller.TIMEOUT_S * SECOND // 2)

    def check_release(self, intent):
        assert self.reservation.released_at is None, 'a second release'
        here = {uuid for uuid in OWN if self.servers_of_nova[uuid].exists
                and self.servers_of_nova[uuid].host == HERE}
        assert {each.uuid for each in intent.left} == here
        assert not here or self.now_us - self.began_us >= (
            cleanup_controller.TIMEOUT_S * SECOND), 'it was given up early'
        self.left = here
        self.reservation = dataclasses.replace(
            self.reservation,
            released_at=reservation_model.from_us(self.now_us))

    def teardown(self):
        """After the faults the host is released within a bound."""
        self.faulty = self.dark = False
        for server in self.servers_of_nova.values():
            server.locked_by = ''
        end_us = self.now_us + BOUND_S * SECOND
        while self.now_us < end_us:
            for server in self.servers_of_nova.values():
                if server.call:
                    server.finish()
            self.runs(1)
        assert self.left is not None, 'the host is not released'
        for uuid in OWN:
            assert self.servers_of_nova[uuid].host != HERE or not (
                self.servers_of_nova[uuid].exists), 'a server remains'


TestCleanupMachine = CleanupMachine.TestCase
TestCleanupMachine.settings = machines.settings(60, 40)
