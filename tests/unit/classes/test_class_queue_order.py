# SPDX-License-Identifier: Apache-2.0
"""Queue order by promises, with its own database."""

import dataclasses
import datetime
import tempfile
import unittest

from nova_preempt.classes import class_queue_order
from nova_preempt.classes import class_registry
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import queue_order
from nova_preempt.core.classes import class_table
from nova_preempt.core.classes import server_clocks
from nova_preempt.db import backlog_store
from nova_preempt.db import server_uptimes
from tests import tables
from tests.unit.db import test_decisions

AT = datetime.datetime(2026, 1, 1, 12)
TABLE = class_table.parse([
    {'name': 'gold', 'importance': '1', 'availability': '1'},
    {'name': 'bronze', 'importance': '3', 'availability': '0.5'}])
SPOT = backlog_model.Alternative('1', 'spot', {'VCPU': 1}, preemptible=True)
NORMAL = backlog_model.Alternative('2', 'normal', {'VCPU': 1})


def later(seconds):
    return AT + datetime.timedelta(seconds=seconds)


class TestQos(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.db = test_decisions.make_database(
            f'sqlite:///{directory.name}/test.sqlite')
        tables.make(self.db)
        self.addCleanup(self.db.engine.dispose)
        self.claims = class_registry.RequestUptimeReader(self.db, TABLE)
        self.order = class_queue_order.ClassQueueOrder(queue_order.Options(
                                                           claims=self.claims))

    def request(self, uuid, class_name='', flavor=SPOT, **values):
        found = backlog_model.Request(**{
            'uuid': uuid, 'project_id': 'p', 'user_id': 'u', 'trust_id': 't',
            'body': {'server': {'imageRef': 'i'}}, 'compute_version': '2.90',
            'count': 1, 'least_count': 1, 'alternatives': (flavor,),
            'created_at': AT, 'updated_at': AT, 'class_name': class_name,
            **values})
        backlog_store.create(self.db, found)
        return found

    def ran(self, uuid, class_name, of_s, until_s):
        """Return a request whose server ran and was evicted."""
        found = self.request(uuid, class_name)
        backlog_store.begin_boot(self.db, uuid, (backlog_model.WAITING,),
                                 backlog_model.SentBoot(1, 't', '1', 1,
                                                        later(of_s - 5)))
        for state, at_s in ((backlog_model.ACTIVE, of_s),
                            (backlog_model.EVICTED, until_s)):
            self.assertTrue(backlog_store.change(
                self.db, uuid, backlog_model.OPEN, later(at_s), state=state))
        return dataclasses.replace(
            found, **{name: getattr(backlog_store.get(self.db, uuid), name)
                      for name in ('state', 'boots')})

    def ranked(self, at_s, requests):
        shares = queue_order.ProjectUsage({}, {})
        found = [request.uuid for request in self.order.rank(
            requests, later(at_s), shares)]
        self.assertEqual(found, [request.uuid for request in self.order.rank(
            requests[::-1], later(at_s), shares)])
        return found

    def test_clocks_of_requests(self):
        ran = self.ran('ran', 'bronze', 65, 1065)
        waits = self.request('waits', 'bronze')
        later_s = self.request('later', 'bronze', not_before=later(1000))
        found = self.claims.clocks([ran, waits, later_s])
        now_us = (later(2065) - datetime.datetime(1970, 1, 1)) // (
            datetime.timedelta(microseconds=1))

        def seconds(uuid):
            times = found[uuid].at(now_us)
            return [each // 1_000_000 for each in (
                times.running_us, times.waiting_us, times.binding_us)]

        self.assertEqual([1000, 1060, 5], seconds('ran'))
        self.assertEqual([0, 2065, 0], seconds('waits'))
        self.assertEqual([0, 1065, 0], seconds('later'))
        self.assertEqual(server_clocks.Kind.EVICTED, found['ran'].kind)

    def test_requests_nearest_to_a_broken_promise_come_first(self):
        requests = [
            self.request('none'), self.request('normal', flavor=NORMAL),
            # Nobody has promised it that any more.
            self.request('gone', 'silver', created_at=later(1)),
            self.request('bronze', 'bronze'), self.request('gold', 'gold'),
            self.ran('calm', 'bronze', 10, 3010)]
        self.assertEqual(
            ['normal', 'gold', 'bronze', 'calm', 'none', 'gone'],
            self.ranked(3020, requests))
        # It has waited for as long as it may, and is no longer calm; whose
        # promise is broken by more comes first.
        self.assertEqual(
            ['normal', 'gold', 'bronze', 'calm', 'none', 'gone'],
            self.ranked(9000, requests))

    def test_measured_times_to_come_back_are_used(self):
        requests = [self.request('a', 'gold'), self.request(
            'b', 'gold', body={'server': {}})]
        self.assertEqual({'a': 60_000_000, 'b': 60_000_000},
                         self.claims.overheads_us(requests))
        server_uptimes.write(self.db, (), {('spot', True): 90_000_000})
        self.assertEqual({'a': 60_000_000, 'b': 90_000_000},
                         self.claims.overheads_us(requests))
        self.assertEqual(['b', 'a'], self.ranked(10, requests))

    def test_no_requests(self):
        self.assertEqual([], self.ranked(0, []))
