# SPDX-License-Identifier: Apache-2.0
"""Sending of events, to real receivers, with all that goes wrong."""

import collections
import concurrent.futures
import datetime
import threading
import time
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.core import webhook_delivery
from nova_preempt.db import webhooks
from nova_preempt.webhook import http_post
from nova_preempt.webhook import sender
from tests.unit.webhook import base
from tests.unit.webhook import receivers


class TestSending(base.WebhookTestCase):

    def test_metrics(self):
        def read():
            return [metrics.WEBHOOK_WAITING._value.get(), *(
                metrics.WEBHOOK_EVENTS.labels(result)._value.get()
                for result in ('delivered', 'failed', 'dropped'))]

        before = read()
        receiver = self.receiver(answer=receivers.status(500))
        self.hook(receiver)
        self.hook(receiver, 'q')
        self.add('a', 'b')
        self.add('c', project_id='q', expires_s=30)
        found = self.sender()
        self.assertEqual(3, self.send(found))
        receiver.answer = receivers.accept
        self.pass_s(60)
        # One at a time after a failure. Those that wait are counted first.
        for waiting, sent in ((2, 1), (1, 1), (0, 0)):
            self.assertEqual(sent, self.send(found))
            self.assertEqual(waiting, read()[0])
        self.assertEqual([2, 3, 1], [
            now - then for now, then in zip(read(), before, strict=True)][1:])

    def test_an_event_is_sent_once(self):
        receiver = self.receiver()
        self.hook(receiver)
        self.add('a')
        found = self.sender()
        self.assertEqual((1, 0), (self.send(found), self.send(found)))
        (path, headers, body), = receiver.calls
        self.assertEqual(('/hook', b'{"name": "a"}'), (path, body))
        self.assertEqual(0, self.waiting())
        self.assertEqual((base.NOW, 0, ''), (
            self.stored().delivered_at, self.stored().failures,
            self.stored().last_error))
        expected = webhook_delivery.headers(
            base.SECRET, headers['webhook-id'], body, 1795176000)
        self.assertEqual(expected, {name: headers[name] for name in expected})

    def test_failures_are_retried_later_and_later(self):
        receiver = self.receiver(answer=receivers.status(500))
        self.hook(receiver)
        self.add('a')
        found = self.sender()
        waits = []
        dropped = metrics.WEBHOOK_EVENTS.labels('dropped')._value.get()
        while self.send(found):
            wait = self.stored().retry_at - self.now
            waits.append(wait.total_seconds())
            self.now += wait - datetime.timedelta(seconds=1)
            self.assertEqual(0, self.send(found))
            self.pass_s(1)
        self.assertEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300], waits)
        self.assertEqual(0, self.waiting())
        self.assertEqual(dropped + 1, metrics.WEBHOOK_EVENTS.labels(
            'dropped')._value.get())
        self.assertEqual(webhook_delivery.MAX_ATTEMPTS, len(receiver.calls))
        # All with the same id, by which receivers drop duplicates.
        self.assertEqual(1, len({headers['webhook-id'] for
                                 _path, headers, _body in receiver.calls}))
        self.assertEqual((1, 10, 'it answered 500'), (
            self.stored().dropped, self.stored().failures,
            self.stored().last_error))

    def test_a_failure_that_passes(self):
        receiver = self.receiver(answer=receivers.status(503))
        self.hook(receiver)
        self.add('a')
        found = self.sender()
        self.send(found)
        receiver.answer = receivers.accept
        self.pass_s(1)
        self.assertEqual(1, self.send(found))
        self.assertEqual((0, '', 0), (
            self.stored().failures, self.stored().last_error,
            self.waiting()))

    def test_a_receiver_that_fails_is_called_once_at_a_time(self):
        receiver = self.receiver(answer=receivers.status(500))
        self.hook(receiver)
        self.add(*range(10))
        found = self.sender()
        self.assertEqual(sender.AT_ONCE_PER_PROJECT, self.send(found))
        # These were one failure.
        self.assertEqual(1, self.stored().failures)
        self.assertEqual(0, self.send(found))
        self.pass_s(1)
        self.assertEqual(1, self.send(found))
        self.assertEqual(2, self.stored().failures)

    def test_events_that_are_of_no_use_any_more(self):
        receiver = self.receiver()
        self.hook(receiver)
        self.add('a', 'b', expires_s=120)
        self.add('c')
        self.pass_s(120)
        self.assertEqual(1, self.send())
        self.assertEqual([{'name': 'c'}], receiver.events())
        self.assertEqual(2, self.stored().dropped)

    def test_redirects_and_other_answers_are_failures(self):
        for code in (301, 307, 400, 404, 410, 429):
            receiver = self.receiver(answer=receivers.status(
                code, Location='http://169.254.169.254/'))
            self.hook(receiver)
            self.add(code)
            self.send()
            self.assertEqual(f'it answered {code}', self.stored().last_error)
            webhooks.delete(self.db, 'p')

    def test_the_second_address_of_a_host(self):
        receiver = self.receiver()
        self.hook(receiver)
        self.add('a')
        # Nobody listens at the first one.
        self.send(self.sender(['127.9.9.9', '127.0.0.1']))
        self.assertEqual(1, len(receiver.calls))

    def test_a_lost_key(self):
        receiver = self.receiver()
        self.hook(receiver)
        self.add('a')
        self.keys.write_text('')
        self.send()
        self.assertIn('secret cannot be decrypted', self.stored().last_error)
        self.assertEqual([], receiver.calls)

    def test_secrets_and_urls_are_not_logged(self):
        receiver = self.receiver(answer=receivers.status(500))
        self.hook(f'{receiver.url}/hunter2')
        self.add('a')
        with mock.patch.object(sender, 'LOG') as log:
            self.send()
        self.assertEqual(1, log.info.call_count)
        for text in ('hunter2', base.SECRET):
            self.assertNotIn(text, str(log.mock_calls))


class TestAddresses(base.WebhookTestCase):

    def test_refused_at_each_delivery(self):
        receiver = self.receiver()
        self.hook(receiver)
        for address in ('10.0.0.1', '169.254.169.254', '::1',
                        '::ffff:127.0.0.1', '64:ff9b::7f00:1'):
            self.add(address)
            found = self.sender(['127.0.0.1', address])
            self.send(found)
            self.assertEqual('its URL was refused: its address is not public',
                             self.stored().last_error)
            self.pass_s(3600)
        self.assertEqual([], receiver.calls)

    def test_a_name_whose_address_changes(self):
        """The address that was checked is called, not that of a new query."""
        receiver = self.receiver()
        self.hook(receiver)
        self.add('a')
        answers = [['127.0.0.1'], ['169.254.169.254']]
        self.send(self.sender(resolve=lambda *_name: answers.pop(0)))
        self.assertEqual(1, len(receiver.calls))
        self.assertEqual([['169.254.169.254']], answers)
        # The name and not the address is that of the certificate.
        self.assertEqual(f'{receivers.NAME}:{receiver.port}',
                         receiver.calls[0][1]['Host'])

    def test_names_without_address(self):
        self.hook(self.receiver())
        self.add('a')
        self.send(self.sender(resolve=mock.Mock(side_effect=OSError)))
        self.assertIn('cannot be resolved', self.stored().last_error)

    def test_rules_that_have_become_stricter(self):
        receiver = self.receiver()
        self.hook(receiver)
        self.add('a')
        self.conf.set_override('webhook_targets', ['https:443'],
                               'preemption_api')
        self.send()
        self.assertIn('allows https at port 443', self.stored().last_error)

    def test_an_invalid_option(self):
        self.conf.set_override('webhook_targets', ['443'], 'preemption_api')
        with self.assertRaisesRegex(exceptions.InvalidConfiguration,
                                    "webhook_targets: '443' is neither"):
            self.sender()


class TestLoad(base.WebhookTestCase):

    def setUp(self):
        super().setUp()
        self.gate, self.started = threading.Event(), []
        self.addCleanup(self.gate.set)
        self.gated = self.receiver(answer=lambda handler: (
            self.gate.wait(10), receivers.accept(handler)))

    def test_many_evictions(self):
        """Many evictions fill a bounded queue, and delay no one."""
        receiver, other = self.receiver(), self.receiver()
        self.hook(receiver)
        self.hook(other, 'q')
        with mock.patch.object(webhooks, 'MOST_WAITING', 20):
            self.add(*range(100))
        self.assertEqual((20, 80), (self.waiting(), self.stored().dropped))
        self.add('q', project_id='q')
        found = self.sender()
        self.assertEqual(5, self.send(found))
        self.assertEqual(1, len(other.calls))
        while self.send(found):
            pass
        self.assertEqual((20, 0), (len(receiver.calls), self.waiting()))

    def test_receivers_that_hang_delay_no_one(self):
        over = threading.Event()
        self.addCleanup(over.set)
        hanging = self.receiver(answer=lambda handler: (
            over.wait(20), receivers.status(500)(handler)))
        well = self.receiver()
        for number in range(20):
            self.hook(hanging, f'p{number}')
            self.add(1, 2, project_id=f'p{number}')
        found = self.sender(timeouts=http_post.Timeouts(5, 20, 20))
        # The first time they take what there is.
        started = found.start_due()
        self.assertEqual(sender.AT_ONCE, len(started))
        over.set()
        concurrent.futures.wait(started)
        over.clear()
        self.pass_s(1)
        self.hook(well, 'q')
        self.add(*range(4), project_id='q')
        # Projects take turns, and those that have failed have one call.
        started = found.start_due()
        self.assertEqual(20 + 4, len(started))
        for _ in range(1000):
            if len(well.calls) == 4:
                break
            time.sleep(0.01)
        self.assertEqual(4, len(well.calls))
        over.set()
        concurrent.futures.wait(started)

    def wait(self, projects, events):
        """Add events of projects whose receiver waits for the gate."""
        for project_id in projects:
            self.hook(self.gated, project_id)
            self.add(*range(events), project_id=project_id)
        return self.sender(timeouts=http_post.Timeouts(5, 20, 20))

    def start(self, found):
        """Start what is due; return {project: how many calls it has}."""
        self.started += found.start_due()
        return collections.Counter(found._calls.values())

    def end(self, took_s=0):
        self.pass_s(took_s)
        self.gate.set()
        concurrent.futures.wait(self.started)
        self.gate.clear()

    def test_at_once(self):
        found = self.wait(map(str, range(12)), 6)
        calls = self.start(found)
        self.assertEqual(sender.AT_ONCE, calls.total())
        self.assertEqual(calls, self.start(found))
        self.assertLessEqual(max(calls.values()), sender.AT_ONCE_PER_PROJECT)
        self.end()

    def test_receivers_that_accept_slowly_leave_calls_to_others(self):
        found = self.wait('abcdefgh', 30)
        self.assertEqual(sender.AT_ONCE, self.start(found).total())
        self.end(took_s=sender.SLOW_S)
        calls = self.start(found)
        self.assertEqual(dict.fromkeys('abcdefgh', 1), calls)
        # They have more calls once they have been quick.
        self.end()
        self.assertEqual(sender.AT_ONCE, self.start(found).total())
        self.end()

    def test_many_receivers_that_accept_slowly(self):
        found = self.wait(map(str, range(sender.AT_ONCE)), 3)
        self.assertEqual(sender.AT_ONCE, self.start(found).total())
        self.end(took_s=sender.SLOW_S)
        self.assertEqual(sender.AT_ONCE_SLOW, self.start(found).total())
        self.wait('q', 9)
        self.assertEqual(sender.AT_ONCE_PER_PROJECT, self.start(found)['q'])
        self.end()

    def test_the_project_with_the_fewest_calls_is_next(self):
        found = self.wait('abcdefgh', 12)
        self.start(found)
        self.pass_s(1)
        self.wait('q', 1)
        found._calls.popitem()
        self.assertEqual(1, self.start(found)['q'])
        self.end()


class TestCrashes(base.WebhookTestCase):

    def test_killed_between_the_call_and_its_result(self):
        receiver = self.receiver()
        self.hook(receiver)
        self.add('a')
        with (mock.patch.object(webhooks, 'delivered',
                                side_effect=SystemExit),
              self.assertRaises(SystemExit)):
            self.send()
        self.assertEqual((1, 1), (len(receiver.calls), self.waiting()))
        other = self.sender()
        self.assertEqual(0, self.send(other))
        self.pass_s(sender.CLAIM_S)
        self.assertEqual(1, self.send(other))
        first, second = (headers['webhook-id']
                         for _path, headers, _body in receiver.calls)
        self.assertEqual(first, second)
        self.assertEqual(0, self.waiting())

    def test_a_database_that_is_away_for_the_result(self):
        self.hook(self.receiver())
        self.add('a')
        found = self.sender()
        with mock.patch.object(webhooks, 'delivered',
                               side_effect=db_exc.DBError):
            self.send(found)
        self.assertEqual({}, found._calls)
        self.pass_s(sender.CLAIM_S)
        self.assertEqual(1, self.send(found))
        self.assertEqual(0, self.waiting())

    def test_two_senders(self):
        receiver = self.receiver()
        self.hook(receiver)
        self.add(*range(40))
        started, threads = [], []
        for found in (self.sender(), self.sender()):
            def run(found=found):
                while self.waiting():
                    started.append(self.send(found))

            threads.append(threading.Thread(target=run))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(40, sum(started))
        self.assertEqual(sorted(range(40)), sorted(
            event['name'] for event in receiver.events()))

    def test_a_claim_is_had_by_one(self):
        self.hook(self.receiver())
        self.add('a')
        (event, _webhook), = webhooks.due(self.db, self.now, 4, 4)
        self.assertEqual([True, False], [
            webhooks.claim(self.db, event, base.after(120))
            for _ in range(2)])


class TestDeletedProjects(base.WebhookTestCase):

    def test_events_go_with_the_webhook(self):
        receiver = self.receiver()
        self.hook(receiver)
        self.add('a', 'b')
        self.assertTrue(webhooks.delete(self.db, 'p'))
        self.assertFalse(webhooks.delete(self.db, 'p'))
        self.assertEqual((0, 0), (self.send(), self.waiting()))

    def test_deleted_during_a_call(self):
        receiver = self.receiver(answer=lambda handler: (
            webhooks.delete(self.db, 'p'), receivers.status(500)(handler)))
        self.hook(receiver)
        self.add('a')
        self.assertEqual(1, self.send())
        self.assertIsNone(self.stored())
        self.assertEqual(0, self.waiting())

    def test_replaced_during_a_call(self):
        """A failure of the former URL does not count."""
        well = self.receiver()

        def replace(handler):
            self.pass_s(1)
            self.hook(well)
            receivers.status(500)(handler)

        self.hook(self.receiver(answer=replace))
        self.add('a')
        found = self.sender()
        self.send(found)
        self.assertEqual(0, self.stored().failures)
        self.pass_s(1)
        self.send(found)
        self.assertEqual(1, len(well.calls))

    def test_events_without_webhook_expire(self):
        self.add('a')
        self.assertEqual((0, 1), (self.send(), self.waiting()))
        self.pass_s(3600)
        self.assertEqual((0, 0), (self.send(), self.waiting()))


class TestRun(base.WebhookTestCase):

    def test_until_it_is_stopped(self):
        receiver = self.receiver()
        self.hook(receiver)
        found = self.sender()
        stopped = threading.Event()
        thread = threading.Thread(target=found.run, args=(stopped,))
        with mock.patch.object(webhooks, 'delete_expired',
                               side_effect=[db_exc.DBError, *[0] * 1000]):
            thread.start()
            self.add('a', 'b')
            found.wake.set()
            for _ in range(1000):
                if len(receiver.calls) == 2:
                    break
                time.sleep(0.01)
            stopped.set()
            found.wake.set()
            thread.join(20)
        self.assertFalse(thread.is_alive())
        self.assertEqual(2, len(receiver.calls))
        self.assertEqual(0, self.waiting())
