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
        self.assertIn('No metrics of this process', logger.output)
        url = f'http://127.0.0.1:{server.server_port}/metrics'
        with urllib.request.urlopen(url) as answer:
            self.assertIn(b'nova_preempt_refusals_total', answer.read())
