# SPDX-License-Identifier: Apache-2.0
"""The terminator and the simulator evict the same servers at the same time.

Each scenario is played to both: to the terminator, with a database and a Nova
in memory, and to a simulation of the same host. A server of four VCPUs comes
at 100 s; whoever is there has to go. Times are whole seconds: the terminator
sees an end a little after it.
"""

import dataclasses
import types
import unittest
from unittest import mock

from nova_preempt import db
from nova_preempt.cloud import awaited_servers
from nova_preempt.cloud import clients
from nova_preempt.cloud import placement_api
from nova_preempt.core.eviction import eviction_controller
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import preemption_notifications
from nova_preempt.handover import process_lease
from nova_preempt.handover import requester_reader
from nova_preempt.handover import victim_evictor
from nova_preempt.simulator import delays
from nova_preempt.simulator import simulation as run
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator.traces import trace_model
from tests import tables
from tests.unit.db import test_decisions
from tests.unit.simulator import small

COMES_AT = 100
TIMEOUT_S = 60
#: {call of Nova: (its name in a simulation, state until it is done, and then)}
CALLS = {'force_delete': ('delete', 'deleting', None),
         'shelve': ('shelve', 'shelving', 'shelved_offloaded'),
         'stop': ('stop', 'powering-off', 'stopped')}


@dataclasses.dataclass(frozen=True)
class Victim:
    """A preemptible server.

    :ivar deleted_at: when its owner deletes it, None if he does not
    """

    uuid: str
    vcpus: int
    notice_s: int = 30
    action: str = 'delete'
    deleted_at: int | None = None


@dataclasses.dataclass(frozen=True)
class Scenario:
    """Victims, and how long Nova takes for each action.

    :ivar deleted_at: when the server that needs the space is deleted
    """

    victims: tuple[Victim, ...]
    delete_s: int = 2
    deleted_at: int | None = None


SCENARIOS = {
    'notices': Scenario((Victim('a', 1), Victim('b', 1, 0),
                         Victim('c', 2, 10, 'shelve'))),
    'stopped': Scenario((Victim('a', 2, 5, 'stop'), Victim('b', 2, 20))),
    'not wanted': Scenario((Victim('a', 2), Victim('b', 2, 0)),
                           deleted_at=120),
    'too late': Scenario((Victim('a', 2), Victim('b', 2, 0, 'shelve')),
                         delete_s=90),
    'left before': Scenario((Victim('a', 2, 30, deleted_at=112),
                             Victim('b', 2, 5)))}

#: What both do: (seconds, event, which server).
EVENTS = {
    'notices': [
        (100, 'notice', 'a'), (100, 'notice', 'c'),
        (130, 'asked', 'delete'), (130, 'asked', 'delete'),
        (130, 'asked', 'shelve'), (132, 'deleted', 'a'),
        (132, 'deleted', 'b'), (135, 'shelved', 'c')],
    'stopped': [
        (100, 'notice', 'a'), (100, 'notice', 'b'), (120, 'asked', 'delete'),
        (120, 'asked', 'stop'), (122, 'deleted', 'b'), (123, 'stopped', 'a')],
    'not wanted': [
        (100, 'notice', 'a'), (120, 'kept', 'a'), (120, 'kept', 'b')],
    'too late': [
        (100, 'notice', 'a'), (130, 'asked', 'delete'),
        (130, 'asked', 'shelve'), (135, 'shelved', 'b'),
        (190, 'given up', 's')],
    'left before': [
        (100, 'notice', 'a'), (100, 'notice', 'b'), (112, 'asked', 'delete'),
        (112, 'deleted', 'a'), (114, 'deleted', 'b')]}


class Terminator:
    """Plays scenarios to the edge of the service."""

    def __init__(self, scenario):
        self.now, self.events = float(COMES_AT), []
        self._scenario = scenario
        self._due = {victim.uuid: (victim.deleted_at, None)
                     for victim in scenario.victims
                     if victim.deleted_at is not None}
        self._shown = {}
        database = test_decisions.make_database('sqlite://')
        tables.make(database)
        self.decisions = db.Decisions(database)
        update = self.decisions.update_victim

        def update_victim(decision, uuid, status, *owner, **values):
            update(decision, uuid, status, *owner, **values)
            if status != db_decisions.ENDING:
                self._note({db_decisions.NOTICED: 'notice',
                            db_decisions.GONE: 'deleted'}.get(status, status),
                           uuid)

        self.decisions.update_victim = update_victim

    def _note(self, event, uuid):
        self.events.append((int(self.now + 1e-6), event, uuid))

    def check_cell(self, method, uuid):
        """It answers."""

    def __getattr__(self, name):
        if name not in CALLS:
            raise AttributeError(name)
        kind, task_state, vm_state = CALLS[name]
        takes_s = {'delete': self._scenario.delete_s, 'shelve': 5,
                   # Then it is locked, and looked at a second later.
                   'stop': 2}[kind]

        def call(uuid):
            self._note('asked', kind)
            self._due[uuid] = self.now + takes_s, vm_state
            self._shown[uuid] = 'active', task_state

        return call

    def lock(self, uuid, reason):
        """Nova locks at once."""

    def set_notice(self, *args):
        """Do nothing."""

    def get(self, uuid, max_age_s=None):
        due_s, vm_state = self._due.get(uuid, (float('inf'), None))
        if self.now >= due_s:
            self._shown[uuid] = vm_state, None
        vm_state, task_state = self._shown.get(uuid, ('active', None))
        return vm_state and ObservedServer(
            'a', vm_state, task_state,
            None if vm_state == 'shelved_offloaded' else 'h0',
            read_us=round(self.now * SECOND))

    def sleep(self, seconds):
        self.now = round(self.now + seconds, 6)

    def play(self):
        scenario = self._scenario
        decision = db.Decision(
            'd', 's', operation='create', host='h0', owner='me',
            status=db_decisions.CLAIMED, victims=tuple(
                db.Victim(victim.uuid, 'p', 'u', 'spot', action=victim.action,
                          last_resort=victim.action,
                          notice_s=victim.notice_s)
                for victim in scenario.victims))
        self.decisions.create_decision(decision)
        placement = mock.Mock(spec=placement_api.Placement)
        placement.get_consumer.return_value = placement_api.Consumer('a', {})
        requests = mock.Mock(spec=requester_reader.RequesterReader,
                             now=lambda: None)
        requests.is_gone.side_effect = lambda uuid: (
            scenario.deleted_at is not None
            and self.now >= scenario.deleted_at)
        ended = victim_evictor.VictimEvictor(
            clients.Clients(self, placement, None),
            mock.Mock(spec=awaited_servers.AwaitedServers, get=self.get),
            requests, self.decisions, mock.Mock(spec=process_lease.Lease),
            types.SimpleNamespace(
                termination_timeout_s=TIMEOUT_S, migrate_timeout_s=0,
                actions=['delete', 'shelve', 'stop'],
                honored_locks='admin', minimum_runtime_s=0),
            mock.Mock(spec=preemption_notifications.Notifications),
            lambda: self.now,
            self.sleep, host_is_up=lambda uuid, host: True).end(
                [decision], chosen_at=self.now)
        if ended.stuck:
            self._note('given up', 's')
        if ended.unwanted:
            for victim in scenario.victims:
                self._note('kept', victim.uuid)
        return sorted(self.events)


def simulate(scenario):
    """Return the same events of a simulation."""
    records, asked = [], []
    simulation = run.Simulation(
        small.cloud(
            classes={victim.uuid: simulation_settings.PreemptibleTerms(
                action=victim.action, notice_s=victim.notice_s)
                for victim in scenario.victims},
            delays=dataclasses.replace(small.DELAYS, delete=delays.Delay(
                f'constant:{scenario.delete_s}'))),
        small.options(termination_timeout_s=TIMEOUT_S, max_attempts=1),
        0, records.append)
    state = simulation._world
    draw_us = state.sampler.draw_us

    def us(kind):
        if kind in ('delete', 'shelve', 'stop'):
            asked.append((state.events.now_us // small.SECOND, 'asked', kind))
        return draw_us(kind)

    state.sampler.draw_us = us
    trace = [trace_model.Boot(0, victim.uuid,
                              {'VCPU': victim.vcpus, 'MEMORY_MB': 1}, '',
                              victim.uuid, None)
             for victim in scenario.victims]
    trace += [small.boot(COMES_AT, 's', 4)]
    trace += [small.end(victim.deleted_at, victim.uuid)
              for victim in scenario.victims if victim.deleted_at is not None]
    if scenario.deleted_at is not None:
        trace.append(small.end(scenario.deleted_at, 's'))
    simulation.run(trace, 10_000 * small.SECOND)
    warned = {victim.uuid for victim in scenario.victims if victim.notice_s}
    names = {'ended': 'deleted', 'refused': 'given up'}
    events = [(int(item['t']), names.get(item['event'], item['event']),
               item['id']) for item in records if item['t'] >= COMES_AT]
    over_at = min((at for at, event, _ in events if event == 'given up'),
                  default=float('inf'))
    return sorted(asked + [
        (at, event, uuid) for at, event, uuid in events
        if at <= over_at and (uuid != 's' or event == 'given up')
        and (event != 'notice' or uuid in warned)
        and event in ('notice', 'deleted', 'shelved', 'stopped', 'kept',
                      'given up')])


class TestOneLoop(unittest.TestCase):

    maxDiff = None

    def test_the_same_events(self):
        for name, scenario in SCENARIOS.items():
            with self.subTest(name):
                expected = EVENTS[name]
                self.assertEqual(expected, Terminator(scenario).play())
                self.assertEqual(expected, simulate(scenario))

    def test_a_controller_that_waits_a_minute_longer(self):
        """Both wait longer, as neither has its own rule."""
        real, minute_us = eviction_controller.step, 60 * small.SECOND

        def late(observed, memory, now_us):
            if not memory.has_notice:
                return real(observed, memory, now_us)
            found = real(observed, memory, now_us - minute_us)
            return dataclasses.replace(
                found, wake_at_us=found.wake_at_us
                and found.wake_at_us + minute_us)

        scenario = SCENARIOS['notices']
        with mock.patch.object(eviction_controller, 'step', late):
            found = Terminator(scenario).play()
            self.assertEqual(found, simulate(scenario))
        self.assertEqual(
            [(at + minute_us // small.SECOND * (event != 'notice'), event, id)
             for at, event, id in EVENTS['notices']], found)
