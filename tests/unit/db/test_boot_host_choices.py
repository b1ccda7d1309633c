# SPDX-License-Identifier: Apache-2.0
"""Tests of chosen hosts and turns of projects in the database."""

import dataclasses
import datetime
import os
import threading
import unittest

import sqlalchemy as sa

from nova_preempt.core.backlog import boot_host_choice
from nova_preempt.core.backlog import kept_host_turns
from nova_preempt.db import backlog_models
from nova_preempt.db import boot_host_choices
from tests.unit.db import test_backlog_store

NOW = test_backlog_store.NOW


def choice(**values):
    return boot_host_choice.ChosenHosts(**{
        'request_uuid': 'r1', 'number': 1,
        'project_id': 'p', 'user_id': 'u', 'flavor_id': 'f', 'count': 3,
        'hosts': {'h1': 2, 'h2': 1},
        'expires_at': NOW, **values})


class TestSQLite(test_backlog_store.TestSQLite):
    """Inherits the database only, see load_tests."""

    def test_by_its_secret(self):
        boot_host_choices.keep_choice(self.db, 's', choice())
        # Asked twice, as where a connection was lost.
        boot_host_choices.keep_choice(self.db, 's', choice(number=2))
        self.assertEqual(choice(number=2),
                         boot_host_choices.get_choice(self.db, 's'))
        for secret in ('', 'S', 't', 'é' * 10_000, '\ud800'):
            self.assertIsNone(boot_host_choices.get_choice(self.db, secret))
            self.assertFalse(boot_host_choices.use_choice(self.db, secret))

    def test_the_secret_itself_is_nowhere(self):
        boot_host_choices.keep_choice(self.db, 'a very long secret', choice())
        with self.db.reader() as session:
            row, = session.execute(sa.select(
                *backlog_models.BacklogChosenHosts.__table__.c))
        self.assertNotIn('secret', str(row))

    def test_once(self):
        boot_host_choices.keep_choice(self.db, 's', choice())
        both, used = threading.Barrier(2), []

        def use():
            both.wait()
            used.append(boot_host_choices.use_choice(self.db, 's'))

        threads = [threading.Thread(target=use) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertCountEqual([True, False], used)
        self.assertEqual(dataclasses.replace(choice(), used=True),
                         boot_host_choices.get_choice(self.db, 's'))

    def test_choices_of_boots_are_deleted_later(self):
        boot_host_choices.keep_choice(self.db, 's', choice())
        later = NOW + datetime.timedelta(seconds=1)
        boot_host_choices.keep_choice(self.db, 't', choice(
            number=2, hosts={'h': 3}, expires_at=later))
        self.assertEqual(
            {('r1', 1): {'h1': 2, 'h2': 1}, ('r1', 2): {'h': 3}},
            boot_host_choices.hosts_of_boots(self.db))
        boot_host_choices.forget_choices(self.db, later)
        self.assertEqual({('r1', 2): {'h': 3}},
                         boot_host_choices.hosts_of_boots(self.db))

    def replace(self, **after):
        boot_host_choices.replace_turns(
            self.db, boot_host_choices.get_turns(self.db), after)
        self.assertEqual(after, boot_host_choices.get_turns(self.db))

    def test_come_change_and_go(self):
        turn = kept_host_turns.ProjectTurn(NOW,
                                           NOW + datetime.timedelta(hours=1),
                                           frozenset({'h', 'i'}), {'r': 5}, 2)
        self.replace()
        self.replace(p=turn, q=dataclasses.replace(turn, far={}))
        self.replace(p=turn, q=dataclasses.replace(turn, hosts=frozenset()))
        self.replace(p=turn)

    def test_a_repeated_replacement_changes_nothing(self):
        """The replacement is repeated after a lost connection."""
        turn = kept_host_turns.ProjectTurn(NOW, NOW)
        for _time in range(2):
            boot_host_choices.replace_turns(self.db, {}, {'p': turn})
            self.assertEqual({'p': turn}, boot_host_choices.get_turns(self.db))
        for _time in range(2):
            boot_host_choices.replace_turns(self.db, {'p': turn}, {})
            self.assertEqual({}, boot_host_choices.get_turns(self.db))


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
