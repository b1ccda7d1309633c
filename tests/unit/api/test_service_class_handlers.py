# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime

import sqlalchemy as sa

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.classes import server_clocks
from nova_preempt.db import backlog_models
from nova_preempt.db import backlog_store
from nova_preempt.db import server_uptimes
from tests.unit.api import base
from tests.unit.api import test_backlog_handlers

PATH = '/v1/classes'


class TestClasses(test_backlog_handlers.BacklogTestCase):

    microversion = '1.5'

    def test_list(self):
        gold, silver = self.get(PATH)['classes']
        self.assertEqual({
            'name': 'gold', 'importance': 1, 'availability': 0.95,
            'safety_margin_s': 300, 'overhead_limit': 0.05,
            'least_run_s': 300, 'open': True}, gold)
        self.assertEqual(('silver', False), (silver['name'], silver['open']))
        self.get(PATH, None, 401)

    def test_not_before(self):
        self.microversion = '1.4'
        self.get(PATH, code=404)
        made = self.create()
        self.assertNotIn('availability', made)
        self.assertNotIn('promised_availability', self.show(made['id']))

    def test_where_there_are_none(self):
        object.__setattr__(self.services, 'classes', None)
        self.assertEqual([], self.get(PATH)['classes'])
        made = self.create()
        self.assertIsNone(made['promised_availability'])

    def test_classes_that_are_not_open(self):
        silver = {'class': 'silver', 'server': {'flavorRef': 'f2'}}
        self.assertIn("'silver' is not", self.create(code=400, **silver))
        made = self.create(test_backlog_handlers.ADMIN, **silver)
        self.assertEqual('silver', made['class'])
        # By a flavor that the operator lets somebody use.
        made = self.create(server={'flavorRef': 'silver'})
        self.assertEqual(('silver', 0.9), (made['class'],
                                           made['promised_availability']))
        # Nor can it be changed to, or got rid of.
        uuid = self.create(server={'flavorRef': 'f2'})['id']
        self.change(uuid, code=400, **{'class': 'silver'})
        self.assertEqual('silver', self.change(
            uuid, test_backlog_handlers.ADMIN, **{'class': 'silver'})['class'])
        self.assertEqual('silver', self.change(
            made['id'], **{'class': ''})['class'])
        self.assertIn("flavor silver has the class 'silver'", self.change(
            made['id'], code=400, **{'class': 'gold'}))

    def test_flavors_that_do_not_fit(self):
        for flavor, name, text in (
                ('f1', 'gold', 'preemptible flavors, which big is not'),
                ('silver', 'gold', "flavor silver has the class 'silver'")):
            self.assertIn(text, self.create(
                code=400, server={'flavorRef': flavor}, **{'class': name}))
        self.assertIn('different classes: gold, silver', self.create(
            code=400, flavors=['gold', 'silver'],
            server={'flavorRef': None}))
        self.assert_nothing_is_kept()

    def test_how_long_it_ran(self):
        uuid = self.create(server={'flavorRef': 'gold'})['id']
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        began = now - datetime.timedelta(seconds=1000)
        self.move(uuid, began)
        for state, at_s in ((backlog_model.ACTIVE, 100),
                            (backlog_model.EVICTED, 900)):
            self.assertTrue(backlog_store.change(
                self.db, uuid, backlog_model.STATES,
                began + datetime.timedelta(seconds=at_s), state=state))
        found = self.show(uuid)
        self.assertEqual(0.95, found['promised_availability'])
        self.assertEqual((800, 0), (found['availability']['running_s'],
                                    found['availability']['starting_s']))
        self.assertAlmostEqual(200, found['availability']['waiting_s'],
                               delta=60)
        self.assertAlmostEqual(0.8, found['availability']['share'], delta=.05)

    def move(self, uuid, at):
        """Move the creation of a request to a time."""
        with self.db.writer() as session:
            session.connection().exec_driver_sql(
                'UPDATE backlog_changes SET at = ? WHERE request_uuid = ?',
                (f'{at:%Y-%m-%d %H:%M:%S}.000000', uuid))

    def test_how_long_servers_ran(self):
        uuid = self.create(server={'flavorRef': 'gold'})['id']
        known, unknown = base.make_uuid('s1'), base.make_uuid('s2')
        with self.db.writer() as session:
            session.execute(sa.insert(backlog_models.BacklogServer), [
                {'uuid': each, 'request_uuid': uuid, 'boot': 1,
                 'state': backlog_model.RUNNING, 'since': base.NOW}
                for each in (known, unknown)])
        at_us = 10 ** 15
        told = [server_clocks.Event(at_us + at_s * 10 ** 6, kind) for at_s,
                kind in (
                    (0, server_clocks.Kind.QUEUED),
                    (10, server_clocks.Kind.ALLOCATING),
                    (25, server_clocks.Kind.RUNNING),
                    (100, server_clocks.Kind.ASIDE))]
        server = server_uptimes.ServerUptime(
            known, uuid, 'p', 'gold', 'golden', False,
            server_clocks.ServerClocks(told), base.NOW, base.NOW)
        server_uptimes.write(self.db, [server])
        shown = {item['id']: item.get('availability')
                 for item in self.show(uuid)['servers']}
        self.assertEqual({
            known: {'running_s': 75, 'waiting_s': 10, 'starting_s': 15,
                    'share': 0.75}, unknown: None}, shown)
        server_uptimes.write(self.db, [dataclasses.replace(
            server, clocks=server_clocks.ServerClocks(told[:1]).applied(
                server_clocks.Event(at_us, server_clocks.Kind.ENDED)))])
        self.assertIn(None, [item.get('availability', {}).get('share', 0)
                             for item in self.show(uuid)['servers']])
