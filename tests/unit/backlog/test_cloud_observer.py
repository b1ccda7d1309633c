# SPDX-License-Identifier: Apache-2.0
"""Duration of passes, and data kept for the next pass."""

import types
import unittest
from unittest import mock

from nova_preempt.backlog import backlog_loop
from nova_preempt.backlog import cloud_observer
from nova_preempt.backlog import user_quota_reader
from nova_preempt.cloud import nova_api
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import expected_departures
from nova_preempt.db import backlog_store
from nova_preempt.db import boot_host_choices
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import vcpus

NONE_LEFT = {'maxTotalInstances': 1, 'totalInstancesUsed': 1}


class Clock:
    """Clock that advances each time it is read."""

    def __init__(self):
        self.now = 0
        self.step_s = 0

    def __call__(self):
        self.now += self.step_s
        return self.now


class PassesTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.clock, self.asked = Clock(), []
        self.launcher = mock.Mock()
        for name, answer in (('note', None), ('placed', [])):
            self.enterContext(mock.patch.object(
                backlog_store, name, return_value=answer))
        self.enterContext(mock.patch.object(
            boot_host_choices, 'hosts_of_boots', return_value={}))
        for name in ('get_turns', 'replace_turns'):
            self.enterContext(mock.patch.object(
                boot_host_choices, name, getattr(self, name)))
        self.turns, self.left = {}, NONE_LEFT
        self.options = types.SimpleNamespace(
            pass_interval_s=5, hold_after_s=3600, ask_timeout_s=60)
        self.tracker = mock.Mock(**{
            'clear.return_value': 0, 'record.return_value': set()})
        cloud = cloud_observer.CloudObserver(
            self.options, None, types.SimpleNamespace(
                all=lambda places: [host('h', 1)],
                departures=lambda: expected_departures.DEFAULT_DEPARTURES),
            lambda: types.SimpleNamespace(
                rank=lambda requests, now, shares: requests),
            None, user_quota_reader.UserQuotaReader(
                types.SimpleNamespace(limits=self.answer),
                lambda: self.clock.now),
            monotonic=self.clock)
        self.loop = backlog_loop.BacklogLoop(
            self.options, None, self.tracker, cloud, self.launcher)

    def get_turns(self, _database):
        return self.turns

    def replace_turns(self, _database, before, after):
        self.assertEqual(self.turns, before)
        self.turns = after

    def answer(self, request):
        """A Nova that is slow, and leaves no quota."""
        self.asked.append(request.user_id)
        self.clock.now += 0.6
        return self.left

    def run_pass(self, requests):
        """Run a pass; return uuids of started and noted requests."""
        self.launcher.reset_mock()
        backlog_store.note.reset_mock()
        self.tracker.look.return_value = requests, [], {}
        self.loop.run(base.NOW)
        (launches,), _ = self.launcher.start.call_args
        (_, notes), _ = backlog_store.note.call_args
        return [item.request.uuid for item in launches], {
            uuid for uuid, note in notes.items()
            if 'ended before its turn' in note.waits_for.get('text', '')}


class TestFaults(PassesTestCase):

    def test_are_logged_and_written_down(self):
        with (mock.patch.object(
                dispatch._Pass, 'check', side_effect=TypeError('x\nFORGED')),
              self.assertLogs(backlog_loop.__name__, 'ERROR') as logs):
            self.run_pass([base.request('bad')])
        (record,) = logs.records
        self.assertEqual(
            "Request bad cannot be processed: TypeError('x\\nFORGED')",
            record.getMessage())
        (_, notes), _ = backlog_store.note.call_args
        self.assertEqual('fault', notes['bad'].waits_for['code'])

    def test_capacity_that_is_unknown(self):
        """Owners of waiting requests are told, and so is the operator."""
        error = nova_api.NovaError('a cell is away')
        with mock.patch.object(self.loop._cloud._rooms, 'all',
                               side_effect=error):
            self.assertRaises(nova_api.NovaError, self.run_pass, [
                base.request('a')])
        (_, notes), _ = backlog_store.note.call_args
        self.assertEqual('room_unknown', notes['a'].waits_for['code'])
        self.tracker.record.assert_called_once()


    def test_a_lasting_fault_is_logged_once(self):
        """Passes are seconds apart, and a traceback is long."""
        error = TypeError

        def check(_pass, request):
            if request.uuid in bad:
                # Its text need not be the same.
                raise error(self.clock())

        self.clock.step_s = 0.1
        requests = [base.request(uuid) for uuid in 'ab']
        with mock.patch.object(dispatch._Pass, 'check', check):
            for bad, error, logged in (
                    ('a', TypeError, 1), ('a', TypeError, 0),
                    ('ab', TypeError, 1), ('ab', KeyError, 2), ('', None, 0),
                    ('a', KeyError, 1)):
                with mock.patch.object(backlog_loop.LOG, 'error') as log:
                    self.run_pass(requests)
                self.assertEqual(logged, log.call_count, (bad, error))

    def test_a_failing_pass_leaves_requests_followed(self):
        late = base.request('late', not_after=base.ago(1))
        evicted = base.running(backlog_model.AWAY, comes_back=True)
        with mock.patch.object(dispatch, 'decide',
                               side_effect=ZeroDivisionError):
            self.assertRaises(ZeroDivisionError, self.run_pass, [
                late, evicted, base.request('a')])
        (_, (record,), _), _ = self.tracker.record.call_args
        self.assertEqual(('late', backlog_model.EXPIRED), (
            record.request.uuid, record.verdict.state))
        (_, (clear,), _), _ = self.tracker.clear.call_args
        self.assertEqual('late', clear.request.uuid)
        self.assertEqual({'s0'}, self.loop.coming_back)


class TestPositions(PassesTestCase):

    def test_positions_are_unique_while_no_request_starts(self):
        """The first request is chosen, and Keystone is away."""
        positions = {'b': 1}

        def note(_database, notes):
            positions.update((uuid, item.position)
                             for uuid, item in notes.items())

        backlog_store.note.side_effect = note
        for _ in range(2):
            requests = [base.request(uuid, position=positions.get(uuid))
                        for uuid in ('a', 'b')]
            self.assertEqual(['a'], self.run_pass(requests)[0])
            self.assertEqual({'a': 1, 'b': 2}, positions)


class TestTime(PassesTestCase):

    def test_a_pass_ends_when_the_next_one_is_due(self):
        requests = [base.request(str(number)) for number in range(10)]
        self.clock.step_s = 1
        self.assertEqual((['0'], {'5', '6', '7', '8', '9'}),
                         self.run_pass(requests))
        # Those come first in the next one, whose time begins anew.
        self.assertEqual((['5'], {'0', '1', '2', '3', '4'}),
                         self.run_pass(requests))
        self.options.pass_interval_s = 20
        self.assertEqual((['0'], set()), self.run_pass(requests))
        self.assertEqual((['0'], set()), self.run_pass(requests))

    def test_a_plan_that_is_shown_changes_nothing(self):
        requests = [base.request(str(number)) for number in range(10)]
        self.clock.step_s = 1
        self.run_pass(requests)
        self.options.pass_interval_s = 20
        self.tracker.open.return_value = requests
        launches, _cloud, waiting = self.loop.preview(base.NOW)
        self.assertEqual((['5'], 10), ([
            item.request.uuid for item in launches], len(waiting)))
        self.assertEqual((['5'], set()), self.run_pass(requests))

    def test_turns_of_projects_are_remembered(self):
        requests = [base.request('a', vcpus(8), created_at=base.ago(3600))]
        self.tracker.open.return_value = requests
        self.left = {'maxTotalInstances': -1}
        self.loop.preview(base.NOW)
        self.run_pass(requests)
        self.assertEqual({}, self.turns)
        # Now the quota is known.
        self.run_pass(requests)
        self.assertEqual(base.NOW, self.turns['p1'].since)
        # Though its requests are other ones.
        self.run_pass([base.request('b', vcpus(8))])
        self.assertEqual(base.NOW, self.turns['p1'].since)

    def test_quotas_that_take_long_leave_time_for_the_rest(self):
        """The quotas of each of 300 users take 0.6 s."""
        requests = [
            base.request(f'{number:03}', vcpus(8), user_id=f'u{number}',
                         project_id=f'p{number}', created_at=base.ago(7200))
            for number in range(300)]
        requests.append(base.request('small'))
        unseen = self.run_pass(requests)[1]
        # A fifth of the time of some passes at once, and then less.
        self.assertLess(self.clock.now, 2.5)
        self.assertEqual(set(), unseen)
        for number in range(1, 60):
            self.clock.now = max(self.clock.now, 5 * number)
            self.run_pass(requests)
        self.assertLess(len(self.asked), 0.2 * 300 / 0.6 + 4)


if __name__ == '__main__':
    unittest.main()
