# SPDX-License-Identifier: Apache-2.0
"""The endpoint of the metrics."""

import urllib.request

import fixtures
import testtools

from nova_preempt import metrics


class TestServe(testtools.TestCase):

    def test_none(self):
        self.assertIsNone(metrics.serve(0, '127.0.0.1'))

    def test_one_process_has_the_port(self):
        logger = self.useFixture(fixtures.FakeLogger())
        # With port 0 the system chooses one; serve() takes it for none.
        server, thread = metrics.prometheus_client.start_http_server(
            0, '127.0.0.1')
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.assertIsNone(metrics.serve(server.server_port, '127.0.0.1'))
        self.assertIn('This process serves no metrics', logger.output)
        url = f'http://127.0.0.1:{server.server_port}/metrics'
        with urllib.request.urlopen(url) as answer:
            self.assertIn(b'nova_preempt_refusals_total', answer.read())
