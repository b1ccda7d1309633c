# SPDX-License-Identifier: Apache-2.0
"""The documented samples equal the sent notifications.

OS_WRITE_SAMPLES=1 writes them anew.
"""

import dataclasses
import datetime
import json
import os
import pathlib
import threading
from unittest import mock

from oslo_utils import fixture as utils_fixture
import testtools

from nova_preempt.backlog import transition_recorder
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import decisions
from nova_preempt.handover import preemption_notifications
from nova_preempt.reservation import reservation_engine_tasks

SAMPLES = (pathlib.Path(__file__).parents[2] / 'doc'
           / 'notification_samples')
NOW = datetime.datetime(2026, 11, 21, 20, 59, 20)

VICTIM = decisions.Victim(
    server_uuid='f7614c58-2283-4512-9a74-e53867fd4136',
    project_id='6f70656e737461636b20342065766572',
    user_id='0a2b9d1e64f7438fb15c7de20639a874',
    flavor='spot.medium', cost_us=660000000, action='shelve', notice_s=120,
    restore=True)
DECISION = decisions.Decision(
    uuid='9b565b84-811f-4074-b4da-f876404a85f3',
    server_uuid='85c95c04-94be-4630-ab8f-a5ae68aa56c0',
    project_id='c3d1f0a95b7e4c26a8e4d90b1f6372e5',
    request_id='req-5a989aa9-47f6-405e-9b9a-8c922b481693',
    operation='create', host='host-B', victims=(VICTIM,),
    record={'asked_by': {
        'user_id': '5d0c7a1b3e9f4c628d4ab17f60e2935c',
        'project_id': 'c3d1f0a95b7e4c26a8e4d90b1f6372e5',
        'request_id': 'req-5a989aa9-47f6-405e-9b9a-8c922b481693',
        'roles': ['member', 'reader'], 'is_admin': False}})


RESERVATION = reservation_model.Reservation(
    uuid='1d9d3b3e-4b0e-4f43-93e5-9c2e7c8f1a52', name='conference',
    project_id='c3d1f0a95b7e4c26a8e4d90b1f6372e5',
    user_id='0a2b9d1e64f7438fb15c7de20639a874', quantity=2, duration_s=28800,
    window_start=NOW, start_at=NOW, end_at=NOW + datetime.timedelta(hours=8),
    end_action='shelve', before_end_s=3600, status=reservation_model.ACTIVE,
    hosts=tuple(reservation_model.Assignment(
        host, NOW, NOW + datetime.timedelta(hours=8), reservation_model.READY)
        for host in ('host-A', 'host-B')))


REQUEST = backlog_model.Request(
    uuid='4e1c9a77-0d5b-4b0e-8a36-2f9d6c81b5e0', name='render',
    project_id='c3d1f0a95b7e4c26a8e4d90b1f6372e5',
    user_id='0a2b9d1e64f7438fb15c7de20639a874', trust_id='a secret', body={},
    compute_version='2.90', count=2, least_count=2, alternatives=(),
    created_at=NOW, updated_at=NOW, class_name='gold')


class SamplesTestCase(testtools.TestCase):

    make_events = None

    def setUp(self):
        super().setUp()
        self.useFixture(utils_fixture.TimeFixture(NOW))
        with mock.patch.object(preemption_notifications,
                               'messaging') as messaging:
            self.events = self.make_events(mock.Mock(), 'controller-1')
        publisher = messaging.Notifier.call_args.kwargs['publisher_id']
        self.sent = []
        for priority in ('info', 'error'):
            def emit(_context, event_type, payload, priority=priority):
                self.sent.append({
                    'event_type': event_type, 'priority': priority.upper(),
                    'publisher_id': publisher, 'payload': payload})

            setattr(messaging.Notifier.return_value, priority, emit)

    def assert_sample(self):
        self.events._notifier._pool.shutdown()
        message, = self.sent
        path = SAMPLES / (message['event_type'].replace('.', '-') + '.json')
        if os.environ.get('OS_WRITE_SAMPLES'):
            path.write_text(json.dumps(message, indent=4) + '\n')
        self.assertEqual(json.loads(path.read_text()), message)


class TestPreemptions(SamplesTestCase):

    make_events = preemption_notifications.Notifications

    def test_start(self):
        self.events.start(DECISION)
        self.assert_sample()

    def test_notice(self):
        deadline = NOW + datetime.timedelta(seconds=VICTIM.notice_s)
        self.events.notice(DECISION, decisions.Victim(
            **{**vars(VICTIM), 'deadline': deadline}))
        self.assert_sample()

    def test_end(self):
        self.events.end(DECISION, VICTIM, decisions.SHELVED)
        self.assert_sample()

    def test_recommendation(self):
        self.events.recommendation(
            mock.Mock(uuid=VICTIM.server_uuid, project_id=VICTIM.project_id,
                      user_id=VICTIM.user_id, flavor=VICTIM.flavor,
                      host='host-B'),
            'reservation', NOW + datetime.timedelta(hours=1))
        self.assert_sample()

    def test_error(self):
        self.events.error(DECISION, VICTIM, 'it was not evicted in time')
        self.assert_sample()

    def test_restored(self):
        self.events.restored(DECISION, VICTIM)
        self.assert_sample()


class TestReservations(SamplesTestCase):

    make_events = reservation_engine_tasks.ReservationNotifications

    def test_start(self):
        self.events.start(RESERVATION, 0.0)
        self.assert_sample()

    def test_before_end(self):
        self.events.before_end(RESERVATION)
        self.assert_sample()

    def test_end(self):
        self.events.end(dataclasses.replace(
            RESERVATION, status=reservation_model.ENDED), 0.0)
        self.assert_sample()

    def test_degraded(self):
        reason = 'the compute service of host host-B is down'
        lost = dataclasses.replace(
            RESERVATION.hosts[1], status=reservation_model.LOST, reason=reason)
        self.events.degraded(dataclasses.replace(
            RESERVATION, status=reservation_model.DEGRADED,
            reason=f'1 of 2 hosts are missing: {reason}',
            hosts=(RESERVATION.hosts[0], lost)))
        self.assert_sample()

    def test_error(self):
        self.events.error(dataclasses.replace(
            RESERVATION, status=reservation_model.ERROR,
            reason='servers were not removed within 600 s: '
                   '85c95c04-94be-4630-ab8f-a5ae68aa56c0 (error) on host-A'))
        self.assert_sample()


class TestBacklog(SamplesTestCase):

    make_events = transition_recorder.RequestNotifications

    def test_active(self):
        self.events.changed(dataclasses.replace(
            REQUEST, state=backlog_model.ACTIVE, servers=tuple(
                backlog_model.OwnServer(uuid, 1, backlog_model.RUNNING, NOW)
                for uuid in (DECISION.server_uuid, VICTIM.server_uuid))),
            backlog_model.PLACING)
        self.assert_sample()

    def test_failed(self):
        self.events.changed(dataclasses.replace(
            REQUEST, state=backlog_model.FAILED,
            reason='Image 7d9f could not be found.'), backlog_model.PLACING)
        self.assert_sample()


class TestNotifier(testtools.TestCase):

    def test_callers_do_not_wait_for_a_bus_that_hangs(self):
        with mock.patch.object(preemption_notifications,
                               'messaging') as messaging:
            notifier = preemption_notifications.Notifier(mock.Mock(),
                                                         'controller-1')
        is_back = threading.Event()
        sent = []

        def emit(_context, event, _payload):
            is_back.wait(60)
            sent.append(event)

        messaging.Notifier.return_value.info = emit
        for event in 'abc':
            notifier.send(event, {})
        self.assertEqual([], sent)
        is_back.set()
        notifier._pool.shutdown()
        self.assertEqual(['a', 'b', 'c'], sent)

    def test_a_bus_that_hangs_costs_notifications_and_not_the_memory(self):
        with mock.patch.object(preemption_notifications, 'MOST_WAITING', 2), (
                mock.patch.object(preemption_notifications,
                                  'messaging')) as messaging:
            notifier = preemption_notifications.Notifier(mock.Mock(),
                                                         'controller-1')
        is_back = threading.Event()
        sent = []

        def emit(_context, event, _payload):
            is_back.wait(60)
            sent.append(event)

        messaging.Notifier.return_value.info = emit
        with self.assertLogs(preemption_notifications.LOG.name,
                             'WARNING') as logged:
            for event in 'abc':
                notifier.send(event, {})
        self.assertIn('c was dropped', logged.output[0])
        is_back.set()
        notifier._pool.shutdown()
        self.assertEqual(['a', 'b'], sent)
        self.assertTrue(notifier._free.acquire(blocking=False))


class TestAll(testtools.TestCase):

    def test_no_other_samples(self):
        self.assertEqual(
            ['backlog-active', 'backlog-failed',
             *(f'preemption-{event}' for event in (
                 'end', 'error', 'notice', 'recommendation', 'restored',
                 'start')),
             *(f'reservation-{event}' for event in (
                 'before_end', 'degraded', 'end', 'error', 'start'))],
            sorted(path.stem for path in SAMPLES.iterdir()))
