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
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import faults
from tests.unit.core.backlog import base


class TestFaults(unittest.TestCase):

    def test_are_logged_and_written_down(self):
        note = dispatch.Note(None, faults.WAITS_FOR, None)
        start = dispatch.Start('a', 'small', 1)
        decided = dispatch.Pass((start,), {'bad': note},
                                faults={'bad': TypeError('x\nFORGED')})
        starting = mock.Mock()
        tested = passes.Passes(mock.Mock(), None, None, starting, None, None,
                               None)
        requests = [base.request('a'), base.request('bad')]
        with (mock.patch.object(tested, '_decide',
                                return_value=(decided, [])),
              mock.patch.object(passes.backlog_turns, 'get'),
              mock.patch.object(passes.backlog_turns, 'replace'),
              mock.patch.object(passes.db, 'note') as written,
              self.assertLogs(passes.__name__, 'ERROR') as logs):
            tested.run(requests, base.NOW)
        (record,) = logs.records
        self.assertEqual(
            "Request bad cannot be looked at: TypeError('x\\nFORGED')",
            record.getMessage())
        self.assertEqual({'bad': note}, written.call_args.args[1])
        self.assertEqual((start,), starting.start.call_args.args[0])

    def test_a_fault_that_lasts_is_logged_once(self):
        """Passes are seconds apart, and a traceback is long."""
        tested = passes.Passes(mock.Mock(), None, None, mock.Mock(), None,
                               None, None)

        def logged(unseen=(), **found):
            decided = dispatch.Pass((), {}, (), frozenset(unseen), found)
            with (mock.patch.object(tested, '_decide',
                                    return_value=(decided, [])),
                  mock.patch.object(passes.backlog_turns, 'get'),
                  mock.patch.object(passes.backlog_turns, 'replace'),
                  mock.patch.object(passes.db, 'note'),
                  mock.patch.object(passes.LOG, 'error') as error):
                tested.run([base.request('a')], base.NOW)
            return [call.args[1]['uuid'] for call in error.call_args_list]

        self.assertEqual(['a'], logged(a=raised(TypeError, 1)))
        # Its text need not be the same.
        self.assertEqual([], logged(a=raised(TypeError, 2)))
        self.assertEqual(['b'], logged(a=raised(TypeError), b=KeyError()))
        self.assertEqual(['a'], logged(a=raised(KeyError), b=KeyError()))
        self.assertEqual(['a'], logged(a=elsewhere(KeyError)))
        # A pass that did not get to it tells nothing.
        self.assertEqual([], logged('a'))
        self.assertEqual([], logged(a=elsewhere(KeyError)))
        # It was looked at, and fails again.
        self.assertEqual([], logged())
        self.assertEqual(['a'], logged(a=elsewhere(KeyError)))


def raised(kind, text=''):
    return caught(lambda: throw(kind, text))


def elsewhere(kind):
    def look():
        raise kind
    return caught(look)


def throw(kind, text):
    raise kind(text)


def caught(look):
    try:
        look()
    except (KeyError, TypeError) as exc:
        return exc
