# SPDX-License-Identifier: Apache-2.0
"""Tests of calls in the name of users, some or all of which fail."""

import types
import unittest
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt.backlog import orphan_trusts
from nova_preempt.backlog import request_tracker
from nova_preempt.backlog import user_nova_clients
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_api
from nova_preempt.core.backlog import backlog_controller
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import trust_lifetime
from nova_preempt.db import backlog_store
from nova_preempt.db import backlog_store as db
from nova_preempt.db import backlog_submissions
from tests.unit.core.backlog import base


class Keystone:
    """Keystone that fails for some trusts and counts calls."""

    def __init__(self):
        self.fails, self.unexpected = set(), set()
        self.away = False
        self.asked = []

    def check(self):
        if self.away:
            raise keystone_trusts.KeystoneUnavailable('away')

    def session(self, trust_id):
        self.asked.append(trust_id)
        if self.away or trust_id in self.fails:
            raise keystone_trusts.KeystoneUnavailable('500')
        if trust_id in self.unexpected:
            raise KeyError('token')
        return trust_id

    delete = session


class UsersTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.keystone, self.nova = Keystone(), mock.Mock()
        self.admin = mock.Mock()
        self.users = user_nova_clients.UserNovaClients(
            types.SimpleNamespace(
                backlog=types.SimpleNamespace(ask_timeout_s=60)),
            self.keystone, self.make_nova, self.admin)
        self.timeouts_s = []

    def make_nova(self, _session, _conf, timeout_s):
        self.timeouts_s.append(timeout_s)
        return self.nova


class TestWhose(UsersTestCase):
    """Tests that distinguish failures for one user and for all."""

    def test_keystone_fails_for_one_user(self):
        self.keystone.fails.add('t1')
        for call in (lambda: self.users.nova(base.request()),
                     lambda: self.users.delete(base.request(), ['s']),
                     lambda: self.users.forget(base.request())):
            self.assertRaisesRegex(user_nova_clients.UserUnavailable, '500',
                                   call)

    def test_a_user_without_an_endpoint(self):
        self.nova.check.side_effect = nova_api.NovaError('no endpoint')
        self.assertRaisesRegex(user_nova_clients.UserUnavailable,
                               'no endpoint',
                               self.users.nova, base.request())

    def test_no_answer_is_told_from_a_refusal(self):
        for error, expected in (
                (nova_api.NovaError, user_nova_clients.UserUnavailable),
                (nova_api.NoAnswer, user_nova_clients.NoAnswer)):
            self.nova.limits.side_effect = error('GET /limits')
            with self.assertRaises(
                    user_nova_clients.UserUnavailable) as caught:
                self.users.limits(base.request())
            self.assertIs(expected, type(caught.exception))

    def test_quotas_are_not_waited_for_as_long_as_boots(self):
        self.users.nova(base.request())
        self.users.limits(base.request())
        self.assertEqual([60, 5], self.timeouts_s)

    def test_keystone_fails_for_all_users(self):
        self.keystone.away = True
        self.assertRaisesRegex(keystone_trusts.KeystoneUnavailable, 'away',
                               self.users.nova, base.request())

    def test_a_trust_that_is_gone(self):
        self.keystone.session = mock.Mock(
            side_effect=keystone_trusts.TrustGone('no'))
        self.assertRaises(keystone_trusts.TrustGone, self.users.nova,
                          base.request())
        self.users.delete(base.request(), ['s', 't'])
        self.assertEqual([mock.call('s'), mock.call('t')],
                         self.admin.delete.mock_calls)
        # And where that may not, either.
        for error, is_final in ((nova_api.NotAllowed('policy'), True),
                                (nova_api.NovaError('away'), False)):
            self.admin.delete.side_effect = error
            with self.assertRaises(
                    user_nova_clients.ServersNotDeleted) as caught:
                self.users.delete(base.request(), ['s'])
            self.assertEqual(is_final, caught.exception.is_final)


class TestClosing(UsersTestCase):

    def setUp(self):
        super().setUp()
        self.requests = [
            base.request(f'r{number}', trust_id=f't{number}',
                         state=backlog_model.DONE) for number in range(20)]
        self.tracker = request_tracker.RequestTracker(None, None, self.users,
                                                      mock.Mock())

    def close(self):
        """The trusts for which Keystone was asked."""
        gone = set()
        with mock.patch.object(
                db, 'change', side_effect=lambda _db, uuid, *_args, **_values:
                gone.add(uuid) or True):
            self.left = self.tracker.clear(self.requests, [
                backlog_controller.CleanUpRequest(
                    item, boot_outcome.Transition(item.state, {}), True)
                for item in self.requests], base.NOW)
        self.requests = [item for item in self.requests
                         if item.uuid not in gone]
        asked = [*self.keystone.asked]
        self.keystone.asked.clear()
        return asked

    def test_keystone_does_not_answer(self):
        self.keystone.away = True
        self.assertEqual(['t0'], self.close())

    def test_a_failing_trust_does_not_stop_others(self):
        self.keystone.fails.add('t3')
        self.assertEqual(20, len(self.close()))
        self.assertEqual(['t3'], self.close())

    def test_an_unexpected_answer_does_not_stop_others(self):
        self.keystone.unexpected.add('t3')
        self.assertEqual(20, len(self.close()))
        self.assertEqual(1, self.left)
        self.assertEqual(['t3'], self.close())

    def test_a_database_that_is_down_stops_all(self):
        self.tracker._records.record.side_effect = db_exc.DBError
        self.assertRaises(db_exc.DBError, self.close)
        self.tracker._records.record.assert_called_once()

    def test_failing_trusts_take_turns(self):
        """The time for failing trusts is limited."""
        self.keystone.fails.update(f't{number}' for number in range(12))
        self.assertEqual([f't{number}' for number in range(5)], self.close())
        self.assertEqual([f't{number}' for number in range(5, 10)],
                         self.close())
        self.assertEqual(
            ['t10', 't11', *(f't{number}' for number in range(12, 20)),
             't0', 't1', 't2'], self.close())
        self.assertEqual(['t3', 't4', 't5', 't6', 't7'], self.close())

    def test_a_failing_trust_is_retried_less_often(self):
        self.keystone.fails.add('t3')
        looks = [look for look in range(200) if 't3' in self.close()]
        self.assertEqual([0, 1, 3, 7, 15, 31, 63, 127, 191], looks)
        self.keystone.fails.clear()
        self.assertIn(['t3'], [self.close() for _look in range(64)])
        self.assertEqual([], self.requests)

    def test_all_trusts_are_retried_once_keystone_is_back(self):
        self.keystone.away = True
        for _look in range(50):
            self.close()
        self.keystone.away = False
        self.assertEqual(20, len(self.close()))

    def test_the_number_of_remaining_trusts_is_reported(self):
        self.keystone.fails.update(('t3', 't7'))
        self.close()
        self.assertEqual(2, self.left)
        self.keystone.fails.clear()
        self.close()
        self.assertEqual(0, self.left)


class TestLeftovers(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.begun = [
            backlog_submissions.PendingSubmission(
                f'b{number:02}', 'p', 'u', base.NOW,
                trust_lifetime.expiry(f'b{number:02}'))
            for number in range(120)]
        self.keystone = Keystone()
        self.keystone.list = mock.Mock(side_effect=lambda: [
            {'id': item.uuid, 'trustor_user_id': item.user_id,
             'expires_at': f'{item.expires_at.isoformat()}.000000Z'}
            for item in self.begun])
        self.leftovers = orphan_trusts.OrphanTrusts(None, self.keystone)
        #: Trusts of requests that are there.
        self.used = set()

    def clear(self):
        """Return the reported number of remaining trusts."""
        gone = set()
        with mock.patch.object(
                backlog_store, 'trusts', return_value=self.used), \
                mock.patch.multiple(
                backlog_submissions,
                give_up=lambda _db, _at: self.begun,
                forget=lambda _db, uuid: gone.add(uuid)):
            told = self.leftovers.clear(base.NOW)
        self.begun = [item for item in self.begun if item.uuid not in gone]
        return told

    def test_the_trust_of_another_request_stays(self):
        """It may expire in the same second as an orphaned trust."""
        self.used = {'b00'}
        self.begun = self.begun[:2]
        with mock.patch.object(self.keystone, 'delete') as delete:
            self.clear()
        delete.assert_called_once_with('b01')

    def test_trusts_behind_failing_ones_have_their_turn(self):
        self.begun = self.begun[:30]
        self.keystone.fails.update(item.uuid for item in self.begun[:15])
        told = [self.clear() for _look in range(6)]
        self.assertEqual(sorted(self.keystone.fails),
                         [item.uuid for item in self.begun])
        self.assertEqual(15, told[-1])

    def test_an_unexpected_list_of_trusts_does_not_stop_the_pass(self):
        self.keystone.list.side_effect = lambda: [{'id': 't'}]
        self.assertEqual(120, self.clear())

    def test_a_limited_number_of_trusts_is_deleted_at_a_time(self):
        self.assertEqual([70, 20, 0, 0], [self.clear() for _ in range(4)])
        # Once a look, and not where nothing is left.
        self.assertEqual(3, self.keystone.list.call_count)


if __name__ == '__main__':
    unittest.main()
