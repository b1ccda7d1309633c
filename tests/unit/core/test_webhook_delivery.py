# SPDX-License-Identifier: Apache-2.0
"""Tests of the body, the signature and the retries of webhooks."""

import datetime
import json
import pathlib
import unittest

import hypothesis
from hypothesis import strategies

from nova_preempt.core import webhook_delivery

SAMPLES = pathlib.Path(__file__).parents[3] / 'doc' / 'notification_samples'
NOW = datetime.datetime(2026, 11, 21, 20, 59, 20)
SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'


def sample(name):
    """Return (type, payload) of a notification."""
    found = json.loads((SAMPLES / f'{name}.json').read_text(encoding='utf-8'))
    return found['event_type'], found['payload']


class TestDescription(unittest.TestCase):

    def test_a_notice(self):
        self.assertEqual(('6f70656e737461636b20342065766572', {
            'preemption_id': '9b565b84-811f-4074-b4da-f876404a85f3',
            'server_id': 'f7614c58-2283-4512-9a74-e53867fd4136',
            'flavor': 'spot.medium', 'action': 'shelve', 'notice_s': 120,
            'deadline': '2026-11-21T21:01:20Z', 'restore': True}),
            webhook_delivery.describe(*sample('preemption-notice')))

    def test_an_end_has_its_status(self):
        event, payload = sample('preemption-end')
        _project, told = webhook_delivery.describe(event, payload)
        self.assertEqual(payload['status'], told['status'])

    def test_a_recommendation(self):
        self.assertEqual(('6f70656e737461636b20342065766572', {
            'server_id': 'f7614c58-2283-4512-9a74-e53867fd4136',
            'flavor': 'spot.medium', 'reason': 'reservation',
            'until': '2026-11-21T21:59:20Z'}),
            webhook_delivery.describe(*sample('preemption-recommendation')))

    def test_a_reservation(self):
        self.assertEqual(('c3d1f0a95b7e4c26a8e4d90b1f6372e5', {
            'reservation_id': '1d9d3b3e-4b0e-4f43-93e5-9c2e7c8f1a52',
            'name': 'conference', 'status': 'active', 'quantity': 2,
            'start': '2026-11-21T20:59:20Z', 'end': '2026-11-22T04:59:20Z',
            'end_action': 'shelve'}),
            webhook_delivery.describe(*sample('reservation-start')))

    def test_nothing_of_others(self):
        """No project learns of other projects, users, hosts and reasons."""
        told = 0
        for path in SAMPLES.glob('*.json'):
            event, payload = sample(path.stem)
            found = webhook_delivery.describe(event, payload)
            if found is None:
                continue
            told += 1
            text = json.dumps(found[1])
            self.assertNotIn('host-', text)
            if event == 'preemption.recommendation':
                # Its server is the project's own, its reason is no text.
                continue
            for hidden in (payload.get('request_id') if 'victim' in payload
                           else None, payload.get('reason'),
                           *payload.get('asked_by', {}).values(),
                           *payload.get('server', {}).values()):
                if isinstance(hidden, str) and hidden:
                    self.assertNotIn(hidden, text)
        self.assertEqual(10, told)

    def test_nobody_is_told_of_others(self):
        for name in ('preemption-start', 'backlog-active'):
            self.assertIsNone(webhook_delivery.describe(*sample(name)))


class TestExpiry(unittest.TestCase):

    def test_a_notice_ends_with_its_deadline(self):
        for deadline, after_s in (('2026-11-21T21:01:20Z', 120),
                                  ('2026-11-22T21:01:20Z', 3600),
                                  (None, 3600)):
            self.assertEqual(
                NOW + datetime.timedelta(seconds=after_s),
                webhook_delivery.expiry('preemption.notice',
                                        {'deadline': deadline}, NOW))

    def test_a_recommendation_is_of_no_use_after_its_end(self):
        for until, after_s in (('2026-11-21T21:01:20Z', 120),
                               ('2026-11-21T23:00:00Z', 3600)):
            self.assertEqual(
                NOW + datetime.timedelta(seconds=after_s),
                webhook_delivery.expiry('preemption.recommendation',
                                        {'until': until}, NOW))

    def test_other_events(self):
        self.assertEqual(
            NOW + datetime.timedelta(seconds=3600), webhook_delivery.expiry(
                'preemption.end', {'deadline': '2026-11-21T21:01:20Z'}, NOW))


class TestRetries(unittest.TestCase):

    def test_waits_double(self):
        self.assertEqual(
            [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300],
            [webhook_delivery.retry_after_s(failures, 0)
             for failures in range(1, 12)])
        self.assertEqual(300, webhook_delivery.retry_after_s(10 ** 9, 0))

    @hypothesis.given(strategies.integers(1, 10 ** 6),
                      strategies.floats(0, 1, exclude_max=True))
    def test_chance_takes_up_to_half(self, failures, spread):
        longest = webhook_delivery.retry_after_s(failures, 0)
        found = webhook_delivery.retry_after_s(failures, spread)
        self.assertTrue(longest / 2 <= found <= longest)


class TestSignature(unittest.TestCase):

    def test_the_example_of_the_specification(self):
        self.assertEqual({
            'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
            'webhook-timestamp': '1614265330',
            'webhook-signature':
                'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='},
            webhook_delivery.headers(
                SECRET, 'msg_p5jXN8AQM9LWM0D4loKWxJek',
                b'{"test": 2432232314}', 1614265330))

    def test_all_of_it_is_signed(self):
        def signature(secret=SECRET, delivery_id='a', body=b'b', now_s=1):
            return webhook_delivery.headers(secret, delivery_id, body, now_s)[
                'webhook-signature']

        self.assertEqual(5, len({
            signature(), signature(delivery_id='b'), signature(body=b'c'),
            signature(now_s=2),
            signature(secret=webhook_delivery.make_secret(b'k' * 32))}))

    def test_secrets(self):
        for size in (24, 32, 64):
            key = bytes(range(size))
            self.assertEqual(key, webhook_delivery.key_of(
                webhook_delivery.make_secret(key)))
        for secret in ('', 'whsec_', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
                       'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS',
                       'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa!!',
                       webhook_delivery.make_secret(b'k' * 23),
                       webhook_delivery.make_secret(b'k' * 65), 'whsec_ü'):
            with self.subTest(secret=secret), self.assertRaises(
                    ValueError) as caught:
                webhook_delivery.key_of(secret)
            self.assertNotIn('MfKQ', str(caught.exception))
