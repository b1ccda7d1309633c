# SPDX-License-Identifier: Apache-2.0
"""The engine and the simulator keep reservations alike.

Each scenario is run through the service's edge, with a database in memory and
a cloud that does what it is asked for, and through a simulation; the events
must be those that are recorded here.
"""

import dataclasses
import datetime
from unittest import mock

from nova_preempt.core import controller_step as core_controller
from nova_preempt.core import eligibility
from nova_preempt.core.model import SECOND
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.core.reservation import cleanup_controller
from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import lease_event_controller
from nova_preempt.core.reservation import leases
from nova_preempt.core.reservation import reservation_controller
from nova_preempt.core.reservation import reservation_model
from nova_preempt.simulator import delays
from nova_preempt.simulator import simulation as run
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator.traces import trace_model
from tests.unit.reservation import life
from tests.unit.simulator import small

# How long Nova takes, in seconds.
BOOT_S, DELETE_S, MIGRATE_S = 10, 2, 60

START_S = 700

#: How the service's cloud says what it was asked for, in the words that
#: simulations have.
_WORDS = {'reservation': 'notice', 'live_migrate': 'moving',
          'force_delete': 'clear'}


@dataclasses.dataclass(frozen=True)
class Scenario:
    """Servers and one reservation; times are in seconds.

    :ivar hosts: how many there are, h-1 and so on
    :ivar reservable: how many of them can be reserved; a server can only be
        moved where not all can
    :ivar servers: {uuid: (when it boots, when its owner deletes it, if so)};
        p... are preemptible, n... and s... normal ones and o... are the
        reservation's own. Each fills a host: the first one that is free. For
        s... the scheduler knows of no reservation
    :ivar events: [(when, what, which)] as either side has them
    :ivar next_for_s: how long a second reservation has the same hosts after
        the first one, which is asked for first; 0 for none
    :ivar cancelled_s: when its owner gives the first reservation up
    """

    hosts: int
    servers: dict
    events: tuple
    quantity: int = 1
    for_s: int = 300
    promised_s: int = 0
    reservable: int = 9
    until_s: int = 1100
    next_for_s: int = 0
    cancelled_s: int | None = None


def _tries(until_s, *servers):
    """Moves that are refused, each half a minute."""
    return tuple((float(at_s), 'moving', uuid) for at_s in range(
        400, until_s + 1, 30) for uuid in servers)


SCENARIOS = {
    'a preemptible server gets its notice': Scenario(
        1, {'p1': (0, None), 'o1': (750, None)}, (
            (520.0, 'notice', 'p1'), (700.0, 'started', 'r1'),
            (1000.0, 'clear', 'o1'), (1000.0, 'ended', 'r1'))),
    'a normal server is moved': Scenario(
        2, {'n1': (0, None)}, (
            (400.0, 'moving', 'n1'), (700.0, 'started', 'r1'),
            (1000.0, 'ended', 'r1')), reservable=1),
    'another host for one that will not be empty': Scenario(
        2, {'p1': (0, None), 'n1': (0, 300)}, (
            (240.0, 'host replaced', 'h-2'), (700.0, 'started', 'r1'),
            (1000.0, 'ended', 'r1')), promised_s=2000),
    'hosts that are lost, and one that is found': Scenario(
        2, {'n1': (0, None), 'n2': (0, 1060)}, (
            *_tries(700, 'n1', 'n2'),
            (700.0, 'host lost', 'h-1'), (700.0, 'host lost', 'h-2'),
            (1060.0, 'host added', 'h-2'), (1060.0, 'started', 'r1')),
        quantity=2, for_s=2000),
    'a server of others is turned away': Scenario(
        2, {'s1': (800, None)}, (
            (700.0, 'started', 'r1'), (810.0, 'moving', 's1'),
            (1000.0, 'ended', 'r1')), reservable=1),
    'one reservation after the other': Scenario(
        1, {}, (
            (700.0, 'started', 'r1'), (1000.0, 'ended', 'r1'),
            (1000.0, 'started', 'r2'), (1060.0, 'ended', 'r2')),
        next_for_s=60),
    'a reservation waits for servers of another one': Scenario(
        1, {'o1': (750, None)}, (
            (700.0, 'started', 'r1'), (1000.0, 'ended', 'r1'),
            (1000.0, 'clear', 'o1'), (1002.0, 'started', 'r2'),
            (1060.0, 'ended', 'r2')), next_for_s=60),
    'a reservation that its owner ends': Scenario(
        1, {'o1': (750, None)}, (
            (700.0, 'started', 'r1'), (800.0, 'ended', 'r1'),
            (800.0, 'clear', 'o1'), (1000.0, 'started', 'r2'),
            (1060.0, 'ended', 'r2')), cancelled_s=800, next_for_s=60),
    'a reservation that is cancelled before it starts': Scenario(
        1, {'p1': (0, None)}, ((520.0, 'notice', 'p1'),),
        cancelled_s=600),
    'a reservation that never starts': Scenario(
        1, {'n1': (0, None)}, (
            *_tries(700, 'n1'), (700.0, 'host lost', 'h-1'),
            (1000.0, 'never started', 'r1'))),
}


class Service:
    """Runs a scenario where the engine keeps the reservation.

    :param test: a life.ChoresTestCase
    """

    def __init__(self, test, scenario):
        self.test = test
        self.scenario = scenario
        self.begin = test.now
        self.events = []
        test.options.evacuation_lead_s = 300
        for number in range(scenario.hosts):
            test.cloud.add_host(f'h-{number + 1}',
                                reservable=number < scenario.reservable)

    def now_s(self):
        return (self.test.now - self.begin).total_seconds()

    def run(self):
        scenario = self.scenario
        due = [(10, self.reserve, '')]
        if scenario.cancelled_s is not None:
            due.append((scenario.cancelled_s, self.cancel, 'r1'))
        for uuid, (at_s, end_s) in scenario.servers.items():
            due.append((at_s, self.boot, uuid))
            if end_s is not None:
                due.append((end_s, self.test.cloud.servers.pop, uuid))
        due.sort(key=lambda item: item[0])
        while self.now_s() <= scenario.until_s:
            while due and due[0][0] <= self.now_s():
                _, happen, uuid = due.pop(0)
                happen(uuid)
            self.look()
        return sorted(self.events)

    def look(self):
        cloud = self.test.cloud
        for server in cloud.servers.values():
            server.uptime_s = self.now_s() - server.booted_s
        asked, before = len(cloud.asked), self.state()
        wait_s = self.test.look()
        for what, *uuids in cloud.asked[asked:]:
            self.note(_WORDS.get(what, what), *uuids)
        self.compare(before, self.state())
        self.test.pass_time(min(wait_s, 5 - self.now_s() % 5))

    def boot(self, uuid):
        cloud = self.test.cloud
        used = {server.node for server in cloud.servers.values()}
        own = uuid.startswith('o')
        node = next(name for name in (self.test.get().held if own
                                      else cloud.hosts) if name not in used)
        preemptible = uuid.startswith('p')
        cloud.boot(
            uuid, node, preemptible=preemptible,
            notice_s=30 if preemptible else 0,
            takes_s=DELETE_S if preemptible or own else MIGRATE_S,
            movable=self.scenario.reservable < self.scenario.hosts,
            minimum_runtime_s=self.scenario.promised_s,
            reservation='r1' if own else None)
        server = cloud.servers[uuid]
        server.booted_s = self.now_s()
        server.task_state = 'spawning'
        cloud.later.append((
            self.test.now + datetime.timedelta(seconds=BOOT_S),
            lambda: setattr(server, 'task_state', None)))

    def reserve(self, _uuid):
        hosts = [f'h-{number + 1}' for number in range(self.scenario.quantity)]
        for_s, next_for_s = self.scenario.for_s, self.scenario.next_for_s
        self.test.reserve(*hosts, start_s=START_S - 10, duration_s=for_s)
        if next_for_s:
            self.test.reserve(*hosts, uuid='r2', duration_s=next_for_s,
                              start_s=START_S - 10 + for_s)

    def cancel(self, uuid):
        reservations = self.test.reservations
        if self.test.get(uuid).status == reservation_model.PENDING:
            reservations.update(uuid, status=reservation_model.CANCELLED)
        else:
            reservations.set_end(uuid, self.test.now)

    def state(self):
        return {each.uuid: each for each in self.test.reservations.list()}

    def compare(self, before, after):
        for uuid, old in before.items():
            self.compare_one(uuid, old, after[uuid])

    def compare_one(self, uuid, before, after):
        gained = sorted({*after.held} - {*before.held})
        lost = sorted({*before.held} - {*after.held})
        if gained and lost:
            self.note('host replaced', *gained)
        else:
            self.note('host added', *gained)
            self.note('host lost', *lost)
        if after.ready_at and not before.ready_at:
            self.note('started', uuid)
        if reservation_model.ENDED == after.status != before.status:
            self.note('ended' if after.ready_at else 'never started', uuid)

    def note(self, what, *uuids):
        self.events += [(self.now_s(), what, uuid) for uuid in uuids]


def simulated(scenario):
    """[(when, what, which)] of a simulation of a scenario."""
    is_open = scenario.reservable >= scenario.hosts
    cloud = small.cloud(1, spread=False,
                        terms=simulation_settings.PreemptibleTerms(
        minimum_runtime_s=scenario.promised_s))
    kinds = [dataclasses.replace(
        cloud.hosts[0], name=f'h-{number + 1}', count=1,
        reservable=number < scenario.reservable)
        for number in range(scenario.hosts)]
    cloud = dataclasses.replace(
        cloud, hosts=tuple(kinds), delays=dataclasses.replace(
            small.DELAYS, migrate=delays.Delay(f'constant:{MIGRATE_S}')))
    options = small.options(
        may_migrate=not is_open,
        reservations=simulation_settings.ReservationOptions(
            leases.GuardTime(0, NoticeRule(30), eligibility.Rules(), 120, 0),
            300, evacuation_lead_s=300))
    trace = [trace_model.Reserve(
        10 * SECOND, 'r1', scenario.quantity, START_S,
        duration_s=scenario.for_s, end_action='delete')]
    if scenario.next_for_s:
        trace.append(trace_model.Reserve(
            10 * SECOND, 'r2', scenario.quantity, START_S + scenario.for_s,
            duration_s=scenario.next_for_s, end_action='delete'))
    if scenario.cancelled_s is not None:
        trace.append(small.end(scenario.cancelled_s, 'r1'))
    for uuid, (at_s, end_s) in scenario.servers.items():
        trace.append(small.boot(
            at_s, uuid, 4, uuid.startswith('p'),
            reservation='r1' if uuid.startswith('o') else ''))
        if end_s is not None:
            trace.append(small.end(end_s, uuid))
    records = []
    simulation = run.Simulation(cloud, options, 0, records.append)
    where = simulation._reservations.where
    with mock.patch.object(
            simulation._reservations, 'where', lambda server: (None, '') if (
                server.boot.id.startswith('s') and server.moves is None)
            else where(server)):
        simulation.run(sorted(trace, key=lambda event: event.at_us),
                       scenario.until_s * SECOND)
    return sorted(_told(records))


def _told(records):
    for item in records:
        what = item['event'].removeprefix('reservation ')
        if what.startswith('host '):
            # Of each kind of hosts there is one.
            yield item['t'], what, item['host'].removesuffix('-1')
        elif what in ('notice', 'moving', 'not moved') or (
                what in ('started', 'ended', 'never started')
                and item['id'].startswith('r')):
            yield (item['t'], what.replace('not moved', 'moving'), item['id'])
        elif what == 'cleared':
            yield item['t'] - DELETE_S, 'clear', item['id']


class TestOneLoop(life.ChoresTestCase):

    def check(self, name, change=lambda events: events):
        scenario = SCENARIOS[name]
        expected = sorted(change(scenario.events))
        self.assertEqual(expected, Service(self, scenario).run())
        self.assertEqual(expected, simulated(scenario))

    def test_notice(self):
        self.check('a preemptible server gets its notice')

    def test_move(self):
        self.check('a normal server is moved')

    def test_replaced(self):
        self.check('another host for one that will not be empty')

    def test_lost_and_found(self):
        self.check('hosts that are lost, and one that is found')

    def test_turned_away(self):
        self.check('a server of others is turned away')

    def test_one_after_the_other(self):
        self.check('one reservation after the other')

    def test_waits_for_servers_of_another(self):
        self.check('a reservation waits for servers of another one')

    def test_ended_by_its_owner(self):
        self.check('a reservation that its owner ends')

    def test_cancelled(self):
        self.check('a reservation that is cancelled before it starts')

    def test_never_starts(self):
        self.check('a reservation that never starts')

    def test_lease_events_that_wait_a_minute_longer(self):
        """Both sides end the reservation a minute later."""
        def step(reservations, told, now_us):
            found = real(reservations, told, now_us - 60 * SECOND)
            return dataclasses.replace(
                found, wake_at_us=found.wake_at_us
                and found.wake_at_us + 60 * SECOND)

        def wait(events):
            return [(when + 60.0 * (what[0] in ('ended', 'clear')), *what)
                    for when, *what in events]

        real = lease_event_controller.step
        with mock.patch.object(lease_event_controller, 'step', step):
            self.check('a preemptible server gets its notice', wait)

    def test_a_cleanup_that_waits_a_minute_longer(self):
        """Both sides wait."""
        def step(view, memory, now_us):
            since_us = memory.since_us or now_us
            if now_us - since_us < 60 * SECOND:
                return core_controller.Step(
                    (), cleanup_controller.Memory(since_us), now_us + SECOND)
            return real(view, memory, now_us)

        def wait(events):
            return [(when + 60.0 * (what[0] == 'clear'), *what)
                    for when, *what in events]

        real = cleanup_controller.step
        with mock.patch.object(cleanup_controller, 'step', step):
            self.check('a preemptible server gets its notice', wait)

    def check_late(self, name, late):
        """Both sides wait where the controller waits a minute longer.

        :param late: what happens later then
        """
        def step(view, memory, now_us):
            return real(view, memory, now_us - 60 * SECOND)

        real = reservation_controller.step
        with mock.patch.object(reservation_controller, 'step', step):
            self.check(name, lambda events: [
                (when + 60.0 * (what == late), what, uuid)
                for when, what, uuid in events])

    def test_a_notice_that_waits_a_minute_longer(self):
        self.check_late('a preemptible server gets its notice', 'notice')

    def test_a_move_that_waits_a_minute_longer(self):
        self.check_late('a normal server is moved', 'moving')

    def test_moves_that_are_tried_again_a_minute_later(self):
        """Both sides ask again then for the move of a normal server."""
        def wait(events):
            return [(when, *what) for when, *what in events
                    if what[0] != 'moving' or (when - 400) % 90 == 0]

        with mock.patch.object(drain_rules, 'RETRY_S',
                               drain_rules.RETRY_S + 60):
            self.check('a reservation that never starts', wait)
