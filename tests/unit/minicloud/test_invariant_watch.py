# SPDX-License-Identifier: Apache-2.0
"""Tests of the reading of verify under load."""

import json
import time
import unittest
from unittest import mock

from nova_preempt.cmd import verify_consistency
from tests.cloud import invariant_watch


def _problem(kind):
    return json.dumps({'kind': kind, 'uuid': 'u', 'text': f'{kind} of u'})


class TestInvariantWatch(unittest.TestCase):

    def watched(self, status, *kinds):
        """An InvariantWatch after one look."""
        watch = invariant_watch.InvariantWatch(
            f'printf "%s" "$ANSWER"; exit {status}; true',
            {'ANSWER': '\n'.join(map(_problem, kinds))})
        watch.look()
        return watch.looks, watch.away, watch.faults

    def test_nothing_is_wrong(self):
        self.assertEqual((1, 0, []), self.watched(0))

    def test_problems_allowed_under_load(self):
        self.assertEqual((1, 0, []), self.watched(
            1, 'open_decision', 'server_without_allocation'))

    def test_problems_never_allowed(self):
        self.assertEqual(
            (1, 0, ['over_capacity: over_capacity of u']),
            self.watched(1, 'open_decision', 'over_capacity'))

    def test_a_service_is_away(self):
        self.assertEqual((0, 1, []), self.watched(2))

    def test_command_prints_json(self):
        with mock.patch('subprocess.run') as run:
            run.return_value = mock.Mock(returncode=0, stdout='')
            invariant_watch.InvariantWatch('verify').look()
        self.assertEqual('verify --json', run.call_args.args[0])

    def test_the_watch_runs_until_it_is_stopped(self):
        watch = invariant_watch.InvariantWatch('true #')
        with mock.patch.object(invariant_watch, 'PAUSE_S', 0.01):
            watch.start()
            while watch.looks < 2:
                time.sleep(0.01)
            watch.stop()
        self.assertFalse(watch.is_alive())

    def test_kinds_exist_in_verify(self):
        self.assertLessEqual(invariant_watch.ALWAYS,
                             set(verify_consistency.KINDS))
