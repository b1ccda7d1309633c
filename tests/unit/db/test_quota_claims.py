# SPDX-License-Identifier: Apache-2.0
"""Claims of quotas, on SQLite and on OS_TEST_DATABASES."""

import datetime
import os
import random
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

from nova import exception
from oslo_config import cfg
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_preempt.conf import preemption_quota as quota_conf
from nova_preempt.core import quotas as core
from nova_preempt.db import models
from nova_preempt.db import quota_claims
from nova_preempt.scheduler import preemption_quotas
from nova_preempt.scheduler import request_context
from tests import tables
from tests.unit.db import test_decisions

ONE = core.ServerSize(True, 1, 1024)
TWO = core.ServerSize(False, 2, 2048)


class TestSQLite(unittest.TestCase):

    url = None

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = self.url or f'sqlite:///{directory.name}/test.sqlite'
        self.db = test_decisions.make_database(self.path)
        tables.make(self.db)
        self.addCleanup(self.drop)
        self.claims = quota_claims.QuotaClaims(self.db)

    def drop(self):
        engine = self.db.engine
        models.Base.metadata.drop_all(engine)
        with engine.begin() as connection:
            connection.execute(sa.text('DROP TABLE alembic_version'))
        engine.dispose()

    def seen(self, project_id='p'):
        """Return the usage that a request counts now."""
        ids, others = self.claims.claim(project_id, {'new': ONE})
        self.claims.release(ids)
        return {item.server_uuid: core.ServerSize(
            item.preemptible, item.vcpus, item.memory_mb) for item in others}

    def test_later_requests_see_a_claim(self):
        ids, others = self.claims.claim('p', {'a': ONE, 'b': TWO})
        self.assertEqual((2, []), (len(ids), others))
        self.assertEqual({'a': ONE, 'b': TWO}, self.seen())
        self.assertEqual({}, self.seen('q'))
        self.claims.release(ids[:1])
        self.assertEqual({'b': TWO}, self.seen())
        self.claims.release([])
        self.claims.release(ids)
        self.assertEqual({}, self.seen())

    def test_each_server_has_one_claim(self):
        first, _others = self.claims.claim('p', {'a': ONE})
        second, others = self.claims.claim('p', {'a': TWO})
        self.assertEqual([], others)
        # Who held the first cannot take the second away.
        self.claims.release(first)
        self.assertEqual({'a': TWO}, self.seen())
        self.claims.release(second)
        third, _others = self.claims.claim('p', {'a': ONE})
        self.claims.release(second)
        self.assertNotEqual(second, third)
        self.assertEqual({'a': ONE}, self.seen())

    def test_forgotten_in_the_end(self):
        long_ago = timeutils.utcnow() - datetime.timedelta(
            seconds=quota_claims.LIFETIME_S + 1)
        with mock.patch.object(timeutils, 'utcnow', return_value=long_ago):
            self.claims.claim('p', {'a': ONE})
            self.assertEqual({'a': ONE}, self.seen())
        self.seen('q')
        self.assertEqual({}, self.seen())

    def test_two_schedulers_and_many_threads(self):
        """Exactly as many as the limit allows."""
        limit, threads, rounds = 5, 6, 4
        nova = FakeNova()
        schedulers = [Scheduler(test_decisions.make_database(self.path), nova,
                                limit) for _ in range(2)]
        for scheduler in schedulers:
            self.addCleanup(scheduler.close)

        def ask(number):
            rng = random.Random(number)
            for turn in range(rounds):
                schedulers[number % 2].ask(f'{number}-{turn}', rng)

        asking = [threading.Thread(target=ask, args=(number,))
                  for number in range(2 * threads)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        self.assertEqual(limit, nova.most)
        self.assertEqual(limit, len(nova.servers('p')))

    def test_resizes_in_two_schedulers(self):
        """The limit allows a part of simultaneous resizes."""
        nova = FakeNova()
        grows = [f's{number}' for number in range(8)]
        for uuid in grows:
            nova.in_cells[uuid] = core.CountedServer([ONE], True)
        schedulers = [Scheduler(test_decisions.make_database(self.path), nova,
                                limit=-1, vcpus=11) for _ in range(2)]
        for scheduler in schedulers:
            self.addCleanup(scheduler.close)
        admitted = []
        barrier = threading.Barrier(len(grows))

        def grow(number):
            barrier.wait()
            try:
                with schedulers[number % 2].admitted(grows[number], 2):
                    admitted.append(number)
            except exception.NoValidHost:
                pass

        threads = [threading.Thread(target=grow, args=(number,))
                   for number in range(len(grows))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(3, len(admitted))


class FakeNova:
    """Requests that come into a cell some time after they were admitted."""

    def __init__(self):
        self.waiting = set()
        self.in_cells = {}
        self.most = 0

    def requests(self, project_id):
        return set(self.waiting)

    def servers(self, project_id, partial=False):
        return dict(self.in_cells)

    def build(self, uuid):
        self.in_cells[uuid] = core.CountedServer([ONE], True)
        self.most = max(self.most, len(self.in_cells))
        self.waiting.discard(uuid)
        self.in_cells[uuid] = core.CountedServer([ONE], False)


class Scheduler:
    """Quotas with a connection of their own to the database."""

    def __init__(self, database, nova, limit, vcpus=-1):
        conf = cfg.ConfigOpts()
        quota_conf.register_opts(conf)
        conf([])
        for name, value in (('driver', 'options'), ('servers', limit),
                            ('vcpus', vcpus)):
            conf.set_override(name, value, quota_conf.GROUP)
        self.close = database.engine.dispose
        self._nova = nova
        self._quotas = preemption_quotas.QuotaEnforcer(
            conf.preemption_quota, nova, quota_claims.QuotaClaims(database))

    def admitted(self, uuid, vcpus=1):
        spec_obj = types.SimpleNamespace(
            project_id='p', flavor=types.SimpleNamespace(
                vcpus=vcpus, memory_mb=1024))
        return self._quotas.admitted(request_context.RequestContext(
            None, spec_obj, (uuid,)), True)

    def ask(self, uuid, rng):
        self._nova.waiting.add(uuid)
        try:
            with self.admitted(uuid):
                time.sleep(rng.uniform(0, 0.2))
        except exception.NoValidHost:
            self._nova.waiting.discard(uuid)
        else:
            self._nova.build(uuid)


def load_tests(loader, tests, pattern):
    """Add the same tests on each of the other databases."""
    for number, url in enumerate(os.environ.get('OS_TEST_DATABASES',
                                                '').split()):
        other = type(f'TestOther{number}', (TestSQLite,), {'url': url})
        tests.addTests(loader.loadTestsFromTestCase(other))
    return tests
