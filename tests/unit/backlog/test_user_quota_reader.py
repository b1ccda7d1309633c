# SPDX-License-Identifier: Apache-2.0
"""Tests of how often Nova is asked for quotas."""

import types
import unittest

from nova_preempt.backlog import user_nova_clients
from nova_preempt.backlog import user_quota_reader
from nova_preempt.cloud import keystone_trusts
from tests.unit.core.backlog import base

NONE_LEFT = {'maxTotalInstances': 1, 'totalInstancesUsed': 1}


class TestLimits(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now, self.asked, self.away = 0, [], {}
        self.takes_s = 0
        self.limits = user_quota_reader.UserQuotaReader(
            types.SimpleNamespace(limits=self.answer), lambda: self.now)

    def answer(self, request):
        self.asked.append(request.project_id)
        self.now += self.takes_s
        error = self.away.get(request.project_id, self.away.get('all'))
        if error:
            raise error('away')
        return NONE_LEFT

    def ask(self, *projects):
        """Return the projects without remaining quota."""
        self.limits.ask([base.request(project_id=project)
                         for project in projects])
        return {project for (project, user), found
                in self.limits.known().items() if found}

    def test_an_answer_is_believed_for_a_while(self):
        for now, asked in ((0, 1), (299, 1), (300, 2)):
            self.now = now
            self.assertEqual({'p1'}, self.ask('p1'))
            self.assertEqual(asked, len(self.asked))

    def test_an_answer_stays_until_there_is_another(self):
        """And is forgotten where no pass needs it any more."""
        self.ask('p1')
        self.now = 1000
        self.assertEqual({'p1', 'p2'}, self.ask('p2'))
        self.now = 3900
        self.assertEqual({'p2'}, self.ask())

    def test_no_quota_is_read_while_keystone_does_not_answer(self):
        self.away = {'all': keystone_trusts.KeystoneUnavailable}
        self.assertEqual(set(), self.ask('p1', 'p2'))
        self.assertEqual({('p1', 'u1'): {}, ('p2', 'u1'): {}},
                         self.limits.known())
        self.assertEqual(['p1'], self.asked)
        self.away, self.now = {}, 60
        self.assertEqual({'p2'}, self.ask('p2'))

    def test_no_quota_is_read_while_nova_does_not_answer(self):
        self.away = {'all': user_nova_clients.NoAnswer}
        self.assertEqual(set(), self.ask('p1', 'p1', 'p2', 'p3'))
        self.assertEqual(['p1', 'p2'], self.asked)
        self.away, self.now = {}, 60
        self.assertEqual({'p3'}, self.ask('p3'))

    def test_a_failure_for_one_user_does_not_stop_others(self):
        for error in (user_nova_clients.UserUnavailable,
                      user_nova_clients.NoAnswer,
                      keystone_trusts.TrustGone, KeyError):
            with self.subTest(error):
                self.setUp()
                self.away = {'p1': error}
                for number in range(2, 6):
                    self.assertIn(f'p{number}', self.ask('p1', f'p{number}'))
                self.assertEqual(1, self.asked.count('p1'))

    def test_a_user_without_an_answer_is_asked_again_later(self):
        self.away = {'p1': user_nova_clients.NoAnswer}
        for now, asked in ((0, 1), (59, 1), (60, 2)):
            self.now = now
            self.assertEqual(set(), self.ask('p1'))
            self.assertEqual(asked, len(self.asked))
        # It is the same project each time.
        self.assertEqual({'p2'}, self.ask('p2'))

    def test_not_all_in_one_pass(self):
        self.ask(*(f'p{number}' for number in range(20)))
        self.assertEqual(10, len(self.asked))
        self.now = 5
        self.assertIn('p19', self.ask('p19'))

    def test_slow_answers_take_a_fifth_of_the_time(self):
        self.takes_s = 0.6
        self.ask(*(f'p{number}' for number in range(300)))
        self.assertEqual(3, len(self.asked))
        asking_s, self.asked = 0, []
        for second in range(300):
            self.now = max(self.now, 10 + second)
            before = self.now
            self.ask(f'q{second}')
            asking_s += self.now - before
        self.assertLess(asking_s, 0.2 * 300 + 2)
        self.assertGreater(asking_s, 0.2 * 300 - 2)

    def test_a_silent_nova_is_left_alone(self):
        self.away, self.takes_s = {'all': user_nova_clients.NoAnswer}, 5
        for number in range(300):
            self.now = max(self.now, number)
            self.ask(f'p{number}')
        # The second after 20 s, as the first took 5, then one a minute.
        self.assertEqual(['p0', 'p21', 'p86', 'p151', 'p216', 'p281'],
                         self.asked)


if __name__ == '__main__':
    unittest.main()
