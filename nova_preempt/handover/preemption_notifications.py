# SPDX-License-Identifier: Apache-2.0
"""Notifications and metrics of preemptions.

An event has the decision and, except preemption.start, one victim.
"""

from collections.abc import Mapping
import concurrent.futures
import datetime
import threading
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
import oslo_messaging as messaging
from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.core import model
from nova_preempt.db import decisions

LOG = logging.getLogger(__name__)

# Of the payload; the minor part counts additions, the major part removals and
# changes of meaning.
VERSION = '1.1'

# By default oslo.messaging waits without end for the message bus.
_RETRIES = 1

#: The most notifications that wait for the bus; some 20 MB of memory.
MOST_WAITING = 10_000

_TIME = '%Y-%m-%dT%H:%M:%SZ'


class Notifier:
    """Sends notifications, in order, from a thread of its own.

    Callers never wait for the bus: a notification is lost if the bus is away,
    or if MOST_WAITING notifications wait for it.

    :param conf: nova.conf.CONF
    :param host: the name of the host that this service runs on
    """

    def __init__(self, conf: cfg.ConfigOpts, host: str) -> None:
        self._notifier = messaging.Notifier(
            messaging.get_notification_transport(conf),
            publisher_id=f'nova-preempt:{host}', retry=_RETRIES,
            topics=conf.preemption.notification_topics)
        self._pool = concurrent.futures.ThreadPoolExecutor(
            1, thread_name_prefix='notifications')
        self._free = threading.Semaphore(MOST_WAITING)

    def send(self, event: str, payload: Mapping[str, Any],
             failed: bool = False) -> None:
        """Queue a notification.

        :param failed: whether its priority is error
        """
        if not self._free.acquire(blocking=False):
            LOG.warning('The bus is too slow; %s was dropped.', event)
            return
        emit = self._notifier.error if failed else self._notifier.info
        self._pool.submit(emit, {}, event, payload).add_done_callback(
            lambda _sent: self._free.release())

    def close(self) -> None:
        """Send queued notifications without waiting for them."""
        self._pool.shutdown(wait=False)


class Notifications:
    """Emits notifications and metrics of preemptions.

    :param conf, host: see Notifier
    """

    def __init__(self, conf: cfg.ConfigOpts, host: str) -> None:
        self._notifier = Notifier(conf, host)

    def start(self, decision: decisions.Decision) -> None:
        """Report a claimed decision."""
        metrics.DECISIONS.labels(decision.operation).inc()
        self._emit('start', decision)

    def notice(self, decision: decisions.Decision, victim: decisions.Victim
               ) -> None:
        """Report the notice of a victim."""
        self._emit('notice', decision, victim)

    def recommendation(self, server: model.PreemptibleServer, reason: str,
                       until: datetime.datetime) -> None:
        """Report a recommendation that a server got."""
        self._notifier.send('preemption.recommendation', {
            'version': VERSION, 'reason': reason, 'until': f'{until:{_TIME}}',
            'server': {'uuid': server.uuid, 'project_id': server.project_id,
                       'user_id': server.user_id, 'flavor': server.flavor,
                       'host': server.host},
            'generated_at': f'{timeutils.utcnow():{_TIME}}'})

    def end(self, decision: decisions.Decision, victim: decisions.Victim,
            status: str) -> None:
        """Report the evicted victim and its status."""
        metrics.VICTIMS.labels(victim.action, status).inc()
        self._emit('end', decision, victim, status=status)

    def error(self, decision: decisions.Decision, victim: decisions.Victim,
              reason: str) -> None:
        """Report a victim whose eviction has failed."""
        metrics.STUCK.inc()
        self._emit('error', decision, victim, reason=reason)

    def restored(self, decision: decisions.Decision, victim: decisions.Victim
                 ) -> None:
        """Report a shelved victim that was restored."""
        metrics.RESTORED.inc()
        self._emit('restored', decision, victim)

    def _emit(self, event: str, decision: decisions.Decision,
              victim: decisions.Victim | None = None, **more: str) -> None:
        self._notifier.send(f'preemption.{event}',
                            make_payload(decision, victim) | more,
                            event == 'error')


def make_payload(decision: decisions.Decision,
                 victim: decisions.Victim | None = None) -> dict[str, Any]:
    """Return the payload of a notification, as in the samples."""
    payload = {
        'version': VERSION, 'decision_id': decision.uuid,
        'request_id': decision.request_id, 'operation': decision.operation,
        'asked_by': decision.record.get('asked_by', {}),
        'server': {'uuid': decision.server_uuid or None,
                   'project_id': decision.project_id, 'host': decision.host},
        'generated_at': f'{timeutils.utcnow():{_TIME}}'}
    return payload | ({'victim': _describe(victim)} if victim else {
        'victims': [_describe(item) for item in decision.victims]})


def _describe(victim: decisions.Victim) -> dict[str, Any]:
    return {
        'uuid': victim.server_uuid, 'project_id': victim.project_id,
        'user_id': victim.user_id, 'flavor': victim.flavor,
        'action': victim.action, 'notice_s': victim.notice_s,
        'deadline': victim.deadline and f'{victim.deadline:{_TIME}}',
        'restore': victim.restore}
