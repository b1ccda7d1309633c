# SPDX-License-Identifier: Apache-2.0

import datetime
import json
import types
import unittest
from unittest import mock

from nova_preempt.cloud import extra_specs
from nova_preempt_dashboard import notices


def server(specs=None, hints=None, metadata=None):
    return types.SimpleNamespace(
        flavor={'extra_specs': specs}, scheduler_hints=hints,
        metadata=metadata)


class TestPreemptible(unittest.TestCase):

    def test_flavors(self):
        for specs, answer in (
                (None, False), ({}, False),
                ({'preemptible:enabled': 'true'}, True),
                ({'preemptible:enabled': ' True'}, True),
                ({'preemptible:enabled': 'false'}, False),
                ({'blazar:preemptible': '1'}, True)):
            with self.subTest(specs=specs):
                self.assertEqual(answer, notices.is_preemptible(
                    server(specs)))

    def test_names_of_watcher(self):
        """Where [preemption]marks of nova.conf has them, too."""
        named = server({'lifecycle:preemptable': 'true'})
        flavor = types.SimpleNamespace(**named.flavor)
        # Horizon does not know the options of Nova.
        with mock.patch.object(extra_specs.cfg, 'CONF', object()):
            for marks, answer in ((), False), (['lifecycle'], True):
                self.assertEqual(answer, notices.is_preemptible(named, marks))
                self.assertEqual(answer, notices.is_preemptible_flavor(
                    flavor, marks))

    def test_hints(self):
        self.assertTrue(notices.is_preemptible(server(
            hints={'preemptible': 'true'})))
        self.assertTrue(notices.is_preemptible(server(
            hints={'preemptible': ['true']})))
        for value in ([], ['false', 'true'], 'no', ''):
            with self.subTest(value=value):
                self.assertFalse(notices.is_preemptible(server(
                    hints={'preemptible': value})))

    def test_no_flavor(self):
        found = server()
        found.flavor = None
        self.assertFalse(notices.is_preemptible(found))


class TestNotices(unittest.TestCase):

    def test_notice(self):
        found = notices.of(server(metadata={'preemption': json.dumps({
            'action': 'delete', 'deadline': '2026-01-01T00:00:00Z',
            'reason': 'create', 'preemption_id': 'a'})}))
        self.assertEqual(notices.Notice('delete', 'create', datetime.datetime(
            2026, 1, 1, tzinfo=datetime.timezone.utc)), found)

    def test_none(self):
        for metadata in (None, {}, {'other': 'a'}, {'preemption': ''}):
            with self.subTest(metadata=metadata):
                self.assertIsNone(notices.of(server(metadata=metadata)))

    def test_metadata_that_a_user_wrote(self):
        for text in ('x', '[]', '1', '{}', '"<script>"', json.dumps({
                'action': 'a', 'reason': 'b', 'deadline': 'soon'}),
                json.dumps({'action': 'a', 'reason': 'b', 'deadline': 1}),
                json.dumps({'action': 'a', 'reason': 'b',
                            'deadline': None})):
            with self.subTest(text=text):
                self.assertIsNone(notices.of(server(
                    metadata={'preemption': text})))


class TestRecommendations(unittest.TestCase):

    UNTIL = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc)

    def read(self, text, now=UNTIL - datetime.timedelta(seconds=1)):
        return notices.recommendation(server(metadata={
            'preemption_recommendation': text}), now)

    def test_recommendation(self):
        text = json.dumps({'reason': 'headroom',
                           'until': '2026-01-01T12:00:00Z'})
        self.assertEqual(('headroom', self.UNTIL), self.read(text))
        self.assertIsNone(self.read(text, self.UNTIL))

    def test_none(self):
        self.assertIsNone(notices.recommendation(server(), self.UNTIL))

    def test_metadata_that_a_user_wrote(self):
        for text in ('x', '[]', '{}', '{"reason": "a", "until": "soon"}',
                     '{"reason": "a", "until": ""}'):
            with self.subTest(text=text):
                self.assertIsNone(self.read(text))
