# SPDX-License-Identifier: Apache-2.0

import unittest
from unittest import mock

import requests

from nova_preempt_dashboard import http_adapter


class TestAdapter(unittest.TestCase):

    def setUp(self):
        self.session = requests.Session()
        self.session.mount('http://', http_adapter.Adapter())
        patch = mock.patch.object(
            requests.adapters.HTTPAdapter, 'send', autospec=True,
            side_effect=self.answer)
        patch.start()
        self.addCleanup(patch.stop)
        self.error = requests.ReadTimeout('40 s')
        self.sent = []

    def answer(self, adapter, request, **kwargs):
        self.sent.append(request.url)
        raise self.error

    def get(self, path):
        self.assertRaises(type(self.error), self.session.get,
                          f'http://cloud{path}')

    def test_a_silent_service_is_not_called_again(self):
        self.get('/preemption/v1/hosts')
        with self.assertRaisesRegex(requests.Timeout, 'not answered before'):
            self.session.get('http://cloud/preemption/v1/energy')
        self.assertEqual(['http://cloud/preemption/v1/hosts'], self.sent)

    def test_other_services_are_called(self):
        for path in ('/preemption/v1/hosts', '/compute/v2.1/servers'):
            self.get(path)
        self.get(':8774/v2.1')
        self.assertEqual(3, len(self.sent))

    def test_calls_follow_a_refused_connection(self):
        self.error = requests.ConnectionError('refused')
        self.get('/preemption/v1/hosts')
        self.get('/preemption/v1/hosts')
        self.assertEqual(2, len(self.sent))
