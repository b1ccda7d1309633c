# SPDX-License-Identifier: Apache-2.0
"""The engine and the simulator expire and return the same servers.

Each scenario is played to both: to the engine's own objects, with a database
and a Nova in memory, every ten seconds; and to a simulation of the same cloud.
"""

import dataclasses
import datetime
import itertools
import types
import unittest
from unittest import mock

from nova_preempt import db
from nova_preempt.classes import unshelve_choice
from nova_preempt.cloud import clients
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import capacity
from nova_preempt.core import controller_step
from nova_preempt.core import eligibility
from nova_preempt.core import headroom_account
from nova_preempt.core import model
from nova_preempt.core import observed_server
from nova_preempt.core import times
from nova_preempt.core.classes import class_unshelve_controller
from nova_preempt.core.classes.class_dispatch import Claimant
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.eviction import expiry_controller
from nova_preempt.core.eviction import headroom_controller
from nova_preempt.core.eviction import return_controller
from nova_preempt.core.eviction import stopped_victim_controller
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.db import decisions
from nova_preempt.engine import headroom_task
from nova_preempt.engine import server_expiry
from nova_preempt.engine import victim_unshelving
from nova_preempt.handover import victim_allocations
from nova_preempt.simulator import simulation_settings
from tests import tables
from tests.unit.db import test_decisions
from tests.unit.engine import test_server_expiry
from tests.unit.simulator import small
from tests.unit.simulator import test_simulated_classes

START = test_server_expiry.NOW.replace(tzinfo=None)
INTERVAL_S = 10
UNSHELVE_S = 20


class Engine:
    """Input of the loops of the engine, with a clock of the test.

    :ivar events: 'T EVENT ID' of what the loops did
    :ivar sizes: {uuid: vcpus} of those on the host
    """

    def __init__(self, test, vcpus=4, **options):
        self.events, self.sizes, self.shown = [], {}, {}
        self.now_s, self._vcpus = 0, vcpus
        database = test_decisions.make_database('sqlite://')
        tables.make(database)
        self.decisions = db.Decisions(database)
        self.nova = mock.Mock(spec=nova_api.NovaAPI)
        self.nova.get.side_effect = self._get
        self.nova.unshelve.side_effect = self._unshelve
        self.nova.force_delete.side_effect = lambda uuid: (
            self.note('deleted', uuid), self.shown.pop(uuid))
        self.placement = mock.Mock(spec=placement_api.Placement)
        self.placement.get_room.side_effect = self._get_room
        self.placement.get_consumer.side_effect = lambda uuid: (
            placement_api.Consumer(uuid, {
                'p': {'resources': {'VCPU': self.sizes[uuid]}}}
                if uuid in self.sizes else {}))
        self.clients = clients.Clients(self.nova, self.placement, None)
        self.process = mock.Mock(
            decisions=self.decisions, clock=lambda: self.now.replace(
                tzinfo=datetime.timezone.utc),
            options=types.SimpleNamespace(
                actions=('delete', 'shelve', 'stop'), maximum_runtime_s=0,
                stop_retention_s=0, **options))
        self.process.pauses.why.return_value = ''
        self._done = []
        patch = mock.patch('oslo_utils.timeutils.utcnow',
                           side_effect=lambda: self.now)
        patch.start()
        test.addCleanup(patch.stop)

    @property
    def now(self):
        return START + datetime.timedelta(seconds=self.now_s)

    def note(self, event, uuid):
        self.events.append(f'{self.now_s:g} {event} {uuid}')

    def _get(self, uuid):
        return self.shown.get(uuid)

    def _unshelve(self, uuid):
        victim = next(victim for _, victim in self.decisions.get_victims(
            decisions.SHELVED) if victim.server_uuid == uuid)
        self.sizes[uuid] = victim.allocations['p']['resources']['VCPU']
        self.shown[uuid] = observed_server.ObservedServer(
            uuid, '', 'unshelving', status='SHELVED_OFFLOADED')
        self._done.append((self.now_s + UNSHELVE_S, uuid))

    def _get_room(self, resources):
        free = {'VCPU': self._vcpus - sum(self.sizes.values())}
        return {'p': free} if capacity.fits(resources, free) else {}

    def add_victim(self, uuid, status, ended_s, vcpus=1, decision_uuid='',
                   **values):
        """Add an evicted server."""
        self.decisions.create_decision(test_decisions.decision(
            status=decisions.DONE, uuid=decision_uuid or f'd{uuid}',
            server_uuid=f'n{uuid}', victims=(db.Victim(
                uuid, status=status,
                ended_at=START + datetime.timedelta(seconds=ended_s),
                allocations={'p': {'resources': {'VCPU': vcpus}}},
                **values),)))

    def begin(self, server, operation, *_, **__):
        """Begin an eviction as engine.standalone_evictions does."""
        self.note('notice', server.uuid)
        self.sizes.pop(server.uuid, None)

    def run(self, work, until_s, *changes):
        """Do the work every ten seconds.

        :param changes: (when, what to call) of what happens meanwhile
        """
        for now_s in range(0, until_s + 1, INTERVAL_S):
            for at_s, change in changes:
                if now_s - INTERVAL_S < at_s <= now_s:
                    change()
            self.now_s = now_s
            for at_s, uuid in self._done:
                if at_s == now_s:
                    self.shown[uuid] = observed_server.ObservedServer(
                        uuid, '', None, 'h', status='ACTIVE')
                    self.note('back', uuid)
            work()
        return self.events


class Later:
    """A controller that waits a minute longer than another one."""

    def __init__(self, step):
        self._step, self._since_us = step, {}

    def __call__(self, *observed_and_memory_and_now_us):
        found = self._step(*observed_and_memory_and_now_us)
        *_, memory, now_us = observed_and_memory_and_now_us
        due = tuple(
            intent for intent in found.intents
            if now_us - self._since_us.setdefault(
                getattr(intent, 'server', None)
                or getattr(intent, 'uuid', intent), now_us)
            >= 60 * model.SECOND)
        if due == found.intents:
            return found
        return controller_step.Step(due, memory,
                                    now_us + INTERVAL_S * model.SECOND)


class OneLoop:
    """Tests of a scenario.

    :cvar CONTROLLER: the module of the controller
    :cvar EVENTS: what happens
    :cvar LATER: what happens where the controller waits a minute longer
    """

    def test_engine(self):
        self.assertEqual(self.EVENTS, self.engine())

    def test_simulator(self):
        self.assertEqual(self.EVENTS, self.simulator())

    def test_another_rule_is_anothers_for_both(self):
        for play in self.engine, self.simulator:
            with mock.patch.object(self.CONTROLLER, 'step',
                                   Later(self.CONTROLLER.step)):
                self.assertEqual(self.LATER, play())


def simulated(setup, options, *trace, until_s, only):
    """Return the events of the simulator."""
    return [line for line in small.simulated(
        setup, options, *trace, until_s=until_s)[0]
        if line.split()[1] in only]


class TestMaximumRunTime(OneLoop, unittest.TestCase):
    """Maximum run times: 50 s by flavor, none, and 300 s by default."""

    CONTROLLER = expiry_controller
    EVENTS = ['60 notice a', '310 notice c']
    LATER = ['120 notice a', '370 notice c']
    LIMITS = {'a': 50, 'b': 0, 'c': None}

    def engine(self):
        world = Engine(self)
        world.process.options.maximum_runtime_s = 300
        ended = set()
        there = [test_server_expiry.server(
            uuid, launched_at=test_server_expiry.NOW + datetime.timedelta(
                seconds=10), maximum_runtime_s=limit_s)
            for uuid, limit_s in self.LIMITS.items()]

        def begin(server, *args, **values):
            if server.uuid in ended:
                raise decisions.AlreadyEnding([server.uuid])
            ended.add(server.uuid)
            world.begin(server, *args, **values)

        loop = server_expiry.ServerExpiry(
            world.process, mock.Mock(**{'servers.return_value': there}),
            world.clients, mock.Mock(begin=begin))
        return world.run(loop.end_old_servers, 500)

    def simulator(self):
        classes = {
            uuid: simulation_settings.PreemptibleTerms(
                maximum_runtime_s=limit_s) for uuid,
            limit_s in self.LIMITS.items()}
        return simulated(
            small.cloud(classes=classes), small.options(
                maximum_runtime_s=300),
            *(model_boot(0, uuid, uuid) for uuid in classes), until_s=500,
            only={'notice'})



def model_boot(at_s, uuid, class_name, vcpus=1, for_s=None):
    made = small.boot(at_s, uuid, vcpus, for_s=for_s)
    return small.trace_model.Boot(made.at_us, uuid, made.resources, '',
                                  class_name, made.duration_us)


class TestRetention(OneLoop, unittest.TestCase):
    """A victim was stopped and is kept for 500 s."""

    CONTROLLER = stopped_victim_controller
    EVENTS = ['630 deleted a']
    LATER = ['690 deleted a']

    def engine(self):
        world = Engine(self)
        world.process.options.stop_retention_s = 500
        world.shown['a'] = observed_server.ObservedServer(
            'a', 'stopped', None, 'h', status='SHUTOFF',
            locked_reason=victim_allocations.LOCKED)
        there = {'a': test_server_expiry.server('a', vm_state='stopped')}
        loop = server_expiry.ServerExpiry(
            world.process, mock.Mock(get=there.get), world.clients, None)
        return world.run(
            loop.delete_stopped, 1000,
            (130, lambda: world.add_victim('a', decisions.STOPPED, 130)))

    def simulator(self):
        return simulated(
            small.cloud(
                terms=simulation_settings.PreemptibleTerms(action='stop')),
            small.options(notice=NoticeRule(27), stop_retention_s=500),
            small.boot(0, 'a', 4, spot=True), small.boot(100, 'n'),
            until_s=1000, only={'deleted'})



class TestHeadroom(OneLoop, unittest.TestCase):
    """Two of four cores are headroom; a normal server uses one of them."""

    CONTROLLER = headroom_controller
    EVENTS = ['20 notice p']
    LATER = ['80 notice p']

    def engine(self):
        world = Engine(self)
        world.sizes.update(p=1, q=1)
        known = mock.Mock()
        known.headroom.look.side_effect = lambda: [headroom_account.HostGroup(
            'the cloud', headroom_account.parse('VCPU:2'), {
                'h': model.Provider('p', 1, {'VCPU': model.Inventory(4)}, {
                    uuid: {'VCPU': vcpus}
                    for uuid, vcpus in world.sizes.items()})})]
        known.servers.servers.return_value = [
            test_server_expiry.server(uuid) for uuid in 'pq']
        known.policy.return_value = preemption_policy.Policy(
            eligibility.Rules(), ('delete',), lambda server, options: 0)
        known.budgets.read.return_value = None
        loop = headroom_task.HeadroomKeeper(
            world.process, known, set,
            mock.Mock(begin=world.begin, **{'ending.return_value': []}))
        return world.run(loop.keep, 300,
                         (15, lambda: world.sizes.update(n=1)))

    def simulator(self):
        return simulated(
            small.cloud(), small.options(
                headroom=headroom_account.parse('VCPU:2')),
            small.boot(0, 'p', spot=True), small.boot(0, 'q', spot=True),
            small.boot(15, 'n'), until_s=300, only={'notice'})



class TestReturns(OneLoop, unittest.TestCase):
    """Four servers are shelved; the largest fits after 600 s."""

    CONTROLLER = return_controller
    LATER = ['630 back a', '630 back b', '710 back c', '790 left d']
    EVENTS = ['570 back a', '570 back b', '590 back c', '730 left d']
    SIZES = {'d': 4, 'a': 1, 'b': 1, 'c': 2}
    prepare = staticmethod(lambda world: None)
    OPTIONS = {'restore_at_once': 2, 'restore_timeout_s': 600}

    def engine(self, restarts=False):
        world = Engine(self)
        world.sizes['n'] = 4
        for uuid, vcpus in self.SIZES.items():
            world.add_victim(uuid, decisions.SHELVED, 130, vcpus,
                             restore=True, asked='shelve')
            world.shown[uuid] = observed_server.ObservedServer(
                uuid, '', status='SHELVED_OFFLOADED')

        def make():
            return victim_unshelving.VictimUnshelver(
                world.decisions, world.clients, mock.Mock(), mock.Mock(),
                types.SimpleNamespace(**self.OPTIONS), lambda: world.now_s)

        self.prepare(world)
        loop, left = make(), set()

        def work():
            try:
                (make() if restarts else loop).restore()
            except SystemExit:
                return
            for _, victim in world.decisions.get_victims(decisions.LEFT):
                if victim.server_uuid not in left:
                    left.add(victim.server_uuid)
                    world.note('left', victim.server_uuid)

        return world.run(work, 1000, (545, lambda: world.sizes.pop('n')))

    def simulator(self):
        terms = simulation_settings.PreemptibleTerms(action='shelve',
                                                     restore=True)
        return simulated(
            small.cloud(2, terms=terms),
            small.options(notice=NoticeRule(25), **self.OPTIONS),
            *(small.boot(0, uuid, vcpus, spot=True)
              for uuid, vcpus in self.SIZES.items()),
            small.boot(100, 'm', 4), small.boot(100, 'n', 4, for_s=405),
            until_s=1000, only={'back', 'left'})

    def test_an_engine_that_restarts_before_each_step(self):
        self.assertEqual(self.EVENTS, self.engine(restarts=True))

    def test_an_engine_that_dies_as_it_asks(self):
        """A server whose call was lost delays no other, and is called later.
        """
        deaths = [SystemExit]

        def die_once(world):
            real = world.nova.unshelve.side_effect

            def call(uuid):
                if deaths:
                    raise deaths.pop()
                real(uuid)

            world.nova.unshelve.side_effect = call

        self.prepare = die_once
        self.assertEqual(
            ['580 back b', '580 back c', '630 back a', '730 left d'],
            self.engine(restarts=True))


class TestReturnsOfClass(OneLoop, unittest.TestCase):
    """Bronze b and c take turns on one host, a pass each 60 s."""

    CONTROLLER = class_unshelve_controller
    LATER = ['170 notice c']
    EVENTS = ['110 notice c', '170 notice b', '230 notice c', '290 notice b']

    def engine(self):
        world = Engine(self, vcpus=0, preempting_operations=['unshelve'],
                       enabled=True)
        cloud = ClassCloud(world)
        loop = victim_unshelving.VictimUnshelver(
            world.decisions, world.clients, mock.Mock(), mock.Mock(),
            types.SimpleNamespace(**TestReturns.OPTIONS),
            lambda: world.now_s,
            returning=unshelve_choice.UnshelveChooser(
                mock.Mock(process=world.process, known=cloud.known,
                          clients=world.clients,
                          handover=mock.Mock(stuck=set)),
                test_simulated_classes.TABLE))

        def work():
            cloud.go_on()
            loop.restore()

        return world.run(work, 330)

    def simulator(self):
        return [line for line in simulated(
            *test_simulated_classes.make(2),
            test_simulated_classes.boot(0, 'b', 'bronze'),
            test_simulated_classes.boot(0, 'c', 'bronze'),
            test_simulated_classes.boot(100, 'g', 'gold'), until_s=330,
            only={'notice'}) if line != '100 notice b']

class ClassCloud:
    """Two hosts: gold g has one, b has just given way on it; c the other."""

    def __init__(self, world):
        self._world = world
        self._coming = []         # (when, what to call)
        self.claimants = {}
        begun = (0, Kind.QUEUED), (0, Kind.ALLOCATING), (10, Kind.RUNNING)
        self._happens('b', 'bronze', *begun, (100, Kind.EVICTED))
        self._happens('c', 'bronze', *begun)
        self._happens('g', 'gold', (100, Kind.QUEUED),
                      (100, Kind.ALLOCATING), (115, Kind.RUNNING))
        self._on = {'h1': 'c', 'h2': 'g'}
        self._numbers = itertools.count()
        self._coming.append((105, lambda: self._shelved('b')))
        world.nova.unshelve.side_effect = self._unshelve
        self.known = known = mock.Mock(promised=types.SimpleNamespace(
            is_recent=True, claimants=self.claimants,
            current=lambda: self.claimants))
        known.servers.by_node.side_effect = lambda: {
            host: {uuid: test_server_expiry.server(uuid, node=host)}
            for host, uuid in self._on.items()}
        known.providers.look.side_effect = lambda params, age_s: [
            (types.SimpleNamespace(uuid=host, name=host), model.Provider(
                host, 1, {'VCPU': model.Inventory(4)}, {uuid: {'VCPU': 4}}),
             True) for host, uuid in self._on.items()]
        known.policy.return_value = preemption_policy.Policy(
            eligibility.Rules(), ('shelve',), lambda server, options: 0)
        known.budgets.read.return_value = None

    def _happens(self, uuid, name, *events):
        known = self.claimants.get(uuid) or Claimant(
            uuid, test_simulated_classes.TABLE.classes.find(name),
            ServerClocks(), {}, test_simulated_classes.TABLE.overhead_us)
        start_us = times.microseconds(START)
        self.claimants[uuid] = dataclasses.replace(
            known, clocks=known.clocks.applied(*(
                Event(start_us + at_s * model.SECOND, kind)
                for at_s, kind in events)))

    def _shelved(self, uuid):
        self._world.shown[uuid] = observed_server.ObservedServer(
            uuid, '', status='SHELVED_OFFLOADED')
        self._world.add_victim(
            uuid, decisions.SHELVED, self._world.now_s, 4, restore=True,
            asked='shelve', decision_uuid=f'd{next(self._numbers)}')

    def _unshelve(self, uuid):
        """The scheduler ends the other one for it."""
        now_s = self._world.now_s
        other, self._on['h1'] = self._on['h1'], uuid
        self._world.note('notice', other)
        self._happens(other, '', (now_s, Kind.EVICTED))
        self._happens(uuid, '', (now_s, Kind.ALLOCATING))
        self._coming += [
            (now_s + 5, lambda: self._shelved(other)),
            (now_s + 25, lambda: self._runs(uuid, now_s + 25))]

    def _runs(self, uuid, at_s):
        self._happens(uuid, '', (at_s, Kind.RUNNING))
        self._world.shown[uuid] = observed_server.ObservedServer(
            uuid, '', None, 'h', status='ACTIVE')

    def go_on(self):
        """Carry out the actions that are due."""
        due = [each for each in self._coming if each[0] <= self._world.now_s]
        self._coming = [each for each in self._coming if each not in due]
        for _, happen in due:
            happen()


if __name__ == '__main__':
    unittest.main()
