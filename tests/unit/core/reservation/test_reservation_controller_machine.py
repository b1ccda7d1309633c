# SPDX-License-Identifier: Apache-2.0
"""The controller of open reservations against a cloud that fails at will."""

import dataclasses
import math

from hypothesis import stateful
from hypothesis import strategies as st

from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import lease_event_controller
from nova_preempt.core.reservation import observed_hosts
from nova_preempt.core.reservation import reservation_controller
from nova_preempt.core.reservation import reservation_model
from nova_preempt.core.reservation.lease_event_controller import Kind
from tests.unit.core import machines

HOSTS = ('h1', 'h2', 'h3', 'h4')
LEADS_S = (300, 120)
START_S, END_S = 2_000, 20_000
STEP_S = 10
#: How long after its start, and after the faults, a reservation starts.
BOUND_S = 3 * max(LEADS_S) + drain_rules.RETRY_S + drain_rules.SWAP_S + 300

hosts = st.sampled_from(HOSTS)


@dataclasses.dataclass
class Resident:
    """A server on a host.

    :ivar asked: what it was asked for, 'evict' or 'migrate', until that is
        over
    """

    uuid: str
    host: str
    is_preemptible: bool
    named: tuple = ()
    asked: str = ''
    asked_us: int | None = None
    refused: bool = False
    stays_until_us: float = 0

    def observed(self, now_us):
        return drain_rules.Server(
            self.uuid, self.named, 30 if self.is_preemptible else None,
            LEADS_S[1 if self.is_preemptible else 0],
            max(0.0, (self.stays_until_us - now_us) / SECOND),
            bool(self.asked), self.refused, self.asked_us)


class ReservationMachine(machines.Machine):
    """State machine of a reservation and of servers on hosts."""

    leads_s = LEADS_S

    def __init__(self):
        super().__init__()
        start = reservation_model.from_s(START_S)
        end = reservation_model.from_s(END_S)
        self.reservation = reservation_model.Reservation(
            'r', 'p', 2, END_S - START_S, start, 'delete', 0, start_at=start,
            end_at=end, hosts=tuple(reservation_model.Assignment(
                name, start, end) for name in HOSTS[:2]))
        self.memory = reservation_controller.Memory()
        self.told = lease_event_controller.Memory()
        self.there, self.number = {}, 0
        self.up = dict.fromkeys(HOSTS, True)
        self.dark, self.down, self.running = set(), frozenset(), {}
        self.others_us = set()

    # -- the cloud ---------------------------------------------------------

    @stateful.rule(host=hosts, is_preemptible=st.booleans(),
                   is_own=st.sampled_from((False, False, True)),
                   stays_s=st.sampled_from((0, 0, 100, 1000, math.inf)))
    def server_comes(self, host, is_preemptible, is_own, stays_s):
        self.number += 1
        uuid = f's{self.number}'
        self.there[uuid] = Resident(
            uuid, host, is_preemptible, ('r',) if is_own else (),
            stays_until_us=self.now_us + stays_s * SECOND)

    @stateful.precondition(lambda self: self.there)
    @stateful.rule(choice=st.integers(0, 99), is_done=st.booleans())
    def task_ends(self, choice, is_done):
        asked = [each for each in self.there.values() if each.asked]
        if asked:
            server = asked[choice % len(asked)]
            if is_done:
                self.leaves(server)
            else:
                server.refused = server.asked == 'migrate'
                server.asked = ''

    def leaves(self, server):
        """End a server, or move it to an unreserved host."""
        del self.there[server.uuid]

    @stateful.precondition(lambda self: self.there)
    @stateful.rule(choice=st.integers(0, 99))
    def owner_deletes(self, choice):
        self.leaves([*self.there.values()][choice % len(self.there)])

    @stateful.rule(host=hosts, is_up=st.booleans(), is_dark=st.booleans())
    def host_changes(self, host, is_up, is_dark):
        self.up[host] = is_up
        self.dark = self.dark | {host} if is_dark else self.dark - {host}

    @stateful.rule()
    def down_hosts_are_given_up(self):
        self.down = frozenset(name for name in HOSTS if not self.up[name])

    # -- what the controller observes --------------------------------------

    def host(self, name):
        return observed_hosts.Host(
            name, state='up' if self.up[name] else 'down',
            dark=name in self.dark)

    def servers(self, name):
        return [each.observed(self.now_us) for each in self.there.values()
                if each.host == name]

    def caps(self, servers):
        return ()

    def evicting(self):
        return {each.uuid for each in self.there.values()
                if each.asked == 'evict'}

    def is_free(self, name, servers):
        here = {each.uuid for each in self.there.values()
                if each.host == name}
        return self.draw(True, True, None) and here <= set(servers)

    def candidates(self):
        if not self.draw(True, True, False):
            return ()
        return tuple(name for name in HOSTS if self.up[name]
                     and name not in self.reservation.held)

    def former(self):
        return ()

    # -- the service -------------------------------------------------------

    @stateful.rule()
    def process_dies(self):
        self.memory = reservation_controller.Memory()
        self.told = lease_event_controller.Memory()

    @stateful.rule(steps=st.sampled_from((1, 3, 10, 30, 60)))
    def runs(self, steps):
        for _ in range(steps):
            self.now_us += STEP_S * SECOND
            self.work()

    @stateful.rule()
    def work(self):
        self.tell_events()
        for _ in range(8):
            if self.reservation.status not in reservation_model.OPEN:
                return
            found = reservation_controller.step(self, self.memory,
                                                self.now_us)
            self.memory = found.memory
            for intent in found.intents:
                self.carry_out(intent)
            if found.wake_at_us != self.now_us:
                return

    def tell_events(self):
        found = lease_event_controller.step(
            (self.reservation,) if self.reservation.status
            in reservation_model.OPEN else (), self.told, self.now_us)
        self.told = found.memory
        for intent in found.intents:
            self.change(intent.kind)

    def carry_out(self, intent):
        match intent:
            case reservation_controller.Evict(host, uuids):
                self.check_evict(host, uuids)
                for uuid in uuids:
                    self.ask(uuid, 'evict')
            case reservation_controller.Migrate(host, uuid):
                self.check_migrate(host, uuid)
                self.ask(uuid, 'migrate')
            case reservation_controller.SetHost(host, status, reason):
                if status == reservation_model.READY:
                    self.check_ready(host, reason)
                self.set_host(host, status, reason)
            case reservation_controller.ReplaceHost():
                self.replace(intent)
            case reservation_controller.StartReservation():
                self.change(Kind.START)

    def ask(self, uuid, what):
        server = self.there[uuid]

        def begin(at_once):
            server.asked, server.refused = what, False
            server.asked_us = self.now_us
            if at_once:
                self.leaves(server)

        if not self.call(begin):
            server.asked_us = self.now_us

    def set_host(self, name, status, reason=''):
        self.reservation = dataclasses.replace(self.reservation, hosts=tuple(
            dataclasses.replace(each, status=status, reason=reason)
            if each.host == name else each
            for each in self.reservation.hosts))

    def replace(self, intent):
        """Give it the first candidate, as far as that is still free."""
        reservation = self.reservation
        if intent.host is not None:
            assert intent.host in reservation.held, 'it has not the host'
        free = [name for name in intent.candidates
                if name not in reservation.held]
        if intent.host is not None and (free or intent.or_lose):
            self.set_host(intent.host, reservation_model.LOST)
        if free:
            assert len(self.reservation.held) < reservation.quantity, (
                'more hosts than asked for')
            self.reservation = dataclasses.replace(
                self.reservation, hosts=(*(
                    each for each in self.reservation.hosts
                    if each.host != free[0]), reservation_model.Assignment(
                        free[0], reservation.start_at, reservation.end_at)))

    def change(self, kind):
        """Apply an event, if it still does."""
        before = self.reservation
        changes = lease_event_controller.change(
            before, kind, reservation_model.from_us(self.now_us))
        if changes and kind is Kind.START:
            assert before.ready_at is None, 'it starts twice'
            assert self.now_us >= START_S * SECOND, 'it starts too early'
            assert all(each.status in (reservation_model.READY,
                                       reservation_model.LOST)
                       for each in before.hosts), 'a host is not empty'
        if changes and kind is Kind.END:
            assert self.now_us >= END_S * SECOND, 'it ends too early'
        self.reservation = dataclasses.replace(before, **changes)

    # -- the laws ----------------------------------------------------------

    def check_evict(self, host, uuids):
        assert host in self.reservation.held, 'another\'s host is drained'
        assert host not in self.dark and (
            self.up[host] or self.reservation.ready_at is not None)
        assert START_S * SECOND - self.now_us <= LEADS_S[1] * SECOND, (
            'the notice begins too early')
        for uuid in uuids:
            server = self.there[uuid]
            assert server.host == host and server.is_preemptible
            assert not server.named, 'a server of the reservation is evicted'
            assert not server.asked, 'a second notice'
            assert server.stays_until_us <= self.now_us, 'a broken promise'

    def check_migrate(self, host, uuid):
        server = self.there[uuid]
        assert host in self.reservation.held and server.host == host
        assert not server.named and not server.is_preemptible
        assert not server.asked, 'a second move'
        assert server.asked_us is None or self.now_us - server.asked_us >= (
            drain_rules.RETRY_S * SECOND), 'it is moved too often'

    def check_ready(self, host, reason):
        """Check a host that is empty, or of which others are reported."""
        was_ready = any(each.host == host
                        and each.status == reservation_model.READY
                        for each in self.reservation.hosts)
        assert host not in self.dark, 'nobody can tell'
        assert was_ready or self.up[host], 'nobody can tell'
        others = [each.uuid for each in self.there.values()
                  if each.host == host and not each.named]
        if reason:
            assert was_ready, 'it has never been empty'
            assert others and all(uuid in reason for uuid in others), reason
        else:
            assert not others, 'it is not empty'

    def teardown(self):
        """After the faults the reservation starts, and ends in time."""
        self.faulty, self.dark, self.down = False, set(), frozenset()
        self.up = dict.fromkeys(HOSTS, True)
        for server in self.there.values():
            server.stays_until_us = 0
        end_us = max(self.now_us, START_S * SECOND) + BOUND_S * SECOND
        while self.now_us < end_us:
            for server in [*self.there.values()]:
                if server.asked:
                    self.leaves(server)
            self.runs(1)
        assert self.reservation.ready_at is not None or (
            end_us >= END_S * SECOND), self.reservation
        self.now_us = max(self.now_us, END_S * SECOND)
        self.work()
        assert self.reservation.status == reservation_model.ENDED


TestReservationMachine = ReservationMachine.TestCase
TestReservationMachine.settings = machines.settings(60, 40)
