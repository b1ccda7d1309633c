# SPDX-License-Identifier: Apache-2.0
"""The engine and the simulator start the same requests at the same times.

Each scenario is played to both: to the engine's own objects, with a database
and a Nova in memory, and to a simulation of the same cloud.
"""

import collections
import dataclasses
import datetime
import functools
import itertools
import types
import unittest
from unittest import mock

from oslo_config import cfg

from nova_preempt import db
from nova_preempt.backlog import backlog_engine_tasks
from nova_preempt.backlog import server_reader
from nova_preempt.cloud import instances
from nova_preempt.cloud import nova_as_user
from nova_preempt.cloud import parallel_calls
import nova_preempt.conf
from nova_preempt.core import model as core_model
from nova_preempt.core import observed_server
from nova_preempt.core.backlog import backlog_controller
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import queue_order
from nova_preempt.core.model import SECOND
from nova_preempt.db import backlog_store
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator import simulation as run
from nova_preempt.simulator import simulation_settings
from tests import tables
from tests.unit.db import test_decisions
from tests.unit.simulator import small

START = simulated_servers.EPOCH.replace(tzinfo=None)
INTERVAL_S = 10
BOOT_S = 10


class Events:
    """Decisions of passes: 'T start ID' and 'T CODE ID', each code once."""

    def __init__(self):
        self.found, self._codes = [], {}
        self._decide = dispatch.decide

    def __call__(self, *arguments, **values):
        (now,) = (item for item in arguments
                  if isinstance(item, datetime.datetime))
        now_s = int((now - START).total_seconds())
        decided = self._decide(*arguments, **values)
        self.found += [f'{now_s} start {item.uuid}'
                       for item in decided.starts]
        for uuid, note in sorted(decided.notes.items()):
            code = note.waits_for['code']
            if self._codes.get(uuid) != code:
                self._codes[uuid] = code
                self.found.append(f'{now_s} {code} {uuid}')
        return decided


class Engine:
    """The backlog of the engine, on one host in memory.

    :param vcpus: of the host
    :param full_until_s: until then Nova finds no host for any server
    """

    def __init__(self, vcpus=4, full_until_s=0):
        self.now_s, self._full_until_s = 0, full_until_s
        self._host = core_model.Provider('p', 1, {
            'VCPU': core_model.Inventory(vcpus)}, {})
        # {uuid of a server: [tag, vm_state, when it is another, size]}
        self._servers, self._numbers = {}, itertools.count()
        database = test_decisions.make_database('sqlite://')
        tables.make(database)
        self.db = database
        conf = cfg.ConfigOpts()
        nova_preempt.conf.register_opts(conf)
        conf.register_opts([cfg.StrOpt('host', default='controller')])
        conf.register_opts([cfg.ListOpt('enabled_filters', default=[])],
                           'filter_scheduler')
        conf([], default_config_files=[])
        conf.set_override('enabled', True, 'backlog')
        conf.set_override('pass_interval_s', INTERVAL_S, 'backlog')
        self.lasts = {}
        inventory = types.SimpleNamespace(
            occupancy={}, rooms=lambda: [(types.SimpleNamespace(
                name='h', properties={'traits': ()}, asleep=None),
                [self._host])])
        known = types.SimpleNamespace(
            policy=lambda: None,
            servers=types.SimpleNamespace(by_node=dict))
        process = types.SimpleNamespace(
            db=database, decisions=db.Decisions(database),
            options=conf.preemption, clock=lambda: self.now.replace(
                tzinfo=datetime.timezone.utc),
            pauses=types.SimpleNamespace(why=lambda what: ''))
        with (mock.patch.object(backlog_engine_tasks.transition_recorder,
                                'RequestNotifications'),
              mock.patch.object(
                  backlog_engine_tasks.server_reader, 'ServerReader',
                  functools.partial(
                      server_reader.ServerReader, find=self.find))):
            self.backlog = backlog_engine_tasks.BacklogEngineTasks(
                conf, process, known, inventory, mock.Mock(list=list),
                lambda *_: self, nova=mock.Mock())

    @property
    def now(self):
        return START + datetime.timedelta(seconds=self.now_s)

    # -- as Nova has it ----------------------------------------------------

    def check(self):
        pass

    def create(self, body, _version):
        tag, = (text for text in body['server']['tags'])
        uuid = f's{next(self._numbers)}'
        request = tag.split(':')[1]
        size, for_s = self.lasts[request]
        state, until_s = 'building', self.now_s + BOOT_S
        if self.now_s < self._full_until_s or (
                self._host.free('VCPU') < size):
            state, until_s = 'error', None
        self._servers[uuid] = [tag, state, until_s, size, for_s]
        if state == 'building':
            self._put()
        return nova_as_user.Reply(202, server_uuid=uuid)

    def delete(self, uuid):
        del self._servers[uuid]

    def find(self, tags=(), uuids=()):
        return instances.FoundServers({
            uuid: observed_server.ObservedServer(
                uuid, state, project_id='p', tags=(tag,),
                fault='No valid host was found.' if state == 'error' else '',
                launched_at=self.now if state == 'active' else None)
            for uuid, (tag, state, *_) in self._servers.items()
            if uuid in uuids or tag in tags})

    def _put(self):
        self._host = core_model.Provider(
            'p', self._host.generation + 1, self._host.inventories, {
                uuid: {'VCPU': size}
                for uuid, (_, state, _, size, _) in self._servers.items()
                if state != 'error'})

    def _let_pass(self):
        """Let servers become active, and end."""
        for uuid, item in list(self._servers.items()):
            if item[2] is not None and item[2] <= self.now_s:
                if item[1] == 'building':
                    item[1] = 'active'
                    item[2] = item[4] and item[2] + item[4]
                if item[2] is not None and item[2] <= self.now_s:
                    del self._servers[uuid]
        self._put()

    # -- what users and the engine do --------------------------------------

    def ask(self, uuid, vcpus, for_s=None):
        self.lasts[uuid] = vcpus, for_s
        backlog_store.create(self.db, backlog_model.Request(
            uuid, 'p', 'u', 't', {'server': {'name': uuid}}, '2.90', 1, 1,
            (backlog_model.Alternative('f', 'f', {'VCPU': vcpus}),), self.now,
            self.now, waits_since=self.now))

    def run(self, asked, until_s):
        """Ask for servers, and let the engine work as it says itself.

        :param asked: [(when, uuid, vcpus, for how long)]
        """
        (_, work), = self.backlog.works
        asked, next_s = collections.deque(asked), INTERVAL_S
        for now_s in range(until_s + 1):
            self.now_s = now_s
            self._let_pass()
            while asked and asked[0][0] <= now_s:
                self.ask(*asked.popleft()[1:])
            if now_s >= next_s:
                next_s = now_s + work()


def simulated(asked, until_s, vcpus=4, full_until_s=0):
    """Let a simulation do the same."""
    find = run.Simulation._find

    def refuse(simulation, *arguments):
        if simulation._world.events.now_us < full_until_s * SECOND:
            return None
        return find(simulation, *arguments)

    with mock.patch.object(run.Simulation, '_find', refuse):
        small.simulated(
            small.cloud(1, vcpus, waiting=frozenset(['normal'])),
            small.options(backlog=simulation_settings.BacklogOptions(
                queue_order.FIFO(), backlog_controller.Options(
                    interval_s=INTERVAL_S))),
            *(small.boot(at_s, uuid, size, for_s=for_s)
              for at_s, uuid, size, for_s in asked), until_s=until_s)


class TestSameEvents(unittest.TestCase):

    maxDiff = None

    def check(self, expected, asked, until_s, **cloud):
        engine = Engine(**cloud)
        for play in (lambda: engine.run(asked, until_s),
                     lambda: simulated(asked, until_s, **cloud)):
            events = Events()
            # In memory there is one connection to the database.
            with (mock.patch.object(parallel_calls, 'THREADS', 1),
                  mock.patch.object(dispatch, 'decide', events)):
                play()
            self.assertEqual(expected, events.found)

    #: The oldest is first, and small ones pass it.
    ASKED = ((1, 'n', 4, 95), (3, 'a', 2, 45), (12, 'b', 4, 35),
             (14, 'c', 1, 195))

    def test_requests_that_wait_for_space(self):
        self.check(
            ['10 start n', '10 room a', '20 room b', '20 room c',
             '120 start a', '120 start c', '330 start b'], self.ASKED, 500)

    def test_requests_that_nova_refuses(self):
        """Starts pause after each refusal, longer each time."""
        self.check(
            ['10 start a', '10 start b', '20 no_valid_host a',
             '20 no_valid_host b', '50 start a', '50 start b',
             '120 start a', '120 start b'],
            ((3, 'a', 2, 45), (5, 'b', 2, None)), 300, full_until_s=100)

    def test_a_controller_that_waits_a_minute_longer(self):
        step = backlog_controller.step

        def slow(observed, memory, now_us):
            found = step(observed, memory, now_us)
            return dataclasses.replace(
                found, wake_at_us=found.wake_at_us + 60 * SECOND)

        with mock.patch.object(backlog_controller, 'step', slow):
            self.check(
                ['10 start n', '10 room a', '80 room b', '80 room c',
                 '150 start a', '150 start c', '360 start b'],
                self.ASKED, 500)


if __name__ == '__main__':
    unittest.main()
