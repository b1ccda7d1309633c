# SPDX-License-Identifier: Apache-2.0
"""How much of a scheduler's time the questions of a project take."""

import unittest
from unittest import mock

from nova import context as nova_context
import oslo_messaging as messaging

from nova_preempt import exceptions
from nova_preempt.scheduler import query_limits
from nova_preempt.scheduler import scheduler_endpoint


class QuestionsTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now_s = 0
        self.questions = query_limits.Questions(lambda: self.now_s)

    def ask(self, takes_s, project='p', is_bounded=True):
        with self.questions.asking(project, is_bounded) as question:
            self.now_s += takes_s
            return question


class TestShare(QuestionsTestCase):

    def test_a_project_has_a_tenth_of_the_time(self):
        for takes_s in (1, 10, 60, 125):
            self.setUp()
            busy_s = 0
            while self.now_s < 100_000:
                try:
                    self.ask(takes_s)
                    busy_s += takes_s
                except exceptions.TooManyQuestions as exc:
                    self.now_s += exc.args[1]
            self.assertLess(busy_s, 10_000 + 30 + takes_s, takes_s)
            self.assertGreater(busy_s, 9_500, takes_s)

    def test_one_that_fails_counts(self):
        with self.assertRaises(ZeroDivisionError), self.questions.asking(
                'p', True):
            self.now_s += 40
            raise ZeroDivisionError
        with self.assertRaisesRegex(exceptions.TooManyQuestions,
                                    'ask again in 100 s') as caught:
            self.ask(1)
        self.assertEqual(100, caught.exception.args[1])

    def test_others_may_ask(self):
        self.ask(40)
        self.ask(40, 'other')
        self.ask(40, is_bounded=False)
        self.assertRaises(exceptions.TooManyQuestions, self.ask, 1)


class TestEndpoint(QuestionsTestCase):
    """What the scheduler does with its time."""

    def setUp(self):
        super().setUp()
        self.endpoint = scheduler_endpoint.QueryEndpoint(mock.Mock())
        self.endpoint._questions = self.questions
        self.flavors = []
        for name, answer in (('_spec', lambda context, flavor, *_: flavor),
                             ('_count', self.count),
                             ('_explain', self.explain)):
            self.enterContext(mock.patch.object(
                self.endpoint, name, answer))

    def count(self, _context, flavor, *_args):
        self.flavors.append(flavor)
        self.now_s += 9
        return {'az': (1, 1)}

    def explain(self, *_args):
        self.now_s += 21
        return {}

    def chances(self, number, **values):
        return self.endpoint.placement_chances(
            nova_context.get_admin_context(), list(range(number)), 'p',
            **values)

    def explains(self, **values):
        return self.endpoint.explain(
            nova_context.get_admin_context(), 'f', 'p', 'u', **values)

    def refused(self, kind, call, *args):
        with self.assertRaises(messaging.ExpectedException) as caught:
            call(*args)
        self.assertIsInstance(caught.exception.exc_info[1], kind)
        return caught.exception.exc_info[1]

    def test_it_stops_when_nobody_waits_for_the_answer(self):
        exc = self.refused(exceptions.NoAnswer, self.chances, 50)
        self.assertIn('ask about fewer flavors', str(exc))
        self.assertEqual([0, 1, 2], self.flavors)
        self.assertEqual(2, len(self.chances(2, is_bounded=False)))

    def test_both_questions_are_of_one_account(self):
        self.explains()
        self.chances(1)
        self.chances(1)
        for call, *args in ((self.explains,), (self.chances, 1)):
            exc = self.refused(exceptions.TooManyQuestions, call, *args)
            # It has 30 - 21, + 0.9 - 9, + 0.9 - 9.
            self.assertEqual(72, exc.args[1])
        self.explains(is_bounded=False)
        self.now_s += 52
        self.chances(1)


if __name__ == '__main__':
    unittest.main()
