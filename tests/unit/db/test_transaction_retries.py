# SPDX-License-Identifier: Apache-2.0
"""Tests of failures of a transaction that are retried."""

import sqlite3
import unittest

from oslo_db import exception as db_exc
from sqlalchemy import exc as sqla_exc

from nova_preempt.db import transaction_retries


class TestRetried(unittest.TestCase):

    def fail(self, exc):
        """Return how often a transaction that fails once is tried."""
        tries = []

        @transaction_retries.retried
        def work():
            tries.append(1)
            if len(tries) < 2:
                raise exc

        try:
            work()
        except type(exc):
            return 0
        return len(tries)

    def test_a_locked_database(self):
        """Wrapped by oslo.db or not."""
        for text, expected in (('database is locked', 2), ('no disk', 0)):
            locked = sqlite3.OperationalError(text)
            for exc in (sqla_exc.OperationalError('UPDATE', {}, locked),
                        db_exc.DBError(locked)):
                self.assertEqual(expected, self.fail(exc), exc)
