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
"""What becomes of requests that raise an exception in a pass."""

import unittest
from unittest import mock

from nova_preempt.backlog import passes
from nova_preempt.core.backlog import faults
from nova_preempt.core.backlog import passing
from tests.unit.core.backlog import base


class TestFaults(unittest.TestCase):

    def test_are_logged_and_written_down(self):
        note = passing.Note(None, faults.WAITS_FOR, None)
        start = passing.Start('a', 'small', 1)
        decided = passing.Pass((start,), {'bad': note},
                               faults={'bad': TypeError('x\nFORGED')})
        starting = mock.Mock()
        tested = passes.Passes(mock.Mock(), None, None, starting, None, None,
                               None)
        requests = [base.request('a'), base.request('bad')]
        with (mock.patch.object(tested, '_decide',
                                return_value=(decided, [])),
              mock.patch.object(passes.db, 'note') as written,
              self.assertLogs(passes.__name__, 'ERROR') as logs):
            tested.run(requests, base.NOW)
        (record,) = logs.records
        self.assertEqual(
            "Request bad cannot be looked at: TypeError('x\\nFORGED')",
            record.getMessage())
        self.assertEqual({'bad': note}, written.call_args.args[1])
        self.assertEqual((start,), starting.start.call_args.args[0])
