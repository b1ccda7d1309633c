# SPDX-License-Identifier: Apache-2.0
"""Notifications and metrics of waiting requests."""

from oslo_utils import timeutils

from nova_preempt.handover import preemption_notifications

# Of the payload; see nova_preempt.handover.preemption_notifications.VERSION.
VERSION = '1.0'

_TIME = '%Y-%m-%dT%H:%M:%SZ'


class RequestNotifications:
    """Tells of requests.

    :param conf, host: see
        nova_preempt.handover.preemption_notifications.Notifier
    """

    def __init__(self, conf, host):
        self._notifier = preemption_notifications.Notifier(conf, host)
        self.close = self._notifier.close

    def changed(self, request, old_state):
        """It is in another state.

        :param request: a core Request as it is now
        """
        self._notifier.send(
            f'backlog.{request.state}', make_payload(request, old_state),
            request.state == 'failed')


def make_payload(request, old_state):
    """The payload of a notification, as its documented samples have it."""
    return {
        'version': VERSION, 'request_id': request.uuid, 'name': request.name,
        'project_id': request.project_id, 'user_id': request.user_id,
        'class': request.class_name, 'status': request.state,
        'old_status': old_state, 'reason': request.reason,
        'count': request.count,
        'servers': [{'uuid': server.uuid, 'status': server.state}
                    for server in request.servers],
        'generated_at': f'{timeutils.utcnow():{_TIME}}'}
