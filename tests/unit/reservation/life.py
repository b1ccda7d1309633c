# SPDX-License-Identifier: Apache-2.0
"""A database of reservations and a cloud in memory.

Its time passes when a test says so.
"""

import collections
import dataclasses
import datetime
from types import SimpleNamespace

import fixtures
import testtools

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import observed_hosts
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservation_moves
from nova_preempt.db import reservations as db
from nova_preempt.reservation import drain_executor
from nova_preempt.reservation import host_replacer
from nova_preempt.reservation import lease_event_loop
from nova_preempt.reservation import leftover_servers
from nova_preempt.reservation import reconciler
from nova_preempt.reservation import reservation_observer
from nova_preempt.reservation import reservation_purge
from nova_preempt.reservation import reservation_scheduler
from nova_preempt.reservation import server_migrator
from tests import tables
from tests.unit.db import test_decisions

NOW = datetime.datetime(2026, 11, 20, 12)
HOUR_S = 3600
LEAD_S = 900
# How long Nova's conductor looks for a host in vain.
SCHEDULING_S = 3


class Events:
    """Notifications, as [(event, status, how late)]."""

    def __init__(self):
        self.told = []

    def __getattr__(self, event):
        def tell(reservation, late_s=None):
            self.told.append((event, reservation.status, late_s))
        return tell


class LifeTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.database = test_decisions.make_database('sqlite://')
        tables.make(self.database)
        self.addCleanup(
            self.database.engine.dispose)
        self.now = NOW
        self.enabled = True
        self.reservations = db.Reservations(self.database, self.clock)
        self.events = Events()
        self.lease_events = self.make_lease_events()

    def make_lease_events(self):
        return lease_event_loop.LeaseEventLoop(
            self.database, self.reservations, self.events, self.clock,
            lambda: self.enabled)

    def clock(self):
        return self.now

    def pass_time(self, seconds):
        self.now += datetime.timedelta(seconds=seconds)

    def reserve(self, *hosts, uuid='r1', start_s=HOUR_S, duration_s=HOUR_S,
                quantity=None, before_end_s=600, **values):
        start = reservation_model.to_s(self.now) + start_s
        return self.reservations.grant(
            reservation_model.Reservation(
                uuid=uuid, project_id='p', duration_s=duration_s,
                quantity=quantity or len(hosts),
                window_start=reservation_model.from_s(start),
                before_end_s=before_end_s,
                **{'end_action': 'delete', **values}),
            lambda _calendar: calendar.FoundWindow(start, start + duration_s,
                                                   hosts))

    def get(self, uuid='r1'):
        return self.reservations.get(uuid)

    def make_ready(self, uuid='r1'):
        for host in self.get(uuid).held:
            self.reservations.set_host(uuid, host, reservation_model.READY)


@dataclasses.dataclass
class Server:
    """A server of the cloud below."""

    uuid: str
    node: str
    preemptible: bool = False
    vm_state: str = 'active'
    task_state: str | None = None
    reservation: str | tuple | None = None
    notice_s: int = 0
    action: str = ''
    restore: bool = False
    class_name: str = ''
    pinned: bool = False
    # How long its end takes after its notice, and its move.
    takes_s: int = 0
    movable: bool = True
    # Whether Nova finds a host for it, after it has accepted its move.
    has_target: bool = True
    stubborn: bool = False
    locked_by: str = ''
    one_time: bool = False
    minimum_runtime_s: int = 0
    uptime_s: int = 86400
    project_id: str = 'q'

    def uptime_us(self, now):
        return self.uptime_s * 1_000_000


class Cloud:
    """Stands in for Nova, Placement and the ends of preemptible servers.

    :param clock: returns now
    """

    def __init__(self, clock):
        self.clock = clock
        self.servers = {}
        self.later = []            # (time, what happens)
        self.asked = []            # (what, server)
        self.noticed = {}          # server: when
        self.hosts = {}
        self.foreign = collections.defaultdict(set)   # node: consumers
        self.away = False
        self.coming = {}           # uuid of no server yet: its reservation
        self.elsewhere = {}        # uuid: nova_api.ServerStatus
        self.dark = frozenset()
        self.unreadable = set()    # hosts that Placement fails for
        self.recorded = []         # what was recorded with ends
        self.caps = ()             # what the budgets allow

    # -- for tests -------------------------------------------------------

    def add_host(self, name, **changes):
        self.hosts[name] = observed_hosts.Host(
            name, name, f'rp-{name}', **{
                'state': 'up', 'status': 'enabled',
                'properties': {'hypervisor_hostname': name}, **changes})

    def boot(self, uuid, node, **values):
        self.servers[uuid] = Server(uuid, node, **values)

    def run(self):
        """Complete the calls whose delay has passed."""
        due = [item for item in self.later if item[0] <= self.clock()]
        self.later = [item for item in self.later if item not in due]
        for _when, happen in due:
            happen()

    def on(self, node):
        return {server.uuid for server in self.servers.values()
                if server.node == node}

    def _in(self, seconds, happen):
        self.later.append((self.clock() + datetime.timedelta(
            seconds=seconds), happen))

    def _check(self):
        if self.away:
            raise nova_api.NovaError('away')

    # -- Nova ------------------------------------------------------------

    def live_migrate(self, uuid):
        self._ask('live_migrate', uuid)
        server = self.servers[uuid]
        if not server.movable:
            raise nova_api.NovaError('No valid host')
        if self._begins(server, 'migrating'):
            def moved():
                server.node, server.task_state = 'elsewhere', None
            self._in(server.takes_s, moved)

    def _begins(self, server, task_state):
        """Tell whether an accepted move is carried out."""
        server.task_state = task_state
        if not server.has_target:
            self._in(SCHEDULING_S,
                     lambda: setattr(server, 'task_state', None))
        return server.has_target

    def cold_migrate(self, uuid):
        self._ask('cold_migrate', uuid)
        server = self.servers[uuid]
        old = server.node

        def moved():
            server.node, server.vm_state = 'elsewhere', 'resized'
            server.task_state = None
            self.foreign[old].add(f'move of {uuid}')

        if not self._begins(server, 'resize_migrating'):
            return
        if not server.takes_s:
            moved()
            return
        self._in(server.takes_s, moved)

    def confirm_resize(self, uuid):
        self._ask('confirm_resize', uuid)
        self.servers[uuid].vm_state = 'stopped'
        for consumers in self.foreign.values():
            consumers.discard(f'move of {uuid}')

    def unrescue(self, uuid):
        self._ask('unrescue', uuid)
        self.servers[uuid].vm_state = 'active'

    def force_delete(self, uuid):
        self._ask('force_delete', uuid)
        if self.elsewhere.pop(uuid, None) is not None:
            for consumers in self.foreign.values():
                consumers.discard(uuid)
            return
        server = self.servers[uuid]
        if not server.stubborn:
            server.task_state = 'deleting'
            self._in(server.takes_s, lambda: self.servers.pop(uuid, None))

    def shelve(self, uuid):
        self._ask('shelve', uuid)
        self.servers[uuid].vm_state = 'shelved'

    def shelve_offload(self, uuid):
        self._ask('shelve_offload', uuid)
        del self.servers[uuid]

    def _ask(self, what, uuid):
        self._check()
        self.asked.append((what, uuid))

    # -- the inventory and its occupancy ---------------------------------

    @property
    def occupancy(self):
        return self

    def refresh(self):
        self._check()

    def hosts_now(self):
        self._check()
        return {name: dataclasses.replace(
            host, dark=host.service_host in self.dark)
            for name, host in self.hosts.items()}

    def occupants(self, host):
        if host.name in self.unreadable:
            raise placement_api.PlacementError('500')
        return self.on(host.name) | self.foreign[host.name]

    def is_vacant(self, host, counts):
        return not counts.get(host.name, (0, 0))[1] and not any(
            server.locked_by == 'admin'
            or server.uptime_s < server.minimum_runtime_s
            for server in self.servers.values() if server.node == host.name)

    def counts(self):
        found = {}
        for server in self.servers.values():
            count, normal = found.get(server.node, (0, 0))
            found[server.node] = (count + 1,
                                  normal + (not server.preemptible))
        return found

    def get(self, uuid):
        server = self.servers.get(uuid)
        if server is None:
            return self.elsewhere.get(uuid)
        return ObservedServer(
            uuid, server.vm_state, server.task_state, server.node,
            server.node, locked_by=server.locked_by)

    def is_preemptible(self, uuid):
        return self.servers[uuid].preemptible

    def on_node(self, node):
        return [self.get(uuid) for uuid in sorted(self.on(node))]

    def reservations_of(self, uuid):
        hint = (self.servers[uuid].reservation if uuid in self.servers
                else self.coming.get(uuid))
        return frozenset((hint,) if isinstance(hint, str) else hint or ())

    # -- preemption and its ends -----------------------------------------

    def get_ending(self):
        return dict.fromkeys(self.noticed.keys() & self.servers.keys(), 'p')

    def begin_all(self, servers, operation, reason, leave, within_budgets,
                  asked_by):
        assert leave and within_budgets
        self.recorded.append(asked_by)
        self.asked.append((operation, *sorted(
            server.uuid for server in servers)))
        for server in servers:
            self.noticed[server.uuid] = self.clock()
            self._in(server.notice_s + server.takes_s,
                     lambda uuid=server.uuid: self.servers.pop(uuid, None))

    def process(self, **options):
        """Return a stand-in of a handover.service_context.ProcessContext."""
        conf = SimpleNamespace(**{
            'termination_timeout_s': 120, 'migrate_timeout_s': 60,
            'maximum_notice_s': 300, 'minimum_notice_s': 0, 'notice_s': 30,
            'minimum_runtime_s': 0, 'honored_locks': 'admin',
            'actions': ['delete', 'shelve', 'stop'], **options})
        return SimpleNamespace(
            options=conf, decisions=self, clock=lambda: self.clock().replace(
                tzinfo=datetime.timezone.utc))

    def known(self):
        """Return a stand-in of a handover.service_context.CloudCaches."""
        view = SimpleNamespace(get=lambda uuid: self.get_preemptible(uuid))
        budgets = SimpleNamespace(read=lambda: SimpleNamespace(
            caps=lambda servers: self.caps))
        return SimpleNamespace(servers=view, budgets=budgets)

    def get_preemptible(self, uuid):
        server = self.servers.get(uuid)
        return server if server and server.preemptible else None


class ChoresTestCase(LifeTestCase):

    def setUp(self):
        super().setUp()
        self.logger = self.useFixture(fixtures.FakeLogger())
        self.options = SimpleNamespace(
            evacuation_lead_s=LEAD_S, brake_percent=20, ranking='best_fit',
            retention_days=90)
        self.blind = ''            # why the engine cannot see
        self.begin()

    def begin(self):
        """Start with a new cloud and a new engine."""
        self.cloud = Cloud(self.clock)
        self.reconciler = self.make_reconciler()

    def make_reconciler(self):
        cloud = self.cloud
        hosts = SimpleNamespace(
            hosts=cloud.hosts_now, occupancy=cloud,
            occupants=cloud.occupants, is_vacant=cloud.is_vacant)
        self.lease_events = self.make_lease_events()
        moves = server_migrator.ServerMigrator(
            cloud, cloud, reservation_moves.ReservationMoves(self.database),
            self.clock)
        repairs = host_replacer.HostReplacer(
            self.reservations, hosts, self.events, self.options,
            reservation_scheduler.load_ranking(self.options.ranking),
            self.clock, lambda: self.blind)
        self.reader = reservation_observer.ReservationObserver(
            cloud.process(), cloud.known(), self.options, hosts, moves,
            repairs)
        return reconciler.Reconciler(
            self.reservations, hosts, drain_executor.DrainExecutor(
                self.reader, self.reservations, self.lease_events, cloud,
                self.clock, lambda: self.enabled),
            moves, repairs, leftover_servers.LeftoverServers(
                self.reservations, cloud, hosts, self.events, self.clock),
            reservation_purge.RecordPurge(self.database, self.options,
                                        self.clock),
            self.clock)

    def look(self):
        self.cloud.run()
        self.lease_events.run()
        return self.reconciler.run()

    def look_until(self, seconds, step_s=15):
        """Look again and again for so long, in seconds from now."""
        end = self.now + datetime.timedelta(seconds=seconds)
        while self.now < end:
            self.look()
            self.pass_time(min(step_s, (end - self.now).total_seconds()))
        self.look()

    def told(self):
        return [event for event, *_rest in self.events.told]

    def statuses(self, uuid='r1'):
        return {host.host: host.status for host in self.get(uuid).hosts}
