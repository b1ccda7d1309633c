# SPDX-License-Identifier: Apache-2.0
"""Stores notifications from the message bus as events of webhooks."""

import json
import time

from oslo_log import log as logging
import oslo_messaging as messaging
from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.core import webhook_delivery
from nova_preempt.db import connection
from nova_preempt.db import webhooks

LOG = logging.getLogger(__name__)

#: The queue of its own, so that other consumers get all notifications, too.
POOL = 'nova-preempt-webhook'

#: Notifications that are stored at once. Each takes a connection to the
#: database, which calls of webhooks need, too.
THREADS = 4

# Seconds before a notification is put back that could not be stored.
_REQUEUE_S = 1


class Endpoint:
    """Receives notifications of nova_preempt.

    A notification is acknowledged once it is stored, or is of no use.

    :param database: a nova_preempt.db.Database
    :param wake: called after an event was stored
    :param clock: returns now, naive and UTC
    :param sleep: waits for a number of seconds
    """

    filter_rule = messaging.NotificationFilter(
        publisher_id='^nova-preempt:', event_type=r'^(preemption|reservation)')

    def __init__(self, database, wake, clock=timeutils.utcnow,
                 sleep=time.sleep):
        self._db = database
        self._wake = wake
        self._clock = clock
        self._sleep = sleep

    def info(self, _context, _publisher, event_type, payload, metadata):
        """Store an event for the webhook of its project, if it has one."""
        try:
            self._store(event_type, payload, metadata['message_id'])
        except connection.ERRORS as exc:
            LOG.warning('An event of a webhook cannot be stored: %s', exc)
            self._sleep(_REQUEUE_S)
            return messaging.NotificationResult.REQUEUE
        except Exception:
            # The bus would return it again and again.
            LOG.exception('A notification %s cannot be read.', event_type)
        return messaging.NotificationResult.HANDLED

    # Failed evictions and reservations have the priority "error".
    error = info

    def _store(self, event_type, payload, message_id):
        project_id, told = webhook_delivery.describe(
            event_type, payload) or ('', {})
        if not project_id or webhooks.get(self._db, project_id) is None:
            return
        sent_at = payload['generated_at']
        dropped = webhooks.add(self._db, webhook_delivery.Delivery(
            message_id, project_id,
            json.dumps({'type': event_type, 'timestamp': sent_at,
                        'data': told}),
            webhook_delivery.expiry(
                event_type, told, webhook_delivery.parse_time(sent_at)),
            self._clock()))
        metrics.WEBHOOK_EVENTS.labels('dropped').inc(dropped)
        self._wake()


def make_listener(conf, transport, endpoint):
    """Return a listener of the notifications of nova_preempt."""
    return messaging.get_notification_listener(
        transport, [messaging.Target(topic=topic) for topic in
                    conf.preemption.notification_topics],
        [endpoint], executor='threading', allow_requeue=True, pool=POOL)
