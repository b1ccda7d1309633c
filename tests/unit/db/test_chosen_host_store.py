# SPDX-License-Identifier: Apache-2.0
"""Hosts that were chosen for boots, in the database."""

import dataclasses
import datetime
import os
import threading
import unittest

import sqlalchemy as sa

from nova_preempt.core.backlog import host_choice
from nova_preempt.db import backlog_models
from nova_preempt.db import chosen_host_store
from tests.unit.db import test_backlog_store

NOW = test_backlog_store.NOW


def choice(**values):
    return host_choice.Choice(**{
        'request_uuid': 'r1', 'number': 1,
        'project_id': 'p', 'user_id': 'u', 'flavor_id': 'f', 'count': 3,
        'hosts': {'h1': 2, 'h2': 1},
        'expires_at': NOW, **values})


class TestSQLite(test_backlog_store.TestSQLite):
    """Inherits the database only, see load_tests."""

    def test_by_its_secret(self):
        chosen_host_store.keep(self.db, 's', choice())
        # Asked twice, as where a connection was lost.
        chosen_host_store.keep(self.db, 's', choice(number=2))
        self.assertEqual(choice(number=2), chosen_host_store.get(self.db, 's'))
        for secret in ('', 'S', 't', 'é' * 10_000, '\ud800'):
            self.assertIsNone(chosen_host_store.get(self.db, secret))
            self.assertFalse(chosen_host_store.use(self.db, secret))

    def test_the_secret_itself_is_nowhere(self):
        chosen_host_store.keep(self.db, 'a very long secret', choice())
        with self.db.reader() as session:
            row, = session.execute(sa.select(
                *backlog_models.BacklogChosenHosts.__table__.c))
        self.assertNotIn('secret', str(row))

    def test_once(self):
        chosen_host_store.keep(self.db, 's', choice())
        both, used = threading.Barrier(2), []

        def use():
            both.wait()
            used.append(chosen_host_store.use(self.db, 's'))

        threads = [threading.Thread(target=use) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertCountEqual([True, False], used)
        self.assertEqual(dataclasses.replace(choice(), used=True),
                         chosen_host_store.get(self.db, 's'))

    def test_of_boots_and_forgotten(self):
        chosen_host_store.keep(self.db, 's', choice())
        later = NOW + datetime.timedelta(seconds=1)
        chosen_host_store.keep(self.db, 't', choice(number=2, hosts={'h': 3},
                                                    expires_at=later))
        self.assertEqual(
            {('r1', 1): {'h1': 2, 'h2': 1}, ('r1', 2): {'h': 3}},
            chosen_host_store.of_boots(self.db))
        chosen_host_store.forget(self.db, later)
        self.assertEqual({('r1', 2): {'h': 3}},
                         chosen_host_store.of_boots(self.db))


def load_tests(loader, tests, pattern):
    own = [name for name in vars(TestSQLite) if name.startswith('test_')]
    found = unittest.TestSuite()
    for url in ('', *os.environ.get('OS_TEST_DATABASES', '').split()):
        kind = type('TestOther' if url else 'TestSQLite', (TestSQLite,),
                    {'url': url or None})
        found.addTests(kind(name) for name in own)
    return found


if __name__ == '__main__':
    unittest.main()
