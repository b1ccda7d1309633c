# SPDX-License-Identifier: Apache-2.0
"""Sends the events that wait in the database to the webhooks of projects.

An event stays in the database until its receiver has accepted it, so that it
outlives this process. Several processes may send: each claims an event first.
An event may be sent twice, with the same id.
"""

import collections
import concurrent.futures
import datetime
import random
import ssl
import threading

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.backlog import secret_encryption
from nova_preempt.core import webhook_delivery
from nova_preempt.core import webhook_targets
from nova_preempt.db import connection
from nova_preempt.db import webhooks
from nova_preempt.webhook import http_post
from nova_preempt.webhook import target_check

LOG = logging.getLogger(__name__)

#: Calls at once, of all projects and of one. A project whose last call has
#: failed or was slow has one; if it was slow, only while there are few.
AT_ONCE = 32
AT_ONCE_PER_PROJECT = 4
AT_ONCE_SLOW = 16

#: Seconds after which a call is slow.
SLOW_S = 2

#: Seconds between two looks at the database if nothing happens, and at least.
POLL_S = 1
LEAST_POLL_S = 0.05

#: Seconds after which another process may send an event that was claimed.
CLAIM_S = 120

# Events that are read at once: those of AT_ONCE projects, whose calls may all
# be under way, and as many others.
_MOST_READ = 2 * AT_ONCE * AT_ONCE_PER_PROJECT

# Of the addresses of a host, how many are tried.
_MOST_ADDRESSES = 2

_TIMEOUTS = http_post.Timeouts()

_events = metrics.WEBHOOK_EVENTS.labels


class Sender:
    """Calls webhooks from threads of its own.

    :param conf: nova.conf.CONF
    :param database: a nova_preempt.db.Database
    :param clock: returns now, naive and UTC
    :param spread: returns a random number in [0, 1)
    :param resolve: see target_check.find()
    :param tls: an SSLContext of the module ssl; None for the system's
    """

    def __init__(self, conf, database, clock=timeutils.utcnow,
                 spread=random.random, resolve=target_check.resolve, tls=None,
                 timeouts=_TIMEOUTS):
        rules = target_check.load_rules(conf)
        self._find = lambda url: target_check.find(url, rules, resolve)
        self._cipher = secret_encryption.SecretCipher(conf.backlog)
        self._db = database
        self._clock = clock
        self._wait_s = lambda failures: webhook_delivery.retry_after_s(
            failures, spread())
        self._post = lambda *call: http_post.post(
            *call, tls or ssl.create_default_context(), timeouts)
        self._pool = concurrent.futures.ThreadPoolExecutor(
            AT_ONCE, thread_name_prefix='webhook')
        # {id of an event that is being sent: its project}
        self._calls = {}
        # {project: how long its last call took}
        self._took_s = {}
        self.wake = threading.Event()

    def run(self, stopped):
        """Send events until a threading.Event is set."""
        while not stopped.wait(LEAST_POLL_S):
            self.wake.clear()
            try:
                self.start_due()
            except connection.ERRORS as exc:
                LOG.warning('Waiting events of webhooks cannot be read: %s',
                            exc)
            self.wake.wait(POLL_S)
        self._pool.shutdown()

    def start_due(self):
        """Start to send the events that are due; return the calls' Futures."""
        now = self._clock()
        _events('dropped').inc(webhooks.delete_expired(self._db, now))
        metrics.WEBHOOK_WAITING.set(webhooks.count_waiting(self._db))
        busy, started = collections.Counter(list(self._calls.values())), []
        # Projects with the fewest calls first.
        for event, webhook in sorted(webhooks.due(
                self._db, now, AT_ONCE_PER_PROJECT, _MOST_READ),
                key=lambda item: busy[item[1].project_id]):
            if self._may_start(webhook, busy) and webhooks.claim(
                    self._db, event, now + datetime.timedelta(
                        seconds=CLAIM_S)):
                busy[event.project_id] += 1
                self._calls[event.id] = event.project_id
                started.append(self._pool.submit(self._send, event, webhook))
        return started

    def _may_start(self, webhook, busy):
        is_slow = self._took_s.get(webhook.project_id, 0) >= SLOW_S
        return busy.total() < (AT_ONCE_SLOW if is_slow else AT_ONCE) and (
            busy[webhook.project_id] < (
                1 if is_slow or webhook.failures else AT_ONCE_PER_PROJECT))

    def _send(self, event, webhook):
        try:
            begun = self._clock()
            error = self._error(event, webhook)
            self._took_s[event.project_id] = (
                self._clock() - begun).total_seconds()
            if error:
                LOG.info('The webhook of project %s failed: %s.',
                         event.project_id, error)
                _events('dropped').inc(webhooks.failed(
                    self._db, event, webhook, error, self._clock(),
                    self._wait_s))
            else:
                webhooks.delivered(self._db, event, self._clock())
            _events('failed' if error else 'delivered').inc()
        except Exception:
            # The event is sent again once its claim is over.
            LOG.exception('The result of a call of the webhook of project %s '
                          'is lost.', event.project_id)
        finally:
            self._calls.pop(event.id, None)
            self.wake.set()

    def _error(self, event, webhook):
        """Call a webhook; return why it failed, '' if it did not."""
        try:
            target, addresses = self._find(webhook.url)
            secret = self._cipher.unseal(webhook.project_id, webhook.sealed)
        except webhook_targets.Refused as exc:
            return f'its URL was refused: {exc}'
        except secret_encryption.CannotDecrypt:
            return 'its secret cannot be decrypted; set it again'
        body = event.body.encode()
        headers = webhook_delivery.headers(
            secret, event.id, body, int(self._clock().replace(
                tzinfo=datetime.timezone.utc).timestamp()))
        for address in addresses[:_MOST_ADDRESSES]:
            try:
                status = self._post(target, address, headers, body)
            except http_post.Failed as exc:
                error = str(exc)
            else:
                return '' if 200 <= status < 300 else f'it answered {status}'
        return error
