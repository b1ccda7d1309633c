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
"""The documented samples of notifications are what is really sent.

OS_WRITE_SAMPLES=1 writes them anew.
"""

import datetime
import json
import os
import pathlib
from unittest import mock

from oslo_utils import fixture as utils_fixture
import testtools

from nova_preempt import events
from nova_preempt.db import api as db_api

SAMPLES = (pathlib.Path(__file__).parents[2] / 'doc'
           / 'notification_samples')
NOW = datetime.datetime(2026, 11, 21, 20, 59, 20)

VICTIM = db_api.Victim(
    server_uuid='f7614c58-2283-4512-9a74-e53867fd4136',
    project_id='6f70656e737461636b20342065766572',
    user_id='0a2b9d1e64f7438fb15c7de20639a874',
    flavor='spot.medium', cost_us=660000000, action='shelve', notice_s=120,
    restore=True)
DECISION = db_api.Decision(
    uuid='9b565b84-811f-4074-b4da-f876404a85f3',
    server_uuid='85c95c04-94be-4630-ab8f-a5ae68aa56c0',
    project_id='c3d1f0a95b7e4c26a8e4d90b1f6372e5',
    request_id='req-5a989aa9-47f6-405e-9b9a-8c922b481693',
    operation='create', host='host-B', victims=(VICTIM,))


class TestSamples(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(utils_fixture.TimeFixture(NOW))
        with mock.patch.object(events, 'messaging') as messaging:
            self.events = events.Events(mock.Mock(), 'controller-1')
        publisher = messaging.Notifier.call_args.kwargs['publisher_id']
        self.sent = []
        for priority in ('info', 'error'):
            def emit(_context, event_type, payload, priority=priority):
                self.sent.append({
                    'event_type': event_type, 'priority': priority.upper(),
                    'publisher_id': publisher, 'payload': payload})

            setattr(messaging.Notifier.return_value, priority, emit)

    def assert_sample(self):
        message, = self.sent
        path = SAMPLES / (message['event_type'].replace('.', '-') + '.json')
        if os.environ.get('OS_WRITE_SAMPLES'):
            path.write_text(json.dumps(message, indent=4) + '\n')
        self.assertEqual(json.loads(path.read_text()), message)

    def test_start(self):
        self.events.start(DECISION)
        self.assert_sample()

    def test_notice(self):
        deadline = NOW + datetime.timedelta(seconds=VICTIM.notice_s)
        self.events.notice(DECISION, db_api.Victim(
            **{**vars(VICTIM), 'deadline': deadline}))
        self.assert_sample()

    def test_end(self):
        self.events.end(DECISION, VICTIM, db_api.SHELVED)
        self.assert_sample()

    def test_error(self):
        self.events.error(DECISION, VICTIM, 'it did not end in time')
        self.assert_sample()

    def test_restored(self):
        self.events.restored(DECISION, VICTIM)
        self.assert_sample()

    def test_no_other_samples(self):
        self.assertEqual(
            ['end', 'error', 'notice', 'restored', 'start'],
            sorted(path.stem.removeprefix('preemption-')
                   for path in SAMPLES.iterdir()))
