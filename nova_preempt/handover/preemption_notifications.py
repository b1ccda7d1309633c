# SPDX-License-Identifier: Apache-2.0
"""Notifications and metrics of preemptions.

An event has the decision and, but for preemption.start, one victim.
"""

from collections.abc import Mapping
import concurrent.futures
import threading
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
import oslo_messaging as messaging
from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.db import decisions

LOG = logging.getLogger(__name__)

# Of the payload; the minor part counts what is added, the major part what is
# taken away or means something else.
VERSION = '1.1'

# By default a notification waits for ever until the bus is there again.
_RETRIES = 1

#: How many notifications may wait for a bus that hangs; some 20 MB of memory.
MOST_WAITING = 10_000

_TIME = '%Y-%m-%dT%H:%M:%SZ'


class Notifier:
    """Sends notifications, in order, from a thread of its own.

    Nobody waits for the bus: where it is away, or MOST_WAITING notifications
    wait for it, a notification is lost.

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
        """Send a notification soon.

        :param failed: whether it tells of an error
        """
        if not self._free.acquire(blocking=False):
            LOG.warning('The bus is too slow: notification %s is lost.', event)
            return
        emit = self._notifier.error if failed else self._notifier.info
        self._pool.submit(emit, {}, event, payload).add_done_callback(
            lambda _sent: self._free.release())

    def close(self) -> None:
        """Send what is still to be sent, unless the bus is away."""
        self._pool.shutdown(wait=False)


class Notifications:
    """Tells of preemptions.

    :param conf, host: see Notifier
    """

    def __init__(self, conf: cfg.ConfigOpts, host: str) -> None:
        self._notifier = Notifier(conf, host)

    def start(self, decision: decisions.Decision) -> None:
        """A server takes the space of its victims."""
        metrics.DECISIONS.labels(decision.operation).inc()
        self._emit('start', decision)

    def notice(self, decision: decisions.Decision, victim: decisions.Victim
               ) -> None:
        """A victim is told that it will end."""
        self._emit('notice', decision, victim)

    def end(self, decision: decisions.Decision, victim: decisions.Victim,
            status: str) -> None:
        """A victim has given its space up; status says how."""
        metrics.VICTIMS.labels(victim.action, status).inc()
        self._emit('end', decision, victim, status=status)

    def error(self, decision: decisions.Decision, victim: decisions.Victim,
              reason: str) -> None:
        """A victim did not end; it gets its space back."""
        metrics.STUCK.inc()
        self._emit('error', decision, victim, reason=reason)

    def restored(self, decision: decisions.Decision, victim: decisions.Victim
                 ) -> None:
        """A shelved victim runs again."""
        metrics.RESTORED.inc()
        self._emit('restored', decision, victim)

    def _emit(self, event: str, decision: decisions.Decision,
              victim: decisions.Victim | None = None, **more: str) -> None:
        self._notifier.send(f'preemption.{event}',
                            make_payload(decision, victim) | more,
                            event == 'error')


def make_payload(decision: decisions.Decision,
                 victim: decisions.Victim | None = None) -> dict[str, Any]:
    """The payload of a notification, as its documented samples have it."""
    payload = {
        'version': VERSION, 'decision_id': decision.uuid,
        'request_id': decision.request_id, 'operation': decision.operation,
        'asked_by': decision.record.get('asked_by', {}),
        'server': {'uuid': decision.server_uuid or None,
                   'project_id': decision.project_id, 'host': decision.host},
        'generated_at': f'{timeutils.utcnow():{_TIME}}'}
    return payload | (
        {'victim': _describe(victim)} if victim else
        {'victims': [_describe(item) for item in decision.victims]})


def _describe(victim: decisions.Victim) -> dict[str, Any]:
    return {
        'uuid': victim.server_uuid, 'project_id': victim.project_id,
        'user_id': victim.user_id, 'flavor': victim.flavor,
        'action': victim.action, 'notice_s': victim.notice_s,
        'deadline': victim.deadline and f'{victim.deadline:{_TIME}}',
        'restore': victim.restore}
