# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Which failures of a transaction are tried again."""

import sqlite3
import unittest

from oslo_db import exception as db_exc
from sqlalchemy import exc as sqla_exc

from nova_preempt.db import retries


class TestRetried(unittest.TestCase):

    def fail(self, exc):
        """How often it was tried, where it fails once."""
        tries = []

        @retries.retried
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
        """However the error comes: oslo.db hands some on as they are."""
        for text, expected in (('database is locked', 2), ('no disk', 0)):
            locked = sqlite3.OperationalError(text)
            for exc in (sqla_exc.OperationalError('UPDATE', {}, locked),
                        db_exc.DBError(locked)):
                self.assertEqual(expected, self.fail(exc), exc)
