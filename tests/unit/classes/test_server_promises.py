# SPDX-License-Identifier: Apache-2.0
"""Tests of promises that are read, and of their age."""

import dataclasses
import datetime
import fractions
import unittest
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt.classes import server_promises
from nova_preempt.core.classes import class_table
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.model import SECOND
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.times import microseconds
from nova_preempt.db import server_uptimes
from tests.unit.core.scheduling import world

NOW = world.NOW
TABLE = class_table.parse([
    {'name': 'gold', 'importance': '1', 'availability': '1'},
    {'name': 'bronze', 'importance': '2', 'availability': '0.5'}])
MARKED = {'preemptible:enabled': 'true'}


def row(uuid, name='bronze', kind=Kind.RUNNING, ago_s=7200):
    """Return a claimant that has been in a state for a time."""
    at_us = microseconds(NOW) - ago_s * SECOND
    return server_uptimes.ServerUptime(
        uuid, 'cell', 'project', name, 'flavor', False, ServerClocks((
            Event(at_us - 3, Kind.QUEUED), Event(at_us - 2, Kind.ALLOCATING),
            Event(at_us - 1, Kind.RUNNING), Event(at_us, kind))), NOW, NOW)


class TestPromised(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.seconds = 0
        self.rows = {uuid: row(uuid) for uuid in 'ab'}
        self.requests = {}
        self.looked_ago_s = {'cell': 0}
        self.away = False
        for name, answer in (
                ('find', lambda _, uuids=None: {
                    uuid: found for uuid, found in self.rows.items()
                    if uuids is None or uuid in uuids}),
                ('scan_ages_s', lambda _: dict(self.looked_ago_s)),
                ('overheads', lambda _: {('flavor', False): 7 * SECOND}),
                ('request_classes',
                 lambda _, uuids=None: dict(self.requests))):
            patch = mock.patch.object(server_uptimes, name,
                                      self.answering(answer))
            patch.start()
            self.addCleanup(patch.stop)
        self.promised = server_promises.ServerPromises(
            None, TABLE, lambda: NOW + datetime.timedelta(
                seconds=self.seconds), monotonic=lambda: self.seconds)
        self.promised.refresh()

    def answering(self, answer):
        def call(*args):
            if self.away:
                raise db_exc.DBConnectionError('away')
            return answer(*args)
        return call

    def claim(self, name='gold', operation='create', uuid='new'):
        return self.promised.rank(uuid, {
            **MARKED, 'preemptible:class': name}, operation)

    def may_preempt(self, uuid, **kwargs):
        return self.promised.promises().may_preempt(
            self.claim(**kwargs).claim, world.server(uuid))

    def test_clocks_run_on_after_a_reading(self):
        self.assertTrue(self.may_preempt('a'))
        self.assertEqual(7 * SECOND,
                         self.promised.claimants['a'].overhead_us)
        self.assertFalse(self.may_preempt('stranger'))

    def test_unchanged_rows_keep_their_source(self):
        """Then lower bounds of hosts stay valid."""
        before = self.promised.promises().source
        self.rows = {uuid: row(uuid) for uuid in 'ab'}
        self.promised.refresh()
        self.assertIs(before, self.promised.promises().source)
        self.rows['a'] = row('a', ago_s=60)
        self.promised.refresh()
        after = self.promised.promises().source
        self.assertIsNot(before, after)
        self.assertIs(before['b'], after['b'])

    def test_old_rows_are_used_for_a_while(self):
        self.away = True
        self.seconds = server_promises.MAX_AGE_S
        with self.assertLogs(server_promises.LOG.name, 'WARNING'):
            self.promised.refresh()
        self.assertTrue(self.promised.is_recent)
        self.away = False
        self.assertTrue(self.may_preempt('a'))
        known = self.promised.promises().cost(world.server('a'), 0)
        self.seconds += 1
        self.assertFalse(self.promised.is_recent)
        self.assertFalse(self.may_preempt('a'))
        self.assertLess(known, self.promised.promises().cost(
            world.server('a'), 0))
        self.promised.refresh()
        self.assertTrue(self.may_preempt('a'))

    def test_rows_of_a_cell_no_engine_reads(self):
        """The database answers, but no engine writes."""
        self.rows['c'] = dataclasses.replace(row('c'), cell_uuid='other')
        self.looked_ago_s = {'cell': server_promises.MAX_AGE_S, 'other': 0}
        self.promised.refresh()
        self.assertTrue(self.may_preempt('a'))
        known = self.promised.promises().cost(world.server('a'), 0)
        self.seconds += 1
        self.assertEqual([False, True], [
            self.may_preempt(uuid) for uuid in 'ac'])
        self.assertLess(known, self.promised.promises().cost(
            world.server('a'), 0))
        self.assertTrue(self.promised.is_recent)
        source = self.promised.promises().source
        self.looked_ago_s['cell'] += 1
        with self.assertLogs(server_promises.LOG.name, 'WARNING') as logs:
            self.promised.refresh()
            self.promised.refresh()
        self.assertEqual(1, len(logs.output))
        # So that floors of hosts hold.
        self.assertIs(source, self.promised.promises().source)
        # Nor was the other one ever looked into.
        del self.looked_ago_s['other']
        with self.assertLogs(server_promises.LOG.name, 'WARNING'):
            self.promised.refresh()
        self.assertFalse(self.may_preempt('c'))
        self.assertFalse(self.promised.is_recent)
        self.looked_ago_s = {'cell': 9, 'other': 9}
        self.promised.refresh()
        self.assertEqual([True, True], [
            self.may_preempt(uuid) for uuid in 'ac'])

    def test_a_returning_server_of_a_cell_no_engine_reads(self):
        self.rows['c'] = row('c', 'bronze', Kind.EVICTED, 3000)
        self.looked_ago_s = {'cell': server_promises.MAX_AGE_S + 1}
        self.assertEqual(preemption_policy.PREEMPTIBLE,
                         self.claim('gold', 'unshelve', 'c'))

    def test_nothing_is_known_before_it_is_read(self):
        found = server_promises.ServerPromises(None, TABLE, lambda: NOW)
        self.assertFalse(found.is_recent)
        self.assertEqual({}, found.promises().source)

    def test_a_claim_needs_a_class_and_an_operation(self):
        self.assertIsNotNone(self.claim().claim)
        for rank in (self.claim('iron'), self.claim(''),
                     self.claim(operation='resize'),
                     self.claim(operation='live_migrate'),
                     # Of no server that is known.
                     self.claim(operation='unshelve')):
            self.assertEqual(preemption_policy.PREEMPTIBLE, rank)

    def test_a_returning_server_claims_its_margin(self):
        self.rows['c'] = row('c', 'bronze', Kind.EVICTED, 3000)
        claim = self.claim('gold', 'unshelve', 'c').claim
        # As it was written down, whatever its flavor says by now.
        self.assertEqual('bronze', claim.qos.name)
        self.assertEqual(-3007, fractions.Fraction(
            claim.q + 2 * TABLE.classes.scale,
            SECOND * TABLE.classes.scale).__floor__())

    def test_a_claim_that_cannot_be_read(self):
        self.away = True
        with self.assertLogs(server_promises.LOG.name, 'WARNING'):
            self.assertEqual(preemption_policy.PREEMPTIBLE,
                             self.claim('gold', 'unshelve', 'a'))

    def test_a_flavor_names_a_class_that_is_no_more(self):
        self.requests = {'x': 'gold'}
        self.assertEqual('gold', self.claim('iron', uuid='x').claim.qos.name)
        self.promised.refresh()
        self.assertEqual(['gold', '', 'bronze'], [
            self.promised.class_of(uuid, name) for uuid, name in (
                ('x', 'iron'), ('z', 'iron'), ('x', 'bronze'))])

    def test_a_request_gives_a_class(self):
        self.requests = {'x': 'gold', 'y': 'iron'}
        self.assertEqual('gold', self.promised.rank(
            'x', MARKED, 'create').claim.qos.name)
        self.assertEqual({'x', 'y'}, self.promised.refresh())
        self.assertEqual(['gold', '', ''], [
            self.promised.class_of(uuid, '') for uuid in 'xyz'])
        self.assertEqual('bronze', self.promised.class_of('z', 'bronze'))

    def test_a_request_changes_its_class(self):
        self.requests = {'x': 'gold', 'y': 'gold', 'z': 'gold'}
        self.assertEqual({'x', 'y', 'z'}, self.promised.refresh())
        self.assertEqual(set(), self.promised.refresh())
        self.requests = {'x': 'bronze', 'z': 'gold'}
        self.assertEqual({'x', 'y'}, self.promised.refresh())
        self.assertEqual(['bronze', '', 'gold'], [
            self.promised.class_of(uuid, '') for uuid in 'xyz'])


if __name__ == '__main__':
    unittest.main()
